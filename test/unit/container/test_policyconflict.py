"""Which policy a container has when its replicas disagree."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.base.timestamp import Timestamp
from swift.container.policyconflict import PolicyClaim, wins


def claim(index, put=1, delete=0, changed=1, count=0):
    return PolicyClaim(index, count, Timestamp(put), Timestamp(delete), Timestamp(changed))


CLAIMS = st.builds(claim, *[st.integers(0, 3)] * 5)


@pytest.mark.parametrize(
    ("theirs", "ours", "theirs_wins"),
    [
        (claim(1), claim(1, put=9), False),
        (claim(1, changed=1), claim(2, changed=2), True),
        (claim(1, changed=3), claim(2, changed=2), False),
        (claim(1), claim(2), True),
        (claim(2), claim(1), False),
        (claim(1), claim(2, put=1, delete=2), True),
        (claim(1, put=1, delete=2), claim(2), False),
        (claim(1, put=1, delete=2, count=5, changed=0), claim(2), True),
        (claim(1, delete=2, changed=5), claim(2, delete=2, changed=4), True),
        (claim(1, put=3, delete=2, changed=9), claim(2, changed=1), True),
        (claim(1, put=3, delete=2, changed=1), claim(2, put=5, delete=4, changed=2), False),
    ],
    ids=[
        "the same policy",
        "the older status",
        "the newer status",
        "times tie: the lower index",
        "times tie: the higher index",
        "ours is deleted",
        "theirs is deleted",
        "deleted but not empty",
        "both deleted: the newer",
        "only theirs was made again",
        "made again before the last deletion",
    ],
)
def test_one_of_two_is_right(theirs, ours, theirs_wins):
    assert wins(theirs, ours) is theirs_wins


@given(CLAIMS, CLAIMS)
def test_two_replicas_never_give_in_to_each_other_nor_both_insist(one, other):
    if one.index == other.index:
        assert not wins(one, other) and not wins(other, one)
    else:
        assert wins(one, other) != wins(other, one)


@given(st.lists(CLAIMS, min_size=1, max_size=4))
def test_claims_that_are_heard_again_change_nothing(claims):
    final = set()
    for order in itertools.permutations(claims):
        have = order[0]
        for heard in (*order[1:], *order):
            have = heard if wins(heard, have) else have
        assert not any(wins(heard, have) and wins(have, heard) for heard in claims)
        final.add(have.index)
    assert final <= {each.index for each in claims}

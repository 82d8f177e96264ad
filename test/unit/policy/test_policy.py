"""One storage policy."""

import pytest

from swift.policy.policy import ErasureCode, Policy, with_policy_suffix


@pytest.mark.parametrize(("index", "name"), [(0, "objects"), (1, "objects-1"), (12, "objects-12")])
def test_only_the_first_policy_has_no_number(index, name):
    assert with_policy_suffix("objects", index) == name


@pytest.mark.parametrize(
    ("code", "fragments", "replicas", "quorum"),
    [
        (ErasureCode("x", 4, 2), 6, 6, 5),
        (ErasureCode("x", 10, 4), 14, 14, 11),
        (ErasureCode("x", 4, 2, duplication=2), 6, 12, 10),
    ],
)
def test_a_coded_object_needs_one_archive_more_than_its_data(code, fragments, replicas, quorum):
    assert (code.fragments, code.replicas, code.quorum) == (fragments, replicas, quorum)


def test_a_policy_tells_its_ring_and_its_kind():
    coded = Policy(2, "deep", ec=ErasureCode("x", 4, 2))
    assert (coded.ring_name, coded.is_ec) == ("object-2", True)
    assert (Policy(0, "gold").ring_name, Policy(0, "gold").is_ec) == ("object", False)
    assert repr(coded) == "Policy(2, 'deep', ec 4+2)"

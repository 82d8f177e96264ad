"""Where things are on a device."""

import pytest

from swift.policy.policy import Policy
from swift.store import layout

GOLD, SILVER = Policy(0, "gold"), Policy(3, "silver")


def test_only_the_first_policy_has_no_number():
    assert layout.objects_dir("/srv/sda", GOLD) == "/srv/sda/objects"
    assert layout.partition_dir("/srv/sda", SILVER, "7") == "/srv/sda/objects-3/7"
    assert layout.temporary_dir("/srv/sda", SILVER) == "/srv/sda/tmp-3"
    assert layout.quarantine_kind(SILVER) == "objects-3"


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("abc", True),
        ("0f9", True),
        ("ABC", False),
        ("ab", False),
        ("abcd", False),
        ("xyz", False),
        ("", False),
    ],
)
def test_a_suffix_is_three_hex_digits(name, is_one):
    assert layout.is_suffix(name) is is_one


def test_the_end_of_a_hash_is_its_suffix():
    assert layout.suffix_of("0" * 29 + "abc") == "abc"

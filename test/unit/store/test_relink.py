"""Which files of an object count when its two places are taken together, while partitions are split."""

import pytest

from swift.policy.policy import ErasureCode
from swift.store.relink import required, target_partition

OLD, MID, NEW = "1000000001.00000", "1000000002.00000", "1000000003.00000"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ([f"{OLD}.data"], [], [f"{OLD}.data"]),
        ([f"{OLD}.data", f"{MID}.meta"], [f"{OLD}.data"], [f"{OLD}.data", f"{MID}.meta"]),
        ([f"{OLD}.data"], [f"{NEW}.data"], []),
        ([f"{OLD}.data"], [f"{NEW}.ts"], []),
        ([f"{NEW}.ts"], [f"{OLD}.data"], [f"{NEW}.ts"]),
        ([f"{OLD}.data", "strange"], [], [f"{OLD}.data"]),
    ],
)
def test_what_the_new_place_supersedes_is_not_required(old, new, expected):
    assert required(old, new, None) == expected


def test_fragments_that_are_not_durable_yet_are_required_as_well():
    ec = ErasureCode("liberasurecode_rs_vand", 2, 1)
    names = [f"{OLD}#0#d.data", f"{NEW}#1.data"]
    assert required(names, [], ec) == names
    assert required(names, [f"{NEW}#1#d.data"], ec) == [f"{NEW}#1.data"]


def test_the_next_partition_is_one_of_the_two_into_which_the_old_one_is_split():
    name_hash = "a7" + "0" * 30
    assert target_partition(name_hash, 3) == "5"
    assert target_partition(name_hash, 4) == "10"

"""What a run by hand is limited to."""

from swift.policy.policy import Policy
from swift.runtime.selection import Selection

POLICIES = [Policy(0, "gold"), Policy(1, "silver")]


def test_nothing_said_is_everything():
    everything = Selection.parse()
    assert not everything
    assert everything.filter_devices(["sda", "sdb"]) == ["sda", "sdb"]
    assert everything.includes_partition("7")
    assert everything.filter_policies(POLICIES) == POLICIES


def test_lists_are_what_is_wanted():
    some = Selection.parse(devices="sdb, sdz,", partitions="7,8", policies="1")
    assert some
    assert some.filter_devices(["sda", "sdb"]) == ["sdb"]
    assert [some.includes_partition(name) for name in ("7", "9")] == [True, False]
    assert some.filter_policies(POLICIES) == POLICIES[1:]

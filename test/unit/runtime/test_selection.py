"""What a run by hand is limited to."""

import pytest

from swift.base.errors import ConfigError
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


def test_names_that_do_not_exist_are_refused():
    Selection.parse("sda,sdb", "1", "0,1").check(["sda", "sdb"], POLICIES)
    for words, told in (
        ({"devices": "sdz"}, r"there is no device sdz among sda, sdb; did you mean sdb\?"),
        ({"policies": "7"}, r"there is no policy 7; policies: 0 \(gold\), 1 \(silver\)"),
        ({"policies": "gold"}, "--policies takes numbers, not 'gold'"),
        ({"partitions": "1,x"}, "--partitions takes numbers, not 'x'"),
    ):
        with pytest.raises(ConfigError, match=told):
            Selection.parse(**words).check(["sda", "sdb"], POLICIES)

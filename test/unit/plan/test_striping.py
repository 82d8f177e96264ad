"""Striping simulated: one client and several devices (doc/explanation/planning.md)."""

import pytest

from swift.plan import striping
from swift.plan.errors import PlanError


def times(*words):
    found = {}
    for setting in striping.parse_settings(["size_mib=256", *words]):
        for each in striping.predict(setting):
            found[each.devices, each.work] = each.times(setting.rate)
    return found


@pytest.fixture(scope="module")
def usual():
    return times("devices=1..8")


def test_one_node_is_one_device(usual):
    for devices in range(1, 9):
        assert usual[devices, striping.FROM_ONE] == pytest.approx(1, abs=0.02)
        assert usual[devices, striping.PUT_COPIES] == pytest.approx(1, abs=0.02)


def test_downloads_rise_almost_linearly_with_the_devices(usual):
    for devices in range(2, 9):
        assert 0.8 * devices < usual[devices, striping.STRIPED] < devices
    for devices in range(3, 9):
        assert usual[devices, striping.CODED] == pytest.approx(devices - 2, rel=0.03)
        assert usual[devices, striping.PUT_CODED] == pytest.approx(devices - 2, rel=0.03)


def test_a_lost_device_is_masked_by_parity(usual):
    assert usual[6, striping.CODED_LOST] > 3.8


def test_a_client_that_takes_less_is_the_bound():
    assert times("devices=6", "network_mb=50")[6, striping.CODED] == pytest.approx(2.5, rel=0.05)


def test_so_is_the_work_on_a_byte():
    slow = times("devices=6", "cores=1", "cpu_ns=20")
    assert slow[6, striping.STRIPED] <= 2.5
    assert slow[6, striping.CODED] <= 1.3


def test_a_slow_device_costs_archives_their_pace_and_replicas_its_share():
    slow = times("devices=6", "slow=0.25", "parity=1")
    assert slow[6, striping.STRIPED] > 4
    assert times("devices=3", "slow=0.25", "parity=2")[3, striping.CODED] == pytest.approx(1, abs=0.03)


def test_more_memory_is_no_worse_and_none_is_one_device():
    rates = [times("devices=6", f"memory_mib={m}")[6, striping.STRIPED] for m in (0, 16, 32, 64)]
    assert rates[0] == pytest.approx(1, abs=0.02)
    assert rates == sorted(rates)


def test_the_plan_is_the_proxys():
    (setting,) = striping.parse_settings(["devices=3", "size_mib=100", "memory_mib=32"])
    plans = {each.work: each.plan for each in striping.predict(setting)}
    assert plans[striping.STRIPED] == (
        "bytes 0-104857599: 25 units of 4194304 bytes from 3 nodes, 8 ahead, 33554432 bytes at most"
    )


def test_the_same_setting_says_the_same_again():
    assert times("devices=5") == times("devices=5")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("speed=5", "write NAME=NUMBER; names are"),
        ("rate_mb", "write NAME=NUMBER"),
        ("rate_mb=fast", "'fast' is not a number"),
        ("rate_mb=0", "not a number of at least 0.001"),
        ("rate_mb=nan", "not a number"),
        ("rate_mb=inf", "not a number"),
        ("cores=1e9", "at most 1024"),
        ("devices=0..3", "from 1 to 64"),
        ("devices=3..1", "from 1 to 64"),
        ("devices=1..65", "from 1 to 64"),
        ("devices=1..999999999", "write 1..8"),
        ("devices=", "write 1..8"),
        ("devices=1,x", "write 1..8"),
        ("devices=\u0661", "write 1..8"),
    ],
)
def test_a_bad_word_is_named(word, message):
    with pytest.raises(PlanError) as error:
        striping.parse_settings([word])
    assert message in str(error.value)

"""Tables of devices and tiers: every column stands below its title."""

from swift.ring.commands.tables import device_table, search_table, tier_table
from swift.ring.report import DispersionReport, TierReport


def device(**more):
    facts = {
        "id": 1,
        "region": 1,
        "zone": 2,
        "ip": "10.0.0.1",
        "port": 6200,
        "replication_ip": "10.1.0.1",
        "replication_port": 6300,
        "device": "sda",
        "weight": 100.0,
        "partitions": 7,
        "balance": -1.5,
        "removing": False,
        "meta": "",
    }
    return {**facts, **more}


def test_no_devices_are_a_title_alone():
    assert len(device_table([])) == len(search_table([])) == 1


def test_the_widest_value_makes_the_column():
    devices = [
        device(),
        device(id=12, ip="fe80::1234:5678:9abc", replication_port=65535, weight=123456789.5, meta="rack"),
    ]
    title, first, second = device_table(devices)
    for name in ("partitions", "balance"):
        end = title.index(name) + len(name)
        assert first[end] == second[end] == " " and first[end - 1] != " " and second[end - 1] != " "
    assert "[fe80::1234:5678:9abc]:6200" in second and second.endswith("rack")
    assert len({line.index(":6200") for line in (first, second)}) == 1


def test_only_devices_that_the_next_rebalance_removes_have_the_flag():
    _title, kept, going = device_table([device(), device(removing=True)])
    assert "DEL" not in kept and "DEL" in going


def test_a_search_shows_both_addresses_and_the_balance():
    _title, line = search_table([device(meta="rack 7")])
    assert line.split() == [
        *("1", "1", "2", "10.0.0.1", "6200", "10.1.0.1", "6300", "sda", "100.00", "7", "-1.50", "rack", "7")
    ]


def report_of(tiers):
    return DispersionReport(0.0, 0.0, 0.0, 0.0, None, tuple(tiers))


def test_tiers_have_a_column_for_each_number_of_replicas():
    tier = TierReport("r1z1-" + "x" * 40, parts=8, over_percent=12.5, most=1, counts=(0, 6, 2))
    rule, title, again, line = tier_table(report_of([tier]))
    assert rule == again and len(rule) == len(title) == len(line)
    assert title.split() == ["Tier", "Parts", "%", "Max", "0", "1", "2"]
    assert line.split() == [tier.name, "8", "12.50", "1", "0", "6", "2"]


def test_without_tiers_there_is_no_table():
    assert tier_table(report_of([])) == []

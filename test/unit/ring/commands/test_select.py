"""Naming devices on the command line of swift-ring-builder (ring.md §11 "Device arguments")."""

import pytest

from swift.ring.builder import RingBuilder
from swift.ring.commands import select
from swift.ring.commands.session import EXIT_ERROR, EndSubcommand, WrongUsage


def test_an_add_value_gives_every_field_and_replication_is_where_requests_go_unless_told():
    assert select.parse_add_value("r1z2-10.0.0.1:6200/sda") == {
        "region": 1,
        "zone": 2,
        "ip": "10.0.0.1",
        "port": 6200,
        "replication_ip": "10.0.0.1",
        "replication_port": 6200,
        "device": "sda",
        "meta": "",
    }
    told = select.parse_add_value("z2-[2001:DB8::0:1]:6200R10.1.0.1:6300/sdb_rack_7")
    assert "region" not in told
    assert (told["ip"], told["replication_ip"]) == ("2001:db8::1", "10.1.0.1")
    assert (told["replication_port"], told["device"], told["meta"]) == (6300, "sdb", "rack_7")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Invalid add value"),
        ("r1-10.0.0.1:6200/sda", "Invalid add value"),
        ("z1-10.0.0.1:6200", "Invalid add value"),
        ("z1-10.0.0.999:6200/sda", "Invalid ip 10.0.0.999"),
        ("z1-10.0.0.1/sda", "Invalid port"),
        ("z1-10.0.0.1:/sda", "Invalid port"),
        ("z1-10.0.0.1:65536/sda", "Invalid port :65536"),
        ("z1-10.0.0.1:6²/sda", "Invalid port"),
        ("z1-10.0.0.1:6200R10.1.0.1/sda", "Invalid port"),
        ("z1-10.0.0.1:6200/", "Invalid device name"),
        ("z1-10.0.0.1:6200/a/b", "Invalid device name"),
        ("z1-10.0.0.1:6200/ sda", "Invalid device name"),
    ],
)
def test_an_add_value_that_is_none_is_refused_with_what_is_wrong(text, said):
    with pytest.raises(select.BadValue, match=said.replace(":", ".")):
        select.parse_add_value(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("d74", {"id": 74}),
        ("z1-10.0.0.1", {"zone": 1, "ip": "10.0.0.1"}),
        (":6200", {"port": 6200}),
        ("[::1]", {"ip": "::1"}),
        ("R10.1.0.1", {"replication_ip": "10.1.0.1"}),
        ("R:6300", {"replication_port": 6300}),
        ("/sdb1", {"device": "sdb1"}),
        ("_rack7", {"meta": "rack7"}),
        ("d1r2z3-1.2.3.4:5R6.7.8.9:10/sda_x_y", None),
    ],
)
def test_each_part_of_a_search_value_may_stand_alone(text, wanted):
    found = select.parse_search_value(text)
    assert found == wanted if wanted is not None else len(found) == 9


@pytest.mark.parametrize("parse", [select.parse_search_value, select.parse_change_value])
@pytest.mark.parametrize("text", ["", "nonsense", "10.0.0.999"])
def test_values_that_name_nothing_are_refused(parse, text):
    with pytest.raises(select.BadValue):
        parse(text)


def test_a_change_value_cannot_change_id_region_or_zone():
    assert select.parse_change_value("10.0.0.9:6201/sdb_new") == {
        "ip": "10.0.0.9",
        "port": 6201,
        "device": "sdb",
        "meta": "new",
    }
    with pytest.raises(select.BadValue):
        select.parse_change_value("r1z2-10.0.0.9")


@pytest.mark.parametrize("text", [":65536", "R10.0.0.1:99999", ":" + "9" * 5000])
def test_no_device_is_moved_to_a_port_that_there_is_not(text):
    with pytest.raises(select.BadValue, match="Invalid .*port"):
        select.parse_change_value(text)


@pytest.mark.parametrize("option", ["--change-port", "--change-replication-port"])
def test_nor_by_an_option(option):
    with pytest.raises(select.BadValue, match="Invalid .*port 65536"):
        select.Arguments(["--id", "0", option, "65536"])


def test_a_number_that_is_too_long_names_no_device():
    with pytest.raises(select.BadValue, match="5000 digits"):
        select.parse_search_value("d" + "9" * 5000)


@pytest.mark.parametrize(
    ("text", "address"),
    [("[::0]", "::"), ("Host.Example.", "host.example"), ("a-1.b", "a-1.b"), ("10.0.0.1", "10.0.0.1")],
)
def test_addresses_have_one_spelling(text, address):
    assert select.parse_address(text) == address


@pytest.mark.parametrize("text", ["", ".", "a..b", "-a", "a-", "a_b", "x" * 64, ".".join(["a" * 60] * 5)])
def test_what_is_neither_address_nor_host_name_is_refused(text):
    with pytest.raises(select.BadValue, match="Invalid address"):
        select.parse_address(text)


@pytest.fixture
def builder():
    made = RingBuilder(4, 1, 0)
    for number, meta in enumerate(("rack1 old", "rack1", "rack2")):
        made.add_device(
            region=1, zone=number, ip=f"10.0.0.{number}", port=6200, device="sda", weight=1, meta=meta
        )
    return made


def test_meta_matches_anywhere_and_everything_else_exactly(builder):
    def ids(*texts):
        found = select.matching_any(builder, [select.parse_search_value(text) for text in texts])
        return [dev["id"] for dev in found]

    assert ids("_rack1") == [0, 1]
    assert ids("_ack") == [0, 1, 2]
    assert ids("/sd") == []
    assert ids("d2", "_rack1", "d0") == [0, 1, 2]


def test_a_search_is_by_options_or_by_values_but_never_by_both_or_none():
    assert select.Arguments(["--zone", "1"]).searches([]) == [{"zone": 1}]
    assert select.Arguments(["d1", "d2"]).searches(["d1", "d2"]) == [{"id": 1}, {"id": 2}]
    for argv, words in ((["--zone", "1", "d1"], ["d1"]), ([], [])):
        with pytest.raises(WrongUsage):
            select.Arguments(argv).searches(words)


def test_values_come_in_pairs_or_one_with_options():
    assert select.Arguments(["d1", "2", "d3", "4"]).value_pairs() == [({"id": 1}, "2"), ({"id": 3}, "4")]
    assert select.Arguments(["-i", "[::0]", "7"]).value_pairs() == [({"ip": "::"}, "7")]
    for argv in (["d1"], [], ["-r", "1"], ["-r", "1", "2", "3"]):
        with pytest.raises(WrongUsage):
            select.Arguments(argv).value_pairs()


def test_changes_are_kept_apart_from_what_is_looked_for():
    given = select.Arguments(["--ip", "10.0.0.1", "--change-ip", "Host", "-Q", "6300", "-y"])
    assert given.wanted == {"ip": "10.0.0.1"}
    assert given.changes == {"ip": "host", "replication_port": 6300}
    assert given.yes


@pytest.mark.parametrize("argv", [["--zone", "x"], ["--nonsense"], ["--weight"]])
def test_a_wrong_option_is_one_line_and_an_error(argv):
    with pytest.raises(EndSubcommand) as stopped:
        select.Arguments(argv)
    assert stopped.value.code == EXIT_ERROR
    assert str(stopped.value).startswith("swift-ring-builder: error: ")

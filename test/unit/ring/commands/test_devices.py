"""swift-ring-builder and devices: what is changed, what is refused, and that a refusal changes nothing."""

import io
import json

import pytest

from swift.ring.builder import RingBuilder
from swift.ring.commands import devices
from swift.ring.commands.session import EXIT_ERROR, EXIT_SUCCESS, BuilderSession, EndSubcommand, WrongUsage
from swift.ring.partpower import prepare_increase


class Bench:
    """A builder of four devices, and what is said about it."""

    def __init__(self, root, rebalanced=True):
        self.root = root
        self.path = root / "x.builder"
        self.builder = RingBuilder(4, 2, 0)
        for zone in range(1, 5):
            place = {"ip": f"10.0.0.{zone}", "port": 6200, "device": "sda", "meta": f"m{zone}"}
            self.builder.add_device(region=1, zone=zone, weight=100.0, **place)
        if rebalanced:
            self.builder.rebalance(seed=1)
        self.builder.save(str(self.path))
        self.before = self.path.read_bytes()

    def run(self, command, *argv, answer="n", as_json=False):
        """Exit code and output; a ``EndSubcommand`` is told like one."""
        self.session = BuilderSession(
            str(self.path),
            str(self.root / "x.ring.gz"),
            "x",
            RingBuilder.load(str(self.path)),
            as_json=as_json,
            out=io.StringIO(),
            err=io.StringIO(),
            ask=lambda question: answer,
        )
        try:
            code, text = command(self.session, list(argv)) or EXIT_SUCCESS, ""
        except EndSubcommand as stop:
            code, text = stop.code, stop.text
        return code, self.session.out.getvalue() + text

    @property
    def is_changed(self):
        return self.path.read_bytes() != self.before

    @property
    def devs(self):
        return [dev for dev in RingBuilder.load(str(self.path)).devs if dev is not None]


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


# --- adding


def test_devices_are_added_by_value_or_by_options(bench):
    code, out = bench.run(devices.add, "r1z9-10.0.0.9:6200/sda_meta", "50", "r2z1-[::1]:6201/sdb", "0")
    assert (code, out.count("got id")) == (EXIT_SUCCESS, 2)
    options = ["-r", "1", "-z", "1", "-i", "10.0.0.5", "-p", "6200", "-d", "sdc", "-w", "1.5"]
    assert bench.run(devices.add, *options)[0] == EXIT_SUCCESS
    assert [(dev["device"], dev["weight"]) for dev in bench.devs][4:] == [
        ("sda", 50.0),
        ("sdb", 0.0),
        ("sdc", 1.5),
    ]


def test_a_device_without_a_region_is_in_the_first_and_that_is_told(bench):
    bench.run(devices.add, "z9-10.0.0.9:6200/sda", "1")
    assert bench.devs[4]["region"] == 1
    assert "No region specified" in bench.session.err.getvalue()


@pytest.mark.parametrize(
    "argv",
    [
        ["r1z9-10.0.0.9:6200/sda", "heavy"],
        ["r1z9-10.0.0.9:6200/sda", "-1"],
        ["r1z9-10.0.0.9:6200/sda", "nan"],
        ["r1z9-10.0.0.9:6200/sda", "inf"],
        ["r1z9-10.0.0.9:6200/sda", "1e999"],
        ["nonsense", "1"],
        ["r1z9-10.0.0.9:65536/sda", "1"],
        ["r1z9-10.0.0.9:" + "9" * 5000 + "/sda", "1"],
        ["r1z1-10.0.0.1:6200/sda", "1"],
        ["r1z9-10.0.0.9:6200/sda", "1", "r1z9-10.0.0.9:6200/sda", "1"],
        ["r1z9-10.0.0.9:6200/sda", "1", "nonsense", "1"],
        ["-r", "1", "-z", "1", "-i", "10.0.0.5", "-p", "6200", "-d", "sdc"],
        ["-r", "1", "-z", "1", "-i", "10.0.0.5", "-p", "99999", "-d", "sdc", "-w", "1"],
    ],
)
def test_a_device_that_cannot_be_is_refused_and_none_of_its_command_is_added(bench, argv):
    code, out = bench.run(devices.add, *argv)
    assert (code, bench.is_changed) == (EXIT_ERROR, False)
    assert "on-disk ring builder is unchanged" in out and "got id" not in out


@pytest.mark.parametrize("argv", [[], ["r1z9-10.0.0.9:6200/sda"], ["a", "1", "-r", "1"], ["a", "1", "b"]])
def test_arguments_that_do_not_fit_are_wrong_usage(bench, argv):
    with pytest.raises(WrongUsage):
        bench.run(devices.add, *argv)
    assert not bench.is_changed


def test_nothing_is_added_or_removed_during_an_increase(bench):
    prepare_increase(bench.builder)
    bench.builder.save(str(bench.path))
    bench.before = bench.path.read_bytes()
    for command, argv in ((devices.add, ["r1z9-10.0.0.9:6200/sda", "1"]), (devices.remove, ["d0"])):
        code, out = bench.run(command, *argv)
        assert (code, bench.is_changed) == (EXIT_ERROR, False)
        assert "increase in progress" in out


# --- looking


def test_what_matches_is_shown(bench):
    code, out = bench.run(devices.search, "z2")
    assert code == EXIT_SUCCESS and "10.0.0.2" in out and "10.0.0.1" not in out
    _, out = bench.run(devices.search, "z2", as_json=True)
    assert [fact["zone"] for fact in json.loads(out)] == [2]


@pytest.mark.parametrize("command", [devices.search, devices.list_parts])
def test_what_matches_nothing_is_told_and_is_an_empty_list_for_programs(bench, command):
    assert bench.run(command, "z99") == (EXIT_ERROR, "No matching devices found\n")
    code, out = bench.run(command, "z99", as_json=True)
    assert (code, json.loads(out)) == (EXIT_ERROR, [])


def test_partitions_are_listed_with_how_many_of_their_copies_match(bench):
    code, out = bench.run(devices.list_parts, "r1", as_json=True)
    assert (code, json.loads(out)) == (0, [{"partition": part, "matches": 2} for part in range(16)])


def test_partitions_of_what_was_never_rebalanced_are_nowhere(tmp_path):
    code, out = Bench(tmp_path, rebalanced=False).run(devices.list_parts, "r1")
    assert code == EXIT_ERROR and "not rebalanced yet" in out


# --- changing


@pytest.mark.parametrize(
    ("command", "name", "value"),
    [(devices.set_weight, "weight", 7.5), (devices.set_region, "region", 3), (devices.set_zone, "zone", 9)],
)
def test_one_device_is_changed_without_a_question(bench, command, name, value):
    assert bench.run(command, "d1", str(value))[0] == EXIT_SUCCESS
    assert [dev[name] == value for dev in bench.devs] == [False, True, False, False]


@pytest.mark.parametrize(
    ("command", "value"),
    [
        *((devices.set_weight, value) for value in ("-1", "nan", "inf", "heavy", "")),
        *((devices.set_region, value) for value in ("-1", "1.5", "x", "9" * 5000)),
        *((devices.set_zone, value) for value in ("-1", "", "²")),
    ],
)
def test_a_value_that_cannot_be_is_refused_and_changes_nothing(bench, command, value):
    code, out = bench.run(command, "d0", "5", "d1", value)
    assert (code, bench.is_changed) == (EXIT_ERROR, False)
    assert "set to" not in out and "Traceback" not in out


@pytest.mark.parametrize("command", [devices.set_weight, devices.set_info, devices.remove])
def test_many_devices_are_changed_only_after_a_yes(bench, command):
    argv = {devices.set_weight: ["r1", "5"], devices.set_info: ["r1", "_new"], devices.remove: ["r1"]}[
        command
    ]
    code, out = bench.run(command, *argv)
    assert (code, bench.is_changed) == (EXIT_ERROR, False) and "Abort" in out
    assert bench.run(command, *argv, answer="y")[0] == EXIT_SUCCESS and bench.is_changed


@pytest.mark.parametrize("command", [devices.set_weight, devices.set_info, devices.remove])
def test_what_matches_nothing_changes_nothing(bench, command):
    argv = ["z99"] if command is devices.remove else ["z99", "5" if command is devices.set_weight else "_new"]
    code, out = bench.run(command, *argv)
    assert (code, bench.is_changed) == (EXIT_ERROR, False) and "matched 0 devices" in out


@pytest.mark.parametrize(
    ("command", "value"), [(devices.set_weight, "5"), (devices.set_zone, "5"), (devices.set_info, "_new")]
)
def test_nothing_is_said_to_be_changed_when_a_later_pair_is_refused(bench, command, value):
    code, out = bench.run(command, "d0", value, "d99", value)
    assert (code, bench.is_changed) == (EXIT_ERROR, False)
    assert "matched 0 devices" in out and "set to" not in out and "is now" not in out


def test_an_address_that_another_device_has_is_refused(bench):
    code, out = bench.run(devices.set_info, "d0", "_fine", "d1", "10.0.0.3:6200/sda")
    assert (code, bench.is_changed) == (EXIT_ERROR, False) and "is now" not in out


def test_a_device_has_a_new_address_and_the_others_their_old_ones(bench):
    assert bench.run(devices.set_info, "d1", "10.0.0.77:6201R10.1.0.77:6202/sdz_new")[0] == EXIT_SUCCESS
    dev = bench.devs[1]
    assert (dev["ip"], dev["port"], dev["replication_ip"], dev["replication_port"]) == (
        *("10.0.0.77", 6201),
        *("10.1.0.77", 6202),
    )
    assert (dev["device"], dev["meta"], bench.devs[0]["ip"]) == ("sdz", "new", "10.0.0.1")


def test_a_device_is_marked_once_and_goes_at_the_next_rebalance(bench):
    assert "will be removed next rebalance" in bench.run(devices.remove, "d1")[1]
    assert len(bench.devs) == 4
    assert bench.devs[1]["weight"] == 0

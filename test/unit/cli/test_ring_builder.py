"""swift-ring-builder: what the recorded session does not show (JSON, dry run, bad files, locks, help)."""

from __future__ import annotations

import fcntl
import io
import json
import os
import shutil
from pathlib import Path

import pytest

from swift.cli import ring_builder
from swift.ring.builder import RingBuilder
from swift.ring.ring import Ring

GOLDEN = Path(__file__).parent.parent.parent / "golden" / "data" / "rings"


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(place, capsys, monkeypatch):
    """Runs one command; returns (exit code, stdout, stderr)."""

    def call(*argv: str, answer: str = ""):
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        code = ring_builder.main(list(argv))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def small(run):
    """A rebalanced builder x.builder with four devices."""
    run("x.builder", "create", "6", "3", "1")
    for zone in range(4):
        code, out, _ = run("x.builder", "add", f"r1z{zone}-10.0.0.{zone}:6200/sda_m{zone}", "100")
        assert code == 0, out
    code, out, _ = run("x.builder", "rebalance", "--seed", "1", "--format-version", "1")
    assert code == 0, out
    return run


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["a", "3", "1"], "the part power must be a whole number, not 'a'"),
        (["4", "x", "1"], "replicas must be a number, not 'x'"),
        (["4", "nan", "1"], "replicas must be a number, not 'nan'"),
        (["4", "3", "1h"], "min_part_hours must be a whole number, not '1h'"),
    ],
)
def test_a_number_that_is_none_is_named(run, place, words, told):
    code, out, err = run("x.builder", "create", *words)
    assert code == 2 and told in out + err and not list(place.iterdir())


def test_help_is_given_with_an_example_for_everything(run):
    for argv in ([], ["--help"]):
        code, out, _ = run(*argv)
        assert code == 0
        assert out.startswith("swift-ring-builder 1.3\n")
        assert "Exit codes: 0 = success, 1 = done, with a warning, 2 = error" in out
    for name in ring_builder.COMMANDS:
        code, out, _ = run("x.builder", name, "--help")
        assert code == 0
        assert f"Example: swift-ring-builder object.builder {name}" in out


def test_a_rebalance_backs_up_both_files(small, place):
    names = sorted(name.partition(".")[2] for name in os.listdir(place / "backups"))
    assert "x.builder" in names
    assert "x.ring.gz" in names
    assert Ring(str(place / "x.ring.gz")).view().part_power == 6


@pytest.mark.parametrize(
    "argv",
    [
        ["rebalance", "--force", "--format-version", "1"],
        ["add", "r1z9-10.0.9.9:6200/sda", "5"],
        ["remove", "d1"],
        ["set_weight", "d1", "7"],
        ["set_info", "d1", "_new"],
        ["set_replicas", "2"],
        ["set_overload", "0.5"],
        ["set_min_part_hours", "9"],
        ["pretend_min_part_hours_passed"],
        ["dispersion", "--recalculate"],
        ["write_ring", "--format-version", "2"],
        ["create", "5", "2", "1"],
    ],
)
def test_a_dry_run_writes_nothing(small, place, argv):
    before = snapshot(place)
    code, _, _ = small("x.builder", *argv, "--dry-run")
    assert code == 0
    assert snapshot(place) == before


def test_every_report_can_be_json(small):
    summary = json.loads(small("x.builder", "--format", "json")[1])
    assert (summary["partitions"], summary["ring"]["state"]) == (64, "up-to-date")
    assert [dev["partitions"] for dev in summary["devices"]] == [48] * 4
    found = json.loads(small("x.builder", "search", "z2", "--format=json")[1])
    assert [dev["id"] for dev in found] == [2]
    parts = json.loads(small("x.builder", "list_parts", "d0", "--format", "json")[1])
    assert len(parts) == 48
    assert parts[0].keys() == {"partition", "matches"}
    tiers = json.loads(small("x.builder", "dispersion", "--format", "json")[1])
    assert (tiers["dispersion"], tiers["worst"]) == (0.0, None)
    assert len(tiers["tiers"]) == 13
    assert json.loads(small("x.builder", "validate", "--format", "json")[1]) == {"reason": "", "valid": True}
    version = json.loads(small("x.builder", "version", "--format", "json")[1])
    assert (version["format_version"], version["build_version"]) == (1, 5)
    result = json.loads(small("x.builder", "rebalance", "--format-version", "2", "--format", "json")[1])
    assert result["saved"] is False
    result = json.loads(small("x.builder", "rebalance", "-f", "--format-version=2", "--format", "json")[1])
    assert (result["saved"], result["changed"]) == (True, 0)


def test_an_unknown_report_format_is_refused(small):
    assert small("x.builder", "--format=xml") == (2, "--format must be text or json (was 'xml')\n", "")


@pytest.mark.parametrize(
    "content",
    [b"", b"garbage", b"\x80\x02}q\x00.", b"cos\nsystem\n(S'touch hacked'\ntR.", b"\x80\x02carray\narray\n."],
)
@pytest.mark.parametrize(
    "command", [[], ["rebalance"], ["create", "4", "3", "1"], ["validate"], ["write_ring"]]
)
def test_a_file_that_is_no_builder_stops_every_command_and_stays_as_it_is(run, place, content, command):
    (place / "x.builder").write_bytes(content)
    code, out, err = run("x.builder", *command)
    assert (code, err) == (2, "")
    assert out.startswith("Ring Builder file is invalid: x.builder")
    assert out.count("\n") == 1
    assert snapshot(place) == {str(place / "x.builder"): content}
    assert not (place / "backups").exists()


@pytest.mark.parametrize("name", ["a-v1.ring.gz", "a-v2.ring.gz"])
@pytest.mark.parametrize("command", ["version", "write_builder"])
def test_a_damaged_ring_is_one_line_and_changes_nothing(run, place, name, command):
    data = (GOLDEN / name).read_bytes()
    future = b"\x1f\x8b" + b"not really gzip"
    for content in (b"", b"garbage", data[:100], data[:300] + b"\0\0\0\0" + data[304:], future):
        (place / "x.ring.gz").write_bytes(content)
        before = snapshot(place)
        code, out, err = run("x.ring.gz", command, "5")
        assert (code, out) == (2, "")
        assert err.startswith("x.ring.gz: ")
        assert err.count("\n") == 1
        assert snapshot(place) == before
        assert not (place / "backups").exists()


def test_a_damaged_ring_is_reported_beside_a_sound_builder(small, place):
    (place / "x.ring.gz").write_bytes(b"garbage")
    code, out, _ = small("x.builder")
    assert code == 0
    assert "Ring file x.ring.gz is invalid: x.ring.gz: not a ring file (it is not gzip)\n" in out


def test_a_composite_file_is_recognised(run, place):
    shutil.copyfile(GOLDEN / "h.composite", place / "h.builder")
    assert run("h.builder") == (
        2,
        "Ring Builder file is invalid: h.builder (it appears to be a composite ring builder file?)\n",
        "",
    )


def test_the_safe_name_holds_the_lock_of_the_directory(small, place, monkeypatch):
    monkeypatch.setattr("sys.argv", ["/usr/bin/swift-ring-builder-safe"])
    monkeypatch.setattr(ring_builder, "LOCK_TIMEOUT_S", 0.05)
    assert small("x.builder", "validate")[0] == 0
    with open(place / ".lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        code, out, _ = small("x.builder", "validate")
    assert (code, out) == (2, "Ring/builder dir currently locked.\n")


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("Y\n", 0), ("n\n", 2), ("\n", 2), ("", 2)])
def test_several_matches_need_a_yes(small, answer, code):
    got, out, _ = small("x.builder", "set_weight", "r1", "7", answer=answer)
    assert got == code
    assert "Matched more than one device:\n    d0r1z0-" in out
    weights = {dev["weight"] for dev in RingBuilder.load("x.builder").live_devs}
    assert weights == ({7.0} if code == 0 else {100.0})


def test_a_partly_wrong_change_saves_nothing(small, place):
    before = snapshot(place)
    assert small("x.builder", "set_weight", "d0", "80", "z9", "70")[0] == 2
    assert small("x.builder", "add", "r1z9-10.0.9.9:6200/sda", "5", "r1z9-10.0.9.9:6200/sda", "5")[0] == 2
    assert snapshot(place) == before


def test_options_find_and_change_devices(small):
    assert small("x.builder", "set_weight", "--zone", "2", "33")[0] == 0
    code, out, _ = small("x.builder", "search", "--weight", "33")
    assert code == 0
    assert out.splitlines()[1].split()[0] == "2"
    code, out, _ = small("x.builder", "set_info", "-u", "2", "-I", "Host.example.com", "-M", "moved")
    assert 'is now d2r1z2-host.example.com:6200R10.0.0.2:6200/sda_"moved"' in out


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["add", "r1z1-10.0.0.9:99999/sda", "1"], "Invalid port :99999 in add value"),
        (["add", "r1z1-10.0.0.9:1/sda", "nan"], "device 4 has weight nan, not a number of at least 0"),
        (["add", "-r1", "-z1", "-i", "under_score", "-p1", "-dx", "-w1"], "Invalid address under_score"),
        (["set_weight", "d0", "-5"], "device 0 has weight -5.0, not a number of at least 0"),
        (["search", "d0x"], "Invalid <search-value>: 'd0x'"),
        (["search", ""], "Invalid <search-value>: ''"),
        (["search", "10.0.0"], "Invalid ip 10.0.0"),
        (["set_min_part_hours", "x"], "'x' is not a whole number of hours."),
        (["dispersion", "("], "Invalid search filter '(': missing ), unterminated subpattern at position 0"),
        (["search", "--bogus"], "swift-ring-builder: error: unrecognized arguments: --bogus"),
    ],
)
def test_bad_values_are_one_clear_line(small, argv, line):
    code, out, _ = small("x.builder", *argv)
    assert code == 2
    assert out.splitlines()[0] == line


def test_a_builder_is_made_from_a_ring(run, place):
    for name in ("a-v1", "c-v2", "f-v2-4byte", "h-composite"):
        shutil.copyfile(GOLDEN / f"{name}.ring.gz", place / f"{name}.ring.gz")
        assert run(f"{name}.ring.gz", "write_builder", "5") == (0, "", "")
        builder = RingBuilder.load(f"{name}.builder")
        builder.validate()
        assert builder.min_part_hours == 5
        assert builder.table().rows == Ring(f"{name}.ring.gz").view().rows
    (place / "a-v1.builder").unlink()
    code, _, err = run("a-v1.ring.gz", "write_builder")
    assert code == 0
    assert "default min_part_hours" in err


def test_a_composite_ring_has_no_build_version(run, place):
    shutil.copyfile(GOLDEN / "h-composite.ring.gz", place / "h.ring.gz")
    code, out, _ = run("h.ring.gz", "version")
    assert (code, out) == (0, "h.ring.gz: Serialization version: 1 (2-byte IDs), build version: none\n")


def test_wide_ids_need_version_2(small):
    code, out, _ = small("x.builder", "write_ring", "--format-version", "1", "--dev-id-bytes", "4")
    assert code == 2
    assert "Ring v1 only supports 2-byte dev IDs" in out
    assert small("x.builder", "write_ring", "--format-version", "2", "--dev-id-bytes", "4")[0] == 0
    assert Ring("x.ring.gz").view().dev_id_bytes == 4


def test_debug_shows_the_plan(small):
    code, out, _ = small("x.builder", "rebalance", "--debug", "-f", "--format-version", "1")
    assert code == 0
    assert "DEBUG: 1/2: weighted 0.7500 wanted 0.7500 target 0.7500" in out


def test_the_tables_widen_for_long_addresses_ports_and_weights(run):
    run("b.builder", "create", "4", "1", "1")
    run(
        *("b.builder", "add", "r1z1-[2001:0DB8:0:0::1]:6200/sd", "5"),
        *("r1z2-10.0.0.1:62000R10.0.0.2:7/sdb_meta", "100"),
        *("r10z20-10.0.0.3:6200/longdevname", "12345.678"),
    )
    assert run("b.builder")[1].splitlines()[5:] == [
        "Devices:   id region zone    ip address:port    replication ip:port  name   weight partitions "
        "balance flags meta",
        "            0      1    1 [2001:db8::1]:6200     [2001:db8::1]:6200    sd     5.00          0 "
        "-100.00       ",
        "            1      1    2      10.0.0.1:62000         10.0.0.2:7      sdb   100.00          0 "
        "-100.00       meta",
        "            2     10   20      10.0.0.3:6200          10.0.0.3:6200 longdevname 12345.68          0 "
        "-100.00       ",
    ]

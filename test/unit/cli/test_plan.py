"""swift-plan answers in text and JSON, and refuses in one line."""

import json

import pytest

from swift.cli import plan
from swift.plan.costs import KINDS, Costs, RequestCosts
from swift.ring.builder import RingBuilder


def said(capsys, *argv):
    code = plan.main(list(argv))
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def builder(tmp_path):
    made = RingBuilder(6, 3, 1)
    for zone in range(1, 5):
        made.add_device(region=1, zone=zone, ip=f"10.0.0.{zone}", port=6200, device="d", weight=100.0)
    made.rebalance(seed=1)
    path = tmp_path / "object.builder"
    made.save(str(path))
    return str(path)


def test_capacity_in_text_names_reasons_and_assumptions(capsys):
    code, out, err = said(capsys, "capacity", "--objects", "1e9", "--no-check")
    assert (code, err) == (0, "")
    for part in ("3 replicas", "EC 8+4", "part power", "why", "drive_failures_a_year = 0.02"):
        assert part in out


def test_capacity_in_json_takes_assumptions_of_a_file_and_of_options(capsys, tmp_path):
    file = tmp_path / "ours.toml"
    file.write_text("drive_bytes = 10e12\nfill = 0.5\n")
    options = ("--assume", str(file), "--set", "object_bytes=1000000", "--format", "json", "--policy", "3")
    code, out, _ = said(capsys, "capacity", "--objects", "1e9", "--objects", "1e6", *options)
    content = json.loads(out)
    figures = {each["name"]: each["value"] for each in content["plans"]["3 replicas"]["1000000000"]}
    assert (code, figures["drives"]) == (0, 600)
    assert content["assumptions"]["fill"]["value"] == 0.5
    assert content["checks"]["3 replicas"]["ratio"] == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize(
    "change",
    [
        ("--lose-zone", "2"),
        ("--add-zone-like", "r1z1"),
        ("--lose-device", "0"),
        ("--add-device", "r1z1-10.0.0.9:6200/e=100"),
        ("--weight", "0=50"),
    ],
)
def test_rings_tells_what_moves(capsys, builder, change):
    code, out, _ = said(capsys, "rings", builder, *change)
    assert code == 0
    assert "copies of partitions move" in out
    code, out, _ = said(capsys, "rings", builder, *change, "--format", "json")
    assert json.loads(out)["moved"] > 0


@pytest.mark.parametrize(
    "argv",
    [
        ("capacity", "--objects", "many"),
        ("capacity", "--objects", "nan"),
        ("capacity", "--policy", "x"),
        ("capacity", "--set", "fill=7"),
        ("capacity", "--assume", "/nowhere.toml"),
        ("rings", "/nowhere.builder", "--lose-zone", "1"),
        ("rings", "BUILDER", "--lose-zone", "9"),
        ("rings", "BUILDER", "--lose-device", "9"),
        ("rings", "BUILDER", "--weight", "0"),
        ("rings", "BUILDER", "--weight", "0=heavy"),
        ("rings", "BUILDER", "--weight", "0=-1"),
        ("rings", "BUILDER", "--add-device", "z1=5"),
        ("rings", "BUILDER", "--add-device", "r1z1-10.0.0.1:6200/d=5"),
        ("rings", "BUILDER", "--lose-zone", "1", "--rate-mb", "0"),
        ("simulate", "--overload", "--plot", "plot.bmp"),
        ("simulate", "--overload", "--plot", "/nowhere/plot.svg"),
        ("simulate", "--striping", "speed=5"),
        ("simulate", "--striping", "devices=0"),
        ("simulate", "--overload", "loads=none"),
        ("simulate", "--overload", "--profile", "/nowhere.json"),
        ("simulate", "--striping", "--profile", "/nowhere.json"),
        ("search", "--workload", "small-upload", "--profile", "/nowhere.json"),
        ("scale", "--workload", "small-upload", "--nodes", "5", "--profile", "/nowhere.json"),
        ("calibrate", "--check", "/nowhere.json"),
        ("calibrate", "--seconds", "0"),
        ("calibrate", "--policy", "gold=3"),
        ("calibrate", "--auth", "http://127.0.0.1:9/auth/v1.0", "--policy", "gold=many"),
        ("calibrate", "--auth", "http://127.0.0.1:9/auth/v1.0"),
        ("calibrate", "--auth", "nowhere"),
        ("calibrate", "--clients", "many"),
        ("calibrate", "--clients", "1.5"),
        ("calibrate", "--large-bytes", "5"),
        ("calibrate", "--port", "70000"),
        ("calibrate", "--json", "/nowhere/p.json"),
        ("search", "--workload", "small-upload", "--catalogue", "/nowhere.toml"),
        ("search", "--workload", "small-upload", "--plot", "front.bmp"),
        ("search", "--workload", "small-upload", "--seconds", "0"),
        ("scale", "--workload", "small-upload"),
        ("scale", "--workload", "small-upload", "--target", "0"),
        ("scale", "--workload", "small-upload", "--nodes", "0"),
    ],
)
def test_what_cannot_be_planned_is_one_line_and_an_exit_code(capsys, builder, argv):
    code, out, err = said(capsys, *(builder if word == "BUILDER" else word for word in argv))
    assert (code, out) == (1, "")
    assert err.startswith("swift-plan: ")
    assert err.count("\n") == 1


def test_a_file_that_is_no_toml_names_its_line(capsys, tmp_path):
    file = tmp_path / "bad.toml"
    file.write_text("fill = \n")
    code, _, err = said(capsys, "capacity", "--assume", str(file))
    assert code == 1
    assert "bad.toml" in err
    assert "line 1" in err


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--striping", "devices=1,3", "size_mib=32"), "GET of archives, one lost"),
        (("--overload", "loads=50,150", "seconds=3"), "devices do 100 MB/s, of which 30 MB/s are reserved"),
    ],
)
def test_striping_and_overload_are_printed_and_plotted(capsys, tmp_path, words, part):
    plot = tmp_path / "plot.svg"
    code, out, _ = said(capsys, "simulate", *words, "--plot", str(plot))
    assert code == 0
    assert part in out and "assumed" in out
    assert plot.read_text().startswith("<?xml")
    code, out, _ = said(capsys, "simulate", *words, "--format", "json")
    content = json.loads(out)
    assert code == 0
    assert content["assumed"] and (content.get("predicted") or content.get("outcomes"))


def test_a_profile_changes_what_is_predicted(capsys, tmp_path):
    profile = tmp_path / "p.json"
    dear = dict.fromkeys(KINDS, RequestCosts(0.05, 1e-10, 1, 0.05, 1e-10))
    profile.write_text(Costs(dear, 0.0, 1e-6, "here", 2).to_json())
    catalogue = tmp_path / "ours.toml"
    catalogue.write_text(CATALOGUE)
    argv = ("search", "--workload", "small-download", "--catalogue", str(catalogue), "--seconds", "0.1")
    rates = []
    for more in ((), ("--profile", str(profile))):
        code, out, _ = said(capsys, *argv, "--format", "json", *more)
        rates.append(max(each["found"]["rate"] for each in json.loads(out)["tried"]))
        assert code == 0
    assert rates[1] < 0.5 * rates[0]
    striping = ("simulate", "--striping", "devices=3", "size_mib=16", "--format", "json")
    code, out, _ = said(capsys, *striping, "--profile", str(profile))
    (setting,) = json.loads(out)["settings"]
    assert (code, setting["cores"], setting["cpu_s"]) == (0, 2, pytest.approx(2e-10))


CATALOGUE = """
[disks]
hdd = { seek_ms = 8, rotation_ms = 4, mb_s = 150 }
[proxies]
plain = { cores = 4, speed = 1, network_gb = 1, price = 10 }
[storages]
node = { cores = 4, speed = 1, memory_gib = 8, network_gb = 1, disk = "hdd", drives = 4, price = 12 }
[choose]
proxies = [1]
storage_nodes = [3, 5]
workers = [4]
"""


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_search_ranks_and_plots(capsys, tmp_path, kind):
    catalogue, plot = tmp_path / "ours.toml", tmp_path / f"front.{kind}"
    catalogue.write_text(CATALOGUE)
    argv = ("search", "--workload", "small-upload", "--catalogue", str(catalogue), "--seconds", "0.2")
    code, out, _ = said(capsys, *argv, "--plot", str(plot))
    assert code == 0
    assert "Never tried" in out
    assert plot.stat().st_size > 1000
    code, out, _ = said(capsys, *argv, "--format", "json")
    assert len(json.loads(out)["tried"]) == 2


def test_scale_meets_a_target_and_names_the_bottleneck(capsys, tmp_path):
    catalogue = tmp_path / "ours.toml"
    catalogue.write_text(CATALOGUE)
    argv = ("scale", "--workload", "small-upload", "--catalogue", str(catalogue), "--seconds", "0.2")
    code, out, _ = said(capsys, *argv, "--target", "500")
    assert code == 0
    assert "is met; what becomes the bottleneck first: disk" in out
    code, out, _ = said(capsys, *argv, "--nodes", "6", "--format", "json")
    assert json.loads(out)[0]["choice"]["nodes"] == 6

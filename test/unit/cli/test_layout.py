"""swift-layout: the command line, its output, and errors of one line."""

import json

import pytest

from swift.cli.layout import Context, main, make_parser
from swift.layout.edits import EditError
from swift.layout.operations import LayoutOperations, Objections
from swift.layout.plan import Usage
from swift.ring.layoutfiles import LayoutFolder
from swift.ring.ringfile import load_table
from test.support.layouts import ManualTime, MemoryLayoutStore, make_builder

DEVICES = [(1, zone, f"10.0.0.{zone}", f"sd{letter}", 100.0) for zone in (1, 2, 3, 4) for letter in "bc"]


class Node:
    """A node with a layout in memory, and the commands that change it."""

    def __init__(self, folder):
        self.folder = folder
        for name in ("account", "container", "object"):
            make_builder(DEVICES).save(str(folder / f"{name}.builder"))
        self.operations = LayoutOperations(MemoryLayoutStore(), ManualTime().time)

    def run(self, line):
        args = make_parser().parse_args(["-d", str(self.folder), *line.split()])
        return args.act(Context(args, self.operations, Usage))


@pytest.fixture
def node(tmp_path, capsys):
    made = Node(tmp_path)
    assert made.run("init") == 0
    capsys.readouterr()
    return made


def output(node, capsys, line):
    assert node.run(line) == 0
    return capsys.readouterr().out


def test_the_rings_of_a_cluster_are_taken_over_and_published(tmp_path):
    node = Node(tmp_path)
    assert node.run("init") == 0
    installed = LayoutFolder(str(tmp_path)).installed()
    assert installed.manifest.version == 1
    assert set(installed.manifest.files) == {
        f"{name}.{kind}" for name in ("account", "container", "object") for kind in ("builder", "ring.gz")
    }
    with pytest.raises(EditError, match="has a layout already"):
        node.run("init")


def test_a_directory_without_builders_is_no_beginning(tmp_path):
    node = Node(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(EditError, match="no builders"):
        node.run(f"init --from {tmp_path}/empty")


def test_a_change_is_staged_planned_and_applied(node, capsys):
    assert "staged: drain 10.0.0.1/sdb (1 in all)" in output(node, capsys, "drain 10.0.0.1/sdb")
    plan = output(node, capsys, "plan")
    assert "ring object: " in plan and "10.0.0.1/sdb gives 6" in plan and "time: about" in plan
    assert "copies move; see: swift-layout watch" in output(node, capsys, "apply")
    shown = output(node, capsys, "show")
    assert "change 1" in shown and "none has reported yet" in shown
    assert "running" in output(node, capsys, "history")


def test_what_speaks_against_a_plan_is_told_and_forced(node, capsys):
    node.run("drain z3")
    node.run("drain z4")
    assert node.run("plan") == 1
    assert "against it: ring account: " in capsys.readouterr().out
    with pytest.raises(Objections):
        node.run("apply")
    assert node.run("apply --force") == 0


@pytest.mark.parametrize(
    ("line", "staged"),
    [
        ("add r1z5-10.0.0.5/sdb 100 --rings account", "add r1z5-10.0.0.5/sdb with weight 100 in account"),
        ("remove z4", "remove z4"),
        ("weight 10.0.0.1 50", "weight 10.0.0.1 to 50"),
        ("zone 10.0.0.1 r1z9", "zone 10.0.0.1 to r1z9"),
        ("replace 10.0.0.1/sdb 10.0.0.1/sdf", "replace 10.0.0.1/sdb by 10.0.0.1/sdf"),
        ("replicas object 4", "replicas 4 in object"),
        ("overload 0.1 --rings object", "overload 0.1 in object"),
        ("policy object-1 --like object", "policy like object, 0 replicas in object-1"),
    ],
)
def test_each_change_can_be_staged_and_discarded(node, capsys, line, staged):
    assert f"staged: {staged} (1 in all)" in output(node, capsys, line)
    output(node, capsys, "discard")
    assert "staged" not in output(node, capsys, "show")


def test_programs_get_json(node, capsys):
    node.run("drain 10.0.0.1/sdb")
    capsys.readouterr()
    plan = json.loads(output(node, capsys, "--format json plan"))
    assert plan["moves"] >= 18 and plan["objections"] == [] and plan["rate_is_measured"] is False
    node.run("apply")
    capsys.readouterr()
    shown = json.loads(output(node, capsys, "--format json show"))
    assert shown["rings"]["object"]["moving"] and shown["rings"]["object"]["moves_total"] >= 6
    (change,) = json.loads(output(node, capsys, "--format json history"))["changes"]
    assert change["text"] == "drain 10.0.0.1/sdb"


def test_steps_are_paused_reverted_and_exported(node, capsys, tmp_path):
    node.run("drain 10.0.0.1/sdb")
    node.run("apply")
    output(node, capsys, "pause rack-4")
    assert "paused: rack-4" in output(node, capsys, "show")
    output(node, capsys, "resume")
    assert "revert change 1" in output(node, capsys, "revert")
    output(node, capsys, f"export {tmp_path}/out")
    assert load_table(f"{tmp_path}/out/object.ring.gz").partition_count == 16


def test_a_node_without_a_pipeline_says_so_in_one_line(tmp_path, capsys):
    assert main(["-d", str(tmp_path), "show"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_node_without_the_layouts_key_fetches_nothing(tmp_path, capsys):
    (tmp_path / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = a\n")
    assert main(["-d", str(tmp_path), "-t", "0.5", "fetch", "--from", "127.0.0.1:1"]) == 1
    assert "127.0.0.1:1" in capsys.readouterr().err
    assert main(["-d", str(tmp_path), "fetch", "--from", "nowhere"]) == 1
    assert "is not IP:PORT" in capsys.readouterr().err

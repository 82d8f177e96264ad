"""swift-get-nodes beyond what is compared with the peer: JSON, and arguments that name nothing."""

import json

import pytest

from swift.cli.get_nodes import main
from test.support.peer import SWIFT_CONF, make_rings

DEVICES = [(f"10.0.0.{number}", 6200, "sda") for number in range(1, 6)]


@pytest.fixture
def etc(tmp_path):
    (tmp_path / "swift.conf").write_text(SWIFT_CONF)
    make_rings(tmp_path, DEVICES)
    return tmp_path


@pytest.fixture
def told(etc, capsys):
    """What a command line is answered as JSON."""

    def ask(*words):
        assert main(["-d", str(etc), "--format", "json", *map(str, words)]) == 0
        return json.loads(capsys.readouterr().out)

    return ask


def test_json_has_primaries_before_handoffs_and_each_device_once(told):
    found = told("-P", "silver", "--all", "AUTH_test/c/o")
    assert [node["handoff"] for node in found["nodes"]] == [False] * 3 + [True] * 2
    assert len({node["id"] for node in found["nodes"]}) == len(DEVICES)
    assert (found["path"], found["directory"], found["policy_index"]) == ("/AUTH_test/c/o", "objects-1", 1)


def test_a_policy_leads_containers_and_accounts_to_their_own_rings(told, etc):
    for words, kind in ((("a",), "account"), (("a", "c"), "container")):
        by_policy, by_ring = told("-P", "silver", *words), told(etc / f"{kind}.ring.gz", *words)
        assert by_policy == by_ring
        assert (by_policy["directory"], by_policy["policy_index"]) == (f"{kind}s", None)


def test_quoted_names_are_the_same_as_plain_ones(told, etc):
    ring = etc / "object.ring.gz"
    assert told(ring, "-Q", "a/c/o%201%2Fx") == told(ring, "a", "c", "o 1/x")


def test_a_partition_has_nodes_but_no_name(told, etc):
    found = told(etc / "object-1.ring.gz", "-p", "3")
    assert (found["partition"], found["hash"], found["path"]) == (3, None, None)
    assert len([node for node in found["nodes"] if not node["handoff"]]) == 3
    assert told(etc / "object-1.ring.gz", "-p", "99")["nodes"] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a/c/o"], "Need to specify policy_name or <ring.gz>"),
        (["-P", "nosuch", "a"], "No policy named 'nosuch'"),
        (["nosuch.ring.gz", "a"], "Ring file does not exist"),
        (["-P", "gold"], "No target specified"),
        (["-P", "gold", "a", "", "o"], "Invalid arguments"),
        (["-P", "gold", "a", "c", "o", "p"], "Invalid arguments"),
        (["-P", "gold", "{etc}/object.ring.gz", "a"], "Invalid arguments"),
        (["-P", "gold", "-p", "-1"], "There is no partition -1"),
        (["{etc}/object.ring.gz", "-p", "-1"], "There is no partition -1"),
    ],
)
def test_what_names_nothing_is_one_line_beside_the_help(etc, capsys, words, said):
    assert main(["-d", str(etc), *(word.format(etc=etc) for word in words)]) == 1
    assert capsys.readouterr().err == f"ERROR: {said}\n"


@pytest.mark.parametrize("file", ["swift.conf", "object.ring.gz"])
def test_files_that_cannot_be_read_are_one_line(etc, capsys, file):
    (etc / file).write_bytes(b"\x00nothing")
    assert main(["-d", str(etc), "-P", "gold", "a/c/o"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("swift-get-nodes: ")
    assert file in line


def test_nodes_with_the_packed_engine_have_a_command_of_their_own(etc, capsys):
    conf = (etc / "swift.conf").read_text()
    words = ["-d", str(etc), "-P", "gold", "AUTH_test/c/o"]

    def dumps(*more):
        assert main([*words, *more]) == 0
        return [line for line in capsys.readouterr().out.splitlines() if "swift-object-volumes dump" in line]

    assert dumps() == []
    lines = dumps("--packed")
    assert len(lines) == 5 and lines[0].startswith("ssh 10.0.0.") and "--device sda" in lines[0]
    for engine, count in (("egg:swift#replication.packed", 5), ("egg:other#engine", 0)):
        option = f"name = gold\ndiskfile_module = {engine}\n"
        (etc / "swift.conf").write_text(conf.replace("name = gold\n", option))
        assert len(dumps()) == count
        # The ring of the default policy, without its name.
        words[2:4] = [str(etc / "object.ring.gz")]
        assert len(dumps()) == count
        words[2:3] = ["-P", "gold"]

"""What swift-account-info and swift-container-info share: which files they take, JSON, locks, bad rings."""

import json
import shutil

import pytest

from swift.account.broker import AccountBroker
from swift.base.entity import EntityPath
from swift.base.errors import LockTimeout
from swift.base.timestamp import Timestamp
from swift.cli import account_info, container_info
from swift.db.broker import Engine
from swift.db.files import DatabasePath
from swift.operations.info import EXIT_STALE, DatabaseFacts, NoDatabase, open_database_path
from swift.operations.info import run as run_tool
from test.support.databases import HASH, make_container
from test.support.peer import SWIFT_CONF, make_rings


@pytest.fixture
def etc(tmp_path):
    folder = tmp_path / "etc"
    folder.mkdir()
    (folder / "swift.conf").write_text(SWIFT_CONF)
    return folder


@pytest.fixture
def container(tmp_path):
    """The file of a container ``a/c``."""
    broker = make_container(tmp_path)
    broker.update_metadata({"X-Container-Meta-Color": ("blue", Timestamp(6).internal)})
    broker.close()
    return broker.place.file()


@pytest.fixture
def account(tmp_path):
    """The file of an account ``a``."""
    (tmp_path / "sdb").mkdir()
    broker = AccountBroker(DatabasePath(str(tmp_path / "sdb"), "accounts", "7", HASH), Engine(), "a")
    broker.create(Timestamp(5), created_at=Timestamp(5))
    broker.close()
    return broker.place.file()


@pytest.fixture
def run(etc, capsys):
    """Runs a tool: exit code, output, errors."""

    def call(tool, file, *words):
        code = tool.main(["-d", str(etc), *words, str(file)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_json_tells_names_policy_and_metadata(run, account, container):
    code, out, _ = run(container_info, container, "--format", "json")
    told = json.loads(out)
    assert (code, told["path"], told["storage_policy"]) == (0, "/a/c", "gold (0)")
    assert told["metadata"]["X-Container-Meta-Color"] == "blue"
    assert (told["deleted"], told["location"], told["syncs"]) == (False, None, {})
    told = json.loads(run(account_info, account, "--format", "json", "--sync")[1])
    assert (told["path"], told["container_count"]) == ("/a", "0")
    assert told["syncs"] == {"incoming": [], "outgoing": []}


def test_with_a_ring_it_tells_where_the_database_belongs(run, etc, container):
    make_rings(etc, [(f"10.0.0.{number}", 6201, "sda") for number in range(3)], names=("container",))
    located = json.loads(run(container_info, container, "--format", "json")[1])["location"]
    assert [node["handoff"] for node in located["nodes"]] == [False] * 3
    assert "Server:Port Device" in run(container_info, container)[1]


def test_a_ring_that_cannot_be_read_is_one_line(run, etc, container):
    (etc / "container.ring.gz").write_bytes(b"nothing")
    code, out, err = run(container_info, container)
    assert (code, out, len(err.splitlines())) == (1, "", 1)
    assert "container.ring.gz" in err


def test_a_copy_of_a_database_tells_the_same_wherever_it_lies(run, container, tmp_path):
    copy = shutil.copy(container, tmp_path / "copy.db")
    assert run(container_info, copy) == run(container_info, container)
    with open_database_path(str(copy), "container") as place:
        assert place.file() != str(copy)


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_locked_database_is_told_from_a_copy_and_its_warning_does_not_spoil_json(
    etc, container, capsys, form
):
    asked = []

    def ask(place, engine, cluster, args):
        asked.append(place.file())
        if len(asked) == 1:
            raise LockTimeout(place.file(), 25.0)
        return DatabaseFacts(EntityPath("a", "c"), False, [("Object Count", "3")], {})

    assert run_tool("container", ask, ["-d", str(etc), "--format", form, container]) == EXIT_STALE
    assert asked[0] == container != asked[1]
    said = capsys.readouterr()
    warned = {"text": said.out, "json": said.err}[form]
    assert warned.startswith("WARNING: Possibly Stale Data\n")
    if form == "json":
        assert json.loads(said.out)["object_count"] == "3"


def test_prefixes_are_left_out_when_told(run, container):
    assert "X-Container-Meta-Color: blue" in run(container_info, container)[1]
    dropped = run(container_info, container, "--drop-prefixes")[1].splitlines()
    assert "    Color: blue" in dropped


@pytest.mark.parametrize("name", ["nosuch.db", "text", "sda"])
def test_what_is_no_file_of_a_database_is_refused(tmp_path, name):
    (tmp_path / "sda").mkdir()
    (tmp_path / "text").write_text("x")
    with pytest.raises(NoDatabase), open_database_path(str(tmp_path / name), "container"):
        pass


@pytest.mark.parametrize("content", [b"", b"nonsense" * 1000])
@pytest.mark.parametrize("tool", [account_info, container_info])
def test_a_file_that_holds_no_such_database_is_one_line(run, tmp_path, tool, content):
    file = tmp_path / "wrong.db"
    file.write_bytes(content)
    code, out, err = run(tool, file)
    assert (code, err, len(out.splitlines())) == (1, "", 1)


def test_databases_of_the_other_kind_are_refused(run, account, container):
    for tool, file in ((account_info, container), (container_info, account)):
        code, out, _ = run(tool, file)
        assert code == 1
        assert "Does not appear to be a DB of type" in out


def test_without_a_file_it_tells_how_it_is_used(capsys):
    for tool in (account_info, container_info):
        assert tool.main([]) == 1
        assert "usage: " in capsys.readouterr().out

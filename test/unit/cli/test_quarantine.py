"""swift-quarantine: damaged things are listed with their reason, and only sound ones go back."""

import json
import os
import pwd
import time

import pytest

from swift.base.clock import SystemClock
from swift.base.entity import EntityPath
from swift.base.hashing import PathHasher
from swift.base.timestamp import Timestamp
from swift.cli.quarantine import main, make_parser
from swift.compose import cluster_of
from swift.container.broker import ContainerBroker
from swift.db import files
from swift.db.broker import Engine
from swift.db.files import DatabasePath
from swift.platform.devices import Devices
from swift.platform.disk import Disk
from swift.store.api import LIVE, Location, ObjectKey, ReadOptions
from swift.store.packed.settings import PackedSettings
from swift.store.registry import EngineParts, file_store, packed_store
from test.contract.test_store import post, put, read, ts
from test.support.peer import SWIFT_CONF, make_rings

VIEW = ReadOptions(time.time())


class Node:
    """One device with an engine, and the command."""

    def __init__(self, root, capsys):
        self.root, self._capsys = root, capsys
        (root / "etc").mkdir()
        (root / "etc/swift.conf").write_text(SWIFT_CONF)
        make_rings(
            root / "etc", [("10.0.0.1", 6200, "sda")], replicas=1, names=("account", "container", "object")
        )
        (root / "srv/sda").mkdir(parents=True)
        cluster = cluster_of({"swift_dir": str(root / "etc")})
        self.hasher: PathHasher = cluster.config.hasher
        self.policy = cluster.policies.get(0)
        self.devices = Devices(str(root / "srv"), mount_check=False)
        self.store = file_store(EngineParts(self.devices, self.hasher, SystemClock(), reclaim_age_s=1e9))

    def __call__(self, *words):
        options = ["--devices", str(self.root / "srv"), "-d", str(self.root / "etc"), "--format", "json"]
        code = main([*options, *words])
        out = self._capsys.readouterr()
        return code, json.loads(out.out) if out.out else out.err

    def key(self, name="o"):
        path = EntityPath("AUTH_a", "c", name)
        digest = self.hasher.digest(*path)
        partition = str(int.from_bytes(digest[:4]) >> (32 - self.part_power))
        return ObjectKey("sda", partition, self.policy, path, digest.hex())

    part_power = 4

    def quarantined(self, name="o", reason="rot"):
        """Store an object and move it away; its path in the quarantine."""
        key = self.key(name)
        put(self.store, key, ts(10))
        self.store.maintenance.quarantine(Location("sda", key.partition, key.policy, key.hash), reason)
        return str(self.root / f"srv/sda/quarantined/objects/{key.hash}")

    def database(self):
        """The same with a container."""
        name_hash = self.hasher.hexdigest("AUTH_a", "c")
        partition = str(int(name_hash[:8], 16) >> (32 - self.part_power))
        place = DatabasePath(str(self.root / "srv/sda"), "containers", partition, name_hash)
        broker = ContainerBroker(place, Engine(), "AUTH_a", "c")
        broker.refresh()
        broker.create(Timestamp(1), 0, created_at=Timestamp(1))
        broker.close()
        return place, files.quarantine(Disk(), place, "malformed")


@pytest.fixture
def node(tmp_path, capsys):
    return Node(tmp_path, capsys)


def test_everything_is_listed_with_its_reason_and_where_it_was(node):
    path, (place, moved) = node.quarantined(reason="MD5 differs"), node.database()
    code, found = node("list")
    assert code == 0
    assert {(each["path"], each["reason"], each["origin"]) for each in found} == {
        (path, "MD5 differs", f"objects/{node.key().partition}/{node.key().hash[-3:]}/{node.key().hash}"),
        (moved, "malformed", place.directory.partition("/sda/")[2]),
    }
    assert [each["path"] for each in node("list", "--kind", "containers")[1]] == [moved]
    assert node("list", "--kind", "accounts") == (0, [])


def test_devices_that_are_not_there_are_not_called_empty(node):
    code, error = node("list", "--device", "sdz")
    assert code == 1 and error.endswith("/srv/sdz is no mounted device; mounted there: sda\n")
    (node.root / "srv").rename(node.root / "elsewhere")
    code, error = node("list")
    assert code == 1 and "/srv" in error


def test_a_sound_object_goes_back_and_can_be_read(node):
    path = node.quarantined()
    assert node("why", path)[1][0] | {"moved": 0} == {
        "path": path,
        "device": "sda",
        "kind": "objects",
        "hash": node.key().hash,
        "reason": "rot",
        "origin": path.replace(
            "quarantined/objects", f"objects/{node.key().partition}/{path[-3:]}"
        ).partition("/sda/")[2],
        "moved": 0,
        "name": "/AUTH_a/c/o",
        "is_sound": True,
        "problem": None,
    }
    code, results = node("restore", path)
    assert (code, results[0]["is_left"]) == (0, False)
    assert node.store.stat(node.key(), VIEW).kind == LIVE
    assert node("list") == (0, [])


@pytest.mark.parametrize("damage", ["body", "metadata", "name", "empty"])
def test_a_damaged_object_stays_in_the_quarantine(node, damage):
    path = node.quarantined()
    file = f"{path}/{os.listdir(path)[0]}"
    if damage == "body":
        with open(file, "r+b") as body:
            body.write(b"\xff")
    elif damage == "metadata":
        os.setxattr(file, "user.swift.metadata", b"junk")
    elif damage == "empty":
        os.unlink(file)
    else:
        path = f"{path[:-4]}0{path[-3:]}"
        os.rename(os.path.dirname(file), path)
    code, results = node("restore", path)
    assert code == 1 and results[0]["error"]
    assert os.path.isdir(path)
    assert node("why", path)[1][0]["is_sound"] is False


def test_what_replication_brought_back_meanwhile_is_kept(node):
    path = node.quarantined()
    put(node.store, node.key(), ts(20), b"newer")
    assert node("restore", path)[0] == 0
    with node.store.edit(node.key(), VIEW, create=False) as edit:
        assert edit.state.data_timestamp == ts(20)


def test_a_database_goes_back_if_it_is_sound_and_none_is_there_again(node):
    place, moved = node.database()
    assert node("why", moved)[1][0]["name"] == "AUTH_a/c"
    assert node("restore", moved)[0] == 0
    assert os.path.exists(place.file())
    again = files.quarantine(Disk(), place, "malformed")
    os.makedirs(place.directory)
    open(place.file(), "wb").close()
    code, results = node("restore", again)
    assert code == 1 and "there again" in results[0]["error"]


def test_a_damaged_database_stays(node):
    place, moved = node.database()
    with open(f"{moved}/{place.name_hash}.db", "r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * 8192)
    code, results = node("restore", moved)
    assert code == 1 and "damaged" in results[0]["error"]
    assert not os.path.exists(place.directory)


def test_nothing_is_removed_without_yes_or_before_its_time(node):
    path = node.quarantined()
    assert node("purge")[1][0]["removed"] is False
    assert node("purge", "--older-than", "1", "--yes") == (0, [])
    assert os.path.isdir(path)
    assert node("purge", path, "--yes")[1][0]["removed"] is True
    assert not os.path.exists(path)


@pytest.mark.parametrize("command", ["why", "restore", "purge"])
def test_only_what_is_in_a_quarantine_can_be_named(node, command):
    put(node.store, node.key(), ts(10))
    directory = node.root / f"srv/sda/objects/{node.key().partition}"
    more = ["--yes"] if command == "purge" else []
    for path in (directory, node.root / "etc", node.root / "srv/sda/quarantined/objects/none"):
        assert node(command, str(path), *more)[0] == 1
    assert node.store.stat(node.key(), VIEW).kind == LIVE


def test_an_unreadable_object_can_be_moved_away_by_hand_so_that_replication_makes_it_anew(node):
    key = node.key()
    put(node.store, key, ts(10))
    node.store.hashes("sda", key.partition, key.policy)
    directory = node.root / f"srv/sda/objects/{key.partition}/{key.hash[-3:]}/{key.hash}"
    assert node("add", str(directory), "--reason", "bad sector")[0] == 0
    assert node("list")[1][0]["reason"] == "bad sector"
    # The suffix is marked, so that replicators notice.
    assert key.hash[-3:] not in node.store.hashes("sda", key.partition, key.policy)
    assert node("add", str(directory.parent), "--reason", "x")[0] == 1


class PackedNode(Node):
    """The same with the packed engine."""

    def __init__(self, root, capsys):
        super().__init__(root, capsys)
        conf = root / "etc/swift.conf"
        option = (
            "[storage-policy:0]\nname = gold\ndefault = yes\ndiskfile_module = egg:swift#replication.packed\n"
        )
        conf.write_text(f"{SWIFT_CONF.partition('[storage-policy')[0]}\n{option}")
        self.policy = cluster_of({"swift_dir": str(root / "etc")}).policies.get(0)
        self.config, user = root / "etc/object-server.conf", pwd.getpwuid(os.geteuid()).pw_name
        self.config.write_text(
            f"[DEFAULT]\nuser = {user}\n[packed]\nstate_path = {root}/memory\nobject_max_kb = 1\n"
        )
        packed = PackedSettings(state_path=str(root / "memory"), object_max_kb=1)
        self.store = packed_store(
            EngineParts(self.devices, self.hasher, SystemClock(), reclaim_age_s=1e9, packed=packed)
        )

    def with_config(self, *words):
        return self("--config", str(self.config), *words)


@pytest.fixture
def packed_node(tmp_path, capsys):
    made = PackedNode(tmp_path, capsys)
    yield made
    made.store.close()


def test_packed_objects_come_back_as_records_and_large_ones_as_files(packed_node):
    node = packed_node
    for name, size in (("small", 500), ("large", 5000)):
        key = node.key(name)
        put(node.store, key, ts(10), b"x" * size)
        post(node.store, key, ts(11), **{"X-Object-Meta-A": name})
        code, (added,) = node.with_config(
            "add", f"{node.store.core.object_path(key).directory}", "--reason", "test"
        )
        assert code == 0 and node.store.stat(key, VIEW).kind != LIVE
        code, (restored,) = node.with_config("restore", added["path"])
        assert (code, restored["is_left"]) == (0, False), restored
        assert read(node.store, key) == b"x" * size
        assert node.store.stat(key, VIEW).metadata["X-Object-Meta-A"] == name
    (file,) = node.root.glob("srv/sda/objects/*/*/*/*")
    assert file.parent.name == node.key("large").hash
    for index in node.root.rglob("*.mdb"):
        index.unlink()
    assert [len(read(node.store, node.key(name))) for name in ("small", "large")] == [500, 5000]


def test_a_newer_packed_object_stays_beside_a_restored_one(packed_node):
    node = packed_node
    path, key = node.quarantined(), node.key()
    put(node.store, key, ts(12), b"newer")
    code, _results = node.with_config("restore", path)
    assert code == 0 and read(node.store, key) == b"newer"


def test_packed_objects_are_not_restored_without_the_configuration_of_the_engine(packed_node):
    path = packed_node.quarantined()
    code, (result,) = packed_node("restore", path)
    assert code == 1 and "with --config" in result["error"]
    assert os.path.isdir(path)


def test_packed_objects_that_are_not_there_are_not_added(packed_node):
    directory = packed_node.store.core.object_path(packed_node.key()).directory
    code, error = packed_node.with_config("add", directory, "--reason", "test")
    assert code == 1 and "is not in partition" in error


def test_the_configuration_may_follow_the_command():
    assert make_parser().parse_args(["list", "-c", "other.conf"]).config == "other.conf"
    assert make_parser().parse_args(["-c", "other.conf", "list"]).config == "other.conf"

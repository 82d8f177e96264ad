"""Devices of another cluster are refused, those of the peer are taken over."""

import errno
import json
import subprocess
import sys

import pytest

from swift.base.clock import ManualClock
from swift.base.entity import EntityPath
from swift.base.errors import ConfigError, DeviceUnavailable
from swift.base.hashing import PathHasher
from swift.base.timestamp import Timestamp
from swift.container.broker import ContainerBroker
from swift.db.broker import Engine
from swift.db.files import DatabasePath
from swift.platform.devices import Devices
from swift.platform.disk import Disk
from swift.platform.regularfiles import read_regular
from swift.runtime.deviceidentity import FINGERPRINT_FILE, DeviceIdentity, DeviceOfAnotherCluster
from swift.store.api import ObjectKey
from swift.store.registry import EngineParts, file_store
from test.contract.test_store import GOLD, put, ts
from test.support.disks import ODD, bounded, replace

OURS, THEIRS = PathHasher(b"prefix", b"suffix"), PathHasher(b"prefix", b"another")


class Node:
    def __init__(self, root):
        self.root = root
        self.warnings = []

    def device(self, name="sda"):
        path = self.root / name
        path.mkdir(exist_ok=True)
        return path

    def identity(self, hasher=OURS):
        return DeviceIdentity(hasher, warn=self.warnings.append)

    def devices(self, hasher=OURS):
        """The state of a server or daemon after its start."""
        identity = self.identity(hasher)
        devices = Devices(str(self.root), mount_check=False, admit=identity.check_new_device)
        identity.check_all(devices)
        return devices

    def fill(self, hasher, count=4, name="sda"):
        """Objects as a server with these settings stores them."""
        self.device(name)
        clock = ManualClock(4e9)
        store = file_store(EngineParts(Devices(str(self.root), mount_check=False), hasher, clock))
        for number in range(count):
            path = EntityPath("AUTH_a", "c", f"o{number}")
            put(store, ObjectKey(name, str(number), GOLD, path, hasher.hexdigest(*path)), ts(4e9))


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def test_a_new_device_gets_a_fingerprint_that_does_not_tell_the_settings(node):
    path = node.device()
    node.devices()
    content = (path / FINGERPRINT_FILE).read_text()
    assert "prefix" not in content and "suffix" not in content
    node.devices()
    assert (path / FINGERPRINT_FILE).read_text() == content


@pytest.mark.parametrize(
    "hasher",
    [THEIRS, PathHasher(b"", b"suffix"), PathHasher(b"prefixsuffix"), PathHasher(b"prefi", b"xsuffix")],
)
def test_a_start_with_other_settings_is_refused_in_one_line(node, hasher):
    path = node.device()
    node.devices()
    with pytest.raises(ConfigError) as refused:
        node.devices(hasher)
    assert str(path) in str(refused.value) and "\n" not in str(refused.value)
    assert "[swift-hash]" in str(refused.value)


def test_one_device_of_another_cluster_is_not_there_and_the_others_are(node):
    node.device("sda")
    node.devices(THEIRS)
    node.device("sdb")
    node.identity().check(str(node.device("sdb")))
    devices = node.devices()
    assert devices.is_usable("sdb") and not devices.is_usable("sda")
    for _ in range(2):
        with pytest.raises(DeviceUnavailable):
            devices.path("sda")
    assert len(node.warnings) == 1


def test_a_device_that_appears_later_is_checked_before_its_first_use(node):
    node.device("sdb")
    devices = node.devices()
    node.identity(THEIRS).check(str(node.device("sda")))
    assert not devices.is_usable("sda")


def test_a_device_of_the_peer_is_taken_over(node):
    node.fill(OURS)
    node.devices()
    assert (node.root / "sda" / FINGERPRINT_FILE).exists()


def test_a_device_whose_objects_are_misplaced_gets_no_fingerprint_and_is_refused(node):
    node.fill(THEIRS)
    with pytest.raises(ConfigError):
        node.devices()
    assert not (node.root / "sda" / FINGERPRINT_FILE).exists()


def test_a_single_misplaced_object_is_too_little_to_refuse_a_device(node):
    node.fill(THEIRS, count=1)
    assert node.devices().is_usable("sda")
    assert not (node.root / "sda" / FINGERPRINT_FILE).exists()


def test_databases_are_witnesses_as_well(node):
    for number in range(3):
        name_hash = THEIRS.hexdigest("AUTH_a", f"c{number}")
        place = DatabasePath(str(node.device()), "containers", str(number), name_hash)
        broker = ContainerBroker(place, Engine(), "AUTH_a", f"c{number}")
        broker.refresh()
        broker.create(Timestamp(1), 0, created_at=Timestamp(1))
        broker.close()
    with pytest.raises(DeviceOfAnotherCluster):
        node.identity().check(str(node.root / "sda"))
    node.identity(THEIRS).check(str(node.root / "sda"))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"junk",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"salt": 1}',
        b'{"salt": 5, "digest": [1]}',
        b'{"salt": "5", "digest": "1"}',
    ],
)
def test_a_damaged_fingerprint_is_written_anew(node, content):
    path = node.device()
    (path / FINGERPRINT_FILE).write_bytes(content)
    assert node.devices().is_usable("sda")
    assert json.loads((path / FINGERPRINT_FILE).read_text())["digest"]


@pytest.mark.parametrize("kind", sorted(set(ODD) - {"empty"}))
def test_an_odd_file_in_the_place_of_a_fingerprint_makes_way_for_a_new_one(node, kind):
    path = node.device()
    replace(path / FINGERPRINT_FILE, kind)
    with bounded():
        assert node.devices().is_usable("sda")
    assert json.loads(read_regular(Disk(), f"{path}/{FINGERPRINT_FILE}"))["digest"]


def test_a_device_of_another_cluster_is_refused_whatever_is_in_the_place_of_its_fingerprint(node):
    node.fill(THEIRS)
    replace(node.root / "sda" / FINGERPRINT_FILE, "fifo")
    with bounded(), pytest.raises(DeviceOfAnotherCluster):
        node.identity().check(str(node.root / "sda"))


def test_a_device_that_cannot_be_read_is_left_to_those_who_use_it(node):
    class Failing(Disk):
        def open(self, path, flags, mode=0o777):
            raise OSError(errno.EIO, "it fails", path)

    identity = DeviceIdentity(OURS, disk=Failing())
    identity.check(str(node.device()))
    assert not (node.root / "sda" / FINGERPRINT_FILE).exists()


MEMORY = """
import re, sys
from swift.base.hashing import PathHasher
from swift.runtime.deviceidentity import DeviceIdentity

def anonymous_kib():
    return int(re.search(r"Anonymous: +([0-9]+)", open("/proc/self/smaps_rollup").read())[1])

identity, before = DeviceIdentity(PathHasher(b"prefix", b"suffix")), anonymous_kib()
for path in sys.argv[1:]:
    identity.check(path)
print(anonymous_kib() - before)
"""


@pytest.mark.process
def test_a_process_does_not_keep_the_memory_of_its_checks(node):
    """The second digest of a process would else stay in its heap: 16 MiB of each server and daemon."""
    paths = [str(node.device(name)) for name in ("sda", "sdb")]
    for path in paths:
        # Each with a salt of its own, as devices of several nodes have.
        node.identity().check(path)
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, *paths], capture_output=True, text=True, check=True, timeout=60
    )
    assert int(done.stdout) < 4096

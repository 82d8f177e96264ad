"""The memory of daemons during a pass over many objects, which must not grow with their number.

    python -m tools.bench.memory --objects 10000,100000 --root /dev/shm

Trees of empty objects, each with a file and metadata of its own, are made below ``--root`` (best a tmpfs:
nothing but names is stored), and the same names once more on a second device, so that the replicator has a
partner with nothing to do. Each daemon makes one pass in a process of its own, whose peak of resident memory
is told.
The expirer reads a queue that is made up page by page, since it has no files.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import pwd
import socket
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path

from swift.aio.supervisor import accepts_connections
from swift.base.entity import EntityPath
from swift.base.errors import ConfigError, SwiftError
from swift.base.hashing import PathHasher
from swift.base.timestamp import Timestamp
from swift.entry import module_words
from swift.platform.devices import Devices
from swift.platform.disk import Disk
from swift.policy.policy import Policy
from swift.ring.device import DeviceRecord
from swift.ring.ringfile import save_table
from swift.ring.table import RingTable
from swift.runtime.workers import die_with_parent
from swift.store.api import AsyncUpdate
from swift.store.asyncpending import FileUpdates
from swift.store.metadata import write_metadata
from tools.bench.options import bare_parser

SUFFIX = b"memory"
GOLD = Policy(0, "gold", is_default=True)
#: 64 partitions: with a million objects every suffix of every partition is there.
PART_POWER = 6
#: An hour ago: nothing is left alone because it is new.
AGE_S = 3600
DAEMONS = ("object-replicator", "object-auditor", "object-updater", "object-expirer")
START_S = 60


@dataclass(frozen=True)
class Peak:
    """Peak memory of one pass."""

    daemon: str
    objects: int
    mib: float
    seconds: float


class Tree:
    """Two devices with the same objects, and the configuration of daemons for the first."""

    def __init__(self, root: Path, count: int):
        self.root = root
        self.count = count
        self.hasher = PathHasher(b"", SUFFIX)
        self.devices = [root / f"n{number}/sd{number}" for number in range(2)]
        self.port, self._nobody = _free_port(), _free_port()
        for device in self.devices:
            device.mkdir(parents=True)
        self._write_conf()
        self._write_ring("object", [self._nobody, self.port])
        self._write_ring("container", [self._nobody, self._nobody])

    # --- files ----------------------------------------------------------------------------------------

    def conf(self, number: int) -> Path:
        """Return the configuration of a node's servers and daemons."""
        return self.root / f"{number}.conf"

    def _write_conf(self) -> None:
        text = f"[swift-hash]\nswift_hash_path_suffix = {SUFFIX.decode()}\n"
        (self.root / "swift.conf").write_text(text)
        user = pwd.getpwuid(os.geteuid()).pw_name
        for number, port in enumerate((self._nobody, self.port)):
            (self.root / f"recon{number}").mkdir()
            self.conf(number).write_text(
                f"[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = {port}\nworkers = 0\nuser = {user}\n"
                f"swift_dir = {self.root}\ndevices = {self.root}/n{number}\nmount_check = false\n"
                f"recon_cache_path = {self.root}/recon{number}\nlog_level = ERROR\n"
                "[pipeline:main]\npipeline = object-server\n"
                "[app:object-server]\nuse = egg:swift#object\n"
                "[object-replicator]\nsync_method = ssync\n"
                "[object-auditor]\nfiles_per_second = 0\nbytes_per_second = 0\n"
                "zero_byte_files_per_second = 0\n"
                "[object-updater]\nobjects_per_second = 0\n"
            )

    def _write_ring(self, name: str, ports: Sequence[int]) -> None:
        records: tuple[DeviceRecord, ...] = tuple(
            {
                "id": number,
                "region": 1,
                "zone": number,
                "ip": "127.0.0.1",
                "port": port,
                "replication_ip": "127.0.0.1",
                "replication_port": port,
                "device": f"sd{number}",
                "weight": 1.0,
                "meta": "",
            }
            for number, port in enumerate(ports)
        )
        rows = tuple(array("H", [row] * (1 << PART_POWER)) for row in range(2))
        table = RingTable(records=records, rows=rows, part_shift=32 - PART_POWER)
        save_table(table, str(self.root / f"{name}.ring.gz"))

    def fill(self) -> None:
        """Create the objects on both devices."""
        disk, stamp = Disk(), Timestamp(time.time() - AGE_S).normal
        metadata = {
            "X-Timestamp": stamp,
            "Content-Length": "0",
            "Content-Type": "text/plain",
            "ETag": md5(b"", usedforsecurity=False).hexdigest(),
        }
        for number in range(self.count):
            name = f"o{number}"
            digest = self.hasher.hexdigest("a", "c", name)
            below = f"objects/{int(digest[:8], 16) >> (32 - PART_POWER)}/{digest[-3:]}/{digest}"
            first, second = (device / below for device in self.devices)
            for folder in (first, second):
                os.makedirs(folder)
            fd = os.open(first / f"{stamp}.data", os.O_CREAT | os.O_WRONLY, 0o600)
            try:
                write_metadata(disk, fd, {"name": f"/a/c/{name}", **metadata})
            finally:
                os.close(fd)
            os.link(first / f"{stamp}.data", second / f"{stamp}.data")

    def add_updates(self) -> None:
        """Save a pending update of every object for a container server that does not exist."""
        kept = FileUpdates(Disk(), Devices(str(self.root / "n0"), mount_check=False), self.hasher)
        stamp = Timestamp(time.time() - AGE_S)
        headers = {"X-Timestamp": stamp.internal, "X-Size": "0", "Referer": "PUT x"}
        for number in range(self.count):
            update = AsyncUpdate("PUT", EntityPath("a", "c", f"o{number}"), headers)
            kept.save("sd0", GOLD, update, stamp)

    # --- processes ------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def partner(self) -> Iterator[None]:
        """Run the object server of the second device; raises ``ConfigError`` when it does not start."""
        with open(self.root / "server.log", "wb") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", "swift.cli.object_server", str(self.conf(1))],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,
            )
        try:
            deadline = time.monotonic() + START_S
            while not accepts_connections("127.0.0.1", self.port):
                if time.monotonic() > deadline or child.poll() is not None:
                    raise ConfigError(f"the server did not come up; see {self.root}/server.log")
                time.sleep(0.05)
            yield
        finally:
            child.kill()
            child.wait()

    def measure(self, daemon: str) -> Peak:
        """Measure one pass of a daemon; raises ``ConfigError`` when it fails."""
        words = [*module_words(daemon), str(self.conf(0)), "once"]
        if daemon == "object-expirer":
            words = ["-m", "tools.bench.madequeue", str(self.count), str(self.root)]
        started_s = time.monotonic()
        child = subprocess.Popen(
            [sys.executable, *words], stdin=subprocess.DEVNULL, preexec_fn=die_with_parent
        )
        # Of the process and of what it started itself, whichever was largest.
        _pid, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise ConfigError(f"{daemon} ended with {child.returncode}")
        return Peak(daemon, self.count, used.ru_maxrss / 1024, time.monotonic() - started_s)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def measured(root: Path, count: int, daemons: Sequence[str]) -> Iterator[Peak]:
    """Measure each daemon's pass over ``count`` objects; raises ``ConfigError`` and OSError."""
    tree = Tree(root, count)
    if {"object-replicator", "object-auditor"} & set(daemons):
        tree.fill()
    with tree.partner():
        for daemon in daemons:
            if daemon == "object-updater":
                tree.add_updates()
            yield tree.measure(daemon)


def _counts(text: str) -> list[int]:
    found = [int(word) for word in text.split(",")]
    if not all(0 < count <= 10_000_000 for count in found):
        raise argparse.ArgumentTypeError(f"{text}: numbers from 1 to 10000000, with commas")
    return found


def _daemons(text: str) -> list[str]:
    found = [word if word.startswith("object-") else f"object-{word}" for word in text.split(",")]
    if not set(found) <= set(DAEMONS):
        raise argparse.ArgumentTypeError(f"{text}: there are {', '.join(DAEMONS)}")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; return 0, or 1 after an error message."""
    parser = bare_parser("memory", __doc__)
    parser.add_argument("--objects", type=_counts, default=[10_000, 100_000], help="how many, with commas")
    parser.add_argument("--daemons", type=_daemons, default=list(DAEMONS), help="which, with commas")
    parser.add_argument("--root", type=Path, help="where trees are made; a temporary directory")
    parser.add_argument("--json", type=Path, help="write the figures here")
    args = parser.parse_args(argv)
    peaks: list[Peak] = []
    try:
        for count in args.objects:
            with tempfile.TemporaryDirectory(dir=args.root) as folder:
                for peak in measured(Path(folder), count, args.daemons):
                    peaks.append(peak)
                    print(f"{peak.daemon:18} {count:9,} objects {peak.mib:7.1f} MiB {peak.seconds:7.1f} s")
    except (SwiftError, OSError) as error:
        print(f"memory: {error}", file=sys.stderr)
        return 1
    if args.json is not None:
        machine = {"machine": platform.platform(), "python": platform.python_version()}
        figures = [vars(peak) for peak in peaks]
        args.json.write_text(json.dumps({**machine, "peaks": figures}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

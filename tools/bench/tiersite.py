"""The object servers that ``tools.bench.tier`` measures, each with the cache tier, without it, or the peer's.

One site has a folder with a device for each node, a folder for the SSD, and a configuration for each
contestant.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from swift.aio.supervisor import accepts_connections
from swift.base.errors import ConfigError
from swift.entry import module_words
from swift.ring.device import DeviceRecord
from swift.ring.ringfile import save_table
from swift.ring.table import RingTable
from swift.runtime.workers import die_with_parent
from tools.bench.peer import OwnEtc

SUFFIX = b"bench"
PART_POWER = 8
#: Classes of each contestant of ours; none: no tier.
TIERS: dict[str, tuple[str, ...]] = {
    "untiered": (),
    "metadata": ("metadata",),
    "metadata+hashes": ("metadata", "hashes"),
    "metadata+hashes+small-data": ("metadata", "hashes", "small-data"),
}
PEER = "peer"
#: The packed engine with its index on the SSD.
PACKED = "packed"
_PACKED_ENGINE = "diskfile_module = egg:swift#replication.packed\n"
#: At the end of a contestant's name: writes leave no new entries.
AROUND = ", write-around"


@dataclass
class TierSite:
    """Folder and ports of the servers: node n has port ``port + n`` and the device ``sd<n>``."""

    root: Path
    port: int
    peer: Path | None
    #: Called in a new process, so that it is under the limits.
    enter: Callable[[], None]

    @property
    def state(self) -> Path:
        """Return the directory that the processes of a tier share."""
        return Path(f"/dev/shm/swift-bench-tier-{os.getpid()}")

    def swift_dir(self, contestant: str) -> Path:
        """Return the directory of a contestant's swift.conf and ring."""
        return self.root / ("etc-packed" if contestant == PACKED else "etc")

    def conf(self, contestant: str) -> Path:
        """Return the path of a contestant's configuration."""
        return self.root / "etc" / f"{contestant}.conf"


# --- configuration ---------------------------------------------------------------------------------------


def write_etc(site: TierSite, nodes: Mapping[str, int]) -> None:
    """Write swift.conf, a ring of all nodes, and a configuration for each contestant."""
    etc = site.root / "etc"
    etc.mkdir(exist_ok=True)
    numbers = range(1 + max(nodes.values()))
    for folder, engine in ((etc, ""), (site.swift_dir(PACKED), _PACKED_ENGINE)):
        folder.mkdir(exist_ok=True)
        (folder / "swift.conf").write_text(
            f"[swift-hash]\nswift_hash_path_suffix = {SUFFIX.decode()}\n"
            f"[storage-policy:0]\nname = gold\ndefault = yes\n{engine}"
        )
    records: tuple[DeviceRecord, ...] = tuple(
        {
            "id": node,
            "region": 1,
            "zone": node,
            "ip": "127.0.0.1",
            "port": site.port + node,
            "replication_ip": "127.0.0.1",
            "replication_port": site.port + node,
            "device": f"sd{node}",
            "weight": 1.0,
            "meta": "",
        }
        for node in numbers
    )
    parts = range(1 << PART_POWER)
    rows = tuple(array("H", [node for _ in parts]) for node in numbers)
    table = RingTable(records=records, rows=rows, part_shift=32 - PART_POWER)
    for folder in (etc, site.swift_dir(PACKED)):
        save_table(table, str(folder / "object.ring.gz"))
    for name, node in nodes.items():
        classes = name.removesuffix(AROUND)
        more = "metadata_mode = write-around\n" if AROUND in name else ""
        site.conf(name).write_text(conf_text(site, name, node, TIERS.get(classes, ())) + more)


def conf_text(site: TierSite, contestant: str, node: int, classes: Sequence[str]) -> str:
    """Return the text of an object-server.conf."""
    user = pwd.getpwuid(os.geteuid()).pw_name
    recon = site.root / f"recon{node}"
    recon.mkdir(exist_ok=True)
    text = (
        f"[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = {site.port + node}\nworkers = 1\nuser = {user}\n"
        f"swift_dir = {site.swift_dir(contestant)}\ndevices = {site.root}/n{node}\nmount_check = false\n"
        f"recon_cache_path = {recon}\nlog_level = ERROR\n"
        "[pipeline:main]\npipeline = object-server\n[app:object-server]\nuse = egg:swift#object\n"
        "[object-replicator]\nsync_method = ssync\ninterval = 2\n"
        "[object-auditor]\nfiles_per_second = 0\nbytes_per_second = 0\nzero_byte_files_per_second = 0\n"
    )
    if contestant == PACKED:
        return text + f"[packed]\nindex_path = {site.root}/ssd/packed\nstate_path = {site.state}/packed\n"
    if not classes:
        return text
    return text + (
        f"[cache-tier]\nenabled = true\npath = {site.root}/ssd/cache{node}\n"
        f"state_path = {site.state}/{node}\nsize_mb = 4096\n"
        f"classes = {', '.join(classes)}\nsmall_data_admission = always\n"
    )


# --- processes -------------------------------------------------------------------------------------------


def command(site: TierSite, contestant: str, program: str, *words: str) -> list[str]:
    """Return a command of either side; the peer's gets its own /etc/swift."""
    if contestant != PEER:
        return [sys.executable, *module_words(program), *words]
    assert site.peer is not None
    return OwnEtc(site.root, site.root / "etc").command(site.peer / f"swift-{program}", *words)


def environment(contestant: str) -> dict[str, str]:
    """Return the environment of a side: our package ``swift`` must not shadow the peer's."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH" or contestant != PEER}
    return {**kept, "PYTHONWARNINGS": "ignore"}


@contextlib.contextmanager
def serving(site: TierSite, contestant: str, port: int, *, is_limited: bool) -> Iterator[int]:
    """Run an object server and yield its process. Raises ``ConfigError`` when it does not start."""

    def begin() -> None:
        die_with_parent()
        if is_limited:
            site.enter()

    with open(site.root / f"{contestant}.log", "ab") as log:
        child = subprocess.Popen(
            command(site, contestant, "object-server", str(site.conf(contestant))),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment(contestant),
            preexec_fn=begin,
        )
    try:
        deadline = time.monotonic() + 60
        while not accepts_connections("127.0.0.1", port):
            if time.monotonic() > deadline or child.poll() is not None:
                raise ConfigError(f"{contestant} did not start; see {log.name}")
            time.sleep(0.05)
        yield child.pid
    finally:
        end(child)


def end(child: subprocess.Popen[bytes]) -> None:
    """Stop a process; kill it after a timeout."""
    child.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(15)
    child.kill()
    child.wait()


def run_limited(site: TierSite, contestant: str, program: str, *words: str) -> float:
    """Run one pass of a daemon or tool in the control group; return elapsed seconds. ``ConfigError``."""
    started_s = time.monotonic()
    done = subprocess.run(
        command(site, contestant, program, *words),
        capture_output=True,
        text=True,
        env=environment(contestant),
        preexec_fn=site.enter,
        check=False,
    )
    if done.returncode:
        raise ConfigError(
            f"{program} of {contestant} ended with {done.returncode}: {done.stderr.strip()[-300:]}"
        )
    return time.monotonic() - started_s

"""Collects the servers' responses for ``swift-health`` and drops unusable values.

What is not of the shape that recon has counts as not said.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeGuard

from swift.operations.health.copies import parse_host_copies
from swift.operations.health.evaluate import ClusterSnapshot, DeviceErrors, PackedSpaceReport
from swift.operations.health.layout import leading_controller, parse_controller, parse_report
from swift.operations.health.serverauth import parse_auth_report
from swift.operations.recon.client import Host, ReconClient, ReconReply, unique_hosts
from swift.policy.policy import Policies
from swift.ring.device import Device
from swift.ring.ringfile import load_table
from swift.ring.view import RingView
from swift.runtime.copystate import PROGRESS, STATE
from swift.telemetry.devicefaults import KEY

#: Greater times, sizes and counts are no such.
NUMBER_MAX = 1e18


class WatchedRing:
    """A ring to be looked at."""

    def __init__(self, swift_dir: str, name: str, noun: str, needed: int = 1):
        self.name, self.noun, self.needed = name, noun, needed
        path = f"{swift_dir}/{name}.ring.gz"
        self.version = file_version(path)
        self.view = RingView(load_table(path, thorough=False))

    @property
    def server_type(self) -> str:
        """Type of the servers in the ring."""
        return self.name.partition("-")[0]

    @property
    def devices(self) -> list[Device]:
        """The devices, without the holes."""
        return [device for device in self.view.devices if device is not None]

    @cached_property
    def assigned(self) -> Counter[int]:
        """Device id → partition-replicas that the ring assigns to it."""
        return sum(map(Counter, self.view.rows), Counter())

    def __repr__(self) -> str:
        return f"WatchedRing({self.name!r})"


def file_version(path: str) -> tuple[int, int, int]:
    """Return what changes when a file is replaced. Raises OSError."""
    stat = os.stat(path)
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def load_rings(swift_dir: str, policies: Policies, known: Sequence[WatchedRing] = ()) -> list[WatchedRing]:
    """Return the rings that are there; ``known`` ones whose files are the same are not loaded again.

    Raises ``RingError`` and OSError.
    """
    wanted = [(kind, kind, 1) for kind in ("account", "container")]
    for policy in policies:
        if os.path.exists(f"{swift_dir}/{policy.ring_name}.ring.gz"):
            needed = policy.ec.data if policy.ec else 1
            wanted.append((policy.ring_name, f"object ({policy.name})", needed))
    loaded = {ring.name: ring for ring in known}
    found = []
    for name, noun, needed in wanted:
        ring = loaded.get(name)
        if ring is None or ring.version != file_version(f"{swift_dir}/{name}.ring.gz"):
            ring = WatchedRing(swift_dir, name, noun, needed)
        found.append(ring)
    return found


def take_snapshot(rings: Sequence[WatchedRing], client: ReconClient) -> ClusterSnapshot:
    """Ask all servers."""
    snapshot = ClusterSnapshot()
    for kind in ("account", "container", "object"):
        hosts = sorted(
            {host for ring in rings if ring.server_type == kind for host in unique_hosts(ring.view.devices)}
        )
        snapshot.unresponsive[kind] = []
        begin_s = time.time()
        for reply in client.recon(hosts, "time"):
            if reply.error:
                snapshot.unresponsive[kind].append(reply.host)
            elif is_number(reply.content):
                snapshot.clocks[reply.host] = _clock_offset(reply.content, begin_s, time.time())
        alive = [host for host in hosts if host not in snapshot.unresponsive[kind]]
        _record_devices(client, alive, snapshot)
        for reply, said in _mappings(client.recon(alive, f"replication/{kind}")):
            snapshot.replication[kind, reply.host] = _numbers_of(said)
            stats = said.get("replication_stats")
            snapshot.failures[kind, reply.host] = _count(stats, "failure")
        for reply, said in _mappings(client.recon(alive, f"copies/{kind}")):
            snapshot.copies[kind, reply.host] = parse_host_copies(said, STATE, PROGRESS)
        if kind == "object":
            _record_objects(client, alive, snapshot)
            pages = [
                said.get("layout_controller")
                for _, said in _mappings(client.recon(alive, "layoutcontroller"))
            ]
            snapshot.controller = leading_controller(filter(None, map(parse_controller, pages)), time.time())
        for reply, said in _mappings(client.recon(alive, f"deviceerrors/{kind}")):
            snapshot.device_errors[reply.host] = _device_errors(said.get(KEY))
        for reply, said in _mappings(client.recon(alive, f"serverauth/{kind}")):
            if (report := parse_auth_report(said)) is not None:
                snapshot.server_auth[reply.host] = report
        _record_rings(client, alive, snapshot, rings)
        for reply, said in _mappings(client.recon(alive, "layout")):
            snapshot.layouts[reply.host] = parse_report(said.get("layout"))
    return snapshot


def _device_errors(said: object) -> dict[str, DeviceErrors]:
    """Parse the device errors of a recon page; drop unusable values."""
    found = {}
    for device, facts in said.items() if isinstance(said, dict) else ():
        if isinstance(facts, dict) and is_number(facts.get("last")) and is_number(facts.get("errors")):
            count, last_s = int(facts["errors"]), float(facts["last"])
            found[str(device)] = DeviceErrors(count, last_s, str(facts.get("error", ""))[:20])
    return found


def _clock_offset(value: float, low: float, high: float) -> float:
    """Return how far a clock is outside of the time of its request."""
    return value - high if value > high else min(0.0, value - low)


def _record_devices(client: ReconClient, hosts: Sequence[Host], snapshot: ClusterSnapshot) -> None:
    for reply, said in _mappings(client.recon(hosts, "devices")):
        lists = [names for names in said.values() if isinstance(names, list)]
        snapshot.present[reply.host] = [name for names in lists for name in names if isinstance(name, str)]
    for reply in client.recon(hosts, "unmounted"):
        if isinstance(reply.content, list):
            names = [entry.get("device") for entry in reply.content if isinstance(entry, dict)]
            snapshot.unmounted[reply.host] = [name for name in names if isinstance(name, str)]
    for reply in client.recon(hosts, "diskusage"):
        if isinstance(reply.content, list):
            snapshot.usage[reply.host] = [entry for entry in reply.content if _is_usage(entry)]


def _record_objects(client: ReconClient, hosts: Sequence[Host], snapshot: ClusterSnapshot) -> None:
    for reply, said in _mappings(client.recon(hosts, "reconstruction/object")):
        snapshot.reconstruction[reply.host] = _numbers_of(said)
    for reply in client.recon(hosts, "async"):
        snapshot.async_pending[reply.host] = _count(reply.content, "async_pending")
        snapshot.async_counted[reply.host] = _count(reply.content, "async_pending_last")
    for reply in client.recon(hosts, "driveaudit"):
        snapshot.drive_errors[reply.host] = _count(reply.content, "drive_audit_errors")
    for reply, said in _mappings(client.recon(hosts, "quarantined")):
        snapshot.quarantined[reply.host] = _numbers_of(said)
    # Nodes of OpenStack Swift do not have what follows.
    for reply, said in _mappings(client.recon(hosts, "native")):
        if isinstance(said.get("native_disk"), bool):
            snapshot.native_disk[reply.host] = bool(said["native_disk"])
    for reply, said in _mappings(client.recon(hosts, "compactor/object")):
        snapshot.packed[reply.host] = _packed_spaces(said.get("object_packed_devices"))


def _packed_spaces(said: object) -> dict[str, PackedSpaceReport]:
    """Parse the space of packed devices; drop unusable values."""
    found = {}
    for device, facts in said.items() if isinstance(said, dict) else ():
        if isinstance(facts, dict):
            names = ("volumes", "live_bytes", "dead_bytes", "index_bytes", "lost_bytes")
            numbers = [_count(facts, name) for name in names]
            found[str(device)] = PackedSpaceReport(*numbers)
    return found


def _mappings(replies: Sequence[ReconReply]) -> Iterator[tuple[ReconReply, Mapping[str, object]]]:
    return ((reply, reply.content) for reply in replies if isinstance(reply.content, dict))


def is_number(value: object) -> TypeGuard[float]:
    """Return True if it can be reckoned with: neither infinite nor beyond what a float holds."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) < NUMBER_MAX


def _numbers_of(said: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in said.items() if is_number(value)}


def _is_usage(entry: object) -> bool:
    """Return True if it has the usage of a mounted device."""
    if not isinstance(entry, dict) or not isinstance(entry.get("device"), str):
        return False
    return entry.get("mounted") is True and is_number(entry.get("size")) and is_number(entry.get("used"))


def _count(content: object, key: str) -> int:
    value = content.get(key) if isinstance(content, dict) else None
    return int(value) if is_number(value) else 0


def _record_rings(
    client: ReconClient, hosts: Sequence[Host], snapshot: ClusterSnapshot, rings: Sequence[WatchedRing]
) -> None:
    own = {f"{ring.name}.ring.gz": ring.view.digest for ring in rings}
    for reply, said in _mappings(client.recon(hosts, "ringmd5")):
        theirs = {os.path.basename(path): digest for path, digest in said.items()}
        wrong = [name for name, digest in own.items() if theirs.get(name, digest) != digest]
        if wrong:
            snapshot.other_rings[reply.host] = wrong

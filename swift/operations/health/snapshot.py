"""Whom ``swift-health`` asks, and what of the answers can be used: a server may say anything.

What is not of the shape that recon has counts as not said.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from hashlib import md5
from typing import TypeGuard

from swift.operations.health.copies import host_copies
from swift.operations.health.judge import DeviceErrors, Heard
from swift.operations.recon.client import Host, Scout, Word, hosts_of
from swift.platform.faults import read_through_links
from swift.policy.policies import Policies
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
        self.view = RingView(load_table(f"{swift_dir}/{name}.ring.gz", thorough=False))

    @property
    def server_type(self) -> str:
        """Which servers it is about."""
        return self.name.partition("-")[0]


def rings_of(swift_dir: str, policies: Policies) -> list[WatchedRing]:
    """The rings that are there. Raises ``RingError`` and OSError."""
    found = [WatchedRing(swift_dir, kind, kind) for kind in ("account", "container")]
    for policy in policies:
        if os.path.exists(f"{swift_dir}/{policy.ring_name}.ring.gz"):
            needed = policy.ec.data if policy.ec else 1
            found.append(WatchedRing(swift_dir, policy.ring_name, f"object ({policy.name})", needed))
    return found


def listen(rings: Sequence[WatchedRing], scout: Scout, swift_dir: str) -> Heard:
    """Ask all servers."""
    heard = Heard()
    for kind in ("account", "container", "object"):
        hosts = sorted(
            {host for ring in rings if ring.server_type == kind for host in hosts_of(ring.view.devices)}
        )
        heard.silent[kind] = []
        begin_s = time.time()
        for word in scout.recon(hosts, "time"):
            if word.error:
                heard.silent[kind].append(word.host)
            elif _is_number(word.content):
                heard.clocks[word.host] = _beyond(word.content, begin_s, time.time())
        alive = [host for host in hosts if host not in heard.silent[kind]]
        _hear_devices(scout, alive, heard)
        for word, said in _mappings(scout.recon(alive, f"replication/{kind}")):
            heard.replication[kind, word.host] = _numbers_of(said)
            stats = said.get("replication_stats")
            heard.failures[kind, word.host] = _count(stats, "failure")
        for word, said in _mappings(scout.recon(alive, f"copies/{kind}")):
            heard.copies[kind, word.host] = host_copies(said, STATE, PROGRESS)
        if kind == "object":
            _hear_objects(scout, alive, heard)
        for word, said in _mappings(scout.recon(alive, f"deviceerrors/{kind}")):
            heard.device_errors[word.host] = _device_errors(said.get(KEY))
        _hear_rings(scout, alive, heard, rings, swift_dir)
    return heard


def _device_errors(said: object) -> dict[str, DeviceErrors]:
    """Return what a recon page says of devices, as far as it can be used."""
    found = {}
    for device, facts in said.items() if isinstance(said, dict) else ():
        if isinstance(facts, dict) and _is_number(facts.get("last")) and _is_number(facts.get("errors")):
            count, last_s = int(facts["errors"]), float(facts["last"])
            found[str(device)] = DeviceErrors(count, last_s, str(facts.get("error", ""))[:20])
    return found


def _beyond(value: float, low: float, high: float) -> float:
    """By how much a clock is outside of the time of the question."""
    return value - high if value > high else min(0.0, value - low)


def _hear_devices(scout: Scout, hosts: Sequence[Host], heard: Heard) -> None:
    for word, said in _mappings(scout.recon(hosts, "devices")):
        lists = [names for names in said.values() if isinstance(names, list)]
        heard.present[word.host] = [name for names in lists for name in names if isinstance(name, str)]
    for word in scout.recon(hosts, "unmounted"):
        if isinstance(word.content, list):
            names = [entry.get("device") for entry in word.content if isinstance(entry, dict)]
            heard.unmounted[word.host] = [name for name in names if isinstance(name, str)]
    for word in scout.recon(hosts, "diskusage"):
        if isinstance(word.content, list):
            heard.usage[word.host] = [entry for entry in word.content if _is_usage(entry)]


def _hear_objects(scout: Scout, hosts: Sequence[Host], heard: Heard) -> None:
    for word, said in _mappings(scout.recon(hosts, "reconstruction/object")):
        heard.reconstruction[word.host] = _numbers_of(said)
    for word in scout.recon(hosts, "async"):
        heard.async_pending[word.host] = _count(word.content, "async_pending")
        heard.async_counted[word.host] = _count(word.content, "async_pending_last")
    for word in scout.recon(hosts, "driveaudit"):
        heard.drive_errors[word.host] = _count(word.content, "drive_audit_errors")
    for word, said in _mappings(scout.recon(hosts, "quarantined")):
        heard.quarantined[word.host] = _numbers_of(said)


def _mappings(words: Sequence[Word]) -> Iterator[tuple[Word, Mapping[str, object]]]:
    return ((word, word.content) for word in words if isinstance(word.content, dict))


def _is_number(value: object) -> TypeGuard[float]:
    """Whether it can be reckoned with: neither infinite nor beyond what a float holds."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) < NUMBER_MAX


def _numbers_of(said: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in said.items() if _is_number(value)}


def _is_usage(entry: object) -> bool:
    """Whether it says how full a mounted device is."""
    if not isinstance(entry, dict) or not isinstance(entry.get("device"), str):
        return False
    return entry.get("mounted") is True and _is_number(entry.get("size")) and _is_number(entry.get("used"))


def _count(content: object, key: str) -> int:
    value = content.get(key) if isinstance(content, dict) else None
    return int(value) if _is_number(value) else 0


def _hear_rings(
    scout: Scout, hosts: Sequence[Host], heard: Heard, rings: Sequence[WatchedRing], swift_dir: str
) -> None:
    own = {}
    for ring in rings:
        name = f"{ring.name}.ring.gz"
        own[name] = md5(read_through_links(f"{swift_dir}/{name}"), usedforsecurity=False).hexdigest()
    for word, said in _mappings(scout.recon(hosts, "ringmd5")):
        theirs = {os.path.basename(path): digest for path, digest in said.items()}
        wrong = [name for name, digest in own.items() if theirs.get(name, digest) != digest]
        if wrong:
            heard.other_rings[word.host] = wrong

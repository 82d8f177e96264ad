"""Listening addresses of a server's workers: one port for all, or a few workers for each port.

A worker is a *slot* of the master (``runtime.workers``); here it is decided which slots there are and on
which socket each accepts. With ``servers_per_port`` every port by which the object rings know this node gets
workers of its own. Give every device its own port, and a hanging disk stops only its own workers: the proxies
send a device's requests to its port. Rings are looked at again every few seconds; ports come and go with
them.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from socket import socket
from typing import Protocol

from swift.base.errors import SwiftError
from swift.platform.addresses import matches_any_address, own_addresses
from swift.platform.regularfiles import FileIdentity, file_identity
from swift.policy.policy import Policies
from swift.ring.errors import RingFileError
from swift.ring.ringfile import load_table
from swift.telemetry.log import Log

Listen = Callable[[int], socket]


class Listeners(Protocol):
    """Requested workers, and the address of each."""

    #: More slots than there will ever be at a time.
    slots_max: int

    def slots(self) -> Sequence[int]:
        """Return the slots that should have a worker."""

    def worker_socket(self, slot: int) -> socket | None:
        """Return the socket of a worker; called in it, and the sockets of others are closed."""

    def peers(self, slot: int) -> Sequence[int]:
        """Return the slots whose workers accept on the same socket, ``slot`` included."""


class SharedListener:
    """All workers accept on the same socket."""

    def __init__(self, listener: socket, workers: int):
        self.slots_max = max(1, workers)
        self._listener = listener
        self._slots = range(workers)

    def slots(self) -> Sequence[int]:
        return self._slots

    def worker_socket(self, slot: int) -> socket | None:
        return self._listener

    def peers(self, slot: int) -> Sequence[int]:
        return self._slots


class PerPortListeners:
    """``per_port`` workers on each of the ports that ``find_ports`` returns."""

    def __init__(
        self,
        find_ports: Callable[[], frozenset[int]],
        listen: Listen,
        log: Log,
        *,
        per_port: int,
        interval_s: float,
        ports_max: int = 64,
        now: Callable[[], float] = time.monotonic,
    ):
        self.slots_max = per_port * ports_max
        self._find_ports = find_ports
        self._listen = listen
        self._log = log
        self._per_port = per_port
        self._interval_s = interval_s
        self._now = now
        self._next_refresh_s = now()
        #: Port → (its socket, the first of its slots). A port keeps its slots as long as it exists.
        self._ports: dict[int, tuple[socket, int]] = {}

    def slots(self) -> Sequence[int]:
        if self._now() >= self._next_refresh_s:
            self._next_refresh_s = self._now() + self._interval_s
            self._refresh_ports()
        return [first + number for _, first in self._ports.values() for number in range(self._per_port)]

    def _refresh_ports(self) -> None:
        try:
            wanted = self._find_ports()
        except (SwiftError, OSError) as error:
            # A ring that is being replaced: the known ports stay open.
            self._log.error(f"cannot look up ports in the rings: {error}")
            return
        for port in sorted(set(self._ports) - wanted):
            self._ports.pop(port)[0].close()
            self._log.notice(f"port {port} is no longer in a ring")
        for port in sorted(wanted - set(self._ports)):
            self._open(port)
        if not self._ports:
            self._log.error("the object rings have no device of this node; waiting for one")

    def _open(self, port: int) -> None:
        taken = {first for _, first in self._ports.values()}
        free = (first for first in range(0, self.slots_max, self._per_port) if first not in taken)
        first = next(free, None)
        if first is None:
            self._log.error(f"too many ports in the rings to listen on {port}")
            return
        try:
            self._ports[port] = self._listen(port), first
        except OSError as error:
            self._log.error(f"cannot listen on port {port}: {error.strerror}")

    def worker_socket(self, slot: int) -> socket | None:
        mine = None
        for listener, first in self._ports.values():
            if first <= slot < first + self._per_port:
                mine = listener
            else:
                with contextlib.suppress(OSError):
                    listener.close()
        return mine

    def peers(self, slot: int) -> Sequence[int]:
        first = slot - slot % self._per_port
        return range(first, first + self._per_port)

    def __repr__(self) -> str:
        return f"RingPorts({sorted(self._ports)}, {self._per_port} workers each)"


class RingPortFinder:
    """The ports of this node's devices in all object rings; reads the rings only when their files changed."""

    def __init__(self, swift_dir: str, policies: Policies, ring_ip: str):
        self._paths = [os.path.join(swift_dir, f"{policy.ring_name}.ring.gz") for policy in policies]
        self._ring_ip = ring_ip
        #: Of each ring that has been read: what identified the file, and its ports.
        self._known: dict[str, tuple[FileIdentity, frozenset[int]]] = {}

    def __call__(self) -> frozenset[int]:
        """Return the ports; a policy whose ring has never been there has none.

        Raises ``RingError`` and OSError when a ring that was read before cannot be used now.
        """
        for path in self._paths:
            mark, known = _identity_if_present(path), self._known.get(path)
            if mark is None and known is not None:
                raise RingFileError(path, "the file is missing")
            if mark is not None and (known is None or known[0] != mark):
                self._known[path] = mark, self._ports_in(path, thorough=known is not None)
        return frozenset().union(*(ports for _, ports in self._known.values()))

    def _ports_in(self, path: str, *, thorough: bool) -> frozenset[int]:
        addresses = own_addresses(self._ring_ip)
        records = [record for record in load_table(path, thorough=thorough).records if record is not None]
        own = {ip for ip in {str(record["ip"]) for record in records} if matches_any_address(ip, addresses)}
        return frozenset(int(record["port"]) for record in records if str(record["ip"]) in own)


def _identity_if_present(path: str) -> FileIdentity | None:
    """Return the identity of a file; None when it is missing."""
    try:
        return file_identity(path)
    except FileNotFoundError:
        return None

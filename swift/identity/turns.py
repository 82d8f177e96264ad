"""Turns at the threads that compute hashes, fair among networks of clients."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager

from swift import green

_IPV6_NETWORK_BITS = 64


class TooManyLogins(Exception):
    """Log-ins are refused for some seconds."""

    def __init__(self, retry_after_s: float):
        super().__init__(retry_after_s)
        self.retry_after_s = retry_after_s


class _Waiter:
    """A request that waits for its turn."""

    __slots__ = ("ready", "is_refused")

    def __init__(self) -> None:
        self.ready = green.Event()
        self.is_refused = False


class Turns:
    """Lets a number of requests go on at once; the networks of the others take turns.

    When too many wait, the newest request of the network with the most of them is refused: a flood from one
    network delays only itself.
    """

    def __init__(self, at_once: int, waiting_max: int):
        self._free = at_once
        self._waiting_max = waiting_max
        self._waiting = 0
        #: Network → its requests, the oldest first; the first network is the next one.
        self._queues: OrderedDict[str, deque[_Waiter]] = OrderedDict()

    @contextmanager
    def turn(self, network: str) -> Iterator[None]:
        """Wait for a turn, which lasts for the ``with`` block; raise ``TooManyLogins``."""
        if self._free:
            self._free -= 1
        else:
            self._wait(network)
        try:
            yield
        finally:
            self._pass_on()

    def _wait(self, network: str) -> None:
        if self._waiting >= self._waiting_max:
            self._refuse_one(network)
        waiter = _Waiter()
        queue = self._queues.setdefault(network, deque())
        queue.append(waiter)
        self._waiting += 1
        try:
            waiter.ready.wait()
        except BaseException:
            if not waiter.ready.is_set:
                self._remove(network, queue, waiter)
            elif not waiter.is_refused:
                self._pass_on()
            raise
        if waiter.is_refused:
            raise TooManyLogins(1.0)

    def _refuse_one(self, network: str) -> None:
        """Refuse the newest request of the network with the most; raise for a request of this network."""
        longest = max(self._queues, key=lambda name: len(self._queues[name]))
        queue = self._queues[longest]
        if len(self._queues.get(network, ())) + 1 >= len(queue):
            raise TooManyLogins(1.0)
        waiter = queue[-1]
        self._remove(longest, queue, waiter)
        waiter.is_refused = True
        waiter.ready.set()

    def _remove(self, network: str, queue: deque[_Waiter], waiter: _Waiter) -> None:
        queue.remove(waiter)
        self._waiting -= 1
        if not queue:
            del self._queues[network]

    def _pass_on(self) -> None:
        """Give the turn to the next network."""
        if not self._queues:
            self._free += 1
            return
        network, queue = self._queues.popitem(last=False)
        waiter = queue.popleft()
        self._waiting -= 1
        if queue:
            self._queues[network] = queue
        waiter.ready.set()


def network_of(address: str) -> str:
    """Return the network of one client by its address: a single IPv4 address, or 64 bits of IPv6."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return address
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(ip), _IPV6_NETWORK_BITS), strict=False).network_address)

"""The health of nodes, as this process knows it: one record for each (spec: proxy.md §7, decision 0019).

*Avoided* nodes had too many errors, or have no room. An avoided node is never a missing one: iterators
(``cluster.placement``) give it last, and any success ends its avoidance. Besides, one request at a time is
sent to it as a probe: a second after it was avoided, then after two, four and so on, up to the configured
interval. A server that could not be reached is tried every ``UNREACHABLE_PAUSE_S`` at least: during a rolling
restart it gets new objects before the next server stops, so that one server does not have all their copies.

*Unresponsive* nodes have responded to nothing for ``UNRESPONSIVE_S``, whatever they were sent: servers that
are stopped, cut off, or wait for a disk that hangs. They still accept connections, so each request would cost
a timeout. A busy node responds now and then and is not unresponsive. Other nodes are used meanwhile, and the
unresponsive one is sent *probes* (``cluster.probing``) for which no client waits. The first is due earlier:
a node that is only slow about one request responds to the probe.

*Absent* servers let a request of a daemon time out. Daemons, which send one request after another in passes,
leave such a server alone for ``ABSENT_S``.

Keys are the callers'; proxies use ``ip:port/device``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from swift.base.clock import Clock
from swift.cluster.transport import Destination
from swift.ring.device import Device, address
from swift.telemetry.events import Event
from swift.telemetry.statsd import Statsd

_LIMITED = Event(
    "error_limiter.{change}",
    "Avoided nodes: `incremented_limit`, `forced_limit`, `is_limited`; `is_silent`: unresponsive.",
)

#: A node without any response for so long is unresponsive; a disk that seeks takes a second now and then.
UNRESPONSIVE_S = 2.0
#: A node without any response for so long is sent a probe.
SUSPECT_S = UNRESPONSIVE_S / 2
#: Pause before the first probe of an avoided node; a server's restart takes about as long.
FIRST_PAUSE_S = 1.0
#: Longest pause between two probes of a node that could not be reached.
UNREACHABLE_PAUSE_S = 8.0
#: Time without requests to an absent server.
ABSENT_S = 60.0
#: Nodes that are remembered at most.
NODES_MAX = 100_000
_LONG_AGO = float("-inf")


class Probe(NamedTuple):
    """A HEAD that a node is sent to find out whether it responds."""

    node: Destination
    path: str
    policy: str


@dataclass(slots=True)
class _Record:
    """The health of one node; times are of the monotonic clock."""

    errors: int = 0
    last_error: float = 0.0
    #: The last error was a timeout.
    is_slow: bool = False
    #: 0 while the node is not avoided.
    pause_s: float = 0.0
    #: When an avoided node is used again.
    retry_at: float = 0.0
    #: A request was sent to find out whether an avoided node works again.
    is_retried: bool = False
    #: Since when, and for which request, there is no response; None: the node has responded.
    no_response_since: float | None = None
    last_request: float = 0.0
    probe_at: float = 0.0
    #: Of the first request without a response.
    probe: Probe | None = None
    #: Of the latest request.
    latest_probe: Probe | None = None
    absent_until: float = _LONG_AGO

    def clear_errors(self) -> None:
        """Forget all errors."""
        self.errors, self.last_error, self.is_slow = 0, 0.0, False
        self.pause_s, self.retry_at, self.is_retried = 0.0, 0.0, False

    def avoid(self, pause_s: float, now: float) -> None:
        """Avoid the node until ``pause_s`` from now."""
        self.pause_s, self.retry_at, self.is_retried = pause_s, now + pause_s, False


class NodeHealth:
    """The records of one process.

    More than ``limit`` errors, none of them ``interval_s`` seconds after the one before, make a node avoided;
    ``interval_s`` is also the longest pause between probes of a node that responds with errors. No request
    waits longer than ``patience_s``: those that were given up by now prove nothing about the present.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        limit: int = 10,
        interval_s: float = 60.0,
        patience_s: float = 10.0,
        statsd: Statsd | None = None,
    ):
        self._clock = clock
        self._limit = limit
        self._interval_s = interval_s
        self._patience_s = patience_s
        #: Sends a probe without waiting; its outcome is reported here.
        self.send_probe: Callable[[Probe], None] | None = None
        self._statsd = statsd
        self._records: dict[str, _Record] = {}

    def _record(self, key: str) -> _Record:
        record = self._records.get(key)
        if record is None:
            if len(self._records) >= NODES_MAX:
                self._records.clear()
            record = self._records[key] = _Record()
        return record

    # what happened

    def requested(self, key: str, now: float, probe: Probe | None = None) -> None:
        """Record a request that was sent at ``now``; ``probe`` may be sent if there is no response."""
        record = self._record(key)
        if record.no_response_since is None or now - record.last_request > self._patience_s:
            record.no_response_since = record.probe_at = now
            record.probe = probe
        record.latest_probe = probe
        record.last_request = now

    def responded(self, key: str) -> None:
        """Record a response of any kind, or a refused connection."""
        record = self._records.get(key)
        if record is not None:
            record.no_response_since = record.probe = None

    def succeeded(self, key: str) -> None:
        """Record a proper response, which ends an avoidance."""
        record = self._records.get(key)
        if record is not None:
            record.no_response_since = record.probe = None
            if record.pause_s:
                record.clear_errors()

    def failed(self, key: str, *, slow: bool = False, reached: bool = True) -> bool:
        """Count an error; return True if the node is avoided from now on.

        It is a timeout if ``slow``, and a response if ``reached``.
        """
        if not slow:
            self.responded(key)
        record, now = self._record(key), self._clock.monotonic()
        record.is_slow = slow
        if record.pause_s:
            if record.is_retried:
                longest_s = self._interval_s if reached else min(UNREACHABLE_PAUSE_S, self._interval_s)
                record.avoid(min(2 * record.pause_s, longest_s), now)
            return False
        if now - record.last_error >= self._interval_s:
            record.errors = 0
        record.errors += 1
        record.last_error = now
        if record.errors <= self._limit:
            return False
        record.avoid(min(FIRST_PAUSE_S, self._interval_s), now)
        self._count("incremented_limit")
        return True

    def avoid(self, key: str) -> None:
        """Avoid a node at once and for the whole interval, as after a 507."""
        self.responded(key)
        record = self._record(key)
        record.is_slow = False
        record.avoid(self._interval_s, self._clock.monotonic())
        self._count("forced_limit")

    def mark_absent(self, key: str) -> None:
        """Leave a server alone for a while."""
        self._record(key).absent_until = self._clock.monotonic() + ABSENT_S

    def forget_absent(self) -> None:
        """Use absent servers again."""
        for record in self._records.values():
            record.absent_until = _LONG_AGO

    # what follows

    def is_unresponsive(self, key: str) -> bool:
        """Return True if the node has responded to nothing for a while."""
        record = self._records.get(key)
        return record is not None and self._lacks_response(record, self._clock.monotonic(), UNRESPONSIVE_S)

    def _lacks_response(self, record: _Record, now: float, for_s: float) -> bool:
        since = record.no_response_since
        return since is not None and now - since >= for_s and now - record.last_request <= self._patience_s

    def is_probe_due(self, key: str) -> bool:
        """Return True if the node is to be sent a probe now, which counts as a request.

        The next is due before this one is given up, so that the node stays unresponsive meanwhile.
        """
        record, now = self._records.get(key), self._clock.monotonic()
        if record is None or not self._lacks_response(record, now, SUSPECT_S) or now < record.probe_at:
            return False
        record.last_request, record.probe_at = now, now + self._patience_s / 2
        return True

    def suspect(self, key: str) -> None:
        """Have a node probed, if it has responded to nothing for a while."""
        record = self._records.get(key)
        if self.send_probe is not None and record is not None and record.probe is not None:
            probe = record.probe
            if self.is_probe_due(key):
                self.send_probe(probe)

    def suspect_request(self, key: str) -> None:
        """Have a node probed whose latest request waits for ``SUSPECT_S``, whatever it has responded to.

        The response to an earlier request, which came later than this one was sent, proves nothing about it.
        """
        record = self._records.get(key)
        if record is not None and record.no_response_since is None:
            record.probe_at = self._clock.monotonic()
            record.no_response_since = record.probe_at - SUSPECT_S
            record.probe = record.latest_probe
        self.suspect(key)

    def is_avoided(self, key: str) -> bool:
        """Return True if the node is avoided."""
        record = self._records.get(key)
        return record is not None and record.pause_s > 0

    def is_slow(self, key: str) -> bool:
        """Return True if a request may cost a timeout: the last error was one, or there is no response."""
        record = self._records.get(key)
        return record is not None and (record.is_slow or self.is_unresponsive(key))

    def is_absent(self, key: str) -> bool:
        """Return True if the server is to be left alone."""
        record = self._records.get(key)
        return record is not None and record.absent_until > self._clock.monotonic()

    def may_use(self, key: str) -> bool:
        """Return True if the node is to be used now: it is healthy, or this request is its probe."""
        record = self._records.get(key)
        if record is None or (record.no_response_since is None and not record.pause_s):
            return True
        now = self._clock.monotonic()
        if self._lacks_response(record, now, UNRESPONSIVE_S):
            self._count("is_silent")
            self.suspect(key)
            return False
        if not record.pause_s:
            return True
        if now < record.retry_at:
            self._count("is_limited")
            return False
        # Others go on avoiding it until the outcome is known; without an outcome there will be another.
        record.is_retried, record.retry_at = True, now + record.pause_s
        return True

    def _count(self, name: str) -> None:
        if self._statsd is not None:
            _LIMITED.count(self._statsd, change=name)

    def __repr__(self) -> str:
        states = {
            "avoided": self.is_avoided,
            "unresponsive": self.is_unresponsive,
            "absent": self.is_absent,
        }
        found = (f"{name}: {', '.join(filter(has, self._records)) or 'none'}" for name, has in states.items())
        return f"<NodeHealth of {len(self._records)} nodes; {'; '.join(found)}>"


def replication_server(node: Device) -> str:
    """Return the key of a node's server on the replication network, whose devices are absent together."""
    return address(node.replication_ip, node.replication_port)

"""The context of every part of the proxy: one value made by the composition root."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from swift.base.clock import Clock, SystemClock
from swift.base.hashing import PathHasher
from swift.base.limits import Limits
from swift.base.timestamp import Timestamp
from swift.base.truth import is_true
from swift.cluster.clocks import ClockComparison
from swift.cluster.direct import DirectClient
from swift.cluster.health import NodeHealth
from swift.cluster.placement import (
    ConnectTimings,
    NodeIterator,
    NodeSorter,
    OpenStreams,
    local_first,
    parse_node_count,
    parse_write_affinity,
)
from swift.cluster.probing import Prober
from swift.cluster.quorum import half, majority
from swift.cluster.rings import Rings
from swift.cluster.transport import Transport
from swift.http.request import Request
from swift.policy.policy import ErasureCode, Policies, Policy
from swift.proxy.obj.read.plan import TransferRates
from swift.proxy.restamp import Restamper, check_ahead
from swift.proxy.settings import ProxySettings
from swift.ring.device import Node
from swift.ring.view import RingView
from swift.telemetry.events import Event
from swift.telemetry.metrics import GaugeMetric
from swift.telemetry.repeatederrors import RepeatedErrorLog
from swift.telemetry.telemetry import Telemetry

_HANDOFF = Event("{kind}.handoff_count", "Requests that went to a handoff.")
_ALL_HANDOFFS = Event("{kind}.handoff_all_count", "Requests that went to as many handoffs as primaries.")

_CLOCK_OFFSET = GaugeMetric(
    "swift_clock_offset_seconds", "Median of the storage servers' clocks minus this server's."
)
#: The container metadata key that enables strong listings.
STRONG_KEY = "strong-listing"


@dataclass
class ProxyContext:
    """Rings, transport, policies, limits and settings of one proxy process.

    ``policy_settings`` overrides the settings per policy index (``[proxy-server:policy:N]``).
    """

    settings: ProxySettings
    rings: Rings
    transport: Transport
    policies: Policies
    limits: Limits
    hasher: PathHasher
    telemetry: Telemetry = field(default_factory=Telemetry)
    clock: Clock = field(default_factory=SystemClock)
    policy_settings: dict[int, ProxySettings] = field(default_factory=dict)
    #: Tells which nodes are read in this process; None if none are.
    is_own: Callable[[Node], bool] | None = None

    def __post_init__(self) -> None:
        settings = self.settings
        self.health = NodeHealth(
            self.clock,
            limit=settings.error_suppression_limit,
            interval_s=settings.error_suppression_interval,
            patience_s=settings.node_timeout,
            statsd=self.telemetry.statsd,
        )
        errors = RepeatedErrorLog(self.telemetry.log, self.clock)
        self.health.send_probe = Prober(self.health, self.transport, errors, settings).send
        self.clocks = ClockComparison(
            self.clock,
            RepeatedErrorLog(self.telemetry.log, self.clock).error,
            _CLOCK_OFFSET.of(self.telemetry.metrics),
        )
        self.timings = ConnectTimings(self.clock, settings.timing_expiry)
        self.rates = TransferRates(self.clock)
        self.streams = OpenStreams()
        self._planner = Planner(self, settings)
        self._special_planners = {
            index: Planner(self, special) for index, special in self.policy_settings.items()
        }

    def planner(self, policy_index: int | None = None) -> Planner:
        """Return the node order for a policy; accounts and containers use the general one."""
        if policy_index is None:
            return self._planner
        return self._special_planners.get(policy_index, self._planner)

    def write_quorum(self, count: int) -> int:
        """Return the number of ``count`` nodes that must acknowledge a write."""
        return half(count) if self.settings.half_is_quorum else majority(count)

    def object_quorum(self, policy: Policy, count: int) -> int:
        """Return the number of ``count`` nodes that must acknowledge a write of an object under its policy.

        An erasure code's own quorum counts if it is a majority.
        """
        quorum = self.write_quorum(count)
        if policy.ec is None:
            return quorum
        return policy.ec.quorum if self.settings.half_is_quorum else max(policy.ec.quorum, quorum)

    def lists_strongly(self, mark: str | None) -> bool:
        """Return True if a container has strong listings; ``mark`` is its metadata of ``STRONG_KEY``."""
        setting = self.settings.strong_listing
        return setting == "all" or (setting == "marked" and is_true(mark))

    def restamper(self, request: Request) -> Restamper:
        """Return the restamper of a change."""
        return Restamper(request, self.check_ahead, self.clock.time)

    def check_ahead(self, newest: Timestamp) -> None:
        """Raise ``HTTPError`` 503 if a stored state is too far ahead of the clock to be superseded."""
        check_ahead(newest, self.clock.time(), self.settings.restamp_ahead_max)

    @cached_property
    def direct(self) -> DirectClient:
        """The client for single nodes; made in the worker after the fork."""
        settings = self.settings
        return DirectClient(self.transport, "proxy-server", settings)

    @cached_property
    def agent(self) -> str:
        """The User-Agent that backends see."""
        return self.direct.agent


class Planner:
    """Returns the sequence of nodes for requests to a partition, under one set of settings."""

    def __init__(self, context: ProxyContext, settings: ProxySettings):
        self.settings = settings
        self._context = context
        self._sort = NodeSorter(
            settings.sorting_method,
            read_affinity=settings.read_affinity,
            timings=context.timings,
            streams=context.streams,
            is_own=context.is_own,
        )
        self._node_count = parse_node_count(settings.request_node_count)
        self._is_local = parse_write_affinity(settings.write_affinity)
        self._local_count = parse_node_count(settings.write_affinity_node_count)
        #: Local handoffs that deletions go to; None for as many as there are remote primaries.
        self._delete_count = settings.write_affinity_handoff_delete_count

    def for_read(self, view: RingView, part: int, kind: str) -> NodeIterator:
        """Return an iterator over sorted primaries, then handoffs in ring order."""
        primaries = view.primaries(part)
        return self._iterator(view, self._sort(primaries), view.handoffs(part), kind)

    def for_fragments(self, view: RingView, part: int, ec: ErasureCode) -> NodeIterator:
        """Return nodes as ``for_read``; with ``shuffle``, nodes that hold data fragments come first.

        They need no decoding. A second copy of an index comes after the first copies of all others.
        """
        primaries = self._sort(view.primaries(part))
        if self.settings.sorting_method == "shuffle":
            seen: Counter[int] = Counter()
            order = {}
            for node in primaries:
                index = (node.index or 0) % ec.fragments
                order[node.id] = (seen[index], index >= ec.data)
                seen[index] += 1
            primaries.sort(key=lambda node: order[node.id])
        return self._iterator(view, primaries, view.handoffs(part), "object")

    def for_put(self, view: RingView, part: int) -> NodeIterator:
        """Return the nodes that take a new object: as ``for_read``, local ones first with write affinity.

        Only object PUT and DELETE use write affinity: other changes go to where the object is.
        """
        kind = "object"
        if self._is_local is None:
            return self.for_read(view, part, kind)
        replicas = len(view.primaries(part))
        ordered = local_first(view, part, self._is_local, self._local_count(replicas))
        return self._iterator(view, self._sort(ordered[:replicas]), iter(ordered[replicas:]), kind)

    def for_delete(self, view: RingView, part: int) -> tuple[NodeIterator, int]:
        """Return the nodes of an object's deletion and how many of them it needs.

        With write affinity, objects may still be on local handoffs, before they move to remote primaries.
        So the first local handoffs get the deletion too.
        """
        kind = "object"
        if self._is_local is None:
            return self.for_read(view, part, kind), len(view.primaries(part))
        primaries = view.primaries(part)
        extra = self._delete_count
        if extra is None:
            extra = sum(1 for node in primaries if not self._is_local(node))
        handoffs = list(view.handoffs(part))
        local = [node for node in handoffs if self._is_local(node)][:extra]
        chosen = {node.id for node in local}
        rest = [node for node in handoffs if node.id not in chosen]
        chosen_nodes = [*self._sort(primaries), *local]
        return self._iterator(view, chosen_nodes, iter(rest), kind, more=len(local)), len(chosen_nodes)

    def _iterator(
        self,
        view: RingView,
        primaries: Sequence[Node],
        handoffs: Iterator[Node],
        kind: str,
        *,
        more: int = 0,
    ) -> NodeIterator:
        context = self._context

        def on_handoff(number: int) -> None:
            _HANDOFF.count(context.telemetry.statsd, kind=kind)
            if self.settings.log_handoffs:
                context.telemetry.log.warning(f"Handoff requested ({number})")
            if number == len(primaries):
                _ALL_HANDOFFS.count(context.telemetry.statsd, kind=kind)

        count = self._node_count(len(primaries) - more) + more
        return NodeIterator(primaries, handoffs, context.health, count, on_handoff)

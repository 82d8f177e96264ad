"""The nodes of a request, and their order (spec: proxy.md §6).

``NodeSorter`` orders primaries (shuffle, timing or affinity). ``NodeIterator`` returns primaries and then
handoffs, up to the request's node count, and avoided nodes last.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence

from swift.base.clock import Clock
from swift.base.errors import ConfigError
from swift.cluster.health import NodeHealth
from swift.cluster.transport import Destination
from swift.ring.device import Node
from swift.ring.view import RingView

UNMATCHED_PRIORITY = 2**32
_AFFINITY = re.compile(r"r(\d+)(?:z(\d+))?\Z")


def parse_node_count(text: str) -> Callable[[int], int]:
    """Parse ``N`` or ``N * replicas`` to a function of the replica count; raises ``ConfigError``."""
    words = text.lower().split()
    if len(words) == 1 and words[0].isdigit():
        value = int(words[0])
        return lambda _replicas: value
    if len(words) == 3 and words[0].isdigit() and words[1:] == ["*", "replicas"]:
        factor = int(words[0])
        return lambda replicas: factor * replicas
    raise ConfigError(f"a node count is a number or 'N * replicas', not {text!r}")


def _region_zone(text: str) -> tuple[int, int | None]:
    match = _AFFINITY.match(text.strip())
    if match is None:
        raise ConfigError(f"an affinity is r<N> or r<N>z<M>, not {text!r}")
    return int(match[1]), None if match[2] is None else int(match[2])


def _matches(node: Node, place: tuple[int, int | None]) -> bool:
    return node.region == place[0] and place[1] in (None, node.zone)


def parse_read_affinity(text: str) -> Callable[[Node], int]:
    """Parse ``r1z1=100, r1=200`` to a priority function, lower first; raises ``ConfigError``."""
    rules = []
    for item in text.split(","):
        if item.strip():
            place, separator, priority = item.partition("=")
            if not separator or not priority.strip().isdigit():
                raise ConfigError(f"a read affinity is r<N>[z<M>]=priority, not {item!r}")
            rules.append((int(priority), _region_zone(place)))
    rules.sort(key=lambda rule: rule[0])

    def priority_of(node: Node) -> int:
        return next((p for p, place in rules if _matches(node, place)), UNMATCHED_PRIORITY)

    return priority_of


def parse_write_affinity(text: str) -> Callable[[Node], bool] | None:
    """Parse ``r1, r2z3`` to a test for local nodes, None when empty; raises ``ConfigError``."""
    places = [_region_zone(item) for item in text.split(",") if item.strip()]
    return (lambda node: any(_matches(node, place) for place in places)) if places else None


class ConnectTimings:
    """Last connect time per address, for ``sorting_method = timing``."""

    def __init__(self, clock: Clock, expiry_s: float = 300.0):
        self._clock = clock
        self._expiry_s = expiry_s
        self._seen: dict[str, tuple[float, float]] = {}

    def record(self, node: Destination, seconds: float) -> None:
        """Record how long a connection to the node took."""
        self._seen[node.ip] = (round(seconds, 3), self._clock.monotonic() + self._expiry_s)

    def key(self, node: Node) -> float:
        """Sort key; unknown and expired ones first."""
        seconds, expires = self._seen.get(node.ip, (-1.0, 0.0))
        return seconds if expires >= self._clock.monotonic() else -1.0


class OpenStreams:
    """The number of long responses that each device is sending to this process."""

    def __init__(self) -> None:
        #: Key of a node → number of responses, if there are any.
        self._open: dict[str, int] = {}

    def __bool__(self) -> bool:
        """Return True if there are any."""
        return bool(self._open)

    def begin(self, node: Node) -> None:
        """Count a response that a node has begun."""
        self._open[node.key] = self._open.get(node.key, 0) + 1

    def end(self, node: Node) -> None:
        """Count the end of a response; once for each ``begin``."""
        left = self._open[node.key] - 1
        if left:
            self._open[node.key] = left
        else:
            del self._open[node.key]

    def count_of(self, node: Node) -> int:
        """Return the number of open responses from a node."""
        return self._open.get(node.key, 0)

    def __repr__(self) -> str:
        return f"<Streams {self._open}>"


class NodeSorter:
    """Orders primaries; every method shuffles first so that load spreads.

    Among equal nodes those with the fewest open ``streams`` come first. Otherwise many readers of few
    devices, and the segments of one large object, would collide by chance. Among equals of these, nodes of
    this machine (``is_own``) come first, in the ring's order: an object that is read again and again takes
    memory once, not once for each replica.
    """

    def __init__(
        self,
        method: str = "shuffle",
        *,
        read_affinity: str = "",
        timings: ConnectTimings | None = None,
        streams: OpenStreams | None = None,
        is_own: Callable[[Node], bool] | None = None,
        rng: random.Random | None = None,
    ):
        self._is_own = is_own
        self._streams = OpenStreams() if streams is None else streams
        self._key: Callable[[Node], float] | None = None
        if method == "timing" and timings is not None:
            self._key = timings.key
        elif method == "affinity":
            self._key = parse_read_affinity(read_affinity)
        self._shuffle = (rng or random).shuffle

    def __call__(self, nodes: Sequence[Node]) -> list[Node]:
        own: list[Node] = []
        is_own, others = self._is_own, list(nodes)
        if is_own is not None:
            others = []
            for node in nodes:
                # Asked once: the second answer may differ, and the node would be in no list.
                (own if is_own(node) else others).append(node)
        self._shuffle(others)
        ordered = own + others
        if self._streams:
            ordered.sort(key=self._streams.count_of)
        if self._key is not None:
            ordered.sort(key=self._key)
        return ordered


def local_first(view: RingView, part: int, is_local: Callable[[Node], bool], local_count: int) -> list[Node]:
    """Return primaries and handoffs reordered for write affinity: the first ``local_count`` local ones
    lead.
    """
    nodes = [*view.primaries(part), *view.handoffs(part)]
    local = [node for node in nodes if is_local(node)][:local_count]
    chosen = {node.id for node in local}
    return local + [node for node in nodes if node.id not in chosen]


class NodeIterator:
    """Returns nodes once each to any number of green threads.

    First come ``node_count`` nodes that are not avoided, then, while ``uses_avoided`` is set, the deferred
    ones as a last resort. A caller that does not need them clears it, or ``uses_slow`` for those that may
    cost a timeout, and can set it again later. ``on_handoff(number)`` is called when a handoff beyond the
    expected ones is used.
    """

    def __init__(
        self,
        primaries: Sequence[Node],
        handoffs: Iterator[Node],
        health: NodeHealth,
        node_count: int,
        on_handoff: Callable[[int], None] | None = None,
    ):
        self.primary_count = len(primaries)
        self.uses_avoided = True
        self.uses_slow = True
        self._primaries = list(primaries)
        self._handoffs = handoffs
        self._health = health
        self._left = node_count
        self._expected_handoffs = node_count - len(primaries)
        self._handoffs_used = 0
        self._on_handoff = on_handoff
        self._handed_out: list[Node] = []
        #: The next usable node, if it was looked for already.
        self._following: Node | None = None
        #: Seconds by which a change was dated ahead of the clock of a node that refused it.
        self.clock_ahead_s = ""
        self._avoided: list[Node] = []
        # As many avoided handoffs are kept as would have been used.
        self._avoided_handoffs_left = self._expected_handoffs

    def __iter__(self) -> NodeIterator:
        return self

    @property
    def primaries_left(self) -> Sequence[Node]:
        """Primaries that were neither returned nor deferred, in their order."""
        following = self._following
        return (*([following] if following and following.index is not None else ()), *self._primaries)

    def reorder(self, order: Callable[[Sequence[Node]], Sequence[Node]]) -> None:
        """Put the primaries that are left into another order."""
        self._primaries = list(order(self.primaries_left))
        if self._following is not None and self._following.index is not None:
            self._following = None

    def __next__(self) -> Node:
        if self._handed_out:
            self._refund_avoided()
        node = None
        if self._left > 0:
            node, self._following = self._following or self._next_usable(), None
        if node is not None:
            self._left -= 1
            self._handed_out.append(node)
            return node
        if self.uses_avoided:
            for i, node in enumerate(self._avoided):
                if self.uses_slow or not self._health.is_slow(node.key):
                    return self._avoided.pop(i)
        raise StopIteration

    def defer(self, node: Destination) -> bool:
        """Defer a node to the last resort; return False when it was one already or no other node is left."""
        for i, handed_out in enumerate(self._handed_out):
            if handed_out.key == node.key:
                if self._following is None:
                    self._following = self._next_usable()
                if self._following is None:
                    return False
                self._avoided.append(self._handed_out.pop(i))
                self._left += 1
                return True
        return False

    def _refund_avoided(self) -> None:
        """Do not count nodes that became avoided while they were used."""
        lost = [node for node in self._handed_out if self._health.is_avoided(node.key)]
        if lost:
            self._left += len(lost)
            self._handed_out = [node for node in self._handed_out if node not in lost]

    def _next_usable(self) -> Node | None:
        """Return the next node that is not avoided."""
        while self._primaries:
            node = self._primaries.pop(0)
            if self._health.may_use(node.key):
                return node
            self._avoided.append(node)
        for node in self._handoffs:
            if not self._health.may_use(node.key):
                if self._avoided_handoffs_left > 0:
                    self._avoided_handoffs_left -= 1
                    self._avoided.append(node)
                continue
            self._handoffs_used += 1
            extra = self._handoffs_used - max(0, self._expected_handoffs)
            if extra > 0 and self._on_handoff is not None:
                self._on_handoff(extra)
            return node
        return None

"""A cluster that shares one machine with those who make its load, simulated with measured costs.

It is what ``swift-aio`` makes, and what predictions can be checked against: all servers and the load compete
for the same cores, of which a process uses one at a time; each device may have a rate of its own, as a cgroup
gives it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

import simpy

from swift.plan.costs import CHANGES, Costs, RequestCosts, request_kind
from swift.plan.engine import LatencyTally, Station, Steps, closed_loop
from swift.plan.fit import ROW_COPIES

#: Seconds that a PUT waits for the rest when enough nodes have it (post_quorum_timeout).
GRACE_S = 0.5
#: Time slice of a process, seconds.
SLICE_S = 0.0005


@dataclass(frozen=True, slots=True)
class Emulated:
    """A cluster and its workload. Sizes in bytes, rates in bytes a second."""

    name: str
    nodes: int
    #: Copies, or data and parity of a code.
    copies: int
    data: int
    parity: int
    #: Verb → its share of the requests.
    mix: Mapping[str, float] = field(default_factory=dict)
    size: float = 4096.0
    clients: int = 8
    #: Processes of the proxy, and of the load; a node's object server is one.
    workers: int = 1
    loaders: int = 1
    #: Node number from 0 → what its device delivers; others are not limited.
    slow: Mapping[int, float] = field(default_factory=dict)

    @property
    def is_coded(self) -> bool:
        """True if objects are archives."""
        return self.data > 0

    @property
    def piece(self) -> float:
        """Bytes of a copy or archive."""
        return self.size / self.data if self.data else self.size

    def nodes_requested(self, verb: str) -> int:
        """Return the number of nodes that a request goes to."""
        if verb == "GET":
            return self.data or 1
        return self.data + self.parity if self.data else self.copies

    def needed(self, verb: str) -> int:
        """Return the number of nodes whose response a request waits for."""
        if verb == "GET":
            return self.nodes_requested(verb)
        return self.data + 1 if self.data else self.copies // 2 + 1


@dataclass(frozen=True, slots=True)
class Expected:
    """Prediction: requests a second, the medians by verb and the 99th percentile of all, seconds.

    A median of all would say nothing: where half of the requests take a hundred times as long as the others
    it is anywhere between.
    """

    rate: float
    p50_s: Mapping[str, float]
    p99_s: float

    def figures(self) -> dict[str, float]:
        """Return all figures by their names for people, latencies in ms."""
        medians = {f"{verb} p50 ms": 1000 * self.p50_s[verb] for verb in sorted(self.p50_s)}
        return {"requests/s": self.rate, **medians, "p99 ms": 1000 * self.p99_s}


class _Simulation:
    def __init__(self, cluster: Emulated, costs: Costs, seed: int):
        self.cluster, self.costs = cluster, costs
        self.env = env = simpy.Environment()
        self.rng = random.Random(seed)
        self.cores = Station(env, "cores", max(1, costs.cores))
        self.load = Station(env, "load", cluster.loaders)
        self.proxy = Station(env, "proxy", cluster.workers)
        self.servers = [Station(env, "object server") for _ in range(cluster.nodes)]
        self.devices = {node: Station(env, "device") for node in cluster.slow}
        self.verbs = list(cluster.mix)
        self.tallies = {verb: LatencyTally([]) for verb in self.verbs}
        self.shares = [cluster.mix[verb] for verb in self.verbs]

    def request(self) -> Steps:
        """Simulate one request; nodes work in parallel."""
        cluster, env = self.cluster, self.env
        (verb,) = self.rng.choices(self.verbs, self.shares)
        began = env.now
        kind = self.costs.kinds[request_kind(verb, is_coded=cluster.is_coded)]
        size = 0.0 if verb == "DELETE" else cluster.size
        count = cluster.nodes_requested(verb)
        luck = self._random_factor(kind)
        yield from self._work(self.load, (kind.client_s + kind.client_byte_s * size) * luck)
        proxy_s = self.costs.proxy_s(verb, size, count, is_coded=cluster.is_coded)
        yield from self._work(self.proxy, proxy_s * luck)
        nodes = self.rng.sample(range(cluster.nodes), count)
        visits = [env.process(self._at_node(node, verb, kind, luck)) for node in nodes]
        needed = cluster.needed(verb)
        yield simpy.events.Condition(env, lambda _events, done: done >= needed, visits)
        yield env.all_of(visits) | env.timeout(GRACE_S)
        self.tallies[verb].latencies.append(env.now - began)

    def _random_factor(self, kind: RequestCosts) -> float:
        """Return the ratio of this request's duration to the mean."""
        return math.exp(self.rng.gauss(-(kind.spread**2) / 2, kind.spread)) if kind.spread else 1.0

    def _work(self, process: Station | None, seconds: float) -> Steps:
        """Yield a process works, the kernel when it is none: in slices, each of which needs its turn and a
        core.

        So a short request is not kept by a long one for all its time: servers turn to the next client after
        each piece that they move, and the kernel's scheduler from one process to the next.
        """
        while seconds > 0:
            piece_s = min(SLICE_S, seconds)
            core = self.cores.serve(piece_s)
            yield core if process is None else process.serve(piece_s) & core
            seconds -= piece_s

    def _at_node(self, node: int, verb: str, kind: RequestCosts, luck: float) -> Steps:
        cluster = self.cluster
        piece = 0.0 if verb == "DELETE" else cluster.piece
        store_s = self.costs.store_s(verb, piece, is_coded=cluster.is_coded)
        yield from self._work(self.servers[node], store_s * luck)
        # No request waits for the kernel's own work, but it needs a core.
        self.env.process(self._work(None, (kind.kernel_s + kind.kernel_byte_s * piece) * luck))
        wait_s = (kind.wait_s + kind.wait_byte_s * piece) * luck
        if node in self.devices and verb != "GET":
            # What was just written is read from memory; what is written goes to the device.
            yield self.devices[node].serve(max(wait_s, piece / cluster.slow[node]))
        elif wait_s:
            yield self.env.timeout(wait_s)
        if verb in CHANGES:
            yield from self._work(None, self.costs.row_s * ROW_COPIES / cluster.nodes_requested(verb) * luck)


def predict_emulated(cluster: Emulated, costs: Costs, *, seconds: float, seed: int = 0) -> Expected:
    """Simulate the clients' throughput and latency, after a fifth of the time to warm up."""
    world, tally = _Simulation(cluster, costs, seed), LatencyTally([])
    warm_up = seconds / 5
    closed_loop(world.env, cluster.clients, world.request, tally, warm_up)
    world.env.run(until=seconds)
    medians = {verb: its.percentile_s(0.5) for verb, its in world.tallies.items()}
    return Expected(tally.ended / (seconds - warm_up), medians, tally.percentile_s(0.99))

"""The search for the cluster that does most for its cost, and what becomes of it when it grows.

What cannot win is never tried: machines that another beats at no higher price, workers that have no core of
their own, and choices whose bound is already reached at no higher cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from swift.plan.catalogue import Catalogue, ClusterChoice, Machine, PlannedWorkload
from swift.plan.cluster import Prediction, predict, throughput_bound
from swift.plan.costs import ASSUMED, Costs
from swift.plan.errors import PlanError
from swift.plan.report import PlanProgress

#: A short simulated run may exceed its bound by chance by so much.
MARGIN = 1.1
_GAIN_WORTH_MORE = 1.05


@dataclass(frozen=True, slots=True)
class TriedChoice:
    """A choice and its simulated result."""

    choice: ClusterChoice
    found: Prediction

    @property
    def per_cost(self) -> float:
        """Requests a second by cost."""
        return self.found.rate / self.choice.cost


@dataclass(frozen=True, slots=True)
class SearchResult:
    """All that were tried, best first, and how many were not and why."""

    tried: list[TriedChoice]
    dominated_machines: int
    idle_workers: int
    bounded: int
    impossible: int

    @property
    def front(self) -> list[TriedChoice]:
        """Those that no other beats in both cost and throughput, cheapest first."""
        best, found = -1.0, []
        for each in sorted(self.tried, key=lambda tried: (tried.choice.cost, -tried.found.rate)):
            if each.found.rate > best:
                best = each.found.rate
                found.append(each)
        return found


def search(
    catalogue: Catalogue,
    workload: PlannedWorkload,
    *,
    seconds: float,
    seed: int = 0,
    prune: bool = True,
    progress: PlanProgress | None = None,
    costs: Costs = ASSUMED,
) -> SearchResult:
    """Try what may win. Raises PlanError when nothing can be tried."""
    said = progress or PlanProgress()
    everything = catalogue.choices()
    possible = [c for c in everything if c.nodes * c.storage.drives >= c.policy.total]
    hopeful = [c for c in possible if not prune or not _has_dominated_machine(c, catalogue)]
    useful = [c for c in hopeful if not prune or not _has_idle_workers(c, catalogue.workers)]
    bounds = {choice: throughput_bound(choice, workload, catalogue.objects, costs) for choice in useful}
    tried: list[TriedChoice] = []
    bounded = 0
    for done, choice in enumerate(sorted(useful, key=lambda c: -bounds[c] / c.cost)):
        said(done, len(useful), "search")
        limit = bounds[choice] * MARGIN
        if prune and any(t.choice.cost <= choice.cost and t.found.rate >= limit for t in tried):
            bounded += 1
            continue
        found = predict(choice, workload, catalogue.objects, seconds=seconds, seed=seed, costs=costs)
        tried.append(TriedChoice(choice, found))
    if not tried:
        raise PlanError("no choice of the catalogue has enough drives for its policy")
    tried.sort(key=lambda each: -each.per_cost)
    return SearchResult(
        tried,
        len(possible) - len(hopeful),
        len(hopeful) - len(useful),
        bounded,
        len(everything) - len(possible),
    )


def _has_dominated_machine(choice: ClusterChoice, catalogue: Catalogue) -> bool:
    return _is_dominated(choice.proxy, catalogue.proxies) or _is_dominated(choice.storage, catalogue.storages)


def _is_dominated(machine: Machine, others: Sequence[Machine]) -> bool:
    return any(machine.is_dominated_by(other) for other in others)


def _has_idle_workers(choice: ClusterChoice, workers: Sequence[int]) -> bool:
    """Return True if fewer workers would keep as many cores busy, on both kinds of machine."""
    cores = max(choice.proxy.cores, choice.storage.cores)
    return any(cores <= fewer < choice.workers for fewer in workers)


@dataclass(frozen=True, slots=True)
class GrownCluster:
    """A cluster in the ratio of the small one, ``times`` as large."""

    times: float
    choice: ClusterChoice
    found: Prediction


def grow(
    choice: ClusterChoice,
    workload: PlannedWorkload,
    objects: float,
    nodes: int,
    *,
    seconds: float,
    seed: int = 0,
    costs: Costs = ASSUMED,
) -> GrownCluster:
    """Return the same ratio of proxies to storage nodes, and of clients.

    Containers stay as many as they are.
    """
    times = nodes / choice.nodes
    proxies = math.ceil(choice.proxies * times)
    a_node = (choice.cost - choice.proxies * choice.proxy.price) / choice.nodes
    cost = proxies * choice.proxy.price + nodes * a_node
    larger = replace(choice, proxies=proxies, nodes=nodes, cost=cost)
    asked = replace(workload, clients=math.ceil(workload.clients * times))
    return GrownCluster(
        times, larger, predict(larger, asked, objects, seconds=seconds, seed=seed, costs=costs)
    )


def scale(
    best: TriedChoice,
    workload: PlannedWorkload,
    objects: float,
    target: float,
    *,
    seconds: float,
    seed: int = 0,
    progress: PlanProgress | None = None,
    times_max: int = 512,
    costs: Costs = ASSUMED,
) -> list[GrownCluster]:
    """Grow until the target is met or growing does not help any more; the steps, the last one the answer."""
    said = progress or PlanProgress()
    steps = [GrownCluster(1.0, best.choice, best.found)]
    while steps[-1].found.rate < target and steps[-1].times < times_max:
        last = steps[-1]
        before = round(last.times)
        wanted = math.ceil(before * target / max(last.found.rate, 1e-9))
        times = min(max(before + 1, wanted), 4 * before, times_max)
        nodes = best.choice.nodes * times
        steps.append(grow(best.choice, workload, objects, nodes, seconds=seconds, seed=seed, costs=costs))
        said(len(steps), len(steps) + 1, f"grown {times} times")
        if steps[-1].found.rate < last.found.rate * _GAIN_WORTH_MORE:
            break
    return steps

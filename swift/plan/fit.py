"""From what runs of a real cluster used to the costs of its requests; pure.

A kind is measured with small objects and with large ones, by several clients and by one. What a request costs
for itself and for each byte follows from the two sizes; what one client waits for beyond all work that is
counted is the disk's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from swift.plan.costs import ARCHIVES, CHANGES, COPIES, KINDS, VERBS, Costs, RequestCosts
from swift.plan.errors import PlanError

#: Percentiles of a normal distribution: standard deviations between the median and the 99th.
_TO_99 = 2.326
#: Number of container databases that take the row of a change.
ROW_COPIES = 3


@dataclass(frozen=True, slots=True)
class Observed:
    """One run of one kind: means of a request. Seconds, bytes."""

    kind: str
    size: float
    clients: int
    #: Nodes that took part in each request, and the bytes at each.
    nodes: int
    piece: float
    requests: int
    #: CPU of the proxy, of all object servers, of all container servers, and of those who made the load.
    proxy_s: float
    store_s: float
    row_s: float
    client_s: float
    mean_s: float
    p50_s: float
    p99_s: float
    disk_bytes: float = 0.0
    disk_writes: float = 0.0
    network_bytes: float = 0.0
    #: CPU of the kernel's own threads.
    kernel_s: float = 0.0


def fit_line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the intercept and the slope per byte; neither below 0."""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    middle, mean = fmean(xs), fmean(ys)
    spread = sum((x - middle) ** 2 for x in xs)
    slope = sum((x - middle) * (y - mean) for x, y in points) / spread if spread else 0.0
    slope = max(0.0, slope)
    smallest = min(points)
    # Through the smallest: that is where what does not depend on the size is seen.
    return max(0.0, smallest[1] - slope * smallest[0]), slope


def _kind(runs: Sequence[Observed], cores: int) -> RequestCosts:
    """Return the costs of one kind from its runs."""
    busy = [run for run in runs if run.clients > 1] or list(runs)
    alone = [run for run in runs if run.clients == 1] or list(runs)

    def line(used: Callable[[Observed], float], at: Callable[[Observed], float]) -> tuple[float, float]:
        return fit_line([(at(run), used(run)) for run in busy])

    proxy_s, proxy_byte_s = line(lambda run: run.proxy_s, lambda run: run.size)
    store_s, store_byte_s = line(lambda run: run.store_s / run.nodes, lambda run: run.piece)
    client_s, client_byte_s = line(lambda run: run.client_s, lambda run: run.size)
    kernel_s, kernel_byte_s = line(lambda run: run.kernel_s / run.nodes, lambda run: run.piece)
    waits = [(run.piece, max(0.0, run.mean_s - idle_duration(run, cores))) for run in alone]
    wait_s, wait_byte_s = fit_line(waits)
    small = min(busy, key=lambda run: run.size)
    ratios = [run.p99_s / run.p50_s for run in alone if run.p50_s > 0]
    return RequestCosts(
        proxy_s,
        proxy_byte_s,
        fmean(run.nodes for run in runs),
        store_s,
        store_byte_s,
        client_s,
        client_byte_s,
        kernel_s,
        kernel_byte_s,
        wait_s,
        wait_byte_s,
        max(0.0, math.log(max(1.0, fmean(ratios))) / _TO_99) if ratios else 0.0,
        small.disk_bytes,
        small.disk_writes,
        small.network_bytes,
    )


def idle_duration(run: Observed, cores: int) -> float:
    """Return the duration of a request on an idle cluster: nodes work in parallel."""
    beside = max(1, min(cores, run.nodes))
    return run.proxy_s + run.client_s + (run.store_s + run.row_s) / beside


def fit(runs: Sequence[Observed], *, machine: str, cores: int) -> Costs:
    """Return the costs of all kinds; raises ``PlanError`` when one was not measured.

    Where no archives are kept they are taken to cost what copies do, and the other way round.
    """
    by_kind: dict[str, list[Observed]] = {kind: [] for kind in KINDS}
    for run in runs:
        if run.requests and run.kind in by_kind:
            by_kind[run.kind].append(run)
    for kept, other in ((ARCHIVES, COPIES), (COPIES, ARCHIVES)):
        if not any(by_kind[f"{verb} {kept}"] for verb in VERBS):
            by_kind |= {f"{verb} {kept}": by_kind[f"{verb} {other}"] for verb in VERBS}
    if missing := [kind for kind, its in by_kind.items() if not its]:
        raise PlanError(f"not measured: {', '.join(missing)}")
    kinds = {kind: _kind(its, cores) for kind, its in by_kind.items()}
    changes = [run.row_s / ROW_COPIES for run in runs if run.kind.split()[0] in CHANGES and run.requests]
    return Costs(kinds, _node_s(kinds), fmean(changes), machine, cores)


def _node_s(kinds: Mapping[str, RequestCosts]) -> float:
    """Return the proxy's cost of one more node: reads of replicas use one, reads of fragments several."""
    copies, archives = kinds[f"GET {COPIES}"], kinds[f"GET {ARCHIVES}"]
    more = archives.nodes - copies.nodes
    return max(0.0, (archives.proxy_s - copies.proxy_s) / more) if more > 0 else 0.0

"""The best choices of a search, run: machines emulated by shares of this one, and measured by ``swift-load``.

    swift-plan search --workload small-upload --measure 3

Every machine of a choice is a group of processes that has a share of this machine's cores; the drives of a
node are one filesystem that does as much as all of them together. All shares are the same part of the real
thing, ``scale``, so that the largest choice fits; what is measured is divided by it. Bodies that are read
come from the drives, as in a cluster that stores more than it remembers: memory drops them all the time.
Networks and the memory of a node are not emulated. It needs root, XFS tools and cgroups.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from swift.aio.cgroups import MachinePart, check_cgroups, confined_group, drop_caches, drop_page_cache
from swift.aio.make import make_cluster, remove_cluster
from swift.aio.plan import ClusterPlan, new_plan
from swift.aio.ports import PORTS_PER_NODE
from swift.aio.supervisor import Supervisor
from swift.aio.temporary import set_options
from swift.aio.xfs import check_xfs, mount_seeking_disk
from swift.base.errors import ConfigError
from swift.load.endpoint import log_in
from swift.load.servers import with_descendants
from swift.plan.calibration import CalibrationSite, NamedServers, cluster_servers
from swift.plan.catalogue import ClusterChoice, PlannedWorkload
from swift.plan.cluster import cores_used, memory_hits
from swift.plan.report import format_table
from swift.plan.search import TriedChoice

#: Of this machine's cores: the rest is for the load and the kernel.
SHARE_OF_CORES = 0.7
IMAGE_BYTES = 8 << 30
#: Servers at so small a part of a machine answer late, and are not to be thought broken.
PATIENCE_S = 300
#: Seconds between drops of bodies from memory.
FORGET_S = 0.5
#: Every client is to ask so often in what is counted.
ROUNDS = 4
SECONDS_MAX = 300.0
BLOCK = 4096

Say = Callable[[str], None]


@dataclass(frozen=True)
class CandidateBench:
    """Place and least duration (seconds) of measurements of candidates."""

    root: Path
    port: int = 29000
    seconds: float = 30.0
    cores: int = os.cpu_count() or 1


@dataclass(frozen=True)
class Candidate:
    """A choice that was tried by the simulator and then run; requests a second of the real thing."""

    tried: TriedChoice
    measured: float
    failed: int

    @property
    def per_cost(self) -> float:
        """Measured requests a second by cost."""
        return self.measured / self.tried.choice.cost

    @property
    def off(self) -> float:
        """Relative error of the prediction."""
        return self.tried.found.rate / self.measured - 1 if self.measured else 0.0


def usable_cores(choice: ClusterChoice) -> float:
    """Return the cores of speed 1 that its workers can keep busy."""
    proxies = choice.proxies * cores_used(choice.proxy, choice.workers) * choice.proxy.speed
    return proxies + choice.nodes * cores_used(choice.storage, choice.workers) * choice.storage.speed


def emulation_scale(choices: Sequence[ClusterChoice], cores: int) -> float:
    """Return the scale at which the largest choice fits this machine; at most 1."""
    return min(1.0, SHARE_OF_CORES * cores / max(map(usable_cores, choices)))


def proxy_part(choice: ClusterChoice, scale: float) -> MachinePart:
    """Return the part of this machine that all proxies together get."""
    return MachinePart(choice.proxies * cores_used(choice.proxy, choice.workers) * choice.proxy.speed * scale)


def node_part(choice: ClusterChoice, scale: float, device: str) -> MachinePart:
    """Return the part of this machine that a storage node gets."""
    storage, disk = choice.storage, choice.storage.disk
    assert disk is not None, "a storage node has drives"
    return MachinePart(
        cores_used(storage, choice.workers) * storage.speed * scale,
        device,
        max(1, round(storage.drives * scale / disk.mean_s(0))),
        max(BLOCK, round(storage.drives * scale * disk.bytes_s)),
    )


def candidate_plan(choice: ClusterChoice, bench: CandidateBench) -> ClusterPlan:
    """Return the cluster that stands for a choice."""
    is_coded = choice.policy.needed > 1
    return new_plan(
        bench.root / "candidate",
        proxy_port=bench.port,
        cache_port=bench.port + 1,
        base_port=bench.port + PORTS_PER_NODE,
        nodes=choice.nodes,
        replicas=3 if is_coded else choice.policy.total,
        ec=choice.policy.name if is_coded else "",
        part_power=8,
        proxy_workers=min(choice.proxies, bench.cores),
    )


def run_seconds(workload: PlannedWorkload, rate: float, bench: CandidateBench) -> float:
    """Return the duration of a run at this request rate, seconds."""
    return min(SECONDS_MAX, max(bench.seconds, ROUNDS * workload.clients / max(rate, 1e-9)))


def load_text(choice: ClusterChoice, workload: PlannedWorkload, seconds: float) -> str:
    """Return the workload file; objects that are read are as many as clients, at least."""
    each = max(4, workload.clients // workload.containers)
    if workload.get + workload.put < 1:
        each *= 4
    shares = {"get": workload.get, "put": workload.put, "delete": 1 - workload.get - workload.put}
    mix = ", ".join(f"{verb} = {round(100 * share)}" for verb, share in shares.items() if share > 0.001)
    policy = "ec" if choice.policy.needed > 1 else "gold"
    return (
        f'name = "{workload.name}"\n[objects]\ncontainers = {workload.containers}\n'
        f"per_container = {each}\nsize = {{min = {workload.size_min}, max = {workload.size_max}}}\n"
        f'policy = "{policy}"\n[[phase]]\nkind = "init"\n[[phase]]\nkind = "prepare"\nclients = 8\n'
        f'[[phase]]\nkind = "main"\nmix = {{{mix}}}\nclients = {workload.clients}\n'
        f"seconds = {seconds:.1f}\nrampup = {seconds / 4:.1f}\n"
    )


@contextlib.contextmanager
def emulated(choice: ClusterChoice, scale: float, bench: CandidateBench) -> Iterator[CalibrationSite]:
    """Run the cluster of a choice within its shares; raises ``ConfigError``."""
    plan = candidate_plan(choice, bench)
    make_cluster(plan)
    with contextlib.ExitStack() as stack:
        stack.callback(remove_cluster, plan)
        set_options(plan.etc / "proxy-server.conf", "proxy", node_timeout=PATIENCE_S, conn_timeout=PATIENCE_S)
        for kind in ("object", "container", "account"):
            for conf in (plan.etc / f"{kind}-server").glob("*.conf"):
                set_options(conf, kind, node_timeout=PATIENCE_S, conn_timeout=PATIENCE_S)
        devices = [
            stack.enter_context(mount_seeking_disk(bench.root / f"disk-{number}.img", IMAGE_BYTES, path))
            for number, path in enumerate(plan.device_paths())
        ]
        parts = {"proxy": proxy_part(choice, scale)}
        for node, device in zip(plan.node_numbers(), devices, strict=True):
            parts[f"node{node}"] = node_part(choice, scale, device)
        moves = {
            name: stack.enter_context(confined_group(f"swift-plan-{os.getpid()}-{name}", part))
            for name, part in parts.items()
        }
        supervisor = Supervisor(plan, lambda _text: None)
        stack.callback(supervisor.end)
        supervisor.start()
        endpoint = log_in(plan.auth_url, plan.user, plan.key)
        for node in plan.node_numbers():
            supervisor.kill(f"daemons-{node}")
            for kind in ("object", "container", "account"):
                _move_all(moves[f"node{node}"], supervisor.pid(f"{kind}-{node}"))
        _move_all(moves["proxy"], supervisor.pid("proxy"))
        yield CalibrationSite(endpoint, NamedServers(cluster_servers(plan, supervisor), endpoint), plan.root)


def _move_all(move: Callable[[int], None], pid: int) -> None:
    """Move a server and its workers."""
    for each in with_descendants({pid}):
        move(each)


@contextlib.contextmanager
def calling_periodically(forget: Callable[[], None]) -> Iterator[None]:
    """Call it every now and then, and once more at the end."""
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(FORGET_S):
            forget()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def measure(
    tried: Sequence[TriedChoice], workload: PlannedWorkload, objects: float, bench: CandidateBench, say: Say
) -> tuple[list[Candidate], float]:
    """Run them; best by cost first, and the scale. Raises ``SwiftError`` and OSError."""
    check_cgroups()
    check_xfs()
    scale = emulation_scale([each.choice for each in tried], bench.cores)
    found = []
    for each in tried:
        choice, here = each.choice, each.found.rate * scale
        seconds = run_seconds(workload, here, bench)
        say(f"{choice.name}: {seconds:.0f} s at {100 * scale:.2g} % of its machines ...")
        forget = drop_page_cache if memory_hits(choice, objects) >= 0.5 else drop_caches
        with emulated(choice, scale, bench) as site, calling_periodically(forget):
            result = site.run(load_text(choice, workload, seconds)).result
        rate = result.count / max(result.seconds, 1e-9) / scale
        failed = sum(sum(of.errors.values()) for of in result.operations.values())
        found.append(Candidate(each, rate, failed))
        say(f"  {rate:,.0f} requests/s, {each.found.rate:,.0f} predicted")
    return sorted(found, key=lambda candidate: -candidate.per_cost), scale


def candidates_text(found: Sequence[Candidate], scale: float) -> str:
    """Return a table, best by cost first."""
    rows = [["measured", "cost", "requests/s", "by cost", "predicted", "off", "failed"]]
    for each in found:
        choice, tried = each.tried.choice, each.tried
        rate, predicted = f"{each.measured:,.0f}", f"{tried.found.rate:,.0f}"
        row = [choice.name, f"{choice.cost:.2f}", rate, f"{each.per_cost:.3g}", predicted]
        rows.append([*row, f"{100 * each.off:+.0f} %", str(each.failed)])
    head = f"on machines of {100 * scale:.2g} % of the real ones, measured rates divided by that"
    return f"{head}\n\n{format_table(rows)}"


def check_count(count: int, tried: Sequence[TriedChoice]) -> Sequence[TriedChoice]:
    """Return the best ``count`` by prediction.

    Raises ``ConfigError`` for a number that cannot be measured.
    """
    if not 1 <= count <= 50:
        raise ConfigError(f"--measure {count}: from 1 to 50 candidates")
    return tried[:count]

"""Service times of this project's own servers, measured; and predictions checked against clusters that run.

    swift-plan calibrate --json profile.json
    swift-plan calibrate --check profile.json

A cluster is made, without its daemons, or one that runs on this machine is taken; ``swift-load`` asks one
kind of request after the other, of small and of large objects, by several clients and by one, and the CPU
time of each kind of server is read before and after (``plan.fit`` has what follows). ``--check`` runs
clusters that were not measured and sets what they do beside what is predicted (``plan.emulated``).
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from swift.aio.cgroups import check_cgroups, file_device_number, write_count
from swift.aio.plan import ClusterPlan, new_plan
from swift.aio.ports import PORTS_PER_NODE
from swift.aio.supervisor import Supervisor
from swift.aio.temporary import running_cluster
from swift.aio.xfs import check_xfs
from swift.base.errors import ConfigError
from swift.load.endpoint import LoadEndpoint, log_in
from swift.load.measure import PhaseResult, new_histogram
from swift.load.runs import LoadRunner, PhaseRun
from swift.load.runs import RunPlan as LoadPlan
from swift.load.servers import (
    LocalServers,
    Measurement,
    ResourceUsage,
    all_commands,
    kernel_cpu_s,
    with_descendants,
)
from swift.load.workerpool import WorkerPool
from swift.load.workload import parse
from swift.plan.costs import Costs, request_kind
from swift.plan.durability import PolicyShape, parse_policy
from swift.plan.emulated import Emulated, Expected, predict_emulated
from swift.plan.errors import PlanError
from swift.plan.fit import Observed, fit
from swift.plan.report import format_table

Say = Callable[[str], None]
MIB = 1 << 20
SERVERS = ("proxy", "object", "container", "account")
#: The cluster that is measured where none is given: nodes, replicas, and its code.
NODES, REPLICAS, CODE = 3, 3, "2+1"
#: Predictions are simulated for so long.
SIMULATED_S = 60.0
TOLERANCE = 0.15


@dataclass(frozen=True)
class CalibrationOptions:
    """Options of a calibration; sizes in bytes."""

    root: Path
    seconds: float = 10.0
    clients: int = 4
    small: int = 4096
    large: int = 4 * MIB
    port: int = 29000
    slow_bytes_s: int = 20_000_000


@dataclass(frozen=True)
class StorageLayout:
    """Storage policy of a calibration: its name and layout."""

    policy: str
    shape: PolicyShape

    @property
    def is_coded(self) -> bool:
        """True if they are archives."""
        return "+" in self.shape.name

    @classmethod
    def of(cls, text: str) -> StorageLayout:
        """Parse ``gold=3`` or ``ec=4+2``; raises ``PlanError``."""
        name, separator, shape = text.partition("=")
        if not separator or not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name):
            raise PlanError(f"policy {text!r}: write NAME=COPIES or NAME=DATA+PARITY, such as gold=3")
        return cls(name, parse_policy(shape))


#: The cluster that ``swift-aio`` makes.
LAYOUTS = (StorageLayout.of(f"gold={REPLICAS}"), StorageLayout.of(f"ec={CODE}"))


@dataclass(frozen=True)
class ExistingCluster:
    """A cluster that runs on this machine, and the policies that are measured."""

    auth_url: str
    user: str
    key: str
    kept: Sequence[StorageLayout]


def cluster_plan(
    choices: CalibrationOptions, name: str, *, nodes: int, replicas: int, ec: str = "", xfs: bool
) -> ClusterPlan:
    """Return a cluster below the root, on ports of its own."""
    return new_plan(
        choices.root / name,
        proxy_port=choices.port,
        cache_port=choices.port + 1,
        base_port=choices.port + PORTS_PER_NODE,
        nodes=nodes,
        replicas=replicas,
        ec=ec,
        part_power=6,
        proxy_workers=1,
        xfs=xfs,
        xfs_bytes=2048 * MIB,
    )


# what runs use


@dataclass(frozen=True)
class PartUsage(ResourceUsage):
    """Also by kind of server, and of the kernel's own threads: CPU seconds."""

    by_server: Mapping[str, float]
    kernel_s: float


class NamedServers(LocalServers):
    """Servers by kind: kind → processes, whose children are the workers."""

    def __init__(self, named: Mapping[str, set[int]], endpoint: LoadEndpoint):
        super().__init__(endpoint)
        self._named = named
        self._roots = set().union(*named.values())
        self._kernel: dict[int, float] = {}

    def measure(self) -> Measurement:
        """Return the current counters of the servers."""
        self._kernel = kernel_cpu_s()
        return super().measure()

    def usage_since(self, before: Measurement) -> PartUsage:
        """Return the usage since the last measurement."""
        kernel = self._kernel
        now = self.measure()
        by_server = {
            # One that has ended meanwhile says nothing any more.
            kind: sum(
                now.cpu_s[p] - before.cpu_s.get(p, 0.0) for p in with_descendants(pids) if p in now.cpu_s
            )
            for kind, pids in self._named.items()
        }
        return PartUsage(
            now.at_s - before.at_s,
            sum(by_server.values()),
            now.memory,
            sum(now.read.values()) - sum(before.read.values()),
            sum(now.written.values()) - sum(before.written.values()),
            len(now.cpu_s),
            now.network - before.network,
            None,
            by_server,
            sum(used - kernel.get(pid, 0.0) for pid, used in self._kernel.items()),
        )


def cluster_servers(plan: ClusterPlan, supervisor: Supervisor) -> dict[str, set[int]]:
    """Return the processes of a cluster that was made here, by kind."""
    nodes = plan.node_numbers()
    found = {kind: {supervisor.pid(f"{kind}-{node}") for node in nodes} for kind in SERVERS[1:]}
    return {"proxy": {supervisor.pid("proxy")}, **found}


def servers_by_command(commands: Mapping[int, str]) -> dict[str, set[int]]:
    """Return processes by kind from commands such as ``swift-object-server`` or ``swift.cli.object_server``.

    Raises ``PlanError`` when there are none of a kind.
    """
    found = {
        kind: {
            pid
            for pid, command in commands.items()
            if re.search(rf"(^|[\s/.-])(swift-)?{kind}[-_]server(\s|$)", command)
        }
        for kind in SERVERS
    }
    if missing := [kind for kind, pids in found.items() if not pids]:
        raise PlanError(f"no process of this machine is a server of this kind: {', '.join(missing)}")
    return found


@dataclass(frozen=True)
class CalibrationSite:
    """A running cluster and the endpoint of its load."""

    endpoint: LoadEndpoint
    servers: NamedServers
    #: Directory of its data, if known.
    folder: Path | None = None

    def run(self, text: str) -> PhaseRun:
        """Return the main phase of a workload; raises ``PlanError`` when nothing came of it."""
        workload, crew = parse(text, "calibrate"), WorkerPool(1)
        try:
            plan = LoadPlan(workload, text, {}, self.endpoint)
            done = LoadRunner(plan, crew, self.servers, lambda _phase, _said, _seconds: None).run()
        finally:
            crew.close()
        if done.is_interrupted:
            raise KeyboardInterrupt
        main = next(ran for ran in done.phases if ran.phase.kind == "main")
        if not main.result.count:
            errors = {kind for result in main.result.operations.values() for kind in result.errors}
            raise PlanError(f"nothing succeeded: {', '.join(sorted(errors)) or 'no request was made'}")
        return main

    def disk_writes(self) -> int:
        """Return writes of the disk that the cluster is on; 0 where the kernel does not count them."""
        with contextlib.suppress(ConfigError):
            return write_count(file_device_number(self.folder)) if self.folder else 0
        return 0


@contextlib.contextmanager
def site(
    plan: ClusterPlan, *, limited: Sequence[Path] = (), bytes_per_s: int = 0
) -> Iterator[CalibrationSite]:
    """Run a cluster with idle daemons."""
    with running_cluster(plan, limited=limited, bytes_per_s=bytes_per_s) as supervisor:
        for node in plan.node_numbers():
            supervisor.kill(f"daemons-{node}")
        endpoint = log_in(plan.auth_url, plan.user, plan.key)
        yield CalibrationSite(endpoint, NamedServers(cluster_servers(plan, supervisor), endpoint), plan.root)


# measuring


@dataclass(frozen=True)
class CalibratedWork:
    """One kind of request to be measured."""

    verb: str
    kept: StorageLayout
    size: int
    clients: int

    @property
    def kind(self) -> str:
        """See ``plan.costs``."""
        return request_kind(self.verb, is_coded=self.kept.is_coded)

    @property
    def nodes(self) -> int:
        """Nodes that take part in each request."""
        return self.kept.shape.needed if self.verb == "GET" else self.kept.shape.total


def calibration_works(
    choices: CalibrationOptions, kept: Sequence[StorageLayout] = LAYOUTS
) -> list[CalibratedWork]:
    """Return all kinds of requests to measure."""
    return [
        CalibratedWork(verb, how, size, clients)
        for how in kept
        for verb, sizes in (
            ("PUT", (choices.small, choices.large)),
            ("GET", (choices.small, choices.large)),
            ("DELETE", (choices.small,)),
        )
        for size in sizes
        for clients in (choices.clients, 1)
    ]


def workload_text(work: CalibratedWork, seconds: float) -> str:
    """Return the workload file of one kind."""
    per_container = 8 if work.size >= MIB else 64
    if work.verb == "DELETE":
        # There must be enough of them: they end the phase when they are gone.
        per_container = max(64, int(60 * seconds))
    main = f"mix = {{{work.verb.lower()} = 100}}\nclients = {work.clients}\nseconds = {seconds}\nrampup = 0\n"
    if work.verb == "DELETE":
        main += f'names = "sequential"\noperations = {2 * per_container}\n'
    prepare = "" if work.verb == "PUT" else '[[phase]]\nkind = "prepare"\nclients = 8\n'
    return (
        f'name = "calibrate"\n[objects]\ncontainers = 2\nper_container = {per_container}\n'
        f'size = {work.size}\npolicy = "{work.kept.policy}"\n[[phase]]\nkind = "init"\n{prepare}'
        f'[[phase]]\nkind = "main"\n{main}[[phase]]\nkind = "cleanup"\nclients = 8\n'
    )


def observe(where: CalibrationSite, work: CalibratedWork, seconds: float) -> Observed:
    """Run one kind; raises ``PlanError``."""
    before = where.disk_writes()
    ran = where.run(workload_text(work, seconds))
    writes = where.disk_writes() - before
    usage, result = ran.usage, ran.result.of(work.verb.lower())
    assert isinstance(usage, PartUsage), "these servers are seen"
    count = max(1, result.count)
    size = 0.0 if work.verb == "DELETE" else float(work.size)
    return Observed(
        work.kind,
        size,
        work.clients,
        work.nodes,
        size / work.kept.shape.needed,
        result.count,
        usage.by_server["proxy"] / count,
        usage.by_server["object"] / count,
        usage.by_server["container"] / count,
        ran.result.load_cpu_s / count,
        result.mean_ms / 1000,
        result.latency_ms(50) / 1000,
        result.latency_ms(99) / 1000,
        usage.disk_written / count,
        writes / count,
        usage.network / count,
        usage.kernel_s / count,
    )


def calibrate(choices: CalibrationOptions, say: Say, given: ExistingCluster | None = None) -> Costs:
    """Measure everything, on a cluster that is made for it or on a given one.

    Raises ``SwiftError`` and OSError.
    """
    if given is not None:
        endpoint = log_in(given.auth_url, given.user, given.key)
        where = CalibrationSite(endpoint, NamedServers(servers_by_command(all_commands()), endpoint))
        found = _measured(where, choices, given.kept, say)
    else:
        plan = cluster_plan(choices, "calibrate", nodes=NODES, replicas=REPLICAS, ec=CODE, xfs=False)
        with site(plan) as where:
            found = _measured(where, choices, LAYOUTS, say)
    return fit(found, machine=f"{platform.node()} {platform.machine()}", cores=os.cpu_count() or 1)


def _measured(
    where: CalibrationSite, choices: CalibrationOptions, kept: Sequence[StorageLayout], say: Say
) -> list[Observed]:
    found = []
    for work in calibration_works(choices, kept):
        observed = observe(where, work, choices.seconds)
        found.append(observed)
        say(
            f"{work.kind} of {work.size} bytes, {work.clients} clients: {observed.requests} requests,"
            f" {1000 * observed.proxy_s:.2f} ms at the proxy, {1000 * observed.store_s:.2f} at"
            f" {observed.nodes} nodes, {1000 * observed.row_s:.2f} for rows"
        )
    return found


# checking


@dataclass(frozen=True)
class CalibrationCheck:
    """A cluster, as it was predicted and as it was measured; requests a second and seconds."""

    cluster: Emulated
    predicted: Expected
    measured: Expected

    @property
    def off(self) -> dict[str, float]:
        """Figure → how much the prediction is beyond what was measured, as a share of it."""
        ours, theirs = self.predicted.figures(), self.measured.figures()
        return {name: ours[name] / theirs[name] - 1 if theirs.get(name) else 0.0 for name in ours}


def check_clusters(choices: CalibrationOptions) -> list[Emulated]:
    """Return four clusters that ``calibrate`` does not measure."""
    mixed, clients = {"GET": 0.5, "PUT": 0.5}, 2 * choices.clients
    one = Emulated("2 nodes, 2 copies, small", 2, 2, 0, 0, mixed, choices.small, clients)
    return [
        one,
        replace(one, name="4 nodes, 3 copies, large", nodes=4, copies=3, size=choices.large),
        replace(one, name="4 nodes, 2+2, large", nodes=4, copies=3, data=2, parity=2, size=choices.large),
        replace(
            one,
            name="2 nodes, 2 copies, large, a slow disk",
            size=choices.large,
            slow={0: float(choices.slow_bytes_s)},
        ),
    ]


def check_text(cluster: Emulated, seconds: float) -> str:
    """Return the workload file of a check."""
    mix = ", ".join(f"{verb.lower()} = {round(100 * share)}" for verb, share in cluster.mix.items())
    per_container = 8 if cluster.size >= MIB else 64
    policy = "ec" if cluster.is_coded else "gold"
    return (
        f'name = "check"\n[objects]\ncontainers = 4\nper_container = {per_container}\n'
        f'size = {int(cluster.size)}\npolicy = "{policy}"\n[[phase]]\nkind = "init"\n'
        f'[[phase]]\nkind = "prepare"\nclients = 8\n'
        f'[[phase]]\nkind = "main"\nmix = {{{mix}}}\nclients = {cluster.clients}\nseconds = {seconds}\n'
        f'rampup = {seconds / 6}\n[[phase]]\nkind = "cleanup"\nclients = 8\n'
    )


def check_possible(cluster: Emulated) -> None:
    """Raise ``ConfigError`` saying why it cannot be run here."""
    if cluster.slow:
        check_cgroups()
        check_xfs()


def measured_figures(result: PhaseResult) -> Expected:
    """Return the mean over all operations of a phase."""
    histogram, medians = new_histogram(), {}
    for verb, each in result.operations.items():
        histogram.add(each.histogram)
        medians[verb.upper()] = each.latency_ms(50) / 1000
    p99 = histogram.get_value_at_percentile(99) / 1e6
    return Expected(result.count / max(result.seconds, 1e-9), medians, float(p99))


def run_check(cluster: Emulated, costs: Costs, choices: CalibrationOptions) -> CalibrationCheck:
    """Make the cluster, measure it and compare it with the prediction; raises ``SwiftError`` and OSError."""
    ec = f"{cluster.data}+{cluster.parity}" if cluster.is_coded else ""
    plan = cluster_plan(
        choices, "check", nodes=cluster.nodes, replicas=cluster.copies, ec=ec, xfs=bool(cluster.slow)
    )
    limited = [path for node, path in enumerate(plan.device_paths()) if node in cluster.slow]
    with site(plan, limited=limited, bytes_per_s=choices.slow_bytes_s) as where:
        found = where.run(check_text(cluster, choices.seconds))
    return CalibrationCheck(
        cluster, predict_emulated(cluster, costs, seconds=SIMULATED_S), measured_figures(found.result)
    )


def check_report(found: Sequence[CalibrationCheck]) -> str:
    """Return predicted and measured figures side by side, with the relative errors."""
    rows = [["cluster", "figure", "predicted", "measured", "off"]]
    for each in found:
        ours, theirs, name = each.predicted.figures(), each.measured.figures(), each.cluster.name
        for figure, off in each.off.items():
            is_near = abs(off) <= TOLERANCE
            said = f"{100 * off:+.0f} %" + ("" if is_near else " MISSED")
            rows.append([name, figure, f"{ours[figure]:.3g}", f"{theirs.get(figure, 0.0):.3g}", said])
            name = ""
    return format_table(rows)

"""``swift-load fail``: a cluster is made, fails share by share under a workload, and is measured."""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path
from tempfile import gettempdir

from rich.console import Console

from swift.aio.plan import ClusterPlan as ClusterPlan
from swift.aio.plan import default_ec, new_plan
from swift.aio.xfs import exit_on_sigterm
from swift.base.errors import ConfigError
from swift.load.endpoint import log_in
from swift.load.failures import report
from swift.load.failures.cleanup import remove_run, run_folder, stale_runs
from swift.load.failures.copies import ReplicaCounter
from swift.load.failures.scenario import FaultResult, FaultScenario, PhaseDurations, measure_windows
from swift.load.failures.site import FailureSite, check_possible
from swift.load.failures.targets import Failure, choose_targets
from swift.load.runs import LoadRunner, RunPlan
from swift.load.servers import LocalServers
from swift.load.terminal import RunProgress
from swift.load.workerpool import WorkerPool
from swift.load.workload import BadWorkload, Workload, parse


def fail(args: argparse.Namespace, text: str, source: str, console: Console) -> int:
    """Run the verb on a workload's ``text``; return its exit code. Raises ``SwiftError`` and OSError."""
    times = PhaseDurations(args.before, args.during, args.after, args.whole_within)
    options: dict[str, float | int | None] = {"seconds": times.load, "clients": args.clients}
    workload = parse(text, source).with_options(**options)
    mains = [phase for phase in workload.phases if phase.kind == "main"]
    if len(mains) != 1 or mains[0].operations is not None:
        raise BadWorkload(f"{source}: failures need a workload with one main phase, without operations")
    failures = [Failure(args.unit, args.way, share, args.spread) for share in args.share]
    for failure in failures:
        failure.check()
        check_possible(failure, has_disks=args.xfs)
    clean(args, console)
    facts: dict[str, object] = {"workload": workload.name, "seed": args.seed}
    trials: list[FaultResult] = []
    try:
        with exit_on_sigterm(), run_folder(_parent(args)) as folder:
            cluster = _cluster(args, folder)
            facts |= {"nodes": cluster.nodes, "disks": cluster.disks, "replicas": cluster.replicas}
            with FailureSite(cluster).running() as site:
                for failure in failures:
                    trials.append(_trial(site, failure, times, (workload, text, options), args, console))
    except (KeyboardInterrupt, SystemExit):
        console.print("ended; the cluster is gone, and this is what was measured until now")
    if not trials:
        return 130
    report.print_table(console, trials)
    found = report.to_json(trials, times, facts)
    if args.format == "json":
        json.dump(found, sys.stdout, indent=1)
        print()
    if args.json is not None:
        args.json.write_text(json.dumps(found, indent=1))
    if args.html is not None:
        args.html.write_text(report.failures_page(trials, times, facts))
    return 0 if len(trials) == len(failures) else 130


def clean(args: argparse.Namespace, console: Console) -> int:
    """Remove the leftovers of killed runs; return their number. Raises ``ConfigError`` and OSError."""
    found = stale_runs(_parent(args))
    for left in found:
        remove_run(left)
        console.print(f"removed {left}", soft_wrap=True)
    return len(found)


def _parent(args: argparse.Namespace) -> Path:
    parent = args.root or Path(gettempdir())
    if not parent.is_dir():
        raise ConfigError(f"--root {parent}: there is no such directory")
    return Path(parent)


def _cluster(args: argparse.Namespace, folder: Path) -> ClusterPlan:
    devices = args.nodes * args.disks
    plan = new_plan(
        folder / "cluster",
        proxy_port=args.port,
        base_port=args.base_port,
        cache_port=args.cache_port,
        nodes=args.nodes,
        disks=args.disks,
        ec=default_ec(devices),
        part_power=8,
        proxy_workers=args.workers,
        xfs=args.xfs,
    )
    plan.check()
    return plan


def _trial(
    site: FailureSite,
    failure: Failure,
    times: PhaseDurations,
    planned: tuple[Workload, str, dict[str, float | int | None]],
    args: argparse.Namespace,
    console: Console,
) -> FaultResult:
    workload, text, options = planned
    cluster = site.plan
    chance = random.Random(f"{args.seed} {failure}")
    chosen = choose_targets(failure, cluster.nodes, cluster.disks, len(site.proxy_workers()), chance)
    trial = FaultResult(failure, chosen)
    console.print(f"{failure}: {', '.join(map(str, chosen))} will fail")
    endpoint = log_in(cluster.auth_url, cluster.user, cluster.key)
    workers = WorkerPool(args.processes)
    try:
        with RunProgress(console, workload) as progress:
            scenario = FaultScenario(site, ReplicaCounter(cluster), trial, times, progress)
            plan = RunPlan(workload, text, options, endpoint, keep=True)
            done = LoadRunner(plan, workers, LocalServers(endpoint), scenario.watch).run()
        console.print("waiting until the cluster is whole ...")
        scenario.finish()
    finally:
        workers.close()
        site.repair()
    if done.is_interrupted:
        raise KeyboardInterrupt
    trial.result = next(ran.result for ran in done.phases if ran.phase.kind == "main")
    trial.windows = measure_windows(trial, times)
    return trial

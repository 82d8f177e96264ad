"""swift-plan: how large a cluster must be, what a change of a ring moves, what a cluster will do.

The simulator needs the extra ``plan`` (SimPy, matplotlib); ``capacity`` and ``rings`` need nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from swift.base.errors import ConfigError
from swift.base.extras import install_command
from swift.config.commandline import CommandLine, print_report, reports_errors
from swift.plan import moves
from swift.plan.assumptions import Assumptions, parse_number, parse_options, read_toml, with_values
from swift.plan.capacity import plan_sizes
from swift.plan.durability import parse_policy, simulate_loss
from swift.plan.errors import PlanError
from swift.plan.report import capacity_json, capacity_text, format_amount, format_table
from swift.ring.commands.select import BadValue, parse_add_value

if TYPE_CHECKING:
    from swift.plan.calibration import CalibrationOptions
    from swift.plan.candidates import Candidate
    from swift.plan.catalogue import Catalogue, PlannedWorkload
    from swift.plan.costs import Costs
    from swift.plan.search import SearchResult, TriedChoice

INTERRUPTED = 130
#: Packages that not all of it needs: module → extra of the distribution that brings it.
EXTRAS = {"simpy": "plan", "matplotlib": "plan", "hdrh": "load", "numpy": "load"}
_CHECKED_LOSSES = 1000


def _capacity(args: argparse.Namespace) -> None:
    given = Assumptions()
    if args.assume:
        given = with_values(given, read_toml(args.assume), args.assume)
    given = with_values(given, parse_options(args.set), "--set")
    sizes = [_objects(text) for text in args.objects] or [10**power for power in range(6, 14)]
    shapes = [parse_policy(text) for text in args.policy or ("3", "8+4")]
    plans = plan_sizes(sizes, shapes, given)
    checks = {
        shape.name: simulate_loss(shape, seed=args.seed, losses=_CHECKED_LOSSES)
        for shape in shapes
        if not args.no_check
    }
    as_text = capacity_json if args.format == "json" else capacity_text
    print(as_text(plans, checks, given))


def _objects(text: str) -> int:
    try:
        count = float(text)
        if count != count or count < 1 or count > 1e15:
            raise ValueError
    except ValueError:
        raise PlanError(f"--objects {text}: not a number of 1 to 1e15 objects")
    return int(count)


def _change(args: argparse.Namespace) -> moves.Change:
    if args.lose_zone is not None:
        return moves.lose_zone(args.lose_zone)
    if args.add_zone_like is not None:
        return moves.add_zone_like(args.add_zone_like)
    if args.lose_device is not None:
        return moves.lose_device(args.lose_device)
    if args.weight is not None:
        name, _, weight = args.weight.partition("=")
        if not name.isdecimal():
            raise PlanError(f"--weight {args.weight}: write ID=WEIGHT")
        return moves.set_weight(int(name), _parse_float(weight, f"--weight {args.weight}"))
    value, _, weight = args.add_device.rpartition("=")
    try:
        return moves.add_device(
            parse_add_value(value), _parse_float(weight, f"--add-device {args.add_device}")
        )
    except BadValue as error:
        raise PlanError(f"--add-device {args.add_device}: {error}")


def _parse_float(text: str, where: str, low: float = 0.0) -> float:
    try:
        return float(parse_number(float(text), where, low))
    except ValueError:
        raise PlanError(f"{where}: {text!r} is not a number")


def _rings(args: argparse.Namespace) -> None:
    builder = moves.load_builder(args.ring)
    policy = args.policy or str(max(1, round(builder.replicas)))
    terms = moves.MoveAssumptions(
        bytes_stored=_parse_float(args.stored_tb, "--stored-tb", 1e-9) * 1e12,
        device_bytes_s=_parse_float(args.rate_mb, "--rate-mb", 1e-6) * 1e6,
        failures_a_year=_parse_float(args.failures, "--failures"),
        shape=parse_policy(policy),
    )
    found = moves.simulate_moves(builder, _change(args), terms, seed=args.seed)
    if args.format == "json":
        print(json.dumps({**asdict(found), "share": found.share}, indent=1))
        return
    lost = ", ".join(f"{count:,} miss {copies}" for copies, count in found.missing.items()) or "none miss any"
    beyond = f" ({found.already_lost:,} miss more than the policy bears)" if found.already_lost else ""
    print(
        f"{found.moved:,} of {found.copies:,} copies of partitions move ({100 * found.share:.2f} %), "
        f"{format_amount(found.moved_bytes, 'B')}, in {found.rounds} rebalances\n"
        f"busiest device: {found.busiest_device} receives {format_amount(found.busiest_bytes, 'B')}\n"
        f"time: {format_amount(found.copy_s, 's')} of copying at {args.rate_mb} MB/s into each device, "
        f"{format_amount(found.wait_s, 's')} of waiting for min_part_hours\n"
        f"copies gone: of {found.partitions:,} partitions {lost}{beyond}\n"
        f"probability that one is lost meanwhile: {found.risk:.1e} "
        f"({terms.shape.name}, {100 * terms.failures_a_year:g} % of the drives fail in a year)\n"
        f"afterwards: balance {found.balance:.2f} %, dispersion {found.dispersion:.2f} %"
    )


def _simulate(args: argparse.Namespace) -> None:
    from swift.plan.plots import checked_path

    if args.plot:
        checked_path(args.plot)
    if args.profile and args.striping is None:
        raise PlanError("--profile belongs to --striping")
    if args.striping is not None:
        _simulate_striping(args)
    else:
        _simulate_overload(args)


def _print_result(
    args: argparse.Namespace, text: str, content: dict[str, object], assumed: Sequence[str]
) -> None:
    """Print the simulated scenario, for people or programs."""
    lines = [text, "\nassumed", *(f"  {each}" for each in assumed)]
    print_report(args, {**content, "assumed": assumed}, lines, indent=1)


def _simulate_striping(args: argparse.Namespace) -> None:
    from swift.plan import striping
    from swift.plan.plots import plot_lines

    settings = striping.parse_settings(args.striping)
    if args.profile:
        costs = _costs(args)
        work_s = costs.byte_s("GET")
        settings = [replace(each, cpu_s=work_s, cores=max(1, costs.cores)) for each in settings]
    rate = settings[0].rate
    found = [each for setting in settings for each in striping.predict(setting)]
    content: dict[str, object] = {
        "settings": [asdict(each) for each in settings],
        "predicted": [{**asdict(each), "rate": each.rate, "times": each.times(rate)} for each in found],
    }
    _print_result(args, striping.striping_text(found, rate), content, striping.ASSUMED)
    if args.plot:
        lines: dict[str, list[tuple[float, float]]] = {}
        for each in found:
            lines.setdefault(each.work, []).append((each.devices, each.times(rate)))
        title = f"One client, devices of {rate / 1e6:g} MB/s (simulated)"
        plot_lines(lines, args.plot, title=title, across="devices", up="times the rate of one device")


def _simulate_overload(args: argparse.Namespace) -> None:
    from swift.plan import overload
    from swift.plan.plots import plot_lines

    setting = overload.parse_setting(args.overload, args.seed or 0)
    found = overload.simulate_overload(setting)
    content: dict[str, object] = {"setting": asdict(setting), "outcomes": [asdict(each) for each in found]}
    _print_result(args, overload.overload_text(found, setting), content, overload.ASSUMED)
    if args.plot:
        lines: dict[str, list[tuple[float, float]]] = {}
        for each in found:
            how = "with admission" if each.is_admitting else "without"
            share = 100 / setting.capacity
            lines.setdefault(f"goodput, {how}", []).append((each.load, each.goodput * share))
            lines.setdefault(f"reservation, {how}", []).append((each.load, each.reserved * share))
        up, across = "% of what the devices do", "load, % of what the devices do"
        plot_lines(
            lines, args.plot, title="More is asked for than there is (simulated)", across=across, up=up
        )


def _costs(args: argparse.Namespace) -> Costs:
    """Return the costs of ``--profile``, else the assumed ones."""
    from swift.plan.costs import ASSUMED, read_profile

    return read_profile(args.profile) if args.profile else ASSUMED


def _run_search(args: argparse.Namespace) -> tuple[Catalogue, PlannedWorkload, float, SearchResult]:
    """Return the search that both ``search`` and ``scale`` begin with."""
    from swift.plan.catalogue import WORKLOADS, read_catalogue
    from swift.plan.search import search

    catalogue, workload = read_catalogue(args.catalogue), WORKLOADS[args.workload]
    seconds = _parse_float(args.seconds, "--seconds", 0.1)
    found = search(catalogue, workload, seconds=seconds, seed=args.seed, costs=_costs(args))
    return catalogue, workload, seconds, found


def _calibrate(args: argparse.Namespace) -> None:
    from swift.aio.xfs import exit_on_sigterm
    from swift.plan import calibration
    from swift.plan.costs import read_profile

    choices = calibration.CalibrationOptions(
        root=Path(args.root or tempfile.gettempdir()) / f"swift-calibrate-{os.getpid()}",
        seconds=_parse_float(args.seconds, "--seconds", 0.5),
        clients=_parse_integer(args.clients, "--clients", 1, 256),
        small=_parse_integer(args.small_bytes, "--small-bytes", 1, 1 << 20),
        large=_parse_integer(args.large_bytes, "--large-bytes", 1 << 16, 1 << 30),
        port=_parse_integer(args.port, "--port", 1024, 60_000),
    )
    costs = None if args.check is None else read_profile(args.check)
    given = None
    if args.auth:
        if costs is not None:
            raise PlanError("--check makes its own clusters: leave --auth out")
        kept = [calibration.StorageLayout.of(text) for text in args.policy] or list(calibration.LAYOUTS)
        given = calibration.ExistingCluster(args.auth, args.user, args.key, kept)
    elif args.policy:
        raise PlanError("--policy belongs to --auth")
    if args.json and not Path(args.json).absolute().parent.is_dir():
        raise PlanError(f"--json {args.json}: there is no such directory")
    choices.root.mkdir(parents=True)
    try:
        with exit_on_sigterm():
            if costs is None:
                costs = calibration.calibrate(choices, _progress, given)
                _write(args.json, costs.to_json())
            else:
                _check(args, costs, choices)
    finally:
        with contextlib.suppress(OSError):
            choices.root.rmdir()


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _check(args: argparse.Namespace, costs: Costs, choices: CalibrationOptions) -> None:
    from swift.plan import calibration

    found = []
    for cluster in calibration.check_clusters(choices):
        try:
            calibration.check_possible(cluster)
        except ConfigError as error:
            _progress(f"{cluster.name}: not run: {error}")
            continue
        _progress(f"{cluster.name} ...")
        found.append(calibration.run_check(cluster, costs, choices))
    print(calibration.check_report(found))
    if args.json:
        _write(args.json, json.dumps([{**asdict(each), "off": each.off} for each in found], indent=1) + "\n")


def _write(path: str | None, text: str) -> None:
    """Write to a file, or standard output."""
    if path:
        Path(path).write_text(text, encoding="utf-8")
    else:
        print(text, end="")


def _parse_integer(text: str, where: str, low: int, high: int) -> int:
    number = _parse_float(text, where, low)
    if number != int(number) or number > high:
        raise PlanError(f"{where} {text}: a whole number from {low} to {high}")
    return int(number)


def _choice_row(each: TriedChoice) -> list[str]:
    found = each.found
    latency = [f"{1000 * found.p50_s:.3g} ms", f"{1000 * found.p99_s:.3g} ms"]
    name, cost = each.choice.name, f"{each.choice.cost:.2f}"
    return [name, cost, f"{found.rate:,.0f}", f"{each.per_cost:.3g}", *latency, found.bottleneck]


def _search(args: argparse.Namespace) -> None:
    from swift.plan.plots import checked_path, plot_choices

    if args.plot:
        checked_path(args.plot)
    catalogue, workload, _, found = _run_search(args)
    front = found.front
    measured, scale = _measured(args, found, workload, catalogue.objects) if args.measure else ([], 1.0)
    if args.format == "json":
        content = asdict(found)
        content["front"] = [each.choice.name for each in front]
        if args.measure:
            content["scale"] = scale
            content["measured"] = [
                {
                    "choice": each.tried.choice.name,
                    "rate": each.measured,
                    "failed": each.failed,
                    "off": each.off,
                }
                for each in measured
            ]
        print(json.dumps(content, indent=1))
    else:
        head = ["choice", "cost", "requests/s", "by cost", "p50", "p99", "busiest"]
        print(f"{workload.name}: best by cost\n")
        print(format_table([head, *(_choice_row(each) for each in found.tried[: max(1, args.top)])]))
        print("\nno other is both cheaper and faster\n")
        print(format_table([head, *(_choice_row(each) for each in front)]))
        print(
            f"\n{len(found.tried)} choices tried. Never tried: {found.dominated_machines} with a machine "
            f"that another beats at no higher price, {found.idle_workers} with workers that have no core,\n"
            f"{found.bounded} whose bound is reached at no higher cost, "
            f"{found.impossible} with too few drives"
        )
        if args.measure:
            from swift.plan.candidates import candidates_text

            print("\n" + candidates_text(measured, scale))
    if args.plot:
        points = [(each.choice.cost, each.found.rate) for each in found.tried]
        named = [(each.choice.cost, each.found.rate, each.choice.name) for each in front]
        plot_choices(points, named, f"Throughput by cost: {workload.name}", args.plot)


def _measured(
    args: argparse.Namespace, found: SearchResult, workload: PlannedWorkload, objects: float
) -> tuple[list[Candidate], float]:
    """Return the best of a search on emulated machines, and which part of real ones those are."""
    from swift.aio.xfs import exit_on_sigterm
    from swift.plan.candidates import CandidateBench, check_count, measure

    bench = CandidateBench(
        Path(args.root or tempfile.gettempdir()) / f"swift-plan-{os.getpid()}",
        _parse_integer(args.port, "--port", 1024, 60_000),
        _parse_float(args.run_seconds, "--run-seconds", 1.0),
    )
    chosen = check_count(args.measure, found.tried)
    bench.root.mkdir(parents=True)
    try:
        with exit_on_sigterm():
            return measure(chosen, workload, objects, bench, _progress)
    finally:
        with contextlib.suppress(OSError):
            bench.root.rmdir()


def _scale(args: argparse.Namespace) -> None:
    from swift.plan.search import grow, scale

    target = _parse_float(args.target, "--target", 1e-9) if args.target else None
    if target is None and not args.nodes:
        raise PlanError("scale needs --target RATE or --nodes NUMBER")
    if any(nodes < 1 or nodes > 10_000 for nodes in args.nodes):
        raise PlanError("--nodes: between 1 and 10000")
    catalogue, workload, seconds, found = _run_search(args)
    best = found.tried[0]
    objects, seed, costs = catalogue.objects, args.seed, _costs(args)
    if target is not None:
        steps = scale(best, workload, objects, target, seconds=seconds, seed=seed, costs=costs)
    else:
        steps = [
            grow(best.choice, workload, objects, nodes, seconds=seconds, seed=seed, costs=costs)
            for nodes in args.nodes
        ]
    facts = [{**asdict(each), "bottleneck": each.found.bottleneck} for each in steps]
    rows = [["cluster", "cost", "requests/s", "p50", "p99", "busiest first"]]
    for each in steps:
        latency = [f"{1000 * each.found.p50_s:.3g} ms", f"{1000 * each.found.p99_s:.3g} ms"]
        order = sorted(each.found.busy.items(), key=lambda item: -item[1])[:3]
        busy = ", ".join(f"{name} {100 * share:.0f} %" for name, share in order)
        rows.append([each.choice.name, f"{each.choice.cost:.2f}", f"{each.found.rate:,.0f}", *latency, busy])
    lines = [format_table(rows)]
    if target is not None:
        last = steps[-1].found
        met = "is met" if last.rate >= target else "is not met: growing does not help any more"
        lines.append(f"\n{target:g} requests/s {met}; what becomes the bottleneck first: {last.bottleneck}")
    print_report(args, facts, lines, indent=1)


def _add_capacity(commands: argparse._SubParsersAction[CommandLine]) -> None:
    parser = commands.add_parser("capacity", help="drives, partitions, metadata, databases, upkeep and loss")
    parser.set_defaults(run=_capacity)
    add = parser.add_argument
    add("--objects", action="append", default=[], help="number of objects, such as 1e9")
    add("--policy", action="append", help="3 (replicas) or 8+4 (fragments); repeatable")
    add("--assume", metavar="FILE", help="TOML file of assumptions")
    add("--set", action="append", default=[], metavar="NAME=NUMBER", help="one assumption")
    add("--no-check", action="store_true", help="do not simulate the Markov chain")
    add("--seed", type=int, default=0, help="of the simulated losses")
    parser.add_format()


def _add_rings(commands: argparse._SubParsersAction[CommandLine]) -> None:
    parser = commands.add_parser("rings", help="what a change of devices moves, how long it takes, the risk")
    parser.set_defaults(run=_rings)
    add = parser.add_argument
    add("ring", help="a builder file or a ring file; it is only read")
    change = parser.add_mutually_exclusive_group(required=True)
    change.add_argument("--lose-zone", metavar="ZONE", help="2 or r1z2")
    change.add_argument("--add-zone-like", metavar="ZONE", help="a new zone with the devices of this one")
    change.add_argument("--lose-device", metavar="ID", type=int, help="a device by its id")
    change.add_argument("--add-device", metavar="DEVICE=WEIGHT", help="such as r1z2-10.0.0.1:6200/sdb=100")
    change.add_argument("--weight", metavar="ID=WEIGHT", help="another weight of a device")
    add("--stored-tb", default="100", help="terabytes on all devices, copies counted")
    add("--rate-mb", default="20", help="megabytes a second into a device")
    add("--policy", help="3 or 8+4; the replicas of the ring by default")
    add("--failures", default="0.02", help="share of the drives that fail in a year")
    add("--seed", type=int, default=0, help="of the rebalances")
    parser.add_format()


def _add_simulate(commands: argparse._SubParsersAction[CommandLine]) -> None:
    parser = commands.add_parser("simulate", help="striping and overload by simulation")
    parser.set_defaults(run=_simulate)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--striping",
        nargs="*",
        metavar="NAME=NUMBER",
        help="one client and one object on devices=1..8; an unknown name lists all",
    )
    what.add_argument(
        "--overload",
        nargs="*",
        metavar="NAME=NUMBER",
        help="loads=50,100,150 (%%) with and without admission; an unknown name lists all",
    )
    add = parser.add_argument
    add("--profile", metavar="FILE", help="cores and cpu_ns of --striping, as measured")
    add("--seed", type=int, help="a run can be repeated with it")
    add("--plot", metavar="FILE", help="write a plot: FILE.svg or FILE.png")
    parser.add_format()


def _add_search(commands: argparse._SubParsersAction[CommandLine]) -> None:
    parser = commands.add_parser("search", help="the hardware and settings that do most for their cost")
    parser.set_defaults(run=_search)
    _add_search_options(parser)
    add = parser.add_argument
    add("--top", type=int, default=10, help="how many of the best to show")
    add("--plot", metavar="FILE", help="write the Pareto front: FILE.svg or FILE.png")
    add(
        "--measure",
        type=int,
        default=0,
        metavar="N",
        help="run the N best on emulated machines, by swift-load (root, XFS tools, cgroups)",
    )
    add("--run-seconds", default="30", help="of each of these, at least (30)")
    add("--root", metavar="DIRECTORY", help="where clusters are made and removed again")
    add("--port", default="29000", help="the first of some hundred free ports (29000)")


def _add_scale(commands: argparse._SubParsersAction[CommandLine]) -> None:
    parser = commands.add_parser("scale", help="grow the best small cluster; what becomes the bottleneck")
    parser.set_defaults(run=_scale)
    _add_search_options(parser)
    parser.add_argument("--target", help="required requests a second")
    parser.add_argument(
        "--nodes", type=int, action="append", default=[], help="so many storage nodes; repeatable"
    )


def _add_calibrate(commands: argparse._SubParsersAction[CommandLine]) -> None:
    parser = commands.add_parser("calibrate", help="measure what requests cost here, and check predictions")
    parser.set_defaults(run=_calibrate)
    add = parser.add_argument
    add("--check", metavar="PROFILE", help="run four other clusters and set them beside what it predicts")
    add("--json", metavar="FILE", help="write the profile, or the checks, here")
    add("--seconds", default="10", help="of each run (10)")
    add("--clients", default="4", help="clients at a time (4)")
    add("--small-bytes", default="4096", help="size of small objects (4096)")
    add("--large-bytes", default="4194304", help="size of large ones (4194304)")
    add("--auth", metavar="URL", help="of a cluster on this machine, instead of making one")
    add("--user", default="test:tester", help="of --auth (test:tester)")
    add("--key", default="testing", help="of --auth (testing)")
    add("--policy", action="append", default=[], metavar="NAME=SHAPE", help="of --auth: gold=3, ec=4+2")
    add("--root", metavar="DIRECTORY", help="where clusters are made and removed again")
    add("--port", default="29000", help="the first of a hundred free ports (29000)")


def _add_search_options(parser: CommandLine) -> None:
    names = ("small-upload", "large-upload", "small-download", "large-download")
    add = parser.add_argument
    add("--catalogue", metavar="FILE", help="TOML file; that of 2012 by default")
    add("--workload", choices=names, required=True, help="workload of the cluster")
    add("--profile", metavar="FILE", help="what requests cost, as calibrate measured it")
    add("--seconds", default="2", help="simulated seconds of each choice, at least")
    add("--seed", type=int, default=0, help="a run can be repeated with it")
    parser.add_format()


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog="swift-plan",
        description="Plan clusters: capacity, changes of rings, simulated throughput, search for hardware.",
        epilog=EXAMPLES,
    )
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    for add in _ADDERS:
        add(commands)
    return parser


EXAMPLES = """examples:
  swift-plan capacity --objects 1e9 --policy 3 --policy 8+4
  swift-plan capacity --assume ours.toml --set drive_bytes=20e12 --format json
  swift-plan rings object.builder --lose-zone r1z2 --stored-tb 500 --rate-mb 50
  swift-plan simulate --striping devices=1..8 rate_mb=20 memory_mib=64 --plot rates.svg
  swift-plan simulate --overload loads=50,100,150,200 reserved=0.3 --plot overload.svg
  swift-plan search --workload small-upload --catalogue ours.toml --plot front.svg
  swift-plan search --workload small-upload --profile profile.json --measure 3
  swift-plan scale --workload large-download --target 2000
  swift-plan calibrate --json profile.json
  swift-plan calibrate --check profile.json
"""
_ADDERS = (_add_capacity, _add_rings, _add_simulate, _add_search, _add_scale, _add_calibrate)


@reports_errors("swift-plan")
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    args = make_parser().parse_args(argv)
    try:
        args.run(args)
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        extra = EXTRAS[str(error.name)]
        print(
            f"swift-plan: {error.name} is missing; install it with: {install_command(extra)}", file=sys.stderr
        )
        return 1
    except KeyboardInterrupt:
        print("swift-plan: interrupted", file=sys.stderr)
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

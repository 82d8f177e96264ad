"""swift-layout: which devices a cluster has; the cluster moves the data to them by itself.

Changes are staged first, ``plan`` shows what they move, and ``apply`` makes them the target of the layout
controller, which goes there in steps. It works on a node with ``internal-client.conf``.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from swift import green
from swift.base.documents import JsonObject
from swift.base.errors import SwiftError
from swift.cluster.transport import NodeTimeouts
from swift.compose import cluster_of, connections_to_nodes, internal_pipeline
from swift.config.commandline import CommandLine, print_report, reports_errors
from swift.gateway.documents import document_client
from swift.layout.edits import Action, EditError, LayoutEdit, Selector
from swift.layout.fetching import LayoutClient, fetch_layout, parse_servers
from swift.layout.observation import HealthObserver
from swift.layout.operations import LayoutOperations
from swift.layout.plan import LayoutPlan, Usage, label_of
from swift.layout.publishing import LocalPublisher
from swift.layout.seal import StateSeal
from swift.layout.state import LayoutState
from swift.layout.store import AGENT, ClusterLayoutStore, NoLayout
from swift.operations.health.reader import HealthReader
from swift.operations.recon.client import ReconClient
from swift.operations.recon.report import age_text, clock_text, size_text
from swift.ring.builder import RingBuilder
from swift.ring.layoutfiles import LayoutFolder, create_keys
from swift.ring.ringfile import encode, replace_file
from swift.runtime.service.services import SWIFT_DIR
from swift.telemetry.telemetry import Telemetry

NAME = "swift-layout"
_EPILOG = """devices are named by IP, IP/DEVICE, IP:PORT/DEVICE, zN, rNzN or rNzN-IP/DEVICE

examples:
  swift-layout init                            the cluster takes over its rings
  swift-layout add r1z4-10.0.0.14/sdb 4000     stage a device with a weight
  swift-layout drain 10.0.0.11                 stage that a node gives its data away
  swift-layout plan                            what moves, how long it takes, what speaks against it
  swift-layout apply && swift-layout watch
  swift-layout revert                          back to the rings before the last change"""
_FILE_MODE = 0o644
_NO_CONTROLLER = "none has reported yet; the node with layout.key runs swift-layout-controller"


@dataclass(frozen=True)
class Context:
    """The layout of a cluster, for a command."""

    args: argparse.Namespace
    operations: LayoutOperations
    #: Returns the space of the devices that answer.
    usage: Callable[[], Usage]

    @classmethod
    def of_node(cls, args: argparse.Namespace) -> Context:
        """Return the layout of this node's cluster. Raises ``SwiftError``."""
        conf = args.conf or f"{args.swift_dir}/internal-client.conf"
        policy = getattr(args, "policy", "")
        client = document_client(internal_pipeline(conf), AGENT)
        store = ClusterLayoutStore(client, StateSeal(args.swift_dir), policy=policy)

        def usage() -> Usage:
            policies = cluster_of({"swift_dir": args.swift_dir}).policies
            client = ReconClient(args.timeout, agent=AGENT)
            reader = HealthReader(args.swift_dir, policies, client)
            return HealthObserver(reader, client, policies).look().usage

        return cls(args, LayoutOperations(store, time.time), usage)


# --- commands -----------------------------------------------------------------------------------------


def _init(context: Context) -> int:
    folder = context.args.builders or context.args.swift_dir
    names = sorted(name.removesuffix(".builder") for name in os.listdir(folder) if name.endswith(".builder"))
    if not names:
        raise EditError(f"there are no builders in {folder}: name their directory with --from")
    builders = {name: RingBuilder.load(f"{folder}/{name}.builder") for name in names}
    try:
        context.operations.read()
    except NoLayout:
        pass
    else:
        raise EditError(f"the cluster has a layout already; see: {NAME} show")
    publisher = LocalPublisher(context.args.swift_dir)
    # A layout that was lost is made again with the keys that all nodes have.
    trusted = LayoutFolder(context.args.swift_dir).trusted_keys()
    if trusted is None:
        trusted = create_keys(context.args.swift_dir)
    version = publisher.version() + 1
    state = context.operations.create(builders, cluster=trusted.cluster, version=version)
    publisher.publish(state.version, state.issued_s, _files(builders))
    print(
        f"{NAME}: the layout has {', '.join(names)}; copy {context.args.swift_dir}/layout.pub to all nodes, "
        "and keep layout.key where the controller runs"
    )
    return 0


def _files(builders: Mapping[str, RingBuilder]) -> dict[str, bytes]:
    files = {f"{name}.builder": builder.to_bytes() for name, builder in builders.items()}
    for name, builder in builders.items():
        files[f"{name}.ring.gz"] = encode(builder.table(), f"{name}.ring.gz")
    return files


def _stage(context: Context) -> int:
    args = context.args
    edit = LayoutEdit(
        cast(Action, args.command),
        Selector.parse(args.select) if args.select else Selector(),
        tuple(args.rings.split(",")) if args.rings else (),
        weight=getattr(args, "weight", 0.0),
        place=Selector.parse(args.place) if getattr(args, "place", "") else Selector(),
        replicas=getattr(args, "replicas", 0.0),
        model=getattr(args, "like", ""),
    )
    state = context.operations.stage(edit)
    print(f"staged: {edit} ({len(state.staged)} in all); go on with: {NAME} plan")
    return 0


def _discard(context: Context) -> int:
    staged = context.operations.read().staged
    context.operations.discard()
    print(f"discarded: {'; '.join(map(str, staged))}" if staged else "nothing was staged")
    return 0


def _plan(context: Context) -> int:
    state = context.operations.read()
    plan = context.operations.propose(state, context.usage()).plan
    print_report(context.args, plan.as_json(), list(plan_lines(state, plan)), indent=1)
    return 1 if plan.objections else 0


def plan_lines(state: LayoutState, plan: LayoutPlan) -> Iterator[str]:
    """Yield a plan for people."""
    yield "staged: " + ("; ".join(map(str, state.staged)) or "nothing")
    if not plan.rings:
        yield "nothing moves"
    for ring in plan.rings:
        share = 100 * ring.moves / max(1, ring.copies)
        yield (
            f"ring {ring.name}: {ring.moves:,} of {ring.copies:,} copies move ({share:.1f} %, about "
            f"{size_text(ring.bytes)}), of {ring.partitions:,} partitions one copy at a time; "
            f"balance {ring.balance:.2f} % afterwards"
        )
        for verb, counts in (("gets", ring.gains), ("gives", ring.losses)):
            for label, count in sorted(counts.items()):
                yield f"  {label} {verb} {count:,}"
    if plan.rings:
        source = "in the cluster, as measured" if plan.is_measured else "into each device, as assumed"
        yield f"time: about {_duration_text(plan.duration_s)}, at {plan.rate / 1e6:,.1f} MB/s {source}"
        yield "at risk meanwhile: one copy of a partition in motion; all others stay in their places"
    for text in plan.objections:
        yield f"against it: {text}"
    if plan.objections:
        yield f"it is applied with {NAME} apply --force only"


def _apply(context: Context) -> int:
    args = context.args
    state, plan = context.operations.apply(context.usage(), force=args.force)
    moves = sum(plan.moves.values())
    print(f"change {state.changes[-1].number}: {moves:,} copies move; see: {NAME} watch")
    return 0


def _revert(context: Context) -> int:
    state = context.operations.revert(context.usage(), context.args.number, force=context.args.force)
    print(f"change {state.changes[-1].number}: {state.changes[-1].text}; see: {NAME} watch")
    return 0


def _part_power(context: Context) -> int:
    state = context.operations.increase_part_power(context.args.ring)
    print(
        f"change {state.changes[-1].number}: {state.changes[-1].text}; {NAME} watch says when to run "
        "swift-object-relinker"
    )
    return 0


def _pause(context: Context) -> int:
    context.operations.pause(context.args.reason)
    print("no further step begins; copies that are under way arrive")
    return 0


def _resume(context: Context) -> int:
    context.operations.resume()
    print("steps go on")
    return 0


def _show(context: Context) -> int:
    state = context.operations.read()
    builders = context.operations.builders(state)
    decision = context.operations.decision()
    tree = {**_tree(state, builders), "decision": decision}
    print_report(context.args, tree, list(_show_lines(state, decision, builders)), indent=1)
    return 0


def _tree(state: LayoutState, builders: Mapping[str, RingBuilder]) -> JsonObject:
    """Return the layout for programs."""
    rings: dict[str, object] = {}
    for name, ring in state.rings.items():
        builder = builders[name]
        devices = [
            {key: dev[key] for key in ("id", "region", "zone", "ip", "port", "device", "weight")}
            | {"partitions": dev.get("parts", 0)}
            for dev in builder.live_devs
        ]
        rings[name] = {
            "replicas": builder.replicas,
            "part_power": builder.part_power,
            "moving": ring.is_open,
            "moves_total": ring.moves_total,
            "moves_done": ring.moves_done,
            "moves_now": ring.moves_now,
            "devices": devices,
        }
    away = {
        label: {"since": dead.since_s, "drained": dead.drained_s, "refused": dead.refused}
        for label, dead in state.dead.items()
    }
    return {
        "cluster": state.cluster,
        "version": state.version,
        "paused": state.paused,
        "left_s": state.left_s(time.time()),
        "staged": list(map(str, state.staged)),
        "away": away,
        "rings": rings,
    }


def _show_lines(state: LayoutState, decision: str, builders: Mapping[str, RingBuilder]) -> Iterator[str]:
    yield from progress_lines(state, decision, time.time())
    for name, builder in sorted(builders.items()):
        yield ""
        yield f"ring {name}: {builder.parts:,} partitions, {builder.replicas:g} copies"
        yield f"{'region':>6} {'zone':>5}  {'device':<40} {'weight':>10} {'copies':>10}"
        for dev in sorted(builder.live_devs, key=lambda each: (each["region"], each["zone"], label_of(each))):
            yield (
                f"{dev['region']:>6} {dev['zone']:>5}  {label_of(dev):<40} {dev['weight']:>10g} "
                f"{dev.get('parts', 0):>10,}"
            )


def progress_lines(state: LayoutState, decision: str, now_s: float) -> Iterator[str]:
    """Yield how far the layout is."""
    yield f"layout version {state.version}" + (f", paused: {state.paused}" if state.paused else "")
    for name, ring in sorted(state.rings.items()):
        if ring.target or ring.previous:
            done, total = ring.moves_done, max(ring.moves_total, ring.moves_done + ring.moves_now)
            yield f"ring {name}: {done:,} of {total:,} copies have arrived, {ring.moves_now:,} are moving"
    running = [change for change in state.changes if change.state == "running"]
    left_s = state.left_s(now_s)
    for change in running:
        left = f", about {_duration_text(left_s)} left" if left_s else ""
        yield f"change {change.number}, begun {age_text(now_s - change.made_s)}{left}: {change.text}"
    if not state.is_moving:
        yield "all copies are in their places"
    else:
        yield f"controller: {decision or _NO_CONTROLLER}"
    for label, dead in sorted(state.dead.items()):
        verb = "drained" if dead.drained_s else "away"
        reason = f", not drained: {dead.refused}" if dead.refused else ""
        yield f"{label}: {verb} since {clock_text(dead.drained_s or dead.since_s)}{reason}"
    if state.staged:
        yield f"staged: {'; '.join(map(str, state.staged))}"


def _duration_text(seconds: float) -> str:
    """Return a time in the largest unit of which there are two."""
    for unit, unit_s in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * unit_s:
            return f"{seconds / unit_s:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def _watch(context: Context) -> int:
    shown: tuple[LayoutState, str] | None = None
    while True:
        state, decision = context.operations.read(), context.operations.decision()
        if (state, decision) != shown:
            stamp = time.strftime("%H:%M:%S")
            print("\n".join((stamp, *progress_lines(state, decision, time.time()))), flush=True)
        shown = state, decision
        if not state.is_moving:
            return 0
        green.sleep(context.args.every)


def _history(context: Context) -> int:
    changes = context.operations.read().changes
    lines = [f"{'change':>6}  {'made':<20} {'state':<9} what"]
    for change in changes:
        lines.append(f"{change.number:>6}  {clock_text(change.made_s):<20} {change.state:<9} {change.text}")
    tree = [
        {
            "number": change.number,
            "made": change.made_s,
            "ended": change.ended_s,
            "state": change.state,
            "text": change.text,
        }
        for change in changes
    ]
    print_report(context.args, {"changes": tree}, lines, indent=1)
    return 0


def _export(context: Context) -> int:
    folder = context.args.directory
    os.makedirs(folder, exist_ok=True)
    builders = context.operations.builders(context.operations.read())
    for name, content in _files(builders).items():
        replace_file(f"{folder}/{name}", content, mode=_FILE_MODE)
    print(f"{folder} has the builders and rings of {', '.join(sorted(builders))}")
    return 0


def _fetch(args: argparse.Namespace) -> int:
    """Bring the rings of other nodes to this one, which has ``layout.pub``."""
    conf = {"swift_dir": args.swift_dir}
    transport = connections_to_nodes(conf, Telemetry())
    client = LayoutClient(transport, NAME, NodeTimeouts(args.timeout, args.timeout))
    manifest = fetch_layout(args.swift_dir, client, parse_servers(args.servers))
    print(f"{args.swift_dir} has {manifest}")
    return 0


# --- the command line ---------------------------------------------------------------------------------

Run = Callable[[Context], int]


def _with_layout(args: argparse.Namespace) -> int:
    """Run a command that needs the layout of this node's cluster."""
    act: Run = args.act
    return act(Context.of_node(args))


def _change(text: str) -> int:
    """Parse the number of a change."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of a change; see: {NAME} history")
    return int(text)


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(prog=NAME, description=__doc__, epilog=_EPILOG)
    add = parser.add_argument
    add("-d", "--swift-dir", default=SWIFT_DIR, help="directory of the rings (%(default)s)")
    add("--conf", default="", help="pipeline on this node (internal-client.conf of the directory)")
    add("-t", "--timeout", type=float, default=5.0, help="seconds to wait for a server (%(default)g)")
    parser.add_format()
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    def command(name: str, run: Run, text: str, example: str) -> argparse.ArgumentParser:
        made = commands.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", epilog=f"example: {NAME} {example}"
        )
        made.set_defaults(run=_with_layout, act=run)
        return cast(argparse.ArgumentParser, made)

    first = command("init", _init, "take over the rings of this cluster from their builders", "init")
    first.add_argument("--from", dest="builders", default="", metavar="DIR", help="directory of the builders")
    about = "policy that keeps the layout, of nodes of this release only (the default one)"
    first.add_argument("--policy", default="", metavar="NAME", help=about)
    command("show", _show, "show the devices, and how far changes are", "--format json show")
    _add_edits(command)
    command("discard", _discard, "forget what is staged", "discard")
    command("plan", _plan, "show what the staged changes move (status 1: and what speaks against it)", "plan")
    force = "although something speaks against it"
    command("apply", _apply, "carry out the staged changes", "apply").add_argument(
        "--force", action="store_true", help=force
    )
    watch = command("watch", _watch, "show the progress until all copies have arrived", "watch")
    watch.add_argument("--every", type=float, default=5.0, metavar="SECONDS", help="(%(default)g)")
    pause = command("pause", _pause, "let no further step begin", "pause 'maintenance of rack 4'")
    pause.add_argument("reason", nargs="?", default="", metavar="REASON", help="a note for others")
    command("resume", _resume, "let steps go on", "resume")
    revert = command("revert", _revert, "go back to the rings before a change, at any moment", "revert 7")
    revert.add_argument("number", nargs="?", type=_change, default=0, metavar="CHANGE", help="(the last one)")
    revert.add_argument("--force", action="store_true", help=force)
    power = command(
        "part-power", _part_power, "double the partitions of a ring of objects", "part-power object"
    )
    power.add_argument("ring", metavar="RING", help="the ring")
    command("history", _history, "list the changes", "--format json history")
    fetch = command(
        "fetch", _show, "bring the rings of other nodes to a new one", "fetch --from 10.0.0.1:6200"
    )
    fetch.add_argument(
        "--from", dest="servers", action="append", required=True, metavar="IP:PORT", help="a storage server"
    )
    fetch.set_defaults(run=_fetch)
    export = command("export", _export, "write builders and rings into a directory", "export /tmp/rings")
    export.add_argument("directory", metavar="DIR", help="the directory")
    return parser


def _add_edits(command: Callable[[str, Run, str, str], argparse.ArgumentParser]) -> None:
    """Add the commands that stage a change."""

    def edit(name: str, text: str, example: str, *, select: bool = True) -> argparse.ArgumentParser:
        parser = command(name, _stage, f"stage: {text}", example)
        if select:
            parser.add_argument("select", metavar="DEVICES", help="see the end of swift-layout --help")
        else:
            parser.set_defaults(select="")
        return parser

    def rings(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--rings", default="", metavar="RING,...", help="only these rings (all)")

    add = edit("add", "a device", "add r1z4-10.0.0.14/sdb 4000")
    add.add_argument("weight", type=float, metavar="WEIGHT", help="as those of other devices of its size")
    add.add_argument("--replication", dest="place", default="", metavar="IP:PORT", help="for replication")
    rings(add)
    rings(edit("remove", "devices give their data away and leave the rings", "remove 10.0.0.11/sdb"))
    rings(edit("drain", "devices give their data away and stay with weight 0", "drain 10.0.0.11"))
    weight = edit("weight", "another weight of devices", "weight 10.0.0.11/sdb 2000")
    weight.add_argument("weight", type=float, metavar="WEIGHT", help="the weight")
    rings(weight)
    zone = edit("zone", "another zone of devices", "zone 10.0.0.11 r1z5")
    zone.add_argument("place", metavar="rNzN", help="the zone")
    rings(zone)
    replace = edit("replace", "a new device in the place of one", "replace 10.0.0.11/sdb 10.0.0.11/sdf")
    replace.add_argument("place", metavar="IP/DEVICE", help="the new device")
    rings(replace)
    replicas = edit("replicas", "another number of copies", "replicas object 4", select=False)
    replicas.add_argument("rings", metavar="RING", help="the ring")
    replicas.add_argument("replicas", type=float, metavar="COPIES", help="the number")
    overload = edit(
        "overload",
        "devices may take this share more than their weights say, to keep copies apart",
        "overload 0.1",
        select=False,
    )
    overload.add_argument("weight", type=float, metavar="SHARE", help="0.1 is 10 %%")
    rings(overload)
    policy = edit("policy", "the ring of a new policy", "policy object-1 --like object", select=False)
    policy.add_argument("rings", metavar="RING", help="the ring")
    policy.add_argument("--like", default="object", metavar="RING", help="its devices (%(default)s)")
    policy.add_argument("--replicas", type=float, default=0.0, metavar="COPIES", help="(those of the other)")


@reports_errors(NAME, SwiftError, OSError)
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    args = make_parser().parse_args(argv)
    run: Callable[[argparse.Namespace], int] = args.run
    try:
        return run(args)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

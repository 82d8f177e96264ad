"""swift-object-volumes: list, verify, dump and compact volumes of the packed engine, rebuild its indexes."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import NamedTuple

from swift.base.errors import LockTimeout, NoSpace, SwiftError
from swift.config.commandline import CommandLine, print_report, reports_errors
from swift.operations.packed import CONFIG, PackedNode, SteadyPace, describe_error
from swift.operations.volumes import (
    Facts,
    find_hash,
    object_records,
    rebuild_index,
    volume_infos,
    volume_numbers,
    volume_records,
)
from swift.store.lmdbindex import IndexFailed
from swift.store.packed.compaction import Compactor
from swift.store.packed.verify import Verifier

NAME = "swift-object-volumes"
EXIT_ERROR, EXIT_FLAWS = 1, 2
DEAD_PERCENT = 50.0


def _list(node: PackedNode, _args: argparse.Namespace, name: str) -> Iterator[Facts]:
    for info in volume_infos(node.open(name), name):
        yield info.as_facts()


def _names(node: PackedNode, args: argparse.Namespace) -> list[str]:
    """Return the devices that have volumes, or those that are named.

    If volumes are named, they are those that have one of them; raises ``SwiftError`` when none has.
    """
    names = [name for name in node.device_names(args.device) if args.device or node.has_volumes(name)]
    target = getattr(args, "target", "")
    volumes = {int(target)} if _is_number(target) else set(getattr(args, "volume", ()))
    if not volumes:
        return names
    # An index that cannot be opened must not hide the volumes of other devices.
    found = [name for name in names if not volumes.isdisjoint(volume_numbers(node, name))]
    if not found:
        numbers = ", ".join(map(str, sorted(volumes)))
        raise SwiftError(f"no volume {numbers} is on {', '.join(names) or 'any device'}; see {NAME} list")
    return found


def _is_number(target: str) -> bool:
    return target.isascii() and target.isdigit() and len(target) <= 8


def _verify(node: PackedNode, args: argparse.Namespace, name: str) -> Iterator[Facts]:
    device = node.open(name)
    verifier = Verifier(node.store.core, device, node.cluster.policies, SteadyPace(args.rate))
    numbers = args.volume or device.volumes.numbers()
    flaws = [{"device": name, **flaw.as_facts()} for flaw in verifier.run(numbers)]
    yield {"device": name, **asdict(verifier.report), "flaws": flaws}


def _dump(node: PackedNode, args: argparse.Namespace, name: str) -> Iterator[Facts]:
    if _is_number(args.target):
        for facts in volume_records(node, node.open(name), int(args.target), metadata=args.metadata):
            yield {"device": name, **facts}
    else:
        object_hash = find_hash(node, args.target)
        for facts in object_records(node, node.open(name), object_hash, node.policies(args.policy)):
            yield {"device": name, **facts}


def _compact(node: PackedNode, args: argparse.Namespace, name: str) -> Iterator[Facts]:
    device = node.open(name)
    compactor = Compactor(node.store.core.disk, device, SteadyPace(args.rate))
    for info in list(volume_infos(device, name)):
        wanted = info.volume in args.volume if args.volume else info.dead_percent >= args.dead_percent
        if wanted:
            report = compactor.compact(info.volume, accepts_loss=args.accept_loss)
            yield {"device": name, "volume": info.volume, **asdict(report)}


def _rebuild(node: PackedNode, _args: argparse.Namespace, name: str) -> Iterator[Facts]:
    yield {"device": name, "objects": rebuild_index(node, name)}


def _run(node: PackedNode, args: argparse.Namespace) -> tuple[list[Facts], bool]:
    """Return what a verb finds on each device; True if one of them failed, which is told."""
    found: list[Facts] = []
    has_failed = False
    for name in _names(node, args):
        try:
            found.extend(_VERBS[args.verb].run(node, args, name))
        except (NoSpace, IndexFailed, LockTimeout, OSError) as error:
            print(f"{NAME}: {name}: {describe_error(error)}", file=sys.stderr)
            has_failed = True
    return found, has_failed


class _Verb(NamedTuple):
    run: Callable[[PackedNode, argparse.Namespace, str], Iterator[Facts]]
    help: str
    #: Arguments of the example that ``--help`` ends with.
    example: str = ""


_VERBS = {
    "list": _Verb(_list, "show the size of each volume, and what of it is dead"),
    "verify": _Verb(
        _verify, "read volumes and compare all checksums and the index; exit 2 for flaws", "--device sdb1"
    ),
    "dump": _Verb(_dump, "show the records of a volume or of an object", "--device sdb1 17"),
    "compact": _Verb(
        _compact,
        "copy what is live of volumes to others and remove them; exit 1 if a named one stays",
        "--dead-percent 30 --rate 20000000",
    ),
    "rebuild": _Verb(_rebuild, "make an index again from the volumes, while no server runs", "--device sdb1"),
}


def make_parser() -> CommandLine:
    """Return the parser of the command line."""
    parser = CommandLine(
        prog=NAME,
        description="Look at the volumes of the packed engine, compare them with the index, compact them, "
        "and make an index again.",
        epilog="examples:\n  swift-object-volumes list --device sdb1\n"
        "  swift-object-volumes verify --rate 50000000\n"
        "  swift-object-volumes dump AUTH_test/photos/cat.jpg",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-c", "--conf", default=CONFIG, help="configuration of object servers (%(default)s)")
    parser.add_format()
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="|".join(_VERBS))
    parsers = {}
    for name, verb in _VERBS.items():
        example = f"example: {NAME} {name} {verb.example}".rstrip()
        parsers[name] = each = verbs.add_parser(name, help=verb.help, epilog=example)
        each.add_argument("-c", "--conf", default=argparse.SUPPRESS, help="configuration of object servers")
        each.add_argument("--device", action="append", default=[], help="only this device; may be repeated")
        each.add_argument(
            "--format", choices=("text", "json"), default=argparse.SUPPRESS, help="how to report"
        )
    for each in (parsers["verify"], parsers["compact"]):
        each.add_argument(
            "--volume", type=int, action="append", default=[], help="only this volume; may be repeated"
        )
        each.add_argument("--rate", type=float, default=0.0, help="bytes per second; 0: no limit")
    dump = parsers["dump"]
    dump.add_argument(
        "target", metavar="what", help="number of a volume, ACCOUNT/CONTAINER/OBJECT, or a hash"
    )
    dump.add_argument("--policy", action="append", default=[], help="only of this policy; may be repeated")
    dump.add_argument("--metadata", action="store_true", help="of a volume: with metadata")
    compact = parsers["compact"]
    compact.add_argument(
        "--dead-percent",
        type=float,
        default=DEAD_PERCENT,
        help="only volumes of which at least so much is dead, unless named (%(default)s)",
    )
    compact.add_argument(
        "--accept-loss",
        action="store_true",
        help="also remove volumes with lost ranges, after everything that can be read was copied",
    )
    return parser


@reports_errors(NAME, NoSpace, IndexFailed, code=EXIT_ERROR, describe=describe_error)
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0 done, 1 errors or a named volume that stays, 2 flaws found."""
    parser = make_parser()
    args = parser.parse_args(argv)
    # Not a number is neither.
    if not getattr(args, "rate", 0.0) >= 0:
        parser.error(f"--rate must not be negative, but is {args.rate:g}")
    if not 0 <= getattr(args, "dead_percent", 0.0) <= 100:
        parser.error(f"--dead-percent must be from 0 to 100, but is {args.dead_percent:g}")
    node = PackedNode(args.conf, lambda text: print(f"{NAME}: {text}", file=sys.stderr))
    try:
        found, has_failed = _run(node, args)
    finally:
        node.close()
    print_report(args, found, _lines(args, found) if found or not has_failed else ())
    if any(facts.get("flaws") for facts in found):
        return EXIT_FLAWS
    # The operator named the volumes that are to go.
    stays = args.verb == "compact" and args.volume and not all(facts["is_removed"] for facts in found)
    return EXIT_ERROR if stays or has_failed else 0


def _lines(args: argparse.Namespace, found: Sequence[Facts]) -> Iterator[str]:
    for facts in found:
        yield "  ".join(f"{name}={_shown(value)}" for name, value in facts.items() if name != "flaws")
        flaws = facts.get("flaws")
        for flaw in flaws if isinstance(flaws, list) else ():
            name = f" {flaw['hash']}" if flaw["hash"] else ""
            yield f"  volume {flaw['volume']} offset {flaw['offset']}{name}: {flaw['reason']}"
    if found:
        return
    if args.verb == "dump":
        yield "no record matches; objects of the file engine have none: swift-get-nodes shows their paths"
    elif args.verb == "compact":
        yield f"nothing to do: no volume has {args.dead_percent:g} % of dead bytes or more"
    else:
        yield "no volumes"


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)


if __name__ == "__main__":
    raise SystemExit(main())

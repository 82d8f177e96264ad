"""swift-cache: look at the cache tier of this node, and change it while it runs.

What it changes goes into ``control.json`` on the SSD, which all processes of the node take over within a
second. It has to be run as the user of the object server.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from swift.base.clock import SystemClock
from swift.compose import cluster_of
from swift.config.commandline import CommandLine, reports_errors
from swift.config.common import StorageSettings
from swift.config.files import parser_of
from swift.platform.devices import Devices
from swift.platform.disk import Disk
from swift.platform.durable import replace_file
from swift.platform.sharedstate import reports_in
from swift.store.api import Location, ReadOptions
from swift.store.lmdbindex import IndexFailed
from swift.store.metadata import BadMetadata, decode_metadata
from swift.store.registry import EngineParts, StoreRegistry
from swift.store.tier import figures
from swift.store.tier.conf import settings_of, tier_factory
from swift.store.tier.entries import Entries
from swift.store.tier.entry import Snapshot
from swift.store.tier.policy import CLASSES, MODES, Refused, check_mode
from swift.store.tier.scrub import TierScrub
from swift.store.tier.settings import TierSettings, option_of
from swift.store.tier.tier import CONTROL_FILE, CacheTier, TierDependencies

NAME = "swift-cache"
_CONF = "/etc/swift/object-server.conf"
Output = dict[str, object]


class CacheUnusable(Exception):
    """The cache cannot be used; the text has the reason."""


@dataclass
class CacheNode:
    """This node's tier and devices."""

    conf: Mapping[str, str]
    settings: TierSettings
    tier: CacheTier
    devices: Devices

    def entries(self) -> Entries:
        """Return the index. Raises ``CacheUnusable`` when it cannot be used."""
        entries = self.tier.entries()
        if entries is None:
            raise CacheUnusable(self.tier.failure)
        return entries

    def control(self) -> dict[str, object]:
        """Return the settings that were changed at run time."""
        try:
            with open(self._control_path, encoding="utf-8") as file:
                found: dict[str, object] = json.load(file)
                return found
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise CacheUnusable(f"{self._control_path} does not load: {error}")

    @property
    def _control_path(self) -> str:
        return f"{self.settings.path}/{CONTROL_FILE}"

    def change(self, **values: object) -> Output:
        """Change options for all processes; raises ``Refused``."""
        self.entries()
        wanted = {**self.control(), **values}
        self.settings.changed(wanted)
        replace_file(Disk(), self._control_path, json.dumps(wanted, indent=1).encode())
        return {"changed": wanted}


# --- what it does --------------------------------------------------------------------------------------


def stats(node: CacheNode, _args: argparse.Namespace) -> Output:
    """Return the figures of all processes together."""
    entries = node.entries()
    total, states = figures.merge_reports(reports_in(node.settings.state_directory))
    totals, settings = entries.totals(), node.tier.settings
    devices = sorted({device for _, device, _ in total})
    return {
        "path": settings.path,
        "size_mb": settings.size_mb,
        "processes": len(states),
        "failures": sorted({str(each["failure"]) for each in states if each.get("failure")}),
        "metadata_bytes": totals.metadata,
        "hashes_bytes": totals.hashes,
        "written_today_bytes": entries.written_today(),
        "classes": {
            of: {
                "mode": rules.mode,
                "priority": rules.priority,
                "bytes_max": rules.bytes_max,
                "admission": rules.admission,
                **_count_entries(total, of, None),
                "devices": {device: _count_entries(total, of, device) for device in devices},
            }
            for of, rules in settings.rules().items()
        },
    }


def _count_entries(total: figures.Figures, of: str, device: str | None) -> Output:
    sums: Output = {}
    for name in figures.NAMES:
        keys = [key for key in total if key[0] == of and key[2] == name and device in (None, key[1])]
        sums[name] = sum(total[key] for key in keys)
    sums["hit_rate"] = figures.hit_rate(total, of, device)
    return sums


def live(node: CacheNode, args: argparse.Namespace) -> Iterator[Output]:
    """Yield the activity of each interval until an interrupt."""
    before, _ = figures.merge_reports(reports_in(node.settings.state_directory))
    while args.count != 0:
        args.count -= 1
        time.sleep(args.interval)
        now, _ = figures.merge_reports(reports_in(node.settings.state_directory))
        change = now - before
        before = now
        yield {of: _count_entries(change, of, None) for of in node.tier.settings.rules()}


def resize(node: CacheNode, args: argparse.Namespace) -> Output:
    """Set another size."""
    return node.change(size_mb=args.megabytes)


def mode(node: CacheNode, args: argparse.Namespace) -> Output:
    """Set another mode of a class; ``off`` and ``on`` turn it off and on."""
    known = node.tier.settings
    classes = tuple(name for name in CLASSES if name in known.classes)
    if args.mode == "off":
        return node.change(classes=[name for name in classes if name != args.of])
    on = [name for name in CLASSES if name in classes or name == args.of]
    if args.mode == "on":
        return node.change(classes=on)
    check_mode(args.of, args.mode)
    return node.change(classes=on, **{option_of(args.of, "mode"): args.mode})


def flush(node: CacheNode, args: argparse.Namespace) -> Output:
    """Forget a device."""
    return {"device": args.device, "dropped": node.entries().flush(args.device)}


def verify(node: CacheNode, args: argparse.Namespace) -> Output:
    """Compare entries with the disk."""
    entries, pace = node.entries(), _make_pacer(node.settings.scrub_rate if args.rate is None else args.rate)
    prefix = f"{args.device}/" if args.device else ""
    scrub = TierScrub(node.tier, node.devices.path)
    paths = (path for number, path in enumerate(entries.paths(prefix)) if not number % args.every)
    done = scrub.compare(paths, pace)
    return {
        "same": done.same,
        "unproven": done.unproven,
        "busy": done.busy,
        "differences": [{"directory": where, "difference": what} for where, what in done.differences],
    }


def _make_pacer(rate: float) -> Callable[[], None]:
    return (lambda: time.sleep(1.0 / rate)) if rate > 0 else (lambda: None)


def dump(node: CacheNode, args: argparse.Namespace) -> Output:
    """Return everything known of an object."""
    entries = node.entries()
    words = [word for word in args.object.split("/") if word]
    if len(words) >= 5 and words[-3].isdigit():
        paths = ["/".join(words[-5:]).encode()]
    elif len(words) >= 3:
        hasher = cluster_of(node.conf).config.hasher
        account, container, name = args.object.lstrip("/").split("/", 2)
        wanted = hasher.hexdigest(account, container, name).encode()
        paths = [path for path in entries.paths() if path.endswith(wanted)]
    else:
        raise CacheUnusable("write ACCOUNT/CONTAINER/OBJECT or the path of a hash directory")
    known = [(path, entries.find(path)) for path in paths]
    return {"entries": [_entry_output(path, found, entries) for path, found in known if found is not None]}


def _entry_output(path: bytes, found: Snapshot, entries: Entries) -> Output:
    return {
        "directory": path.decode(),
        "is_proven": found.epoch == entries.shared_state.epoch(path.split(b"/", 1)[0].decode()),
        "made": found.made_ns / 1e9,
        "inode": found.stamp.inode,
        "changed": found.stamp.changed_ns / 1e9,
        "files": [
            {
                "name": file.name,
                "size": file.size,
                "inode": file.inode,
                "handle": file.handle.hex(),
                "metadata": _metadata_output(file.blob),
            }
            for file in found.files
        ],
        "body": None if found.body is None else found.body._asdict(),
    }


def _metadata_output(blob: bytes) -> Output:
    try:
        return dict(decode_metadata(blob))
    except BadMetadata as error:
        return {"error": str(error)}


def warm(node: CacheNode, args: argparse.Namespace) -> Output:
    """Read what there is, so that it is known."""
    cluster = cluster_of(node.conf)
    parts = EngineParts(
        devices=node.devices, hasher=cluster.config.hasher, clock=SystemClock(), tier=tier_factory(node.tier)
    )
    stores, read = StoreRegistry(parts), 0
    node.entries()
    pace = _make_pacer(args.rate if args.rate is not None else node.settings.warm_rate)
    for device in args.device or node.devices.names():
        if not node.devices.is_usable(device):
            continue
        for policy in cluster.policies:
            store = stores.at(policy, device)
            for partition in store.partitions(device, policy):
                store.hashes(device, partition, policy)
                for name_hash in chain.from_iterable(store.inventory(partition, policy)):
                    store.maintenance.find(
                        Location(device, partition, policy, name_hash), ReadOptions(time.time(), True)
                    )
                    read += 1
                    pace()
    return {"objects": read}


# --- the command line ----------------------------------------------------------------------------------


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog=NAME,
        description="Look at the cache tier of this node, and change it while it runs. "
        "Run it as the user of the object server.",
        epilog="examples:\n  swift-cache stats\n  swift-cache mode data pass-through\n"
        "  swift-cache verify --every 100",
    )
    parser.add_argument("--conf", default=_CONF, help=f"configuration of the object server ({_CONF})")
    parser.add_format("output format")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    parsers = {
        name: verbs.add_parser(name, help=text, epilog=example and f"example: {NAME} {example}")
        for name, text, example in (
            ("stats", "sizes, figures and hit rates, by class and device", "stats"),
            ("live", "what happens, interval by interval", "live"),
            ("resize", "give it another size", "resize 65536"),
            ("mode", "give a class another mode, or turn it on or off", None),
            ("flush", "forget a device", "flush sdb1"),
            ("verify", "compare the tier with the disk; exit 2 for differences", "verify"),
            ("dump", "print the cached entries of an object", "dump AUTH_test/photos/cat.jpg"),
            ("warm", "read names and metadata of all objects", "warm"),
        )
    }
    add = parsers["live"].add_argument
    add("--interval", type=float, default=1.0, help="seconds (1)")
    add("--count", type=int, default=-1, help="number of intervals; default: until interrupted")
    parsers["resize"].add_argument("megabytes", type=int, help="space on the SSD that the tier may use, MB")
    add, modes = parsers["mode"].add_argument, (*MODES, "on", "off")
    add("of", choices=CLASSES, metavar="CLASS", help=", ".join(CLASSES))
    add("mode", choices=modes, metavar="MODE", help=", ".join(modes))
    parsers["flush"].add_argument("device")
    add = parsers["verify"].add_argument
    add("--device", default="", help="only this one")
    add("--every", type=int, default=1, help="only each of so many entries")
    add("--rate", type=float, default=None, help="entries a second (scrub_rate)")
    add = parsers["dump"].add_argument
    add("object", help="ACCOUNT/CONTAINER/OBJECT, or the path of a hash directory")
    add = parsers["warm"].add_argument
    add("--rate", type=float, default=None, help="objects a second (warm_rate)")
    add("device", nargs="*", help="only these")
    return parser


_VERBS: dict[str, Callable[[CacheNode, argparse.Namespace], Output]] = {
    "stats": stats,
    "resize": resize,
    "mode": mode,
    "flush": flush,
    "verify": verify,
    "dump": dump,
    "warm": warm,
}


def load_node(conf_path: str) -> CacheNode:
    """Return the node that a configuration describes. Raises ``ConfigError`` and ``CacheUnusable``."""
    settings = settings_of(conf_path)
    if not settings.enabled:
        raise CacheUnusable(f"{conf_path} turns no cache tier on")
    conf = dict(parser_of(conf_path).defaults())
    storage = StorageSettings.parse(conf)
    notice: Callable[[str], None] = lambda text: print(f"{NAME}: {text}", file=sys.stderr)  # noqa: E731
    tier = CacheTier(settings, TierDependencies(notice=notice))
    return CacheNode(conf, settings, tier, Devices(storage.devices, mount_check=storage.mount_check))


def _print_output(said: Output, form: str) -> None:
    if form == "json":
        print(json.dumps(said), flush=True)
        return
    for line in _lines(said):
        print(line, flush=True)


def _lines(said: Mapping[str, object], indent: str = "") -> Iterator[str]:
    for name, value in said.items():
        if isinstance(value, Mapping):
            yield f"{indent}{name}:"
            yield from _lines(value, indent + "  ")
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            for each in value:
                yield f"{indent}{name}:"
                yield from _lines(each, indent + "  ")
        elif isinstance(value, float):
            yield f"{indent}{name}: {value:.4g}"
        else:
            shown = ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
            yield f"{indent}{name}: {shown}"


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit code; ``main`` prints its errors."""
    node = load_node(args.conf)
    try:
        if args.verb == "live":
            for said in live(node, args):
                _print_output(said, args.format)
            return 0
        said = _VERBS[args.verb](node, args)
    finally:
        node.tier.close()
    _print_output(said, args.format)
    return 2 if said.get("differences") else 0


@reports_errors(NAME, CacheUnusable, Refused, IndexFailed)
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0 done, 1 not possible, 2 differences found."""
    args = make_parser().parse_args(argv)
    try:
        return run(args)
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    raise SystemExit(main())

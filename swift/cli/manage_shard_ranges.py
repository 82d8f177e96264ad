"""swift-manage-shard-ranges: look at the shards of a container, and say by hand how it is to be split.

spec: cli-and-config.md §12. Everything is done to one database file; replication tells the others.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from swift.base.documents import JsonObject
from swift.base.errors import ConfigError, InvalidValue, SwiftError
from swift.base.shardrange import ShardRange, State
from swift.base.timestamp import Timestamp
from swift.base.truth import is_true
from swift.config.commandline import CommandLine
from swift.config.files import parser_of
from swift.container import shardtable
from swift.container.broker import SHARDED, ContainerBroker, root_path
from swift.container.sharding import overlaps, shrink
from swift.container.sharding.context import PREFIX
from swift.container.sharding.scan import Cut, find_cuts, in_state, ranges_of_cuts
from swift.container.sharding.settings import ContainerSharderSettings
from swift.container.shardtable import ShardQuery
from swift.db.broker import Engine
from swift.db.files import DatabasePath
from swift.http import fields
from swift.operations.info import NoDatabase, open_database_path

DONE, FAILED, BAD_ARGUMENTS, QUIT = 0, 1, 2, 3
_PROMPT = (
    "Do you want to show the existing ranges [s], delete the existing ranges [yes] or quit without deleting "
    "[q]? "
)


class BadArguments(SwiftError):
    """Arguments are invalid; exit 2."""


class Stop(Exception):
    """The command ends early with an exit code, after these lines on standard output."""

    def __init__(self, code: int, *lines: str):
        super().__init__("\n".join(lines))
        self.code = code


@dataclass(frozen=True)
class ShardRangesCommand:
    """A database and what is to be done with it."""

    broker: ContainerBroker
    args: argparse.Namespace
    settings: ContainerSharderSettings
    now: Timestamp

    @property
    def stored_own(self) -> ShardRange | None:
        """The container's own range, None when it has none."""
        broker = self.broker
        return broker.read(lambda c: shardtable.own_range(c, broker.own_name), merged=False)

    @property
    def own(self) -> ShardRange:
        """The same, or the one that stands for it."""
        return self.stored_own or ShardRange(self.broker.own_name, self.now.normal, state=State.ACTIVE)

    def ranges(self, *, deleted: bool = False, includes: str | None = None) -> list[ShardRange]:
        """Return the shards."""
        return self.broker.shard_ranges(ShardQuery(include_deleted=deleted, includes=includes))


# --- showing ----------------------------------------------------------------------------------------------


def _range_json(item: ShardRange) -> JsonObject:
    values: JsonObject = item.as_dict()
    del values["last_modified"]
    return {**values, "state": item.state.name.lower()}


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2, sort_keys=True))


def _print_ranges(ranges: Sequence[ShardRange], *, brief: bool = False) -> None:
    print("Existing shard ranges:", file=sys.stderr)
    _print_json([[item.lower, item.upper] for item in ranges] if brief else [_range_json(r) for r in ranges])


def show(work: ShardRangesCommand) -> None:
    """Print the shards."""
    ranges = work.ranges(deleted=work.args.include_deleted, includes=work.args.includes)
    if ranges:
        _print_ranges(ranges, brief=work.args.brief)
    else:
        print("No shard data found.", file=sys.stderr)


def info(work: ShardRangesCommand) -> None:
    """Print the container's state."""
    facts = work.broker.info()
    is_enabled = is_true(facts.metadata.get(fields.SYSMETA_SHARDING.title(), ("", ""))[0])
    print(f"Sharding enabled = {is_enabled or bool(work.ranges())}")
    own = work.stored_own
    shown = own and json.dumps(_range_json(own), indent=2, sort_keys=True)
    print(f"Own shard range: {shown}")
    print(f"db_state = {facts.db_state}")
    if len(work.broker.databases) > 1:
        print(f"Retiring db: {work.broker.oldest.path}")
        for name, (value, _stamp) in sorted(facts.metadata.items()):
            if name.startswith(PREFIX) and value:
                print(f"Cleaving context: {value}")
    print(f"object_count = {facts.object_count}")
    print(f"bytes_used = {facts.bytes_used}")
    print("Metadata:")
    for name, (value, _stamp) in sorted(facts.metadata.items()):
        if value:
            print(f"  {name} = {value}")


# --- finding ----------------------------------------------------------------------------------------------


def _find_cuts(work: ShardRangesCommand) -> list[Cut]:
    rows = work.args.rows_per_shard or work.settings.shard_rows
    minimum = work.args.minimum_shard_size or max(rows // 5, 1)
    broker = work.broker
    policy_index = broker.info().storage_policy_index
    found, _ = broker.read(
        lambda c: find_cuts(c, work.own, policy_index, rows=rows, minimum=minimum), database=broker.oldest
    )
    return found


def find(work: ShardRangesCommand) -> None:
    """Print the names at which the container can be split."""
    started_s = time.monotonic()
    cuts = _find_cuts(work)
    _print_json(
        [
            {"index": n, "lower": cut.lower, "upper": cut.upper, "object_count": cut.object_count}
            for n, cut in enumerate(cuts)
        ]
    )
    total = sum(cut.object_count for cut in cuts)
    seconds = time.monotonic() - started_s
    print(f"Found {len(cuts)} ranges in {seconds:g}s (total object count {total})", file=sys.stderr)


# --- replacing --------------------------------------------------------------------------------------------


def _read_ranges_file(path: str) -> list[JsonObject]:
    try:
        with open(path, encoding="utf-8") as file:
            values: list[JsonObject] = json.load(file)
    except OSError as error:
        raise BadArguments(f"Failed to open file {path}: {error}")
    except ValueError as error:
        raise BadArguments(f"Failed to load valid JSON from file {path}: {error}")
    if not isinstance(values, list) or not all(isinstance(item, dict) for item in values):
        raise BadArguments(f"{path} must hold a list of shard ranges")
    return values


def _parse_cut(item: JsonObject) -> Cut:
    try:
        return Cut(str(item["lower"]), str(item["upper"]), int(item["object_count"]))
    except (KeyError, TypeError, ValueError) as error:
        raise BadArguments(f"not a shard range: {item} ({error!r})")


def _check_ranges(ranges: Sequence[ShardRange | Cut], own: ShardRange) -> None:
    """Raise ``Stop`` if ranges do not cover the container's names exactly once."""
    problems = ["No shard ranges."]
    if ranges:
        ends = [(own.lower, ranges[0].lower), (own.upper, ranges[-1].upper)]
        ends += [(one.upper, other.lower) for one, other in zip(ranges, ranges[1:], strict=False)]
        problems = [f"{wanted} != {have}" for wanted, have in ends if wanted != have]
    if problems:
        raise Stop(FAILED, f"WARNING: invalid shard ranges: {problems}.", "Aborting.")


def delete(work: ShardRangesCommand) -> None:
    """Delete all shards, if the operator agrees."""
    existing = work.ranges()
    if not existing:
        print("No shard ranges found to delete.")
        return
    while not work.args.force:
        print(f"This will delete existing {len(existing)} shard ranges.")
        try:
            answer = input(_PROMPT)
        except EOFError:
            raise Stop(QUIT)
        if answer == "s":
            _print_ranges(existing)
        elif answer == "q":
            raise Stop(QUIT)
        elif answer == "yes":
            break
        else:
            print("Please make a valid choice.\n")
    gone = [replace(item, deleted=True, timestamp=work.now.normal) for item in existing]
    work.broker.merge_shard_ranges(gone)
    print(f"Deleted {len(existing)} existing shard ranges.")


def _check_own_range(work: ShardRangesCommand) -> None:
    """Raise ``Stop`` for a shard whose bounds are unknown."""
    if work.stored_own is None and not work.broker.read(work.broker.is_root):
        raise Stop(BAD_ARGUMENTS, "WARNING: shard container missing own shard range.", "Aborting.")


def _replace(work: ShardRangesCommand, cuts: list[Cut]) -> None:
    _check_own_range(work)
    _check_ranges(cuts, work.own)
    delete(work)
    broker = work.broker
    root = root_path(broker.info().metadata) or broker.own_name
    account, _, container = root.partition("/")
    # What was deleted a moment ago has the time of this command.
    stamp = Timestamp.from_raw(work.now.raw + 1)
    broker.merge_shard_ranges(ranges_of_cuts(cuts, account, container, broker.container, stamp))
    print(f"Injected {len(cuts)} shard ranges.\nRun container-replicator to replicate them to other nodes.")
    if work.args.enable:
        enable(work)
    else:
        print("Use the enable sub-command to enable sharding.")


def replace_ranges(work: ShardRangesCommand) -> None:
    """Put the shards of a file in the place of those that there are."""
    _replace(work, [_parse_cut(item) for item in _read_ranges_file(work.args.input)])


def find_and_replace(work: ShardRangesCommand) -> None:
    """Put what is found in the place of those that there are."""
    _replace(work, _find_cuts(work))


def merge(work: ShardRangesCommand) -> None:
    """Merge whole shard ranges of a file."""
    try:
        ranges = [ShardRange.from_mapping(item) for item in _read_ranges_file(work.args.input)]
    except InvalidValue as error:
        raise BadArguments(f"{work.args.input}: {error}")
    if not work.args.yes:
        print(f"{len(ranges)} shard ranges will be merged.")
        if not _has_consent(work, "Do you want to apply these changes? [yes/N]"):
            raise Stop(QUIT)
    work.broker.merge_shard_ranges(ranges)
    print(f"Injected {len(ranges)} shard ranges.")


# --- steering ---------------------------------------------------------------------------------------------


def enable(work: ShardRangesCommand) -> None:
    """Have the sharder begin."""
    _check_own_range(work)
    own = work.own
    _check_ranges(work.ranges(), own)
    if own.state == State.SHARDING:
        print(f"Container already in state 'sharding' with epoch {own.epoch}.\nNo action required.")
    elif own.state != State.ACTIVE:
        state = own.state.name.lower()
        raise Stop(
            FAILED, f"WARNING: container in state {state} (should be active or sharding).", "Aborting."
        )
    else:
        facts = work.broker.info()
        begun = replace(
            in_state(own, State.SHARDING, work.now, epoch=True),
            object_count=facts.object_count,
            bytes_used=facts.bytes_used,
            meta_timestamp=work.now.normal,
        )
        work.broker.merge_shard_ranges([begun])
        work.broker.update_metadata({fields.SYSMETA_SHARDING.title(): ("True", work.now.internal)})
        print(f"Container moved to state 'sharding' with epoch {begun.epoch}.")
    print("Run container-sharder on all nodes to shard the container.")


def _check_root(work: ShardRangesCommand, done: str) -> None:
    if not work.broker.read(work.broker.is_root):
        text = "This command should be used on a root container."
        raise Stop(FAILED, f"WARNING: Shard containers cannot be {done}.", text)


def compact(work: ShardRangesCommand) -> None:
    """Have small shards put together."""
    broker, args, settings = work.broker, work.args, work.settings
    _check_root(work, "compacted")
    if broker.info().db_state != SHARDED:
        raise Stop(FAILED, "WARNING: Container is not yet sharded so cannot be compacted.")
    _check_ranges(work.ranges(), work.own)
    mergings = shrink.find_mergings(
        work.ranges(),
        work.own,
        shrink_below=args.shrink_threshold or settings.shrink_below,
        expand_to=args.expansion_limit or settings.expand_to,
        max_shrinking=args.max_shrinking or settings.max_shrinking,
        max_expanding=args.max_expanding or settings.max_expanding,
    )
    if not mergings:
        raise Stop(DONE, "No shards identified for compaction.")
    for donors, acceptor in mergings:
        rows = sum(map(shrink.rows_of, donors))
        print(f"Donor shard range(s) with total of {rows} rows:")
        print(overlaps.lines_of(donors))
        print(f"can be compacted into acceptor shard range:\n{overlaps.lines_of([acceptor])}")
    if not args.yes:
        print(f"Total of {len(mergings)} shard sequences identified for compaction.")
        print(
            "Once applied to the broker these changes will result in shard range compaction the next time "
            "the sharder runs."
        )
        _apply_or_quit(work)
    for merging in mergings:
        donors, acceptor = shrink.apply(merging, work.now)
        broker.merge_shard_ranges([*donors, acceptor])
    print(f"Updated {len(mergings)} shard sequences for compaction.")
    print("Run container-replicator to replicate the changes to other nodes.")
    print("Run container-sharder on all nodes to compact shards.")


def repair(work: ShardRangesCommand) -> None:
    """Have overlapping shards shrink, or neighbours take the names of gaps."""
    broker, args = work.broker, work.args
    _check_root(work, "repaired")
    if not args.gaps and not work.ranges():
        raise Stop(DONE, "No shards found, nothing to do.")
    if args.gaps:
        verdict = overlaps.gaps(work.ranges(), work.now, max_expanding=args.max_expanding or -1)
    else:
        verdict = overlaps.overlaps(
            work.ranges(), work.now, min_age_s=args.min_shard_age, verbose=args.verbose
        )
    if not verdict.changes and not verdict.needs_consent:
        raise Stop(DONE if verdict.is_fit else FAILED)
    _apply_or_quit(work)
    broker.merge_shard_ranges(verdict.changes)
    if not args.gaps:
        print(f"Updated {len(verdict.changes)} donor shard ranges.")
    print("Run container-replicator to replicate the changes to other nodes.")
    print(f"Run container-sharder on all nodes to {'fill gaps' if args.gaps else 'repair shards'}.")


def analyze(args: argparse.Namespace) -> int:
    """Tell of overlapping shards in a file that ``show`` printed."""
    try:
        with open(args.path_to_file, encoding="utf-8") as file:
            values = json.load(file)
        if not isinstance(values, list):
            raise ValueError("Shard data must be a list of dicts")
        ranges = [ShardRange.from_mapping(item) for item in values]
    except OSError as error:
        raise BadArguments(f"Failed to open file {args.path_to_file}: {error}")
    except (ValueError, InvalidValue) as error:
        raise BadArguments(f"Failed to load valid shard range data: {error!r}")
    verdict = overlaps.overlaps(ranges, Timestamp.now(), min_age_s=args.min_shard_age, verbose=args.verbose)
    return DONE if verdict.is_fit else FAILED


def _has_consent(work: ShardRangesCommand, question: str) -> bool:
    if work.args.yes or work.args.dry_run:
        return bool(work.args.yes)
    try:
        return input(question) == "yes"
    except EOFError:
        return False


def _apply_or_quit(work: ShardRangesCommand) -> None:
    if not _has_consent(work, "Do you want to apply these changes to the container DB? [yes/N]"):
        raise Stop(QUIT, "No changes applied")


# --- the command line -------------------------------------------------------------------------------------


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be > 0, not {text}")
    return number


def _age(text: str) -> int:
    number = int(text) if text.isdecimal() else -1
    if number < 0:
        raise argparse.ArgumentTypeError("must be >= 0")
    return number


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog="swift-manage-shard-ranges",
        description="Show the shards of a container database, and change them by hand.",
        epilog="example: swift-manage-shard-ranges HASH.db find_and_replace 500000 --enable",
    )
    add = parser.add_argument
    add("--config", default="", help="file whose [container-sharder] section has the defaults")
    add("--verbose", "-v", action="count", default=0, help="more output")
    commits = parser.add_mutually_exclusive_group()
    commits.add_argument("--force-commits", action="store_true", help="merge pending rows first (default)")
    commits.add_argument("--skip-commits", action="store_true", help="leave pending rows alone")
    add("path_to_file", help="a container database file; of analyze a file of shards")
    commands = parser.add_subparsers(dest="command", required=True)
    shown = commands.add_parser("show", help="the shards as JSON")
    shown.add_argument("-d", "--include_deleted", action="store_true", help="deleted ones too")
    shown.add_argument("-b", "--brief", action="store_true", help="only their bounds")
    shown.add_argument("--includes", help="only the one that an object belongs to")
    commands.add_parser("info", help="what is known of the container")
    found = commands.add_parser("find", help="where the container may be cut, as JSON")
    removed = commands.add_parser("delete", help="delete all shards")
    replaced = commands.add_parser("replace", help="put the shards of a file in the place of existing ones")
    replaced.add_argument("input", help="what 'find' printed")
    both = commands.add_parser("find_and_replace", help="put what is found in the place of existing ones")
    for one in (found, both):
        one.add_argument("rows_per_shard", nargs="?", type=_count, help="objects of a shard")
        one.add_argument("--minimum-shard-size", type=_count, help="objects that the last one has at least")
    for one in (removed, replaced, both):
        one.add_argument("-f", "--force", action="store_true", help="delete existing shards without asking")
    for one in (replaced, both):
        one.add_argument("--enable", action="store_true", help="have the sharder begin")
    commands.add_parser("enable", help="have the sharder begin")
    merged = commands.add_parser("merge", help="merge whole shard ranges of a file; for experts")
    merged.add_argument("input", help="a JSON list as 'show' prints it")
    small = commands.add_parser("compact", help="have small shards of a root put together")
    for name in ("shrink-threshold", "expansion-limit", "max-shrinking", "max-expanding"):
        small.add_argument(f"--{name}", type=_count, help="as in [container-sharder]")
    mended = commands.add_parser("repair", help="have overlapping shards shrink, or gaps filled")
    mended.add_argument("--gaps", action="store_true", help="fill gaps")
    mended.add_argument("--max-expanding", type=_count, help="shards that grow at most")
    told = commands.add_parser("analyze", help="report overlaps in a file that 'show' printed")
    for one, age_s in ((mended, 14400), (told, 0)):
        words = f"seconds within which new shards may overlap others (default: {age_s})"
        one.add_argument("--min-shard-age", type=_age, default=age_s, help=words)
    for one in (merged, small, mended):
        group = one.add_mutually_exclusive_group()
        group.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")
        group.add_argument("-n", "--dry-run", action="store_true", help="change nothing")
    return parser


COMMANDS = {
    "show": show,
    "info": info,
    "find": find,
    "delete": delete,
    "replace": replace_ranges,
    "find_and_replace": find_and_replace,
    "enable": enable,
    "merge": merge,
    "compact": compact,
    "repair": repair,
}
#: Commands that change nothing.
READ_COMMANDS = ("show", "info", "find")


def _settings(path: str) -> ContainerSharderSettings:
    if not path:
        return ContainerSharderSettings()
    parser = parser_of(path)
    section = "container-sharder"
    values = dict(parser.items(section)) if parser.has_section(section) else dict(parser.defaults())
    settings = ContainerSharderSettings.parse(values, source=f"{path} [{section}]")
    settings.check()
    return settings


def _open(place: DatabasePath) -> ContainerBroker:
    """Return the newest database of a hash directory, whichever of its files was named."""
    broker = ContainerBroker.open_found(place, Engine())
    if broker is None:
        raise SwiftError("there is no database")
    return broker


def _write_back(place: DatabasePath, path: str) -> None:
    """Replace a file outside of a hash directory by its changed copy. Raises OSError."""
    copy = f"{path}.{os.getpid()}.tmp"
    shutil.copyfile(place.file(), copy)
    shutil.copymode(path, copy)
    os.replace(copy, path)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    args = make_parser().parse_args(argv)
    try:
        settings = _settings(args.config)
    except ConfigError as error:
        print(f"Error loading config: {error}", file=sys.stderr)
        return BAD_ARGUMENTS
    if args.command == "analyze":
        try:
            return analyze(args)
        except BadArguments as error:
            print(error, file=sys.stderr)
            return BAD_ARGUMENTS
    return _change(args, settings)


def _change(args: argparse.Namespace, settings: ContainerSharderSettings) -> int:
    with ExitStack() as opened:
        try:
            place = opened.enter_context(open_database_path(args.path_to_file, "container"))
            broker = _open(place)
        except (NoDatabase, SwiftError, OSError) as error:
            print(f"Error opening container DB {args.path_to_file}: {error}", file=sys.stderr)
            return FAILED
        code = _run(broker, args, settings)
        path = os.path.abspath(args.path_to_file)
        if code != QUIT and args.command not in READ_COMMANDS and place.directory != os.path.dirname(path):
            # Ranges may be injected before the command fails to enable sharding.
            _write_back(place, path)
        return code


def _run(broker: ContainerBroker, args: argparse.Namespace, settings: ContainerSharderSettings) -> int:
    try:
        print(f"Loaded db broker for {broker.own_name}", file=sys.stderr)
        if not args.skip_commits:
            broker.merge_pending()
        COMMANDS[args.command](ShardRangesCommand(broker, args, settings, Timestamp.now()))
        return DONE
    except Stop as stop:
        if str(stop):
            print(stop)
        return stop.code
    except BadArguments as error:
        print(error, file=sys.stderr)
        return BAD_ARGUMENTS
    except (SwiftError, OSError) as error:
        print(f"Error with container DB {args.path_to_file}: {error}", file=sys.stderr)
        return FAILED
    finally:
        broker.close()


if __name__ == "__main__":
    raise SystemExit(main())

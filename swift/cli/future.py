"""swift-future: find states that are dated ahead of the clock, and free their names.

The newest timestamp wins. What was written while a clock was fast by years cannot be changed or deleted until
that date: proxies answer 503. This command lists such states on the devices of one machine. With ``--yes``
it moves objects to the quarantine, where the data stay, and dates databases back to the present.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from swift.account.broker import DIALECT as ACCOUNT
from swift.account.broker import TABLE as ACCOUNT_TABLE
from swift.account.broker import AccountBroker
from swift.base.clock import SystemClock
from swift.base.errors import SwiftError
from swift.base.timestamp import InvalidTimestamp, Timestamp, decode_timestamps
from swift.cli.quarantine import OBJECTS, Quarantine, QuarantineRefused, add_node_options, quarantine_of
from swift.config.commandline import CommandLine, print_report, reports_errors
from swift.container.broker import DIALECT as CONTAINER
from swift.container.broker import TABLE as CONTAINER_TABLE
from swift.container.broker import ContainerBroker
from swift.db import metadata
from swift.db.broker import Broker, Engine
from swift.db.files import DatabasePath
from swift.db.walk import is_hash
from swift.platform.quarantine import move_to_quarantine
from swift.policy.policy import Policy
from swift.store.api import ObjectKey
from swift.store.hashes import mark_dirty
from swift.store.layout import UnexpectedName, is_suffix, parse_name
from swift.store.metadata import decode_metadata, read_metadata
from swift.store.packed.device import DIRECTORY as PACKED
from swift.store.packed.entry import Entry
from swift.store.packed.place import Place
from swift.store.packed.quarantine import quarantine as move_packed
from swift.store.reader import ANY_NAME
from swift.store.registry import is_packed

NAME = "swift-future"
#: Seconds ahead of the clock from which a state is listed by default: the limit of storage servers.
AHEAD_S = 60.0
_ASYNC = "async_pending"
_TIMES = ("created_at", "put_timestamp", "delete_timestamp", "status_changed_at")


@dataclass(frozen=True)
class FutureState:
    """Something that is dated ahead of the clock; ``count`` things at one path, the newest at ``stamp``."""

    path: str
    stamp: Timestamp
    name: str = ""
    count: int = 1

    def as_json(self) -> dict[str, object]:
        """Return all of it for programs."""
        return {
            "path": self.path,
            "timestamp": self.stamp.internal,
            "name": self.name or None,
            "count": self.count,
        }

    def line(self) -> str:
        """Return one line of a list."""
        return f"{self.stamp.isoformat}  {self.count:4}  {self.path}  {self.name}".rstrip()


class FutureStates:
    """Finds and frees what is dated after ``limit`` on the devices of a machine."""

    def __init__(self, quarantine: Quarantine, limit: Timestamp, now: Timestamp):
        self._quarantine = quarantine
        self._disk = quarantine.disk
        self._limit = limit
        self._now = now
        #: Databases that could not be read or changed.
        self.problems: list[str] = []

    def run(self, devices: Sequence[str], *, change: bool) -> Iterator[FutureState]:
        """Yield each state, after it was freed if ``change``. Raises OSError and ``SwiftError``."""
        every = self._quarantine.devices
        for device in devices or every.names():
            path = every.path(device)
            if not every.is_usable(device):
                continue
            for kind in self._names(path):
                if OBJECTS.match(kind):
                    policy = self._policy_of(kind)
                    if policy is None or not is_packed(policy):
                        yield from self._objects(path, kind, change=change)
                elif kind.partition("-")[0] == _ASYNC:
                    yield from self._updates(path, kind, change=change)
            for policy in self._quarantine.cluster.policies:
                if is_packed(policy) and PACKED in self._names(path):
                    yield from self._packed_objects(device, policy, change=change)
            for kind, database in _DATABASES.items():
                for place in self._database_paths(path, kind):
                    try:
                        yield from self._database(place, database, change=change)
                    except SwiftError as error:
                        self.problems.append(f"{place.directory}: {error}")

    def _names(self, path: str) -> list[str]:
        try:
            return sorted(self._disk.listdir(path))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _is_ahead(self, text: object) -> bool:
        try:
            return Timestamp(text) > self._limit
        except InvalidTimestamp:
            return False

    # --- objects --------------------------------------------------------------------------------------

    def _database_paths(self, device_path: str, kind: str) -> Iterator[DatabasePath]:
        """Yield all hash directories of a kind."""
        for partition in filter(str.isdecimal, self._names(f"{device_path}/{kind}")):
            for suffix in filter(is_suffix, self._names(f"{device_path}/{kind}/{partition}")):
                for name in filter(is_hash, self._names(f"{device_path}/{kind}/{partition}/{suffix}")):
                    yield DatabasePath(device_path, kind, partition, name)

    def _policy_of(self, kind: str) -> Policy | None:
        match = OBJECTS.match(kind)
        return self._quarantine.cluster.policies.get(int((match and match[1]) or 0))

    def _objects(self, device_path: str, kind: str, *, change: bool) -> Iterator[FutureState]:
        policy = self._policy_of(kind)
        fragments = policy.ec.fragments if policy is not None and policy.ec is not None else None
        for place in self._database_paths(device_path, kind):
            ahead = {}
            for name in self._names(place.directory):
                try:
                    stamp = parse_name(name, fragments).timestamp
                except UnexpectedName:
                    continue
                if stamp > self._limit:
                    ahead[name] = stamp
            if not ahead:
                continue
            newest, name = max(ahead.values()), self._object_name(place.directory, ahead)
            if change:
                self._quarantine_files(place, ahead, newest)
            yield FutureState(place.directory, newest, name, len(ahead))

    def _object_name(self, directory: str, names: Collection[str]) -> str:
        """Return the object's name as its files have it; empty if none can be read."""
        for name in names:
            try:
                return read_metadata(self._disk, f"{directory}/{name}").get("name", "")
            except (SwiftError, OSError):
                continue
        return ""

    def _quarantine_files(self, place: DatabasePath, names: Collection[str], newest: Timestamp) -> None:
        """Move files to the quarantine: the whole directory if nothing else is in it."""
        reason = f"dated {newest.isoformat}, ahead of the clock"
        if len(names) == len(self._names(place.directory)):
            self._quarantine.add(place.directory, reason)
            return
        partition_path = f"{place.device_path}/{place.kind}/{place.partition}"
        with self._quarantine.core.changes.change(place.device_path, place.directory):
            mark_dirty(self._disk, partition_path, (place.name_hash[-3:],), device_path=place.device_path)
            for name in names:
                path = f"{place.directory}/{name}"
                move_to_quarantine(self._disk, place.device_path, place.kind, path, reason=reason)

    def _packed_objects(self, device: str, policy: Policy, *, change: bool) -> Iterator[FutureState]:
        devices = self._quarantine.packed_devices(policy)
        partitions = devices.partitions(device)
        for partition in partitions.numbers(policy):
            for object_hash, entries in partitions.objects(partition, policy):
                ahead = [entry for entry in entries if entry.timestamp > self._limit]
                if not ahead:
                    continue
                key = ObjectKey(device, str(partition), policy, ANY_NAME, object_hash.hex())
                place = devices.place(key)
                newest = max(entry.timestamp for entry in ahead)
                directory = place.path(partition).directory
                name = self._record_name(place, ahead)
                if change:
                    with place.device.holding(place.lock):
                        ahead = [entry for entry in place.entries() if entry.timestamp > self._limit]
                        if ahead:
                            move_packed(place, ahead, f"dated {newest.isoformat}, ahead of the clock")
                yield FutureState(directory, newest, name, len(ahead))

    def _record_name(self, place: Place, entries: Sequence[Entry]) -> str:
        """Return the object's name as its records or files have it; empty if none can be read."""
        reader = place.reader()
        for entry in entries:
            if entry.external:
                directory = place.path(place.partition).directory
                if name := self._object_name(directory, (entry.name,)):
                    return name
                continue
            try:
                record = reader.record(entry)
                return decode_metadata(record.metadata).get("name", "")
            except (SwiftError, OSError):
                continue
        return ""

    def _updates(self, device_path: str, kind: str, *, change: bool) -> Iterator[FutureState]:
        """Yield container updates that wait to be sent."""
        for suffix in self._names(f"{device_path}/{kind}"):
            for name in self._names(f"{device_path}/{kind}/{suffix}"):
                _hash, _, text = name.partition("-")
                if self._is_ahead(text):
                    path = f"{device_path}/{kind}/{suffix}/{name}"
                    if change:
                        move_to_quarantine(
                            self._disk, device_path, kind, path, reason="dated ahead of the clock"
                        )
                    yield FutureState(path, Timestamp(text))

    # --- databases ------------------------------------------------------------------------------------

    def _database(self, place: DatabasePath, kind: _Database, *, change: bool) -> Iterator[FutureState]:
        broker = kind.open(place, Engine(disk=self._disk))
        if broker is None:
            return
        try:
            found = broker.read(lambda connection: self._future_timestamps(connection, kind))
            names = broker.read(lambda connection: connection.execute(kind.names).fetchone(), merged=False)
            if not found:
                return
            if change:
                broker.write(lambda connection: self._date_back(connection, kind))
            yield FutureState(broker.newest.path, max(found), f"/{'/'.join(names)}", len(found))
        finally:
            broker.close()

    def _future_timestamps(self, connection: sqlite3.Connection, kind: _Database) -> list[Timestamp]:
        """Return all timestamps of a database that are ahead."""
        stat = _row(connection, kind.table)
        texts = [stat[name] for name in _TIMES if name in stat]
        texts += [time for _value, time in metadata.parse(str(stat["metadata"] or "")).values()]
        texts += [max(map(str, kind.times(row))) for row in self._future_rows(connection, kind)]
        return [Timestamp(text) for text in texts if self._is_ahead(text)]

    def _future_rows(self, connection: sqlite3.Connection, kind: _Database) -> list[dict[str, object]]:
        """Return the rows with a timestamp that is ahead."""
        limits = (self._limit.normal,) * kind.wanted.count("?")
        cursor = connection.execute(f"SELECT ROWID AS row_id, * FROM {kind.rows} WHERE {kind.wanted}", limits)
        names = [column[0] for column in cursor.description]
        rows = [dict(zip(names, row, strict=True)) for row in cursor]
        return [row for row in rows if any(map(self._is_ahead, kind.times(row)))]

    def _date_back(self, connection: sqlite3.Connection, kind: _Database) -> None:
        stat = _row(connection, kind.table)
        new = self._date_back_times({name: stat[name] for name in _TIMES if name in stat})
        if "reported_put_timestamp" in stat:
            # So that the account hears of it.
            new |= {"reported_put_timestamp": "0", "reported_delete_timestamp": "0"}
        pairs = metadata.parse(str(stat["metadata"] or ""))
        new["metadata"] = metadata.dump(
            {
                name: (value, self._now.internal if self._is_ahead(time) else time)
                for name, (value, time) in pairs.items()
            }
        )
        connection.execute(
            f"UPDATE {kind.table} SET {', '.join(f'{name} = ?' for name in new)}", tuple(new.values())
        )
        for row in self._future_rows(connection, kind):
            connection.execute(f"DELETE FROM {kind.rows} WHERE ROWID = ?", (row.pop("row_id"),))
            row.pop("ROWID", None)
            kept = self._date_back_row(row)
            if kept is not None:
                marks = ", ".join("?" * len(kept))
                connection.execute(
                    f"INSERT INTO {kind.rows} ({', '.join(kept)}) VALUES ({marks})", tuple(kept.values())
                )

    def _date_back_row(self, row: dict[str, object]) -> dict[str, object] | None:
        """Return a row as it may stay; None for an object whose data are dated ahead."""
        if "created_at" not in row:
            return row | self._date_back_times({name: row[name] for name in _TIMES if name in row})
        data = decode_timestamps(str(row["created_at"]))[0]
        return None if data > self._limit else row | {"created_at": data.internal}

    def _date_back_times(self, times: dict[str, object]) -> dict[str, object]:
        """Return times that are at most the present; what was deleted stays deleted."""
        new = {name: self._now.internal if self._is_ahead(text) else text for name, text in times.items()}
        put, deleted = times.get("put_timestamp"), times.get("delete_timestamp")
        if str(deleted) > str(put) and new["put_timestamp"] == new["delete_timestamp"]:
            new["put_timestamp"] = Timestamp.from_raw(self._now.raw - 1).internal
        return new


@dataclass(frozen=True)
class _Database:
    """Tables and columns with timestamps in one kind of database."""

    open: Callable[[DatabasePath, Engine], Broker | None]
    names: str
    table: str
    rows: str
    wanted: str
    times: Callable[[dict[str, object]], list[object]]


def _object_times(row: dict[str, object]) -> list[object]:
    try:
        return [stamp.internal for stamp in decode_timestamps(str(row["created_at"]))]
    except InvalidTimestamp:
        return []


_DATABASES = {
    "accounts": _Database(
        AccountBroker.open_found,
        ACCOUNT.names,
        ACCOUNT_TABLE,
        "container",
        "put_timestamp > ? OR delete_timestamp > ?",
        lambda row: [row["put_timestamp"], row["delete_timestamp"]],
    ),
    "containers": _Database(
        ContainerBroker.open_found,
        CONTAINER.names,
        CONTAINER_TABLE,
        "object",
        # Times of a content type or of metadata are packed as differences.
        "created_at > ? OR created_at LIKE '%+%'",
        _object_times,
    ),
}


def _row(connection: sqlite3.Connection, table: str) -> dict[str, object]:
    cursor = connection.execute(f"SELECT * FROM {table} LIMIT 1")
    return dict(zip((column[0] for column in cursor.description), cursor.fetchone(), strict=True))


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog=NAME,
        description="List states that are dated ahead of the clock, and free their names. Run it on every "
        "node, twice: replicas give theirs back. Save listed objects first (GET still works).",
        epilog="examples:\n  swift-future\n  swift-future --yes\n  swift-future --ahead 86400 --device sdb1",
    )
    add_node_options(parser)
    add = parser.add_argument
    add("--device", action="append", default=[], help="only of this device; repeatable")
    add(
        "--ahead",
        type=float,
        default=AHEAD_S,
        metavar="SECONDS",
        help="how far ahead of the clock a state is listed (%(default)g)",
    )
    add(
        "-y",
        "--yes",
        action="store_true",
        help="quarantine files of objects, date databases back; without it, only list",
    )
    return parser


@reports_errors(NAME, QuarantineRefused)
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 1 when something could not be read or changed."""
    args = make_parser().parse_args(argv)
    now_s = SystemClock().time()
    found = []
    quarantine = quarantine_of(args, NAME)
    states = FutureStates(quarantine, Timestamp(now_s + args.ahead), Timestamp(now_s))
    with closing(quarantine):
        for state in states.run(args.device, change=args.yes):
            found.append(state)
            if args.format == "text":
                print(state.line(), flush=True)
    print_report(args, [state.as_json() for state in found])
    for problem in states.problems:
        print(f"{NAME}: {problem}", file=sys.stderr)
    return 1 if states.problems else 0


if __name__ == "__main__":
    raise SystemExit(main())

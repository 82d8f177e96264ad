"""Usage of accounts by storage policy, from the account databases of a node, for billing.

By default a node counts the accounts of which one of its devices is the first primary of the ring. Devices
that are away are left out of that order. The outputs of all nodes together have each account once. A database
is locked for moments only, while it is opened and its pending rows are merged, as servers do it. It is read
in short steps, so that writers go on meanwhile.
"""

from __future__ import annotations

import csv
import json
import random
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import IO, NamedTuple

from swift.account.broker import AccountBroker
from swift.base.errors import ConfigError, DeviceUnavailable, SwiftError
from swift.base.hashing import PathHasher
from swift.base.pages import follow_pages
from swift.db import walk
from swift.db.broker import Engine
from swift.db.connection import DatabaseMissing
from swift.db.files import DatabasePath
from swift.db.listing import ListingQuery, PageRow, RowSource, page
from swift.platform.addresses import matches_any_address, own_addresses
from swift.platform.devices import Devices
from swift.platform.disk import Disk
from swift.platform.diskhandle import DiskHandle
from swift.policy.policy import Policies
from swift.ring.view import RingView

DIRECTORY = "accounts"
#: Containers that are read at once; the database is free between two reads.
CONTAINERS_AT_ONCE = 1000
#: Seconds to wait for a database that others have locked.
WAIT_S = 10.0
_CONTAINERS = RowSource("container", ("name", "storage_policy_index", "object_count", "bytes_used"))


class UsageRow(NamedTuple):
    """Usage of an account, or of one container, in one policy."""

    account: str
    container: str | None
    policy: str
    objects: int
    bytes: int


@dataclass(frozen=True)
class UsageQuery:
    """The accounts to count, and how."""

    #: Only these accounts; none: all.
    accounts: Sequence[str] = ()
    prefix: str = ""
    containers: bool = False
    deleted: bool = False
    all_replicas: bool = False

    def includes(self, account: str) -> bool:
        """Return True if an account is to be counted."""
        return account.startswith(self.prefix) and (not self.accounts or account in self.accounts)


class FirstPrimaries:
    """The devices of this node, and the partitions of which each is the first primary.

    ``away`` has the ids of devices that are left out on all nodes.
    """

    def __init__(self, view: RingView, own: frozenset[int], away: frozenset[int] = frozenset()):
        self.view = view
        self._away = away
        self._names = {device.id: device.device for device in view.devices if device and device.id in own}

    @property
    def names(self) -> list[str]:
        """The names of the node's devices that are in the ring, sorted."""
        return sorted(set(self._names.values()))

    def holds(self, device: str, part: int) -> bool:
        """Return True if the first primary of a partition is this device."""
        if part >= self.view.partition_count:
            return False
        ids = (dev_id for dev_id in self.view.primary_ids(part) if dev_id not in self._away)
        return self._names.get(next(ids, -1)) == device


def own_device_ids(view: RingView, ip: str, port: int) -> frozenset[int]:
    """Return the ids of the devices that this node serves, by their addresses; port 0 matches any."""
    addresses = own_addresses(ip)
    return frozenset(
        device.id
        for device in view.devices
        if device is not None
        and (not port or port in (device.port, device.replication_port))
        and any(matches_any_address(each, addresses) for each in (device.ip, device.replication_ip))
    )


def parse_away(view: RingView, names: Iterable[str]) -> frozenset[int]:
    """Return the ids of devices ``address/device``; raises ``ConfigError`` for one the ring does not have."""
    known: dict[str, set[int]] = {}
    for device in view.devices:
        if device is not None:
            known.setdefault(f"{device.ip}/{device.device}", set()).add(device.id)
    found: set[int] = set()
    for name in names:
        if name not in known:
            raise ConfigError(f"the account ring has no device {name}; name it as ADDRESS/DEVICE")
        found |= known[name]
    return frozenset(found)


class UsageReader:
    """Reads the usage from the databases of a node; iterate ``rows`` once.

    ``warn`` gets a sentence for everything that cannot be read; ``problems`` counts them.
    """

    def __init__(
        self,
        devices: Devices,
        primaries: FirstPrimaries,
        hasher: PathHasher,
        policies: Policies,
        query: UsageQuery,
        *,
        warn: Callable[[str], None],
        progress: Callable[[str], object] = lambda _text: None,
        wait_s: float = WAIT_S,
        containers_at_once: int = CONTAINERS_AT_ONCE,
    ):
        self._devices = devices
        self._primaries = primaries
        self._hasher = hasher
        self._policies = policies
        self._query = query
        self._warn = warn
        self._progress = progress
        self._disk = DiskHandle(Disk())
        self._engine = Engine.at(self._disk, warn, wait_s=wait_s)
        self._containers_at_once = containers_at_once
        self.problems = 0
        self.accounts = 0

    def rows(self) -> Iterator[UsageRow]:
        """Yield the usage, account by account."""
        names = self._devices.names() if self._query.all_replicas else self._primaries.names
        for device in names:
            try:
                path = self._devices.path(device)
                partitions = self._partitions(device, path)
            except (DeviceUnavailable, OSError) as error:
                self._problem(f"cannot read device {device}, mount it or name it with --away: {error}")
                continue
            for done, partition in enumerate(partitions):
                self._progress(f"{device}: {done}/{len(partitions)} partitions, {self.accounts} accounts")
                yield from self._partition_rows(device, path, partition)

    def _partitions(self, device: str, path: str) -> list[str]:
        found = sorted(walk.partitions(self._disk, path, DIRECTORY, random.Random()), key=int)
        if self._query.accounts:
            wanted = {self._partition_of(self._hash_of(account)) for account in self._query.accounts}
            found = [partition for partition in found if int(partition) in wanted]
        if self._query.all_replicas:
            return found
        return [partition for partition in found if self._primaries.holds(device, int(partition))]

    def _partition_rows(self, device: str, path: str, partition: str) -> Iterator[UsageRow]:
        selected = set(map(self._hash_of, self._query.accounts))

        def unreadable(error: OSError) -> None:
            self._problem(f"cannot list accounts of {device}: {error}")

        for place in walk.places(self._disk, path, DIRECTORY, partition, unreadable):
            if selected and place.name_hash not in selected:
                continue
            # Servers find no database of another partition; its copy in the right one counts.
            if self._query.all_replicas or self._partition_of(place.name_hash) == int(partition):
                yield from self._account_rows(place)

    def _hash_of(self, account: str) -> str:
        return self._hasher.hexdigest(account)

    def _partition_of(self, name_hash: str) -> int:
        return self._primaries.view.partition_of(bytes.fromhex(name_hash))

    def _account_rows(self, place: DatabasePath) -> Iterator[UsageRow]:
        """Yield the rows of one database; what cannot be read is reported."""
        try:
            broker = AccountBroker.open_found(place, self._engine)
            if broker is None:
                return
            try:
                yield from self._broker_rows(broker)
            finally:
                broker.close()
        except (DatabaseMissing, FileNotFoundError):
            # It was removed or replaced meanwhile; the new file is counted by the next run.
            return
        except (SwiftError, sqlite3.Error, OSError) as error:
            self._problem(f"cannot read {place.directory}: {error}")

    def _broker_rows(self, broker: AccountBroker) -> Iterator[UsageRow]:
        if not self._query.includes(broker.account):
            return
        if broker.info().is_deleted and not self._query.deleted:
            return
        self.accounts += 1
        if self._query.containers:
            yield from self._container_rows(broker)
            return
        for stat in broker.policy_stats():
            if stat.container_count or stat.object_count or stat.bytes_used:
                policy = self._policy_name(stat.index)
                yield UsageRow(broker.account, None, policy, stat.object_count or 0, stat.bytes_used or 0)

    def _container_rows(self, broker: AccountBroker) -> Iterator[UsageRow]:
        limit = self._containers_at_once
        pages = follow_pages(
            lambda marker: broker.read(_ContainerPage(ListingQuery(limit, marker=marker, reserved=True))),
            "",
            lambda row: row[0],
            limit=limit,
        )
        for name, index, objects, size, _directory in chain.from_iterable(pages):
            yield UsageRow(broker.account, name, self._policy_name(index), objects or 0, size or 0)

    def _policy_name(self, index: int) -> str:
        policy = self._policies.get(index)
        return policy.name if policy else str(index)

    def _problem(self, text: str) -> None:
        self.problems += 1
        self._warn(text)


@dataclass(frozen=True)
class _ContainerPage:
    """Reads one page of the containers of an account."""

    query: ListingQuery

    def __call__(self, connection: sqlite3.Connection) -> list[PageRow]:
        """Return the rows."""
        return page(connection, _CONTAINERS, self.query)


def columns(query: UsageQuery) -> tuple[str, ...]:
    """Return the names of the columns, in their order."""
    container = ("container",) if query.containers else ()
    return ("time", "account", *container, "policy", "objects", "bytes")


def _values(row: UsageRow, stamp: str) -> tuple[str | int, ...]:
    container = () if row.container is None else (row.container,)
    return (stamp, row.account, *container, row.policy, row.objects, row.bytes)


class _UnixLines:
    """Ends the rows of a CSV writer as Unix does; the writer itself then quotes carriage returns in names."""

    def __init__(self, out: IO[str]):
        self._out = out

    def write(self, row: str) -> int:
        """Write one row."""
        return self._out.write(row.removesuffix("\r\n") + "\n")


def write_csv(rows: Iterable[UsageRow], query: UsageQuery, stamp: str, out: IO[str]) -> None:
    """Write a line for each row below the names of the columns."""
    writer = csv.writer(_UnixLines(out))
    writer.writerow(columns(query))
    writer.writerows(_values(row, stamp) for row in rows)


def write_json(rows: Iterable[UsageRow], query: UsageQuery, stamp: str, out: IO[str]) -> None:
    """Write a list with an object for each row, one a line."""
    names, before = columns(query), "[\n"
    for row in rows:
        out.write(before + json.dumps(dict(zip(names, _values(row, stamp), strict=True))))
        before = ",\n"
    out.write("[]\n" if before == "[\n" else "\n]\n")

"""Content of the info commands: location of an entity, its metadata, and the state of a database file.

A copy of a database, which lies elsewhere, is opened in a temporary directory made for it.
spec: cli-and-config.md §9
"""

from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import md5
from itertools import islice
from typing import NamedTuple

from swift.base.entity import EntityPath
from swift.base.errors import LockTimeout, SwiftError
from swift.base.timestamp import Timestamp
from swift.compose import Cluster, cluster_of
from swift.config.commandline import CommandLine, print_report
from swift.db import stat
from swift.db.broker import Broker, Engine
from swift.db.connection import DatabaseBroken
from swift.db.files import DatabasePath, database_files
from swift.db.metadata import Metadata
from swift.db.syncpoints import described_syncs
from swift.platform.disk import Disk
from swift.platform.privileges import become_owner
from swift.policy.policy import Policy, with_policy_suffix
from swift.ring.device import Node, address
from swift.ring.ringfile import load_table
from swift.ring.view import RingView
from swift.runtime.service.services import SWIFT_DIR

EXIT_STALE = 2


class NoDatabase(Exception):
    """The file is no database of the kind; the text has the reason."""


@dataclass(frozen=True)
class DatabaseFacts:
    """Facts about a database, in the order of printing."""

    path: EntityPath
    is_deleted: bool
    rows: Sequence[tuple[str, str]]
    metadata: Metadata
    more: Sequence[str] = ()
    #: Incoming and outgoing sync points, if they were requested.
    syncs: Mapping[str, Sequence[tuple[object, ...]]] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """``account`` or ``container``."""
        return self.path.kind


#: Opens the broker of a database and reads its facts; ``verbose`` as on the command line.
ReadFacts = Callable[[DatabasePath, Engine, Cluster, argparse.Namespace], DatabaseFacts]


def format_timestamp(value: object) -> str:
    """Return a timestamp column as it is printed."""
    timestamp = stat.as_timestamp(value)
    return f"{timestamp.isoformat} ({timestamp.internal if timestamp else 0})"


def sync_points(broker: Broker) -> dict[str, Sequence[tuple[object, ...]]]:
    """Return the tables of both directions."""
    return {
        "Incoming": broker.read(lambda connection: described_syncs(connection, incoming=True)),
        "Outgoing": broker.read(lambda connection: described_syncs(connection, incoming=False)),
    }


@contextmanager
def open_database_path(file: str, kind: str) -> Iterator[DatabasePath]:
    """Yield the place of a database file; copy one outside of a hash directory. Raises ``NoDatabase``.

    After a split the file of a container has an epoch in its name; it is found by its former name as well.
    """
    path = os.path.abspath(file)
    if not path.endswith(".db") or not (os.path.isfile(path) or _has_later_epoch(path, kind)):
        raise NoDatabase("DB file doesn't exist")
    # Looking at a database may merge rows, and takes its lock.
    become_owner([os.path.dirname(path)])
    if _is_in_place(path, kind):
        yield DatabasePath.of_file(path)
        return
    with tempfile.TemporaryDirectory(prefix="swift-info-") as folder:
        name_hash = md5(path.encode(), usedforsecurity=False).hexdigest()
        place = DatabasePath(f"{folder}/copy", f"{kind}s", "0", name_hash)
        os.makedirs(place.directory)
        shutil.copyfile(path, place.file())
        yield place


def _is_in_place(path: str, kind: str) -> bool:
    """Return True if a path is that of a file in a hash directory of a device."""
    parts = path.split("/")
    return len(parts) > 6 and parts[-5] == f"{kind}s" and parts[-1][:32] == parts[-2]


def _has_later_epoch(path: str, kind: str) -> bool:
    return _is_in_place(path, kind) and bool(database_files(Disk(), DatabasePath.of_file(path)))


def _metadata_with_prefix(facts: DatabaseFacts, prefix: str) -> dict[str, str]:
    found = {name: value for name, (value, _time) in facts.metadata.items() if value}
    return {name: value for name, value in found.items() if name.lower().startswith(prefix)}


def lines(facts: DatabaseFacts, hash_hex: str, *, drop_prefixes: bool) -> Iterator[str]:
    """Yield the lines of the report."""
    path, kind = facts.path, facts.kind
    title = kind.title()
    yield f"Path: {path}"
    yield f"  Account: {path.account}"
    if path.container is not None:
        yield f"  Container: {path.container}"
    yield f"  Deleted: {facts.is_deleted}"
    yield f"  {title} Hash: {hash_hex}"
    yield "Metadata:"
    yield from (f"  {name}: {value}" for name, value in facts.rows)
    user = _metadata_with_prefix(facts, f"x-{kind}-meta-")
    system = _metadata_with_prefix(facts, f"x-{kind}-sysmeta-")
    for name, (value, _time) in sorted(facts.metadata.items()):
        if value and name not in user and name not in system:
            yield f"  {name}: {value}"
    for words, values, prefix in (
        ("system", system, f"X-{title}-Sysmeta-"),
        ("user", user, f"X-{title}-Meta-"),
    ):
        if values:
            yield from metadata_lines(
                f"{words.title()} Metadata", values, prefix, drop=drop_prefixes, indent="  "
            )
        else:
            yield f"No {words} metadata found in db file"
    yield from facts.more
    for direction, rows in facts.syncs.items():
        yield f"{direction} Syncs:"
        yield "  Sync Point\tRemote ID\tUpdated At"
        for point, remote, updated in rows:
            shown = f"{Timestamp(updated or 0).isoformat} ({updated})"
            yield f"  {point}\t{remote}\t{shown}"


def as_json(facts: DatabaseFacts, hash_hex: str, located: Located | None) -> dict[str, object]:
    """Return the same for programs."""
    return {
        "path": str(facts.path),
        "hash": hash_hex,
        "deleted": facts.is_deleted,
        **{name.lower().replace(" ", "_").replace("-", "_"): value for name, value in facts.rows},
        "metadata": {name: value for name, (value, _time) in facts.metadata.items() if value},
        "syncs": {name.lower(): [list(row) for row in rows] for name, rows in facts.syncs.items()},
        "location": None if located is None else located.as_json(),
    }


def make_parser(kind: str) -> CommandLine:
    """Return the command line of the tool for a kind of database."""
    parser = CommandLine(
        prog=f"swift-{kind}-info",
        description=f"Show the database of {'an' if kind == 'account' else 'a'} {kind} and its place.",
        epilog=f"example: swift-{kind}-info /srv/node/sdb1/{kind}s/2/88f/2d6d…488f/2d6d…488f.db",
    )
    add = parser.add_argument
    add("file", nargs="?", help="the database file")
    add("-d", "--swift-dir", default=SWIFT_DIR, help="directory of the rings (%(default)s)")
    add("--drop-prefixes", action="store_true", help="leave out the prefix of each section")
    add("-s", "--sync", action="store_true", help="show the replication state of each remote database")
    if kind == "container":
        parser.add_argument("-v", "--verbose", action="store_true", help="show all shard ranges")
    parser.add_format("how to show it")
    return parser


def run(kind: str, ask: ReadFacts, argv: Sequence[str] | None = None) -> int:
    """Return ``main`` of both tools; 0 told, 1 not possible, 2 told from a database that is locked."""
    parser = make_parser(kind)
    args = parser.parse_args(argv)
    if not args.file:
        parser.print_help()
        return 1
    try:
        with open_database_path(args.file, kind) as place:
            cluster = cluster_of({"swift_dir": args.swift_dir})
            code = 0
            try:
                facts = ask(place, Engine(), cluster, args)
            except LockTimeout:
                print(
                    "WARNING: Possibly Stale Data", file=sys.stderr if args.format == "json" else sys.stdout
                )
                code = EXIT_STALE
                with _copied_while_locked(place) as copy:
                    facts = ask(copy, Engine(), cluster, args)
            except (DatabaseBroken, sqlite3.Error, SwiftError):
                raise NoDatabase(f'Does not appear to be a DB of type "{kind}": {args.file}')
        digest = cluster.config.hasher.digest(*facts.path)
        ring = os.path.join(args.swift_dir, f"{kind}.ring.gz")
        located = None
        if os.path.exists(ring):
            located = locate(RingView(load_table(ring, thorough=False)), digest, facts.path)
    except NoDatabase as error:
        print(error)
        return 1
    except (SwiftError, OSError) as error:
        print(f"swift-{kind}-info: {error}", file=sys.stderr)
        return 1
    out = [
        *lines(facts, digest.hex(), drop_prefixes=args.drop_prefixes),
        *(located.lines() if located else ()),
    ]
    print_report(args, as_json(facts, digest.hex(), located), out)
    return code


@contextmanager
def _copied_while_locked(place: DatabasePath) -> Iterator[DatabasePath]:
    """Copy the database files of a place whose lock another process holds."""
    with tempfile.TemporaryDirectory(prefix="swift-info-") as folder:
        copy = DatabasePath(f"{folder}/copy", place.kind, place.partition, place.name_hash)
        os.makedirs(copy.directory)
        for name in os.listdir(place.directory):
            if name.endswith(".db"):
                shutil.copyfile(f"{place.directory}/{name}", f"{copy.directory}/{name}")
        yield copy


# Where an entity lies: the block of nodes, curl and ssh lines that several tools print.
#
# spec: cli-and-config.md §9


_CURL = 'curl -g -I -XHEAD "http://{server}/{device}/{part}/{target}"{policy} --path-as-is{mark}'
_SSH = 'ssh {ip} "ls -lah ${{DEVICE:-/srv/node*}}/{device}/{below}"{mark}'
_DUMP = 'ssh {ip} "swift-object-volumes dump --device {device} {hash}"{mark}'
_NOTE = (
    "note: `/srv/node*` is used as default value of `devices`, "
    "the real value is set in the config file on each storage node."
)


class HoldingNode(NamedTuple):
    """A node that holds, or may hold, what is looked for."""

    node: Node
    is_handoff: bool


@dataclass(frozen=True)
class Located:
    """A partition with its nodes; ``hash`` and ``path`` are None when only the partition is known."""

    #: ``accounts``, ``containers`` or ``objects[-N]``.
    directory: str
    part: int
    hash: str | None
    path: EntityPath | None
    places: tuple[HoldingNode, ...]
    #: The policy that requests must name.
    policy_index: int | None = None
    #: True if nodes may have the object in a volume, which ``ls`` does not show.
    may_be_packed: bool = False

    def lines(self) -> Iterator[str]:
        """Yield the block as it is printed."""
        yield f"Partition\t{self.part}"
        yield f"Hash     \t{self.hash}"
        yield ""
        for node, is_handoff in self.places:
            yield f"Server:Port Device\t{node.ip}:{node.port} {node.device}" + (
                "\t [Handoff]" if is_handoff else ""
            )
        yield from ("", "")
        yield from (self._curl(*place) for place in self.places)
        yield from ("", "", "Use your own device location of servers:")
        yield 'such as "export DEVICE=/srv/node"'
        yield from (self._ssh(*place) for place in self.places)
        if self.may_be_packed and self.hash is not None:
            yield from ("", "Where the policy has the packed engine:")
            yield from (
                _DUMP.format(
                    ip=node.ip, device=node.device, hash=self.hash, mark=" # [Handoff]" if is_handoff else ""
                )
                for node, is_handoff in self.places
            )
        yield from ("", _NOTE)

    def _curl(self, node: Node, is_handoff: bool) -> str:
        index = self.policy_index
        return _CURL.format(
            server=address(node.ip, node.port),
            device=node.device,
            part=self.part,
            target="None" if self.path is None else self.path.quoted[1:],
            policy="" if index is None else f' -H "X-Backend-Storage-Policy-Index: {index}"',
            mark=" # [Handoff]" if is_handoff else "",
        )

    def _ssh(self, node: Node, is_handoff: bool) -> str:
        below = f"{self.directory}/{self.part}"
        if self.hash is not None:
            below += f"/{self.hash[-3:]}/{self.hash}"
        return _SSH.format(
            ip=node.ip, device=node.device, below=below, mark=" # [Handoff]" if is_handoff else ""
        )

    def as_json(self) -> dict[str, object]:
        """Return the same for programs."""
        return {
            "partition": self.part,
            "hash": self.hash,
            "path": None if self.path is None else str(self.path),
            "directory": self.directory,
            "policy_index": self.policy_index,
            "nodes": [{**node.record(), "handoff": is_handoff} for node, is_handoff in self.places],
        }


def directory_of(path: EntityPath, policy_index: int = 0) -> str:
    """Return the directory of a device in which an entity's kind is kept."""
    return with_policy_suffix("objects", policy_index) if path.kind == "object" else f"{path.kind}s"


def locate(
    view: RingView,
    digest: bytes,
    path: EntityPath,
    *,
    policy: Policy | None = None,
    all_handoffs: bool = False,
) -> Located:
    """Return the location of an entity; as many handoffs as primaries unless all are requested."""
    index = None if policy is None else policy.index
    part = view.partition_of(digest)
    return Located(
        directory_of(path, index or 0),
        part,
        digest.hex(),
        path,
        holding_nodes(view, part, all_handoffs=all_handoffs),
        index,
    )


def holding_nodes(view: RingView, part: int, *, all_handoffs: bool) -> tuple[HoldingNode, ...]:
    """Return the nodes of a partition; none of one beyond the ring."""
    if part >= view.partition_count:
        return ()
    primaries = view.primaries(part)
    handoffs = islice(view.handoffs(part), None if all_handoffs else len(primaries))
    return (
        *(HoldingNode(node, False) for node in primaries),
        *(HoldingNode(node, True) for node in handoffs),
    )


def metadata_lines(
    title: str, values: dict[str, str], prefix: str, *, drop: bool, indent: str = ""
) -> Iterator[str]:
    """Yield a group of metadata as it is printed."""
    yield f"{indent}{title}:"
    if not values:
        yield f"{indent}  No metadata found"
    for name in sorted(values):
        yield f"{indent}  {name[len(prefix) :] if drop else name}: {values[name]}"

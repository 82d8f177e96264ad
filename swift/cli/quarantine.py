"""swift-quarantine: look at what was moved away as damaged, put it back when it is sound, remove it for good.

Servers and daemons move objects and databases below ``quarantined`` on their device when a read has proved
damage. Nothing there is served or replicated, and nothing but this command removes it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from swift.account.broker import DIALECT as ACCOUNT
from swift.base.clock import SystemClock
from swift.base.documents import JsonObject
from swift.base.errors import SwiftError
from swift.compose import Cluster, cluster_of
from swift.config.commandline import CommandLine, print_report, reports_errors
from swift.config.common import ServerSettings, StorageSettings
from swift.config.files import read_section
from swift.container.broker import DIALECT as CONTAINER
from swift.db import files
from swift.db.connection import Translating, connect
from swift.db.database import Dialect
from swift.db.files import DatabasePath
from swift.db.verify import is_broken
from swift.operations.packed import usable_devices
from swift.platform.devices import Devices, SpaceGuard
from swift.platform.disk import Disk
from swift.platform.privileges import become_owner, drop_privileges
from swift.platform.quarantine import DIRECTORY, QuarantineNote, move_to_quarantine, read_note
from swift.policy.policy import Policy
from swift.ring.ringfile import load_table
from swift.ring.view import RingView
from swift.runtime.service.services import SWIFT_DIR
from swift.store.api import Location, ObjectKey
from swift.store.core import EngineCore, UntrackedChanges
from swift.store.hashes import mark_dirty
from swift.store.layout import is_suffix
from swift.store.lmdbindex import IndexFailed
from swift.store.packed.conf import packed_settings_of
from swift.store.packed.devices import PackedDevices
from swift.store.packed.engine import PackedStore
from swift.store.packed.quarantine import quarantine as move_packed
from swift.store.packed.restore import PackedRestorer
from swift.store.packed.settings import PackedSettings
from swift.store.reader import ANY_NAME
from swift.store.registry import EngineParts, is_packed, packed_store
from swift.store.restore import Restorer
from swift.store.tier.conf import make_tier, settings_of
from swift.store.tier.settings import TierSettings
from swift.store.tier.store import attach

NAME = "swift-quarantine"
CONFIG = f"{SWIFT_DIR}/object-server.conf"
DATABASES: dict[str, Dialect] = {"accounts": ACCOUNT, "containers": CONTAINER}
OBJECTS = re.compile(r"objects(?:-(\d{1,9}))?\Z")
_HASH = re.compile(r"([0-9a-f]{32})(?:-[0-9a-f]{32})?\Z")
_DAY_S = 86400.0


class QuarantineRefused(Exception):
    """Why something is not done."""


@dataclass(frozen=True)
class QuarantineEntry:
    """One thing in the quarantine of a device; ``kind`` is the directory it is in."""

    device_path: str
    kind: str
    name: str
    note: QuarantineNote
    #: When it was moved, Unix seconds: from the note, else its change time.
    moved_s: float

    @property
    def path(self) -> str:
        """Path of the entry."""
        return f"{self.device_path}/{DIRECTORY}/{self.kind}/{self.name}"

    @property
    def device(self) -> str:
        """The device's name."""
        return os.path.basename(self.device_path)

    @property
    def hash(self) -> str:
        """The hash directory's name; empty for something else, such as an async update."""
        match = _HASH.match(self.name)
        return match[1] if match else ""

    def as_json(self) -> dict[str, object]:
        """Return all of it for programs."""
        return {
            "path": self.path,
            "device": self.device,
            "kind": self.kind,
            "hash": self.hash or None,
            "reason": self.note.reason or None,
            "origin": self.note.origin or None,
            "moved": self.moved_s,
        }

    def line(self) -> str:
        """Return one line of a list."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.moved_s))
        return f"{moment}  {self.path}  {self.note.reason or '(no reason recorded)'}"


class Quarantine:
    """The subcommands, on the devices of one machine."""

    def __init__(
        self,
        root: str,
        swift_dir: str,
        tier: TierSettings | None = None,
        packed: PackedSettings | None = None,
        name: str = NAME,
    ):
        """``packed`` is needed for policies of the packed engine; ``name`` is that of the command."""
        self._name = name
        self.disk = Disk()
        self.devices = Devices(root, mount_check=False)
        self._swift_dir = swift_dir
        self._tier = tier
        self._packed_settings = packed
        self._packed: PackedStore | None = None
        self._core: EngineCore | None = None
        self._views: dict[str, RingView] = {}
        self._cluster: Cluster | None = None

    @property
    def cluster(self) -> Cluster:
        """Return the settings of swift.conf; raises ``ConfigError``."""
        if self._cluster is None:
            self._cluster = cluster_of({"swift_dir": self._swift_dir})
        return self._cluster

    def entries(self, devices: Sequence[str] = (), kind: str = "") -> Iterator[QuarantineEntry]:
        """Yield all entries in the quarantine of some devices, or of all devices.

        Raises ``ConfigError`` for devices that are not there, OSError.
        """
        for device in usable_devices(self.devices, devices):
            base = f"{self.devices.path(device)}/{DIRECTORY}"
            for found in self._names(base):
                if found == kind or not kind or (kind == "objects" and OBJECTS.match(found)):
                    for name in self._names(f"{base}/{found}"):
                        yield self._entry(self.devices.path(device), found, name)

    def _names(self, path: str) -> list[str]:
        try:
            return sorted(self.disk.listdir(path))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def entry_at(self, path: str) -> QuarantineEntry:
        """Return the entry of a path; raises ``QuarantineRefused`` for a path outside of a quarantine."""
        parts = os.path.abspath(path).rsplit("/", 3)
        device = os.path.basename(parts[0])
        if len(parts) != 4 or parts[1] != DIRECTORY or os.path.dirname(parts[0]) != self._root:
            raise QuarantineRefused(f"{path} is no path of {NAME} list on a device below {self._root}")
        if not os.path.lexists(path):
            raise QuarantineRefused(f"{path} is not there")
        return self._entry(self.devices.path(device), parts[2], parts[3])

    @property
    def _root(self) -> str:
        return os.path.abspath(self.devices.root)

    def _entry(self, device_path: str, kind: str, name: str) -> QuarantineEntry:
        path = f"{device_path}/{DIRECTORY}/{kind}/{name}"
        note = read_note(self.disk, path)
        moved_s = note.moved_s or self.disk.stat(path, follow_symlinks=False).st_ctime
        return QuarantineEntry(device_path, kind, name, note, moved_s)

    # --- verifying ------------------------------------------------------------------------------------

    def verify(self, entry: QuarantineEntry) -> str:
        """Read an entry to its end; return the name of its object, container or account.

        Raises ``QuarantineRefused`` with what is wrong, ``SwiftError`` and OSError.
        """
        if not entry.hash:
            raise QuarantineRefused("not a hash directory; its original place is unknown")
        if entry.kind in DATABASES:
            return self._verify_database(entry, DATABASES[entry.kind])
        restorer, location = self._object(entry)
        found = restorer.verify(location, entry.path)
        return str(found.key.path) if found.key is not None else ""

    def _verify_database(self, entry: QuarantineEntry, dialect: Dialect) -> str:
        names: tuple[str, ...] = ()
        paths = [name for name in self._names(entry.path) if name.endswith(".db")]
        if not paths:
            raise QuarantineRefused("there is no database")
        for path in (f"{entry.path}/{name}" for name in paths):
            if is_broken(path):
                raise QuarantineRefused(f"{path} is damaged")
            connection = connect(path)
            try:
                with Translating(path):
                    dialect.check_names(connection, path)
                    names = tuple(connection.execute(dialect.names).fetchone())
            finally:
                connection.close()
            if self.cluster.config.hasher.hexdigest(*names) != entry.hash:
                raise QuarantineRefused(
                    f"{path} is of {'/'.join(names)}, which does not belong into {entry.hash}"
                )
        return "/".join(names)

    def _object(self, entry: QuarantineEntry) -> tuple[Restorer, Location]:
        policy = self._policy_of(entry)
        partition = self._partition(entry, policy.ring_name)
        return Restorer(self.core), Location(entry.device, partition, policy, entry.hash)

    @property
    def core(self) -> EngineCore:
        """The engine of the devices, which reports changes to the cache tier. Raises ``ConfigError``."""
        if self._core is None:
            self._core = EngineCore(
                self.disk,
                self.devices,
                hasher=self.cluster.config.hasher,
                clock=SystemClock(),
                space=SpaceGuard(self.disk, None),
            )
            tier = None if self._tier is None else make_tier(self._tier, disk=self.disk, notice=self._warn)
            if tier is not None:
                attach(self._core, tier)
        return self._core

    def packed_devices(self, policy: Policy) -> PackedDevices:
        """Return the devices of the packed engine. Raises ``QuarantineRefused`` without its options."""
        if self._packed_settings is None:
            raise QuarantineRefused(
                f"policy {policy.name} has the packed engine: name the configuration of the object server "
                "with --config"
            )
        if self._packed is None:
            self._packed = packed_store(
                EngineParts(
                    devices=self.devices,
                    hasher=self.cluster.config.hasher,
                    clock=SystemClock(),
                    disk=self.disk,
                    notice=self._warn,
                    packed=self._packed_settings,
                )
            )
        return self._packed.devices

    def _warn(self, text: str) -> None:
        print(f"{self._name}: {text}", file=sys.stderr)

    def close(self) -> None:
        """Close the devices that are open."""
        if self._packed is not None:
            self._packed.close()

    def _policy_of(self, entry: QuarantineEntry) -> Policy:
        policy = self._policy_of_kind(entry.kind)
        if policy is None:
            raise QuarantineRefused(f"{entry.kind} is of no policy in swift.conf")
        return policy

    def _policy_of_kind(self, kind: str) -> Policy | None:
        match = OBJECTS.match(kind)
        return self.cluster.policies.get(int(match[1] or 0)) if match else None

    def _partition(self, entry: QuarantineEntry, ring_name: str) -> str:
        """Return the partition of a hash by the ring: the one it was moved from may have been split since."""
        view = self._views.get(ring_name)
        if view is None:
            view = self._views[ring_name] = RingView(
                load_table(f"{self._swift_dir}/{ring_name}.ring.gz", thorough=False)
            )
        return str(view.partition_of(bytes.fromhex(entry.hash)))

    # --- changing -------------------------------------------------------------------------------------

    def restore(self, entry: QuarantineEntry) -> str:
        """Verify an entry and move it to its place; return that. Raises like ``verify``."""
        self.verify(entry)
        if entry.kind not in DATABASES:
            restorer, location = self._object(entry)
            if is_packed(location.policy):
                packed = PackedRestorer(self.packed_devices(location.policy))
                return packed.restore(location, entry.path)
            return restorer.restore(location, entry.path)
        partition = self._partition(entry, DATABASES[entry.kind].kind)
        place = DatabasePath(entry.device_path, entry.kind, partition, entry.hash)
        files.restore(self.disk, place, entry.path)
        return place.directory

    def purge(self, entry: QuarantineEntry) -> None:
        """Remove an entry for good. Raises OSError."""
        if os.path.isdir(entry.path) and not os.path.islink(entry.path):
            shutil.rmtree(entry.path)
        else:
            self.disk.unlink(entry.path)

    def add(self, path: str, reason: str) -> str:
        """Move a hash directory to the quarantine, so that replication makes it anew; its new path.

        Raises ``QuarantineRefused`` for anything else, and OSError.
        """
        parts = os.path.abspath(path).rsplit("/", 5)
        if len(parts) != 6 or not self._is_hash_directory(parts):
            raise QuarantineRefused(
                f"{path} is no <device>/<objects|containers|accounts>/<partition>/<suffix>/<hash>"
            )
        device_path, kind, partition = f"{parts[0]}/{parts[1]}", parts[2], parts[3]
        self.devices.path(parts[1])
        policy = None if kind in DATABASES else self._policy_of_kind(kind)
        if policy is not None and is_packed(policy):
            return self._add_packed(Location(parts[1], partition, policy, parts[5]), reason)
        changes = UntrackedChanges() if kind in DATABASES else self.core.changes
        with changes.change(device_path, os.path.abspath(path)):
            if kind not in DATABASES:
                mark_dirty(
                    self.disk, f"{device_path}/{kind}/{partition}", (parts[4],), device_path=device_path
                )
            moved = move_to_quarantine(self.disk, device_path, kind, os.path.abspath(path), reason=reason)
        if moved is None:
            raise QuarantineRefused(f"{path} is not there")
        return moved

    def _add_packed(self, location: Location, reason: str) -> str:
        key = ObjectKey(location.device, location.partition, location.policy, ANY_NAME, location.hash)
        place = self.packed_devices(location.policy).place(key)
        with place.device.holding(place.lock):
            entries = place.entries()
            if not entries:
                raise QuarantineRefused(f"{location.hash} is not in partition {location.partition}")
            return move_packed(place, entries, reason)

    def _is_hash_directory(self, parts: Sequence[str]) -> bool:
        root, _device, kind, partition, suffix, name = parts
        return (
            root == self._root
            and (kind in DATABASES or OBJECTS.match(kind) is not None)
            and partition.isdigit()
            and is_suffix(suffix)
            and _HASH.match(name) is not None
            and name.endswith(suffix)
        )

    def __repr__(self) -> str:
        return f"Quarantine({self.devices!r})"


def add_node_options(parser: CommandLine) -> None:
    """Add the options that ``quarantine_of`` needs, and the format of the report."""
    add = parser.add_argument
    add(
        "-c",
        "--config",
        default=CONFIG,
        help="configuration of the object server: devices, user and cache tier of the node (%(default)s)",
    )
    add("--devices", default="", metavar="DIR", help="directory of the devices instead")
    add("-d", "--swift-dir", default="", help="directory of swift.conf and the rings instead")
    add("--user", default="", help="work as this user instead when started as root")
    parser.add_format()


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = CommandLine(
        prog=NAME,
        description="List what was quarantined and why, restore what is sound, remove the rest.",
        epilog="examples:\n"
        "  swift-quarantine list --kind objects\n"
        "  swift-quarantine why /srv/node/sdb1/quarantined/objects/b6c6…2788\n"
        "  swift-quarantine restore /srv/node/sdb1/quarantined/objects/*\n"
        "  swift-quarantine purge --older-than 30 --yes\n"
        "  swift-quarantine add /srv/node/sdb1/objects/11/788/b6c6…2788 --reason 'bad sector'",
    )
    add_node_options(parser)
    commands = parser.add_subparsers(dest="command", metavar="list|why|restore|purge|add", required=True)
    listing, why, restore, purge, add = (
        commands.add_parser(name, help=text, epilog=f"example: {NAME} {name} {example}")
        for name, text, example in (
            ("list", "show what is in the quarantine, and why", "--device sdb1"),
            ("why", "show one entry and read it again: is it damaged still?", "PATH"),
            ("restore", "read entries and move the sound ones to their place", "--device sdb1"),
            ("purge", "remove entries for good", "--older-than 30 --yes"),
            (
                *("add", "move a hash directory away, so that replication makes it anew"),
                "/srv/node/sdb1/objects/7/abc/HASH",
            ),
        )
    )
    for each in (listing, purge):
        each.add_argument("--device", action="append", default=[], help="only of this device; repeatable")
        each.add_argument("--kind", choices=("objects", *DATABASES), default="", help="only of this kind")
    for each in (why, restore):
        each.add_argument("path", nargs="+", help="a path that list shows")
    purge.add_argument("path", nargs="*", help="a path that list shows; without any, all that match")
    purge.add_argument(
        "--older-than", type=float, default=None, metavar="DAYS", help="only what was moved so long ago"
    )
    purge.add_argument("-y", "--yes", action="store_true", help="do it; without it, only show what would go")
    add.add_argument("path", nargs="+", help="a hash directory on a device")
    add.add_argument("--reason", required=True, help="what why and list are to show")
    for each in (listing, why, restore, purge, add):
        each.add_argument(
            "-c", "--config", default=argparse.SUPPRESS, help="configuration of the object server"
        )
        each.add_argument(
            "--format", choices=("text", "json"), default=argparse.SUPPRESS, help="how to report"
        )
    return parser


@reports_errors(NAME, QuarantineRefused, IndexFailed)
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 1 when something was refused."""
    args = make_parser().parse_args(argv)
    quarantine = quarantine_of(args)
    try:
        results = list(_COMMANDS[args.command](quarantine, args))
    finally:
        quarantine.close()
    print_report(args, [facts for facts, _line in results], (line for _facts, line in results))
    return 1 if any(facts.get("error") for facts, _line in results) else 0


def quarantine_of(args: argparse.Namespace, name: str = NAME) -> Quarantine:
    """Return the configuration of the command ``name`` with the command line over it.

    Raises ``ConfigError`` and OSError.
    """
    is_there = args.config != CONFIG or os.path.exists(args.config)
    conf = read_section(args.config, "app:object-server") if is_there else {}
    devices = args.devices or StorageSettings.parse(conf).devices
    user = args.user or (ServerSettings.parse(conf).user if is_there else "")
    swift_dir = args.swift_dir or conf.get("swift_dir", SWIFT_DIR)
    quarantine = Quarantine(
        devices,
        swift_dir,
        settings_of(args.config) if is_there else None,
        packed_settings_of(args.config) if is_there else None,
        name,
    )
    if user:
        drop_privileges(user)
    else:
        become_owner(f"{devices}/{name}" for name in quarantine.devices.names())
    return quarantine


#: Facts for programs, and a line of text.
Result = tuple[JsonObject, str]


def _list(quarantine: Quarantine, args: argparse.Namespace) -> Iterator[Result]:
    for entry in quarantine.entries(args.device, args.kind):
        yield entry.as_json(), entry.line()


def _show_reasons(quarantine: Quarantine, args: argparse.Namespace) -> Iterator[Result]:
    for path in args.path:
        entry = quarantine.entry_at(path)
        name, problem = _verified(quarantine, entry)
        facts = {**entry.as_json(), "name": name or None, "is_sound": not problem, "problem": problem or None}
        lines = (
            f"Path: {entry.path}",
            f"Moved: {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(entry.moved_s))}",
            f"From: {entry.note.origin or '(not recorded)'}",
            f"Reason: {entry.note.reason or '(not recorded)'}",
            f"Name: {name or '(not readable)'}",
            f"Now: {problem or 'sound; restore would move it back'}",
        )
        yield facts, "\n".join(lines)


def _verified(quarantine: Quarantine, entry: QuarantineEntry) -> tuple[str, str]:
    """Return the name of an entry and what is wrong with it; one of them is empty."""
    try:
        return quarantine.verify(entry), ""
    except (QuarantineRefused, SwiftError, OSError) as error:
        return "", str(error)


def _restore(quarantine: Quarantine, args: argparse.Namespace) -> Iterator[Result]:
    for path in args.path:
        try:
            place = quarantine.restore(quarantine.entry_at(path))
        except (QuarantineRefused, SwiftError, OSError) as error:
            yield {"path": path, "error": str(error)}, f"{path}: not restored: {error}"
            continue
        left = os.path.lexists(path)
        rest = "; files whose names are taken there stay in the quarantine" if left else ""
        yield {"path": path, "restored": place, "is_left": left}, f"{path}: restored to {place}{rest}"


def _purge(quarantine: Quarantine, args: argparse.Namespace) -> Iterator[Result]:
    if args.path:
        found = [quarantine.entry_at(path) for path in args.path]
    else:
        found = list(quarantine.entries(args.device, args.kind))
    if args.older_than is not None:
        before_s = time.time() - args.older_than * _DAY_S
        found = [entry for entry in found if entry.moved_s < before_s]
    for entry in found:
        if args.yes:
            quarantine.purge(entry)
        verb = "removed" if args.yes else "would be removed (--yes)"
        yield {**entry.as_json(), "removed": args.yes}, f"{entry.path}: {verb}"


def _add(quarantine: Quarantine, args: argparse.Namespace) -> Iterator[Result]:
    for path in args.path:
        moved = quarantine.add(path, args.reason)
        yield {"path": moved, "origin": path}, f"{path}: moved to {moved}"


_COMMANDS = {"list": _list, "why": _show_reasons, "restore": _restore, "purge": _purge, "add": _add}


if __name__ == "__main__":
    raise SystemExit(main())

"""Differences between an inventory and its hosts: ``plan`` shows them, ``apply`` ends them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from swift.base.errors import ConfigError
from swift.operations.deploy.changes import FileChange, is_named
from swift.operations.deploy.files import (
    ETC,
    FOREIGN_UNITS,
    LAYOUT_KEYS,
    HostFile,
    hash_lines,
    is_deployed,
    managed_units,
)
from swift.operations.deploy.hosts import HostState, state_of
from swift.operations.deploy.inventory import Host
from swift.operations.deploy.rings import RingUpdate
from swift.operations.deploy.state import Secrets
from swift.ring.manifest import is_layout_file


@dataclass(frozen=True)
class HostTarget:
    """A host as the inventory wants it."""

    host: Host
    files: tuple[HostFile, ...]
    units: tuple[str, ...]
    #: Sentences about what has to wait.
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class HostPlan:
    """The differences of a host. Units have the names of the host's packages."""

    host: Host
    create: tuple[HostFile, ...] = ()
    change: tuple[HostFile, ...] = ()
    enable: tuple[str, ...] = ()
    disable: tuple[str, ...] = ()
    reload: tuple[str, ...] = ()
    #: Paths of files that were written for a role that the host has no more.
    remove: tuple[str, ...] = ()
    #: Replacements of files, in the order of ``create`` and ``change``.
    changes: tuple[FileChange, ...] = ()
    #: Sentences about what has to wait or stays.
    notes: tuple[str, ...] = ()
    #: Why nothing can be done there; empty if all is well.
    error: str = ""

    @property
    def dropped(self) -> tuple[str, ...]:
        """Names of what hosts have and the new files have not."""
        return tuple(item for change in self.changes for item in change.dropped)

    @property
    def is_empty(self) -> bool:
        """True if the host is as the inventory wants it."""
        changes = (self.create, self.change, self.enable, self.disable, self.reload, self.remove)
        return not (any(changes) or self.error)

    def lines(self) -> Iterator[str]:
        """Yield the differences, one a line."""
        if self.error:
            yield self.error
        for verb, names in self.as_json().items():
            if isinstance(names, list):
                yield from (f"{verb} {name}" for name in names)

    def as_json(self) -> dict[str, object]:
        """Return the differences for programs."""
        found: dict[str, object] = {
            "create": [file.path for file in self.create],
            "change": [file.path for file in self.change],
            "drop": list(self.dropped),
            "enable": list(self.enable),
            "disable": list(self.disable),
            "reload": list(self.reload),
            "remove": list(self.remove),
        }
        found["diff"] = {change.path: "\n".join(change.diff) for change in self.changes}
        return {**found, "error": self.error} if self.error else found


@dataclass(frozen=True)
class DeployPlan:
    """The differences of rings and hosts."""

    rings: tuple[RingUpdate, ...]
    hosts: tuple[HostPlan, ...]
    #: Sentences about secrets that do not exist yet.
    secrets: tuple[str, ...] = field(default=())

    @property
    def is_empty(self) -> bool:
        """True if nothing is to be done."""
        return not self.secrets and all(host.is_empty for host in self.hosts) and not self.changed_rings

    @property
    def changed_rings(self) -> tuple[RingUpdate, ...]:
        """The rings that change."""
        return tuple(ring for ring in self.rings if ring.changes)

    def errors(self) -> list[str]:
        """Return why hosts cannot be deployed to."""
        return [host.error for host in self.hosts if host.error]

    def lines(self) -> Iterator[str]:
        """Yield the plan for people, one difference a line."""
        for line in self.secrets:
            yield f"secrets: {line}"
        for ring in self.rings:
            yield from (f"ring {ring.name}: {change}" for change in ring.changes)
        for host in self.hosts:
            yield from (f"host {host.host.name}: {line}" for line in host.lines())

    def diffs(self) -> Iterator[str]:
        """Yield the diff of every file, those that are equal on several hosts once."""
        hosts: dict[FileChange, list[str]] = {}
        for host in self.hosts:
            for change in host.changes:
                hosts.setdefault(replace(change, dropped=(), error=""), []).append(host.host.name)
        for change, names in hosts.items():
            yield f"diff of {change.path} on {', '.join(names)}:"
            yield from (f"    {line}" for line in change.diff or ("owner or mode only",))

    def unnamed(self, names: Sequence[str]) -> list[str]:
        """Return what would be dropped and is not named."""
        items = dict.fromkeys(item for host in self.hosts for item in host.dropped)
        return [item for item in items if not is_named(item, names)]

    def notes(self) -> Iterator[str]:
        """Yield what waits and is no difference."""
        for ring in self.rings:
            yield from (f"note: ring {ring.name}: {note}" for note in ring.notes)
        for host in self.hosts:
            yield from (f"note: host {host.host.name}: {note}" for note in host.notes)

    def as_json(self) -> dict[str, object]:
        """Return the plan for programs."""
        return {
            "changes": not self.is_empty,
            "secrets": list(self.secrets),
            "rings": {
                ring.name: {"changes": list(ring.changes), "notes": list(ring.notes)} for ring in self.rings
            },
            "hosts": {host.host.name: host.as_json() for host in self.hosts},
        }


def check_identity(
    state: HostState, host: Host, secrets: Secrets | None, rings: Sequence[str], builders: Mapping[str, bool]
) -> None:
    """Refuse a host that belongs to another cluster, or to this one whose state directory is lost.

    ``rings`` are the paths of ring files, ``builders`` tells which rings have a builder in the state
    directory. Raises ``ConfigError``.
    """
    advice = "restore the state directory, or give this inventory the right one with [cluster] state"
    if state.hash_digest:
        lines = hash_lines(secrets) if secrets is not None else ""
        if state.hash_digest != hashlib.sha256(lines.encode()).hexdigest():
            raise ConfigError(
                f"host {host.name}: swift.conf has other hash path values than the state directory; {advice}"
            )
    for path in rings:
        name = path.rpartition("/")[2].removesuffix(".ring.gz")
        if path in state.files and not builders[name]:
            raise ConfigError(
                f"host {host.name}: it has {path}, and the state directory has no builder of it; {advice}"
            )


def _is_of_layout(path: str) -> bool:
    """Return True for a file that the layout agent of a host places."""
    return is_layout_file(path.removeprefix(f"{ETC}/")) is not None


def compare_host(target: HostTarget, state: HostState) -> HostPlan:
    """Return how a host differs from the inventory."""
    create, change = [], []
    for file in target.files:
        found = state.files.get(file.path)
        if found is None:
            create.append(file)
        elif found != state_of(file):
            change.append(file)
    missing = [unit for unit in target.units if unit not in state.units]
    if missing:
        return HostPlan(
            target.host,
            tuple(create),
            tuple(change),
            error=f"there is no unit {missing[0]}: install the packages of this host's roles first",
        )
    units = [state.units[unit] for unit in target.units]
    enable = [unit.name for unit in units if not (unit.is_enabled and unit.is_active)]
    paths = {file.path for file in target.files}
    former = {
        path: is_written
        for path, is_written in state.written.items()
        if path not in paths and is_deployed(path) and not (LAYOUT_KEYS in paths and _is_of_layout(path))
    }
    foreign = [FOREIGN_UNITS[path] for path in former if path in FOREIGN_UNITS]
    disable = [
        unit.name
        for name in (*managed_units(), *foreign)
        if name not in target.units
        and (unit := state.units.get(name)) is not None
        and (unit.is_enabled or unit.is_active)
    ]
    told = dict.fromkeys(unit for file in (*create, *change) for unit in file.units)
    running = [state.units[unit].name for unit in told if state.units[unit].is_active]
    return HostPlan(
        target.host,
        create=tuple(create),
        change=tuple(change),
        enable=tuple(enable),
        disable=tuple(disable),
        reload=tuple(dict.fromkeys((*running, *(name for name in state.pending if name not in disable)))),
        remove=tuple(path for path, is_written in former.items() if is_written),
        notes=(
            *target.notes,
            *(
                f"{path} was changed by hand and stays"
                for path, is_written in former.items()
                if not is_written
            ),
        ),
    )

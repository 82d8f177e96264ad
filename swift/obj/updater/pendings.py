"""Finding, reading and rewriting the ``async_pending`` files of a device (spec: object-disk.md §14).

Of several updates of one object the newest holds everything, so older ones are removed, but not before the
newest proved to be readable: a damaged one goes to quarantine and the next older is taken instead. A file
is rewritten under its own name, durably, and removed only after everybody has the update. Everything here
blocks.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple

from swift.base.pickles import PickleRefused
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.platform.disk import Disk
from swift.platform.durable import make_directories, replace_file
from swift.policy.policies import Policies
from swift.policy.policy import Policy
from swift.store.api import AsyncUpdate
from swift.store.layout import is_suffix, temporary_dir
from swift.store.quarantine import quarantine_object
from swift.store.updates import decode_update, encode_update

DIRECTORY = "async_pending"
_OPS = frozenset(("PUT", "DELETE"))


class Found(NamedTuple):
    """The pending files of one object, newest first."""

    policy: Policy
    directory: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Pending:
    """One update that is to be delivered, and how far that is."""

    path: str
    policy: Policy
    timestamp: Timestamp
    update: AsyncUpdate
    #: Ids of container ring devices that have it.
    successes: tuple[int, ...] = ()
    #: Containers (``account/container``) to which it was redirected.
    redirects: tuple[str, ...] = ()

    @property
    def container(self) -> str:
        """``account/container`` of where it goes: the container, or the shard that stands in for it."""
        return self.update.container_path or f"{self.update.path.account}/{self.update.path.container}"

    def redirected(self, container: str) -> Pending:
        """The same on its way to another container; in a circle it starts over at the object's own."""
        if container in self.redirects:
            return replace(self, update=self.update._replace(container_path=None), successes=(), redirects=())
        return replace(
            self,
            update=self.update._replace(container_path=container),
            successes=(),
            redirects=(*self.redirects, container),
        )

    def __str__(self) -> str:
        return f"{self.update.op} {self.update.path} ({self.path})"


class PendingFiles:
    """The updates kept on one device."""

    def __init__(self, disk: Disk, device_path: str, policies: Policies):
        self._disk = disk
        self._device_path = device_path
        self._policies = policies

    # --- finding --------------------------------------------------------------------------------------

    def policies(self) -> tuple[list[Policy], list[str]]:
        """The policies that have a directory here, and names of directories of unknown ones."""
        known, unknown = [], []
        for name in sorted(self._disk.listdir(self._device_path)):
            if name.startswith(DIRECTORY):
                policy = self._policy_of(name)
                if policy is None:
                    unknown.append(name)
                else:
                    known.append(policy)
        return known, unknown

    def _policy_of(self, name: str) -> Policy | None:
        index = "0" if name == DIRECTORY else name.removeprefix(f"{DIRECTORY}-")
        if not (index.isascii() and index.isdigit()) or (index == "0" and name != DIRECTORY):
            return None
        return self._policies.get(int(index))

    def suffixes(self, policy: Policy, rng: random.Random) -> list[str]:
        """The suffix directories of a policy in random order, so that no object is always last."""
        root = self._root(policy)
        found = [f"{root}/{name}" for name in self._names(root) if is_suffix(name)]
        rng.shuffle(found)
        return found

    def _root(self, policy: Policy) -> str:
        return f"{self._device_path}/{DIRECTORY}" + (f"-{policy.index}" if policy.index else "")

    def _names(self, directory: str) -> list[str]:
        """The names in a directory that may be gone or something else."""
        try:
            return self._disk.listdir(directory)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def objects(self, policy: Policy, suffix_path: str) -> tuple[list[Found], list[str]]:
        """The objects with updates in a suffix directory, and names that are none."""
        good: list[str] = []
        bad: list[str] = []
        for name in sorted(self._names(suffix_path), reverse=True):
            (good if name.count("-") == 1 else bad).append(name)
        grouped = groupby(good, key=lambda name: name.partition("-")[0])
        return [Found(policy, suffix_path, tuple(names)) for _, names in grouped], bad

    # --- reading --------------------------------------------------------------------------------------

    def load(self, path: str, policy: Policy) -> Pending | None:
        """Read a pending; None when it is gone. Raises ``PickleRefused`` for a damaged one, OSError."""
        try:
            data = self._read(path)
        except FileNotFoundError:
            return None
        update, extra = decode_update(data)
        try:
            timestamp = Timestamp(path.rpartition("-")[2])
        except InvalidTimestamp as error:
            raise PickleRefused(str(error))
        if update.op not in _OPS or not update.path.container or not update.path.obj:
            raise PickleRefused(f"not an update of an object: {update.op!r} {update.path!r}")
        if update.container_path is not None and not _is_container(update.container_path):
            update = update._replace(container_path=None)
        headers = {str(name): str(value) for name, value in update.headers.items()}
        return Pending(
            path,
            policy,
            timestamp,
            update._replace(headers=headers),
            tuple(item for item in _items(extra, "successes") if isinstance(item, int)),
            tuple(item for item in _items(extra, "redirect_history") if isinstance(item, str)),
        )

    def _read(self, path: str) -> bytes:
        fd = self._disk.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            pieces = []
            while piece := self._disk.read(fd, 1 << 16):
                pieces.append(piece)
            return b"".join(pieces)
        finally:
            self._disk.close(fd)

    # --- changing -------------------------------------------------------------------------------------

    def quarantine(self, path: str, policy: Policy) -> str | None:
        """Move a damaged file away (object-disk.md §12); its new path. Raises OSError."""
        return quarantine_object(self._disk, self._device_path, policy, path)

    def rewrite(self, pending: Pending) -> None:
        """Remember how far the delivery is, durably. Raises OSError."""
        extra: dict[str, Any] = {"successes": list(pending.successes)}
        if pending.redirects:
            extra["redirect_history"] = list(pending.redirects)
        temporary = temporary_dir(self._device_path, pending.policy)
        make_directories(self._disk, temporary, below=self._device_path)
        data = encode_update(pending.update, extra=extra)
        replace_file(self._disk, pending.path, data, temporary_directory=temporary)

    def remove(self, path: str) -> bool:
        """Remove a file and, when it was the last one, its directory; whether it was there. Raises OSError.

        Not synced: should it come back after a power cut, it is delivered again, which changes nothing.
        """
        try:
            self._disk.unlink(path)
        except FileNotFoundError:
            return False
        try:
            self._disk.rmdir(os.path.dirname(path))
        except OSError:
            # There are others, or another process was quicker.
            return True
        return True


def _is_container(path: object) -> bool:
    return isinstance(path, str) and path.count("/") == 1 and all(path.split("/"))


def _items(extra: dict[str, Any], name: str) -> Iterator[Any]:
    value = extra.get(name)
    return iter(value if isinstance(value, (list, tuple)) else ())

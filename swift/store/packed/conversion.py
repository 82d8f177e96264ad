"""Conversion of a device's policies between the file engine and the packed one: how far it is.

Marks beside the volumes say it, which are empty files: the file engine sees no records, and a power cut takes
the index away. The index repeats what is asked for often (doc/formats/packed.md).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Protocol, TypeVar

from swift.base.digits import is_digits
from swift.platform.disk import Disk
from swift.platform.durable import replace_file
from swift.platform.syncing import sync_directory
from swift.store.hashes import FRESH_NS
from swift.store.lmdbindex import Index
from swift.store.packed import rows
from swift.store.packed.rows import Spaces

#: Before the index of a policy: there may be files that no record is about, or there are none.
_UNINDEXED, _INDEXED = "unindexed-", "indexed-"
#: Before the index of a policy: its objects are kept as files, because the file engine is to take over.
_AS_FILES = "as-files-"
#: Rows of the index have 32 bits for the number of a policy.
_POLICY_MAX = (1 << 32) - 1

T = TypeVar("T")


class ConvertedDevice(Protocol):
    """The device, as a conversion needs it; see ``PackedDevice``."""

    path: str
    directory: str
    disk: Disk
    writing: threading.RLock

    def opening(self) -> AbstractContextManager[object]:
        """Return the lock of processes that open the device."""

    def read_index(self, work: Callable[[Index, Spaces], T]) -> T:
        """Return what ``work`` returns."""

    def change_index(self, work: Callable[[rows.Writing], T]) -> T:
        """Change rows of the index that no record is about; return what ``work`` returns."""

    def refresh(self) -> None:
        """Learn what other processes changed."""


class Conversion:
    """The policies of a device that are packed, kept as files, or in between.

    Policies are given by their index. Methods raise OSError.
    """

    def __init__(self, device: ConvertedDevice):
        self._device = device
        #: Policy → True if there may be files that the index does not have.
        self._unindexed: dict[int, bool] = {}
        self._as_files: set[int] = set()
        self._listed_ns = -1

    def learn(self) -> None:
        """Read how far conversions by other processes are."""
        device = self._device
        changed_ns = device.disk.stat(device.directory).st_mtime_ns
        # There may be thousands of volumes. A change of this moment may not show in the time.
        if changed_ns != self._listed_ns or changed_ns + FRESH_NS > device.disk.now_ns():
            self._listed_ns = changed_ns
            self._as_files = set(_marked(device.disk.listdir(device.directory), _AS_FILES))
        self._unindexed = device.read_index(lambda index, _spaces: rows.known_policies(index))

    def keeps_as_files(self, policy: int) -> bool:
        """Return True if new objects of a policy are files, for the file engine."""
        return policy in self._as_files

    def keep_as_files(self, policy: int) -> None:
        """Keep new objects of a policy as files from now on, durably."""
        device = self._device
        replace_file(device.disk, f"{device.directory}/{_AS_FILES}{policy}", b"")
        device.refresh()

    def keep_packed(self, policy: int) -> None:
        """Keep new objects of a policy as records from now on, durably."""
        device = self._device
        if policy in self._as_files:
            # The file engine may have changed every file meanwhile.
            self._mark(policy, True)
            device.change_index(lambda writing: rows.set_unindexed(writing, policy, True))
            with suppress(FileNotFoundError):
                device.disk.unlink(f"{device.directory}/{_AS_FILES}{policy}")
            sync_directory(device.disk, device.directory)
        device.refresh()

    def is_indexed(self, policy: int) -> bool:
        """Return True if the index has every file of a policy."""
        return policy not in self._as_files and not self.is_unindexed(policy)

    def set_indexed(self, policy: int) -> None:
        """Note that every file of a policy has a record."""
        self._device.change_index(lambda writing: rows.set_unindexed(writing, policy, False))
        self._mark(policy, False)
        self.learn()

    def is_unindexed(self, policy: int) -> bool:
        """Return True if there may be files of a policy that the index does not have.

        To be asked before this engine makes a directory of the policy itself.
        """
        known = self._unindexed.get(policy)
        return self._meet(policy) if known is None else known

    def may_have_unindexed(self, policy: int, partition: int) -> bool:
        """Return True if there may be files of a partition that the index does not have."""
        if policy in self._as_files:
            return True
        if not self.is_unindexed(policy):
            return False
        return not self._device.read_index(lambda index, _spaces: rows.is_adopted(index, policy, partition))

    def is_adopted(self, index: rows.ReadsIndex, policy: int, partition: int) -> bool:
        """Return True if it is known that the index has every file of a partition; asks no disk."""
        known = None if policy in self._as_files else self._unindexed.get(policy)
        return known is False or (known is True and rows.is_adopted(index, policy, partition))

    def packs(self, policy: int) -> bool:
        """Return True if it is known that new objects of a policy are records; asks no disk."""
        return policy in self._unindexed and policy not in self._as_files

    def _meet(self, policy: int) -> bool:
        """Note, when a policy is packed for the first time, if the file engine has had it before.

        That is said by a mark as well: the index may be lost, and a file without a record may also be one
        that was superseded.
        """
        device = self._device
        with device.writing:
            with device.opening():
                known = self.marks().get(policy)
                if known is None:
                    known = policy in self._policies_with_files()
                    self._mark(policy, known)
            device.change_index(lambda writing: rows.set_unindexed(writing, policy, known))
            self._unindexed[policy] = known
        return known

    def marks(self) -> dict[int, bool]:
        """Return the policies that were packed here: True if there may be files without records."""
        names = self._device.disk.listdir(self._device.directory)
        unindexed = dict.fromkeys(_marked(names, _UNINDEXED), True)
        return dict.fromkeys(_marked(names, _INDEXED), False) | unindexed

    def _mark(self, policy: int, is_unindexed: bool) -> None:
        """Set what ``marks`` returns of a policy, durably."""
        device = self._device
        new, old = (_UNINDEXED, _INDEXED) if is_unindexed else (_INDEXED, _UNINDEXED)
        replace_file(device.disk, f"{device.directory}/{new}{policy}", b"")
        with suppress(FileNotFoundError):
            device.disk.unlink(f"{device.directory}/{old}{policy}")
        sync_directory(device.disk, device.directory)

    def _policies_with_files(self) -> list[int]:
        """Return the policies of which the device has directories."""
        device, found = self._device, []
        for name in device.disk.listdir(device.path):
            kind, _, number = name.partition("-")
            is_policy = kind == "objects" and (name == kind or is_digits(number))
            if is_policy and any(map(is_digits, device.disk.listdir(f"{device.path}/{name}"))):
                found.append(int(number or 0))
        return found

    def __repr__(self) -> str:
        return f"Conversion({self._device!r})"


def _marked(names: list[str], prefix: str) -> list[int]:
    """Return the policies with a mark among the names of a directory; other names mean nothing."""
    numbers = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
    return [int(number) for number in numbers if is_digits(number) and int(number) <= _POLICY_MAX]

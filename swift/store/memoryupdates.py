"""The container updates that the engine without files keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby

from swift.base.hashing import PathHasher
from swift.base.timestamp import Timestamp
from swift.policy.policy import Policy
from swift.store.api import AsyncUpdate, PendingUpdate, UpdateRef


class MemoryUpdates:
    """``PendingUpdates`` in memory; there is one group, and nothing can be damaged."""

    def __init__(self, hasher: PathHasher, check_device: Callable[[str], None]):
        self._hasher = hasher
        self._check_device = check_device
        self._kept: dict[UpdateRef, PendingUpdate] = {}

    def save(self, device: str, policy: Policy, update: AsyncUpdate, timestamp: Timestamp) -> None:
        """See ``PendingUpdates``."""
        self._check_device(device)
        name = f"{self._hasher.hexdigest(*update.path)}-{timestamp.internal}"
        ref = UpdateRef(device, policy, name)
        self._kept[ref] = PendingUpdate(ref, timestamp, update)

    def groups(self, device: str, policy: Policy) -> list[str]:
        """See ``PendingUpdates``."""
        self._check_device(device)
        return ["all"] if any(ref[:2] == (device, policy) for ref in self._kept) else []

    def objects(self, device: str, policy: Policy, group: str) -> tuple[list[list[UpdateRef]], list[str]]:
        """See ``PendingUpdates``."""
        self._check_device(device)
        found = sorted((ref for ref in self._kept if ref[:2] == (device, policy)), reverse=True, key=_name)
        return [list(refs) for _, refs in groupby(found, key=lambda ref: ref.name.partition("-")[0])], []

    def strangers(self, device: str, policies: Iterable[Policy]) -> list[str]:
        """See ``PendingUpdates``."""
        self._check_device(device)
        known = set(policies)
        kept = {ref.policy for ref in self._kept if ref.device == device}
        return sorted(policy.name for policy in kept if policy not in known)

    def load(self, ref: UpdateRef) -> PendingUpdate | None:
        """See ``PendingUpdates``."""
        self._check_device(ref.device)
        return self._kept.get(ref)

    def rewrite(self, pending: PendingUpdate) -> None:
        """See ``PendingUpdates``."""
        self._check_device(pending.ref.device)
        self._kept[pending.ref] = pending

    def remove(self, ref: UpdateRef) -> bool:
        """See ``PendingUpdates``."""
        self._check_device(ref.device)
        return self._kept.pop(ref, None) is not None

    def quarantine(self, ref: UpdateRef, reason: str = "") -> str | None:
        """See ``PendingUpdates``."""
        return str(ref) if self.remove(ref) else None


def _name(ref: UpdateRef) -> str:
    return ref.name

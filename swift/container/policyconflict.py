"""Choice of the storage policy when replicas of a container disagree (account-container.md §18). Pure."""

from __future__ import annotations

from dataclasses import dataclass

from swift.base.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class PolicyClaim:
    """Policy that one replica claims."""

    index: int
    count: int
    put: Timestamp
    delete: Timestamp
    status_changed_at: Timestamp

    @property
    def is_deleted(self) -> bool:
        """Empty, and deleted after it was last put."""
        return self.delete > self.put and not self.count

    @property
    def is_recreated(self) -> bool:
        """Put again after a deletion."""
        return self.put > self.delete > Timestamp(0)


def wins(theirs: PolicyClaim, ours: PolicyClaim) -> bool:
    """Return True if ``theirs`` is right and ``ours`` is not; False if both name the same policy."""
    if theirs.index == ours.index:
        return False
    if theirs.is_deleted != ours.is_deleted:
        return ours.is_deleted
    if theirs.is_deleted:
        return _order(theirs) > _order(ours)
    if theirs.is_recreated != ours.is_recreated:
        return theirs.is_recreated
    if theirs.is_recreated:
        last_deletion = max(theirs.delete, ours.delete)
        if (theirs.put < last_deletion) != (ours.put < last_deletion):
            return ours.put < last_deletion
    return _order(theirs) < _order(ours)


def _order(claim: PolicyClaim) -> tuple[Timestamp, int]:
    """Return the order of a claim; equal times compare by index, so that all replicas decide alike."""
    return claim.status_changed_at, claim.index

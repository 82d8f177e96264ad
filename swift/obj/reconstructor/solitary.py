"""When an archive is given up: it is one of too few of its object, and nobody will ever have more.

Such archives are left behind by a node that was away while the object was deleted, and its tombstone
reclaimed. They are quarantined rather than removed: an operator may know better. spec: replication.md §5.3
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SolitaryRule:
    """What an operator has decided; ``threshold`` 0: no archive is ever given up."""

    threshold: int
    age_s: float
    #: Nodes that are to be asked before anything is given up, handoffs among them.
    nodes: int

    def may_apply(self, written_s: float, now_s: float) -> bool:
        """Whether an archive of this Unix time is old enough."""
        return self.threshold > 0 and written_s < now_s - self.age_s

    def condemns(self, *, archives: int, needed: int, doubtful: int) -> bool:
        """Whether so many archives in all (ours among them) are too few.

        ``doubtful`` nodes failed, or have another upload: as long as there is one, nothing is known.
        """
        return not doubtful and archives <= self.threshold and archives < needed

"""One storage policy: a name for how objects are kept (spec: ring.md §3)."""

from __future__ import annotations

from dataclasses import dataclass

REPLICATION = "replication"
ERASURE_CODING = "erasure_coding"


def with_policy_suffix(base: str, index: int) -> str:
    """``objects`` for policy 0, ``objects-N`` for the others; likewise async_pending, tmp, ring names."""
    return base if index == 0 else f"{base}-{index}"


@dataclass(frozen=True, slots=True)
class ErasureCode:
    """The geometry of an erasure coded policy."""

    ec_type: str
    data: int
    parity: int
    segment_size: int = 1048576
    duplication: int = 1

    #: Reed-Solomon needs one parity fragment more than the data to be sure of a rebuild.
    MIN_PARITY = 1

    @property
    def fragments(self) -> int:
        """Distinct fragments: data + parity."""
        return self.data + self.parity

    @property
    def replicas(self) -> int:
        """Fragment archives on disk, which the ring must have exactly."""
        return self.fragments * self.duplication

    @property
    def quorum(self) -> int:
        """Archives that must be durable for a write to succeed."""
        return (self.data + self.MIN_PARITY) * self.duplication


@dataclass(frozen=True, slots=True)
class Policy:
    """An entry of ``[storage-policy:N]``."""

    index: int
    name: str
    aliases: tuple[str, ...] = ()
    is_default: bool = False
    is_deprecated: bool = False
    ec: ErasureCode | None = None
    diskfile_module: str = ""

    @property
    def is_ec(self) -> bool:
        """True if objects are erasure coded."""
        return self.ec is not None

    @property
    def ring_name(self) -> str:
        """The ring file's base name: ``object`` or ``object-N``."""
        return with_policy_suffix("object", self.index)

    def __repr__(self) -> str:
        kind = f"ec {self.ec.data}+{self.ec.parity}" if self.ec else "replication"
        return f"Policy({self.index}, {self.name!r}, {kind})"

"""``swift.common.ring.RingBuilder``, with the methods by which foreign scripts edit builder files.

swift-operator swaps devices' addresses with it before each rebalance, the juju charms and TripleO make and
balance rings with it. Everything else has ``swift.ring``.
"""

from __future__ import annotations

from typing import cast

from swift.ring import builder
from swift.ring.device import DeviceRecord


class RingData:
    """The ring of a builder, ready to be written."""

    def __init__(self, source: builder.RingBuilder):
        self._source = source

    def save(self, filename: str) -> None:
        """Write the ring file. Raises RingFileError, OSError."""
        self._source.write_ring(filename)


class RingBuilder(builder.RingBuilder):
    """A builder with OpenStack Swift's names of methods; ``load``, ``save`` and ``devs`` are the same."""

    def add_dev(self, dev: DeviceRecord) -> int:
        """Add a device; returns its id. Raises DeviceError, DuplicateDevice."""
        return self.add_device(**dev)

    def remove_dev(self, dev_id: int) -> None:
        """Mark a device for removal at the next rebalance. Raises NoSuchDevice."""
        self.remove_device(dev_id)

    def set_dev_weight(self, dev_id: int, weight: float) -> None:
        """Set the weight of a device. Raises NoSuchDevice, DeviceError."""
        self.change_device(dev_id, weight=weight)

    def get_balance(self) -> float:
        """Return the balance, in percent."""
        return self.balance

    def get_ring(self) -> RingData:
        """Return the ring that the builder describes now."""
        return RingData(self)

    def to_dict(self) -> dict[str, object]:
        """Return the fields of the builder file."""
        return cast(dict[str, object], self._fields())

    def rebalance(self, seed: object = None) -> tuple[int, float, int]:  # type: ignore[override]
        """Return partition-replicas moved, balance and devices removed; raises as the base class does."""
        done = super().rebalance(seed)
        return done.changed, done.balance, done.removed

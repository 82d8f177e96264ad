"""Selection of a manual run: ``--devices``, ``--partitions``, ``--policies``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from swift.policy.policy import Policy


@dataclass(frozen=True)
class Selection:
    """Names of devices, partitions and indexes of policies; empty is everything."""

    devices: frozenset[str] = frozenset()
    partitions: frozenset[str] = frozenset()
    policies: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.devices or self.partitions or self.policies)

    def of_devices(self, names: Iterable[str]) -> list[str]:
        """Those devices that are wanted."""
        return [name for name in names if not self.devices or name in self.devices]

    def has_partition(self, partition: str) -> bool:
        """Return True if a partition is wanted."""
        return not self.partitions or partition in self.partitions

    def of_policies(self, policies: Iterable[Policy]) -> list[Policy]:
        """Those policies that are wanted."""
        return [policy for policy in policies if not self.policies or str(policy.index) in self.policies]

    @classmethod
    def parse(cls, devices: str = "", partitions: str = "", policies: str = "") -> Selection:
        """From comma lists as the command line has them."""
        return cls(_items(devices), _items(partitions), _items(policies))


def _items(text: str) -> frozenset[str]:
    return frozenset(item.strip() for item in text.split(",") if item.strip())

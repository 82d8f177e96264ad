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

    def filter_devices(self, names: Iterable[str]) -> list[str]:
        """Return the selected devices."""
        return [name for name in names if not self.devices or name in self.devices]

    def includes_partition(self, partition: str) -> bool:
        """Return True if a partition is selected."""
        return not self.partitions or partition in self.partitions

    def filter_policies(self, policies: Iterable[Policy]) -> list[Policy]:
        """Return the selected policies."""
        return [policy for policy in policies if not self.policies or str(policy.index) in self.policies]

    @classmethod
    def parse(cls, devices: str = "", partitions: str = "", policies: str = "") -> Selection:
        """Parse the comma lists of the command line."""
        return cls(_split_comma_list(devices), _split_comma_list(partitions), _split_comma_list(policies))


def _split_comma_list(text: str) -> frozenset[str]:
    return frozenset(item.strip() for item in text.split(",") if item.strip())

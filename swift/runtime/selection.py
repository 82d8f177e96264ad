"""Selection of a manual run: ``--devices``, ``--partitions``, ``--policies``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from swift.base.digits import is_digits
from swift.base.errors import ConfigError
from swift.base.nearest import nearest
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
        """Parse the comma lists of the command line.

        Raises ``ConfigError`` for partitions and indexes that are no numbers.
        """
        found = cls(_split_comma_list(devices), _split_comma_list(partitions), _split_comma_list(policies))
        for option, words in (("--partitions", found.partitions), ("--policies", found.policies)):
            for word in sorted(words):
                if not is_digits(word):
                    raise ConfigError(f"{option} takes numbers, not {word!r}")
        return found

    def check(self, devices: Iterable[str], policies: Iterable[Policy]) -> None:
        """Refuse devices and policies that do not exist: nothing would be done. Raises ``ConfigError``."""
        known = sorted(set(devices))
        for name in sorted(self.devices - set(known)):
            raise ConfigError(f"there is no device {name} among {', '.join(known)}{nearest(name, known)}")
        indexes = {str(policy.index): policy.name for policy in policies}
        for index in sorted(self.policies - indexes.keys()):
            names = ", ".join(f"{number} ({name})" for number, name in indexes.items())
            raise ConfigError(f"there is no policy {index}; policies: {names}")


def _split_comma_list(text: str) -> frozenset[str]:
    return frozenset(item.strip() for item in text.split(",") if item.strip())

"""Chooses the units that fail: their kind, the fault and the number."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import NamedTuple

from swift.base.errors import InvalidValue

#: Targets of failures with their kinds.
WAYS = {
    "nodes": ("kill", "stop", "partition"),
    "disks": ("unmount", "shutdown", "read-only", "slow", "wipe"),
    "proxies": ("kill", "stop"),
}
SPREADS = ("uniform", "skewed")


class BadFailure(InvalidValue):
    """The fault does not exist; the text lists the known ones."""


class Target(NamedTuple):
    """A node (1…n), a disk of it (0…), or a proxy process (0…)."""

    node: int
    disk: int | None = None

    def __str__(self) -> str:
        return f"{self.node}" if self.disk is None else f"{self.node}/{self.disk}"


@dataclass(frozen=True)
class Failure:
    """``share`` percent of the ``unit`` fail by ``way``; at least one, and never all."""

    unit: str
    way: str
    share: float
    #: Of disks: ``uniform`` over the nodes, or ``skewed`` to as few nodes as can be.
    spread: str = "uniform"

    def check(self) -> None:
        """Raise ``BadFailure`` for one that there is not."""
        if self.unit not in WAYS:
            raise BadFailure(f"{', '.join(WAYS)} can fail, not {self.unit!r}")
        if self.way not in WAYS[self.unit]:
            raise BadFailure(f"{self.unit} fail by {', '.join(WAYS[self.unit])}, not by {self.way!r}")
        if not 0 < self.share < 100:
            raise BadFailure(f"a share is above 0 and below 100 percent, not {self.share:g}")
        if self.spread not in SPREADS:
            raise BadFailure(f"disks fail {' or '.join(SPREADS)}, not {self.spread!r}")

    def count(self, total: int) -> int:
        """Return the number of targets that fail, of ``total``."""
        return max(1, min(total - 1, round(total * self.share / 100)))

    def __str__(self) -> str:
        spread = f", {self.spread}" if self.unit == "disks" else ""
        return f"{self.share:g} % of {self.unit} by {self.way}{spread}"


def choose_targets(
    failure: Failure, nodes: int, disks: int, proxies: int, chance: random.Random
) -> list[Target]:
    """Choose the failing targets among ``nodes`` with ``disks`` each, or among the proxy processes.

    Raises ``BadFailure``.
    """
    failure.check()
    if failure.unit == "proxies":
        every = [Target(number) for number in range(proxies)]
    else:
        numbers = chance.sample(range(1, nodes + 1), nodes)
        if failure.unit == "nodes":
            every = [Target(node) for node in numbers]
        elif failure.spread == "skewed":
            every = [Target(node, disk) for node in numbers for disk in range(disks)]
        else:
            every = [Target(node, disk) for disk in range(disks) for node in numbers]
    if len(every) < 2:
        raise BadFailure(f"of {len(every)} {failure.unit} none can fail; make a larger cluster")
    return every[: failure.count(len(every))]

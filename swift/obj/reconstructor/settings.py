"""The options of ``[object-reconstructor]`` (spec: replication.md §5.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from swift.config.kinds import COUNT, SECONDS, Kind, integer
from swift.config.schema import option
from swift.obj.replication.settings import WORKERS, SyncSettings
from swift.runtime.daemon import Schedule


def _parse_nodes(text: str) -> tuple[int, bool]:
    """Return a number of nodes, and whether it is per replica."""
    words = text.lower().split()
    if words and words[-1] == "replicas" and words[1:-1] == ["*"]:
        return int(COUNT.parse(words[0])), True
    return int(COUNT.parse(text)), False


def _print_nodes(value: tuple[int, bool]) -> str:
    return f"{value[0]} * replicas" if value[1] else str(value[0])


_NODES = Kind("count or count * replicas", _parse_nodes, _print_nodes)
#: Stands for the reclaim age.
RECLAIM_AGE = -1.0
_AGE = Kind(
    "seconds or empty",
    lambda text: float(SECONDS.parse(text)) if text.strip() else RECLAIM_AGE,
    lambda value: "" if value == RECLAIM_AGE else f"{value:g}",
)


@dataclass(frozen=True)
class ObjectReconstructorSettings(SyncSettings):
    """Options of the object reconstructor."""

    without_effect: ClassVar[Mapping[str, str]] = {
        **SyncSettings.without_effect,
        "write_legacy_ec_crc": "headers are checked as both old and new libraries write them",
    }

    reconstructor_workers: int = option(0, "Processes that share the devices; 0: do not fork.", kind=WORKERS)
    handoffs_only: bool = option(
        False,
        "Only move archives that belong elsewhere; for emergencies, not for long.",
        aliases=("handoffs_first",),
    )
    rebuild_handoff_node_count: int = option(
        2, "Handoffs that may stand in for a device that is not there; -1: any number.", kind=integer(-1)
    )
    max_objects_per_revert: int = option(
        0, "Objects of a partition to return to their primaries in one session; 0: all.", kind=COUNT
    )
    quarantine_threshold: int = option(
        0,
        "Quarantine an old fragment archive if at most so many archives of the object are left, "
        "because it cannot be rebuilt; 0: never.",
        kind=COUNT,
    )
    quarantine_age: float = option("", "Age in seconds of such an archive; empty: reclaim_age.", kind=_AGE)
    request_node_count: tuple[int, bool] = option(
        "2 * replicas", "Nodes to query before an archive counts as one of the last.", kind=_NODES
    )

    @property
    def schedule(self) -> Schedule:
        """For the runner."""
        return self.schedule_with(self.reconstructor_workers)

    @property
    def quarantine_age_s(self) -> float:
        """The age from which on archives are old."""
        return self.reclaim_age if self.quarantine_age == RECLAIM_AGE else self.quarantine_age

    def nodes_asked(self, replicas: int) -> int:
        """``request_node_count`` for a policy with so many replicas."""
        number, is_per_replica = self.request_node_count
        return number * replicas if is_per_replica else number

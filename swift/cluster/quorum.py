"""Pure rules that choose one response among many statuses (spec: proxy.md §8).

``WriteQuorum`` decides when there are enough responses; ``best_status`` picks the client's. Both can be
printed, and are tested by their output.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

STATUS_CLASSES = (200, 300, 400)


def half(count: int) -> int:
    """Return half of a count, rounded up: OpenStack Swift's write quorum, our read quorum."""
    return (count + 1) // 2


def majority(count: int) -> int:
    """Return more than half: two majorities share a node, so a read by majority sees every write."""
    return count // 2 + 1


def best_status(
    statuses: Sequence[int], quorum: int, overrides: Mapping[int, int] | None = None
) -> int | None:
    """Return the position of the client's response; None when no class has a quorum (503).

    Hundreds are tried in the order 2xx, 3xx, 4xx; within one the highest status wins. If nothing has a
    quorum, statuses in ``overrides`` count as their replacement but are never the answer themselves.
    """
    position = _pick(statuses, statuses, quorum)
    if position is None and overrides:
        effective = [overrides.get(status, status) for status in statuses]
        position = _pick(effective, statuses, quorum)
    return position


def _pick(effective: Sequence[int], real: Sequence[int], quorum: int) -> int | None:
    for status_class in STATUS_CLASSES:
        members, best = 0, None
        for i, status in enumerate(effective):
            if status_class <= status < status_class + 100:
                members += 1
                if status == real[i] and (best is None or status > real[best]):
                    best = i
        if members >= quorum and best is not None:
            return best
    return None


class WriteQuorum:
    """Decides when a write to ``count`` nodes can stop waiting.

    It can as soon as ``quorum`` responses share a status class.
    """

    def __init__(self, count: int, quorum: int):
        self.count = count
        self.quorum = quorum
        self.statuses: list[int] = []
        #: True if a class from 1xx to 4xx has its quorum.
        self.reached = quorum <= 0
        self._class_counts = [0] * 5

    def add(self, status: int) -> None:
        """Add a response's status."""
        self.statuses.append(status)
        status_class = status // 100
        if 1 <= status_class <= 4:
            self._class_counts[status_class] += 1
            self.reached = self.reached or self._class_counts[status_class] >= self.quorum

    def is_reachable(self, waiting: int) -> bool:
        """Return True if ``waiting`` further responses could still make a quorum, or it is there."""
        return self.reached or max(self._class_counts[1:]) + waiting >= self.quorum

    @property
    def complete(self) -> bool:
        """True if every node responded."""
        return len(self.statuses) >= self.count

    def __str__(self) -> str:
        answers = " ".join(str(status) for status in self.statuses)
        verdict = "quorum" if self.reached else "complete" if self.complete else "waiting"
        return f"{len(self.statuses)}/{self.count} need {self.quorum}: [{answers}] {verdict}"


def fill_missing(statuses: Iterable[int], count: int) -> list[int]:
    """Return the statuses, with 503 for nodes that did not respond."""
    filled = list(statuses)
    return filled + [503] * (count - len(filled))


def container_update_count(
    container_replicas: int, container_quorum: int, object_replicas: int, object_quorum: int
) -> int:
    """Return the number of container updates of an object write (proxy.md §9): max(Rc, Qc + Ro − Qo)."""
    return max(container_replicas, container_quorum + object_replicas - object_quorum)

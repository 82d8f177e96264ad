"""Agreeing on one answer out of many: pure rules over statuses (spec: proxy.md §8).

``WriteQuorum`` says when enough answers are in; ``best_status`` picks the one the client sees. Both can
be printed, and are tested by their pictures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

HUNDREDS = (200, 300, 400)


def half(count: int) -> int:
    """A majority of an odd count, half of an even one: OpenStack Swift's quorum of writes, ours of reads."""
    return (count + 1) // 2


def majority(count: int) -> int:
    """More than half: two such sets always share a node, so no write is missed by all of another."""
    return count // 2 + 1


def best_status(
    statuses: Sequence[int], quorum: int, overrides: Mapping[int, int] | None = None
) -> int | None:
    """The position of the answer to return, None when no class has a quorum (503).

    Hundreds are tried in the order 2xx, 3xx, 4xx; within one the highest status wins. If nothing has a
    quorum, statuses in ``overrides`` count as their replacement but are never the answer themselves.
    """
    position = _pick(statuses, statuses, quorum)
    if position is None and overrides:
        effective = [overrides.get(status, status) for status in statuses]
        position = _pick(effective, statuses, quorum)
    return position


def _pick(effective: Sequence[int], real: Sequence[int], quorum: int) -> int | None:
    for hundred in HUNDREDS:
        members, best = 0, None
        for i, status in enumerate(effective):
            if hundred <= status < hundred + 100:
                members += 1
                if status == real[i] and (best is None or status > real[best]):
                    best = i
        if members >= quorum and best is not None:
            return best
    return None


class WriteQuorum:
    """Decides whether a write that went to ``count`` nodes can stop waiting.

    It can as soon as ``quorum`` answers share a hundred.
    """

    def __init__(self, count: int, quorum: int):
        self.count = count
        self.quorum = quorum
        self.statuses: list[int] = []
        #: Whether some hundred from 1xx to 4xx has its quorum.
        self.reached = quorum <= 0
        self._hundreds = [0] * 5

    def add(self, status: int) -> None:
        """One more answer."""
        self.statuses.append(status)
        hundred = status // 100
        if 1 <= hundred <= 4:
            self._hundreds[hundred] += 1
            self.reached = self.reached or self._hundreds[hundred] >= self.quorum

    def within_reach(self, waiting: int) -> bool:
        """Return True if ``waiting`` further answers could still make a quorum, or it is there."""
        return self.reached or max(self._hundreds[1:]) + waiting >= self.quorum

    @property
    def complete(self) -> bool:
        """Return True if every node answered."""
        return len(self.statuses) >= self.count

    def __str__(self) -> str:
        answers = " ".join(str(status) for status in self.statuses)
        verdict = "quorum" if self.reached else "complete" if self.complete else "waiting"
        return f"{len(self.statuses)}/{self.count} need {self.quorum}: [{answers}] {verdict}"


def fill_missing(statuses: Iterable[int], count: int) -> list[int]:
    """Statuses padded with 503 for nodes that never answered."""
    filled = list(statuses)
    return filled + [503] * (count - len(filled))


def container_update_count(
    container_replicas: int, container_quorum: int, object_replicas: int, object_quorum: int
) -> int:
    """Return the number of container updates of an object write (proxy.md §9): max(Rc, Qc + Ro − Qo)."""
    return max(container_replicas, container_quorum + object_replicas - object_quorum)

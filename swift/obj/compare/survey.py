"""Which partitions need work, and which of them first: what the digests of the other nodes say.

``Standing`` is pure: who has the same as we, who has something else, who has nothing, who did not say. The
fewer copies there seem to be the earlier a partition is worked on, whatever its name; one about which nobody
said anything is not put before one that is known to be alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import partial

from swift import green
from swift.obj.compare.digests import NOTHING
from swift.obj.compare.partners import Partners
from swift.policy.policy import Policy
from swift.ring.device import Node


class SurveyVerdict(IntEnum):
    """What a partner has of a partition."""

    EQUAL = 0
    DIFFERENT = 1
    NOTHING = 2
    UNKNOWN = 3


@dataclass(frozen=True, slots=True)
class Asked:
    """A partition that is compared with a partner."""

    part: int
    #: What the partner's digest is equal to when nothing is to be done; None while ours is not known.
    digest: str | None
    #: Erasure coding: the index of the partner's archives.
    index: int | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """What the partners of a partition said, by the id of their device."""

    verdicts: Mapping[int, SurveyVerdict]

    @property
    def is_settled(self) -> bool:
        """Whether everybody has the same."""
        return all(verdict is SurveyVerdict.EQUAL for verdict in self.verdicts.values())

    @property
    def copies(self) -> float:
        """Copies besides ours, as far as is known: half of one that differs or is silent."""
        worth = {SurveyVerdict.EQUAL: 1.0, SurveyVerdict.NOTHING: 0.0}
        return sum(worth.get(verdict, 0.5) for verdict in self.verdicts.values())

    def says(self, node: Node) -> SurveyVerdict:
        """What one of them said."""
        return self.verdicts.get(node.id, SurveyVerdict.UNKNOWN)

    def __str__(self) -> str:
        return ", ".join(f"{node}: {verdict.name.lower()}" for node, verdict in sorted(self.verdicts.items()))


def verdict_on(mine: str | None, theirs: str | None) -> SurveyVerdict:
    """What two digests of a partition say about the other's."""
    if theirs is None:
        return SurveyVerdict.UNKNOWN
    if mine == theirs:
        return SurveyVerdict.EQUAL
    return SurveyVerdict.NOTHING if theirs == NOTHING else SurveyVerdict.DIFFERENT


def survey(
    partners: Partners,
    policy: Policy,
    questions: Mapping[int, tuple[Node, Iterable[Asked]]],
    noticed: Callable[[Node, int], None],
) -> dict[int, Standing]:
    """Ask every partner once about all that is compared with it; partition → standing.

    ``questions`` is by device id; ``noticed`` is told the status of a partner that gave no digests.
    """
    found: dict[int, dict[int, SurveyVerdict]] = {}

    def ask(node: Node, asked: list[Asked]) -> None:
        status, told = partners.digests(node, policy, {each.part: each.index for each in asked})
        if status != 200:
            noticed(node, status)
        for each in asked:
            found.setdefault(each.part, {})[node.id] = verdict_on(each.digest, told.get(each.part))

    green.gather([partial(ask, node, list(asked)) for node, asked in questions.values()])
    return {part: Standing(verdicts) for part, verdicts in found.items()}

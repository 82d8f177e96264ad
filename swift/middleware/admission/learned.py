"""Capacity learnt from what the cluster delivers.

While answers come as quickly as they do when little is asked, nothing is bounded, and a bound that is used up
grows. When they take several times as long, the queues before the devices grow, and the bound is set to what
was delivered meanwhile: more than that the devices do not do. Pure: one call for each interval.
"""

from __future__ import annotations

#: Answers that take so many times as long as usual come from devices with too long queues.
SLOW_FACTOR = 3.0
#: What of the delivered rate the bound becomes then: so much less that the queues become empty, which also
#: shows how quick answers usually are.
_BACK_OFF = 0.8
#: How much a bound that is used up grows in an interval.
_GROWTH = 1.02
#: From which part on a bound counts as used up.
_USED = 0.85
#: The usual time follows slowly upwards, and at once downwards.
_RISE = 1.01
#: Fewer answers say nothing.
_ANSWERS_MIN = 5


class LearnedRate:
    """Estimates how much the cluster delivers a second; None until responses have been slow once."""

    __slots__ = ("bound", "_usual_s")

    def __init__(self) -> None:
        self.bound: float | None = None
        self._usual_s: float | None = None

    def learn(self, delivered: float, answer_s: float, answers: int) -> float | None:
        """Return the bound after an interval in which so much a second was delivered.

        ``answer_s`` is the mean time of its ``answers`` answers.
        """
        if answers < _ANSWERS_MIN or delivered <= 0:
            return self.bound
        usual = self._usual_s
        self._usual_s = answer_s if usual is None else min(answer_s, usual * _RISE)
        if answer_s > SLOW_FACTOR * self._usual_s:
            self.bound = _BACK_OFF * delivered
        elif self.bound is not None and delivered > _USED * self.bound:
            self.bound *= _GROWTH
        return self.bound

    def __repr__(self) -> str:
        return f"<LearnedRate {self.bound}, usually {self._usual_s} s>"

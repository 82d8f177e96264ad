"""Estimate of the cluster's capacity from what it delivers.

While response times are as short as at low load, there is no limit, and a limit that is used up grows. When
responses take several times as long, the queues before the devices grow: the limit is then set to the rate
that the devices delivered meanwhile. Pure: one call for each interval.
"""

from __future__ import annotations

#: Answers that take so many times as long as usual come from devices with too long queues.
SLOW_FACTOR = 3.0
#: Fraction of the delivered rate that becomes the bound. It lets the queues run empty, which also shows the
#: usual duration of responses.
_BACK_OFF_FACTOR = 0.8
#: Growth of a used up bound in an interval, a factor.
_GROWTH_FACTOR = 1.02
#: Part of a bound from which it counts as used up.
_USED_UP_SHARE = 0.85
#: The usual time follows slowly upwards, and at once downwards.
_USUAL_RISE_FACTOR = 1.01
#: Fewer responses are too few for an estimate.
_RESPONSES_MIN = 5


class LearnedRate:
    """Estimates how much the cluster delivers a second; None until responses have been slow once."""

    __slots__ = ("capacity_per_second", "_usual_response_s")

    def __init__(self) -> None:
        self.capacity_per_second: float | None = None
        self._usual_response_s: float | None = None

    def update(self, delivered: float, response_s: float, answers: int) -> float | None:
        """Return the limit after an interval with this delivered rate per second.

        ``response_s`` is the mean time of its ``answers`` responses.
        """
        if answers < _RESPONSES_MIN or delivered <= 0:
            return self.capacity_per_second
        usual = self._usual_response_s
        self._usual_response_s = response_s if usual is None else min(response_s, usual * _USUAL_RISE_FACTOR)
        if response_s > SLOW_FACTOR * self._usual_response_s:
            self.capacity_per_second = _BACK_OFF_FACTOR * delivered
        elif self.capacity_per_second is not None and delivered > _USED_UP_SHARE * self.capacity_per_second:
            self.capacity_per_second *= _GROWTH_FACTOR
        return self.capacity_per_second

    def __repr__(self) -> str:
        return f"<LearnedRate {self.capacity_per_second}, usually {self._usual_response_s} s>"

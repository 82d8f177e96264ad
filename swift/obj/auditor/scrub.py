"""The promised period of an audit: every object is read within so many days, at the pace that this takes.

What is left to read is estimated from what the pass has met so far, at its beginning from what the device
says is in use; it is divided by the time that is left, again and again. So a pass neither hurries nor comes
late, also when it was interrupted. When reading as fast as it can is not enough, ``ScrubForecast`` says so,
and what would be.

An object costs as much as ``OBJECT_BYTES`` bytes, whatever its size: many small ones take their time too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from swift.base.clock import Clock

DAY_S = 86400.0
#: Cost of opening an object, in bytes that could be read meanwhile.
OBJECT_BYTES = 65536
#: Passes aim at this part of the period, so that a slow last day does not break the promise.
AIM = 0.9
#: Between two objects it rests no longer than that, however little there is to read, seconds.
REST_MAX_S = 300.0
#: Length of one pause: the supervisor sees activity between pauses, seconds.
REST_S = 30.0
#: Working time after which the possible rate is known, seconds.
KNOWN_AFTER_S = 60.0
#: From so many partitions on, what was met says more than what is in use.
_PARTITIONS_KNOWN = 10


@dataclass(frozen=True)
class ScrubForecast:
    """State of a scrub promise."""

    days: float
    #: Days in which the pass will have read everything, as it looks now.
    days_expected: float
    #: Bytes a second that it takes from now on, objects counted in, and how many can be read.
    rate_needed: float
    rate_possible: float
    is_on_schedule: bool

    def as_facts(self) -> dict[str, object]:
        """Return the values for the recon file."""
        return {
            "promised_days": round(self.days, 3),
            "expected_days": round(self.days_expected, 3),
            "bytes_per_second_needed": round(self.rate_needed),
            "bytes_per_second_possible": round(self.rate_possible),
            "kept": self.is_on_schedule,
        }

    def __str__(self) -> str:
        text = f"will be read in {self.days_expected:.1f} days, {self.days:g} were promised"
        if self.is_on_schedule:
            return text
        return (
            f"{text}: it takes {self.rate_needed / 1e6:.1f} MB/s from now on, "
            f"{self.rate_possible / 1e6:.1f} MB/s are possible; raise scrub_bytes_per_second or concurrency, "
            "or promise more days"
        )


class Scrub:
    """The pace of one pass over a device."""

    def __init__(
        self,
        target_s: float,
        *,
        begun_s: float,
        used_bytes: float,
        work_done: float,
        partitions: int,
        clock: Clock,
        wait: Callable[[float], bool],
        alive: Callable[[], None],
    ):
        """``begun_s`` is Unix time; ``work_done`` and ``partitions`` (0: unknown) are of a former process."""
        self._target_s = target_s
        self._begun_s = begun_s
        self._used = used_bytes
        self._work = work_done
        self._work_before = work_done
        self._clock = clock
        self._wait = wait
        self._alive = alive
        self._started_s = self._next_s = clock.monotonic()
        self._rested_s = 0.0
        self._left: dict[int, int] = {}
        #: Partitions of the whole pass.
        self.partitions = partitions

    def expect(self, policy: int, left: int) -> None:
        """Set the number of remaining partitions of a policy."""
        self._left[policy] = left
        self.partitions = max(self.partitions, sum(self._left.values()))

    def work_left(self) -> float:
        """Bytes that are left to read, objects counted in."""
        left = sum(self._left.values())
        done = self.partitions - left
        if done >= _PARTITIONS_KNOWN:
            return self._work / done * left
        return max(self._used * left / max(1, self.partitions), self._work * left / max(1, done))

    def seconds_left(self) -> float:
        """Until the pass should be through, by the clock."""
        return self._begun_s + self._target_s * AIM - self._clock.time()

    def rate(self) -> float:
        """Bytes a second from now on; infinite when it is late."""
        seconds = self.seconds_left()
        return self.work_left() / seconds if seconds > 0 else float("inf")

    def pause_after(self, size_bytes: int, objects: int = 0) -> None:
        """Pause after reading ``size_bytes``, to hold the pace. Safe in disk threads."""
        work = size_bytes + objects * OBJECT_BYTES
        self._work += work
        rate = self.rate()
        now_s = self._clock.monotonic()
        rest_s = min(work / rate, REST_MAX_S) if rate > 0 else 0.0
        # Counted from the planned moment, so that time spent reading is no rest.
        self._next_s = max(self._next_s, now_s - REST_S) + rest_s
        while (ahead_s := self._next_s - self._clock.monotonic()) > 0:
            step_s = min(ahead_s, REST_S)
            self._rested_s += step_s
            self._alive()
            if self._wait(step_s):
                return

    def forecast(self) -> ScrubForecast:
        """Return the promise's current state."""
        now_s = self._clock.time()
        recheck_s = self._clock.monotonic() - self._started_s - self._rested_s
        left = self.work_left()
        seconds = self._begun_s + self._target_s - now_s
        needed = left / seconds if seconds > 0 else float("inf") if left else 0.0
        done = self._work - self._work_before
        is_known = recheck_s >= KNOWN_AFTER_S and done > 0
        possible = done / recheck_s if is_known else float("inf")
        kept = needed <= possible and (seconds > 0 or not any(self._left.values()))
        if kept:
            ends_s = max(now_s, self._begun_s + self._target_s * AIM) if left else now_s
        else:
            ends_s = now_s + (left / possible if is_known else 0.0)
        return ScrubForecast(
            self._target_s / DAY_S,
            (ends_s - self._begun_s) / DAY_S,
            needed if needed != float("inf") else left,
            possible if is_known else 0.0,
            kept,
        )

    def __repr__(self) -> str:
        return f"<Scrub {self.forecast()}>"

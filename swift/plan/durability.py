"""The probability that an object is lost, by a Markov chain, and the same simulated as a check of it.

A group is the drives that hold one partition. State i of the chain is i of them dead: the others fail at
(n - i) x the failure rate, each dead one is made again at the repair rate; more dead ones than the policy
bears is a loss. Failures are independent of each other.
"""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass

from swift.plan.errors import PlanError

HOURS_A_YEAR = 8766.0
#: Drives of a group that die during a repair when a loss is simulated, for each that may.
_DEAD_PER_TOLERATED = 0.2


@dataclass(frozen=True, slots=True)
class PolicyShape:
    """Copies or fragments of an object: ``total`` of them, of which ``needed`` are enough to read it."""

    name: str
    needed: int
    total: int

    @property
    def tolerated(self) -> int:
        """Drives of a group that may be dead at once."""
        return self.total - self.needed

    @property
    def overhead(self) -> float:
        """Bytes stored for a byte of an object."""
        return self.total / self.needed


def parse_policy(text: str) -> PolicyShape:
    """Parse ``3`` (replicas) or ``8+4`` (data and parity fragments). Raises PlanError."""
    match = re.fullmatch(r"(\d{1,3})(?:\+(\d{1,3}))?", text.strip())
    if match is None:
        raise PlanError(f"policy {text!r} is neither a number of replicas nor DATA+PARITY, such as 8+4")
    first, parity = int(match[1]), match[2]
    if first < 1:
        raise PlanError(f"policy {text!r} stores nothing")
    if parity is None:
        return PolicyShape(f"{first} replicas", 1, first)
    return PolicyShape(f"EC {first}+{parity}", first, first + int(parity))


def mean_time_to_loss(shape: PolicyShape, failure: float, repair: float) -> float:
    """Return the mean time until a whole group is lost, in the unit of time of the rates.

    A birth and death chain: the time to go from i dead ones to i + 1 follows from that of i.
    """
    total_time = step = 0.0
    for dead in range(shape.tolerated + 1):
        forward = (shape.total - dead) * failure
        step = 1 / forward + (dead * repair / forward) * step
        total_time += step
    return total_time


def loss_probability(shape: PolicyShape, failure: float, repair: float, time: float) -> float:
    """Return the probability that a group is lost within ``time``."""
    return -math.expm1(-time / mean_time_to_loss(shape, failure, repair))


@dataclass(frozen=True, slots=True)
class DurabilityCheck:
    """Chain and simulation at one, raised, failure rate: mean times to loss in repair times."""

    failures_a_repair: float
    markov: float
    simulated: float
    losses: int

    @property
    def ratio(self) -> float:
        """Simulated by predicted."""
        return self.simulated / self.markov


def simulate_loss(shape: PolicyShape, *, seed: int = 0, losses: int = 1000) -> DurabilityCheck:
    """Let drives die and be made again, which takes a constant time, until ``losses`` groups were lost.

    Real failure rates would need ages of computing; so the rate is raised until drives often die during a
    repair, and the chain is asked about the same rate.
    """
    rng = random.Random(f"{seed} {shape.name}")
    failure = _DEAD_PER_TOLERATED * max(1, shape.tolerated) / shape.total
    time = sum(_time_to_loss(shape, failure, rng) for _ in range(losses))
    return DurabilityCheck(failure, mean_time_to_loss(shape, failure, 1.0), time / losses, losses)


def _time_to_loss(shape: PolicyShape, failure: float, rng: random.Random) -> float:
    now = 0.0
    ready: list[float] = []
    while True:
        following = now + rng.expovariate((shape.total - len(ready)) * failure)
        if ready and ready[0] <= following:
            now = ready.pop(0)
            continue
        now = following
        if len(ready) == shape.tolerated:
            return now
        ready.append(now + 1.0)

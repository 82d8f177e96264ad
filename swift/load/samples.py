"""Random choices of a workload: sizes and objects. Pure; all chance comes from the caller's generator.

A size belongs to an object, not to a request: every process, and a later verification, must find the same
one, so it is drawn from a generator seeded by the object's number.
"""

from __future__ import annotations

import bisect
import itertools
import random
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from swift.base.errors import SwiftError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmg]i?|)b?\Z", re.IGNORECASE)


class BadSample(SwiftError):
    """A distribution that cannot be drawn from."""


def parse_size(value: object) -> int:
    """Return the bytes of ``4096``, ``"64 KiB"`` or ``"1.5MB"``; raises ``BadSample``."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = _SIZE.match(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise BadSample(f"a size is a number of bytes or text like '64 KiB', not {value!r}")
    return int(float(match[1]) * _UNITS[match[2].lower()])


class Sizes(ABC):
    """A distribution of object sizes, bytes."""

    @abstractmethod
    def draw(self, chance: random.Random) -> int:
        """Return a random size."""

    @property
    @abstractmethod
    def mean(self) -> float:
        """The expected size."""

    def of(self, seed: int, number: int) -> int:
        """Return the size of the object ``number``, the same for every caller."""
        return self.draw(random.Random(f"{seed}/{number}"))


@dataclass(frozen=True)
class Constant(Sizes):
    """Always the same size."""

    size: int

    def draw(self, chance: random.Random) -> int:
        """See ``Sizes``."""
        return self.size

    @property
    def mean(self) -> float:
        """See ``Sizes``."""
        return float(self.size)


@dataclass(frozen=True)
class Uniform(Sizes):
    """Every size between two, both included, as often as any other."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise BadSample(f"no size lies between {self.low} and {self.high}")

    def draw(self, chance: random.Random) -> int:
        """See ``Sizes``."""
        return chance.randint(self.low, self.high)

    @property
    def mean(self) -> float:
        """See ``Sizes``."""
        return (self.low + self.high) / 2


@dataclass(frozen=True)
class Weighted(Sizes):
    """Several distributions, each as often as its weight says; a histogram is one of uniform bins."""

    parts: tuple[tuple[Sizes, float], ...]

    def __post_init__(self) -> None:
        if not self.parts or any(weight < 0 for _, weight in self.parts) or not self._total:
            raise BadSample("weights are numbers from 0 on, and one of them is above 0")

    @property
    def _total(self) -> float:
        return sum(weight for _, weight in self.parts)

    def draw(self, chance: random.Random) -> int:
        """See ``Sizes``."""
        sums = list(itertools.accumulate(weight for _, weight in self.parts))
        at = min(bisect.bisect_right(sums, chance.random() * sums[-1]), len(sums) - 1)
        return self.parts[at][0].draw(chance)

    @property
    def mean(self) -> float:
        """See ``Sizes``."""
        return sum(part.mean * weight for part, weight in self.parts) / self._total


class ObjectPicker(ABC):
    """Chooses among ``count`` prepared objects for each operation."""

    def __init__(self, count: int):
        if count < 1:
            raise BadSample("there is no object to choose from")
        self.count = count

    @abstractmethod
    def draw(self, chance: random.Random) -> int:
        """Return a number below ``count``."""


class UniformPicker(ObjectPicker):
    """Any object, as often as any other."""

    def draw(self, chance: random.Random) -> int:
        """See ``ObjectPicker``."""
        return int(chance.random() * self.count)


class ZipfPicker(ObjectPicker):
    """The object of rank k with a probability in proportion to k**-exponent.

    By rejection inversion (Hörmann and Derflinger 1996): no table, so millions of objects cost nothing. Ranks
    are spread over the objects, so that the popular ones are not neighbours in a container.
    """

    def __init__(self, count: int, exponent: float):
        super().__init__(count)
        if not 0 < exponent <= 10:
            raise BadSample("the exponent of a Zipf distribution lies above 0 and is at most 10")
        self._q = exponent
        self._low = self._integral(0.5)
        self._high = self._integral(count + 0.5)
        self._step = _coprime_near(int(count * 0.618), count)

    def _integral(self, x: float) -> float:
        if abs(self._q - 1) < 1e-9:
            from math import log

            return log(x)
        return float((x ** (1 - self._q) - 1) / (1 - self._q))

    def _inverse(self, y: float) -> float:
        if abs(self._q - 1) < 1e-9:
            from math import exp

            return exp(y)
        return float((1 + y * (1 - self._q)) ** (1 / (1 - self._q)))

    def rank(self, chance: random.Random) -> int:
        """Return a rank from 1 on."""
        while True:
            u = self._low + chance.random() * (self._high - self._low)
            x = self._inverse(u)
            k = min(max(int(x + 0.5), 1), self.count)
            # Accept in proportion of the true probability to the area of the hat over [k-1/2, k+1/2].
            if chance.random() * (self._integral(k + 0.5) - self._integral(k - 0.5)) <= k**-self._q:
                return k

    def draw(self, chance: random.Random) -> int:
        """See ``ObjectPicker``."""
        return (self.rank(chance) - 1) * self._step % self.count


def _coprime_near(number: int, count: int) -> int:
    from math import gcd

    number = max(1, number)
    while gcd(number, count) != 1:
        number += 1
    return number


class SequentialPicker(ObjectPicker):
    """One after the other, from the beginning again at the end; each client begins elsewhere."""

    def __init__(self, count: int, first: int = 0, stride: int = 1):
        super().__init__(count)
        self._next = first % count
        self._stride = stride

    def draw(self, chance: random.Random) -> int:
        """See ``ObjectPicker``."""
        found = self._next
        self._next = (found + self._stride) % self.count
        return found


class OperationMix:
    """Operations by weight."""

    def __init__(self, weights: Sequence[tuple[str, float]]):
        if not weights or any(weight < 0 for _, weight in weights) or not sum(w for _, w in weights):
            raise BadSample("weights are numbers from 0 on, and one of them is above 0")
        self._names = [name for name, _ in weights]
        self._sums = list(itertools.accumulate(weight for _, weight in weights))

    def draw(self, chance: random.Random) -> str:
        """Return the next operation."""
        at = bisect.bisect_right(self._sums, chance.random() * self._sums[-1])
        return self._names[min(at, len(self._names) - 1)]

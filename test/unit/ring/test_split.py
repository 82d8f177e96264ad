"""What nodes do while partitions are being split, and where they keep objects (spec: ring.md §8)."""

from __future__ import annotations

import pytest

from swift.ring.errors import PartPowerError
from swift.ring.ring import Ring
from swift.ring.split import Home, SplitPhase, home_of, phase

#: Partition 5 of 8, 10 of 16 and 20 of 32.
HASH = "a4" + "0" * 30


def test_the_phases_tell_nodes_what_to_do(golden):
    phases = {}
    for name in ("e0-base", "e1-prepared", "e2-increased", "e3-finished"):
        ring = Ring(str(golden / f"{name}.ring.gz"))
        phases[name] = phase(ring.view().part_power, ring.view().next_part_power)
    assert list(phases.values()) == [
        SplitPhase.STEADY,
        SplitPhase.RELINK,
        SplitPhase.CLEANUP,
        SplitPhase.STEADY,
    ]
    with pytest.raises(PartPowerError):
        phase(6, 9)


@pytest.mark.parametrize(
    ("partition", "powers", "home"),
    [
        # Prepared: the old one, and everything is linked into the new one.
        ("5", (3, 4), Home("5", None, 4)),
        ("10", (3, 4), Home("5", None, 4)),
        # Increased: the new one, with what is left in the old one.
        ("5", (4, 4), Home("10", "5", None)),
        ("10", (4, 4), Home("10", "5", None)),
        # Cancelled: as before, though proxies may have gone ahead.
        ("5", (3, 3), Home("5", "2", None)),
        ("10", (3, 3), Home("5", "2", None)),
        # Not its own.
        ("6", (3, 4), None),
        ("2", (3, 4), None),
        ("21", (4, 4), None),
    ],
)
def test_an_object_is_at_home_in_one_of_its_partitions(partition, powers, home):
    assert home_of(partition, HASH, *powers) == home


@pytest.mark.parametrize("powers", [(3, 4), (4, 4), (32, 32), (31, 32)])
def test_an_object_of_the_first_partition_stays_there(powers):
    assert home_of("0", "0" * 32, *powers) == Home("0", None, powers[1] if powers[0] < powers[1] else None)


def test_powers_that_no_step_produces_are_an_error():
    with pytest.raises(PartPowerError):
        home_of("5", HASH, 3, 7)

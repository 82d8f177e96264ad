"""What the ring tests share: small clusters, and the golden files."""

from __future__ import annotations

from pathlib import Path

import pytest

from swift.base.clock import ManualClock
from swift.ring.builder import RingBuilder

GOLDEN = Path(__file__).parent.parent.parent / "golden" / "data" / "rings"


@pytest.fixture
def golden() -> Path:
    """The directory of rings and builders made by upstream."""
    return GOLDEN


def _make_builder(
    *,
    part_power: int = 6,
    replicas: float = 3,
    zones: int = 4,
    per_zone: int = 2,
    min_part_hours: int = 1,
    weight: float = 100,
) -> RingBuilder:
    clock = ManualClock()
    builder = RingBuilder(part_power, replicas, min_part_hours, clock=clock)
    builder.clock = clock
    for zone in range(zones):
        for number in range(per_zone):
            builder.add_device(
                region=1,
                zone=zone,
                ip=f"10.0.{zone}.{number}",
                port=6200,
                device="sda",
                weight=weight,
            )
    return builder


@pytest.fixture
def make_builder():
    """Makes a builder with zones of equal devices; ``builder.clock`` moves its time."""
    return _make_builder

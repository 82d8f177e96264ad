"""Growing the number of partitions: the builder's four steps, and where objects go meanwhile.

The state is ``next_part_power``: absent, one more than the power (prepared: link new files to both places)
or equal to it (increased or cancelled: clean up the other place). Old partition p becomes 2p and 2p + 1,
told apart by the next bit of the digest, so no data has to travel. Linking files is the relinker's work, and
where nodes keep objects meanwhile says ``ring.split``. spec: ring.md §8
"""

from __future__ import annotations

from array import array

from swift.ring.builder import RingBuilder
from swift.ring.errors import PartPowerError
from swift.ring.table import PART_POWER_MAX


def predecessor(part: int) -> int:
    """Return the partition that was split into ``part``."""
    return part // 2


def prepare_increase(builder: RingBuilder) -> None:
    """Announce the next power. Raises PartPowerError when an increase is under way or impossible."""
    if builder.next_part_power is not None:
        raise PartPowerError("Ring is already prepared for partition power increase.")
    if builder.part_power >= PART_POWER_MAX:
        raise PartPowerError(f"The partition power is {PART_POWER_MAX}, the largest there is.")
    builder.next_part_power = builder.part_power + 1
    builder.version += 1


def increase(builder: RingBuilder) -> None:
    """Double the partitions. Raises PartPowerError unless the increase is prepared."""
    if builder.next_part_power != builder.part_power + 1:
        raise PartPowerError(
            "Ring partition power cannot be increased. Either the ring\n"
            "was not prepared yet, or this operation has already run."
        )
    if builder.rows is not None:
        builder.rows = [_doubled(row) for row in builder.rows]
    builder.hours_since_move = _doubled(builder.hours_since_move)
    builder.part_power = builder.next_part_power
    builder.dispersion_graph = {
        key: [2 * count for count in counts] for key, counts in builder.dispersion_graph.items()
    }
    for dev in builder.live_devs:
        dev["parts"] = 2 * dev.get("parts", 0)
        dev["parts_wanted"] = 2 * dev.get("parts_wanted", 0)
    builder.version += 1


def _doubled(row: array[int]) -> array[int]:
    """0, 3, 7 → 0, 0, 3, 3, 7, 7."""
    twice = array(row.typecode, bytes(2 * len(row) * row.itemsize))
    twice[0::2] = row
    twice[1::2] = row
    return twice


def cancel_increase(builder: RingBuilder) -> None:
    """Give up a prepared increase. Raises PartPowerError when there is none."""
    if builder.next_part_power != builder.part_power + 1:
        raise PartPowerError("Ring partition power increase cannot be canceled.")
    builder.next_part_power = builder.part_power
    builder.version += 1


def finish_increase(builder: RingBuilder) -> None:
    """End an increase or its cancellation. Raises PartPowerError when nothing is to be finished."""
    if builder.next_part_power != builder.part_power:
        raise PartPowerError("Ring partition power increase cannot be finished.")
    builder.next_part_power = None
    builder.version += 1

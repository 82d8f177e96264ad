"""Telling one misplaced object from wrong hash path settings.

An object or database whose name does not belong into its hash directory is damage, as long as it is one among
many that are where they belong. When few or none are, the settings in swift.conf are wrong or the device is
of another cluster, and moving anything would take everything away.
"""

from __future__ import annotations

#: So many may be moved away by one process at once ...
MOVES_WITHOUT_EVIDENCE = 10
#: ... and one more for so many that are where they belong.
FITTING_NEEDED_PER_MOVE = 100
#: A pass ends after so many in a row that may not be moved.
MOVES_IN_A_ROW_MAX = 10


class MisplacedGuard:
    """Decides by what it has seen so far, separately for each device. Pure."""

    def __init__(self) -> None:
        self._fitting: dict[str, int] = {}
        self._moved: dict[str, int] = {}

    def note_fitting(self, device: str) -> None:
        """Count something on the device that is where its name belongs."""
        self._fitting[device] = self._fitting.get(device, 0) + 1

    def may_move(self, device: str) -> bool:
        """Return True, and count it as moved, if something misplaced may be taken for damage."""
        fitting, moved = self._fitting.get(device, 0), self._moved.get(device, 0)
        if not fitting or moved >= MOVES_WITHOUT_EVIDENCE + fitting // FITTING_NEEDED_PER_MOVE:
            return False
        self._moved[device] = moved + 1
        return True

    def __repr__(self) -> str:
        return f"<MisplacedGuard {sum(self._fitting.values())} fit, {sum(self._moved.values())} moved>"

"""Position of a pass over a share, kept across restarts: ``<recon_cache_path>/<daemon>.cursors/<share>``.

A pass that can go on in the midst notes positions; what is noted is written now and then and at the end of
the process, and forgotten when the pass is through. It is news, not data: what is lost is done again.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from urllib.parse import quote

from swift.base.clock import Clock
from swift.platform.disk import Disk
from swift.platform.privileges import make_directories
from swift.platform.regularfiles import read_regular
from swift.telemetry.log import Log
from swift.telemetry.recon import parse, replace_text

#: Seconds of work that may be done again after a crash.
SAVED_EVERY_S = 10.0


@dataclass
class ResumeState:
    """Saved state of an unfinished pass."""

    #: Unix time at which the pass over the share began, whichever process began it.
    begun_s: float
    #: The last note of the pass, as JSON values; None at the beginning.
    position: object = None
    #: The counts so far, of all processes.
    units: int = 0
    bytes: int = 0
    seconds: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)


class Cursor:
    """The place of one share's pass: made by the runner, the pass uses ``position`` and ``note``.

    An empty ``path`` keeps nothing, for runs that do a part only.
    """

    def __init__(self, path: str, clock: Clock, log: Log):
        self.path = path
        self._clock = clock
        self._log = log
        self._next_save_s = clock.monotonic() + SAVED_EVERY_S
        self._is_changed = False
        self.resume_state = self._read() or ResumeState(clock.time())

    @property
    def position(self) -> object:
        """Position at which to resume: the last one noted, or None at the start of a pass."""
        return self.resume_state.position

    @property
    def begun_s(self) -> float:
        """Unix time at which the pass began, possibly before a restart."""
        return self.resume_state.begun_s

    def note(self, position: object) -> None:
        """Set the position: everything before it is done. ``position`` must be a JSON value."""
        self.resume_state.position = position
        self._is_changed = True

    def save_if_due(self) -> bool:
        """Return True if it is time for ``save``."""
        return self._is_changed and self._clock.monotonic() >= self._next_save_s

    def save(self) -> None:
        """Write what was noted; a failure is logged and otherwise ignored."""
        if not self._is_changed or not self.path:
            return
        self._next_save_s = self._clock.monotonic() + SAVED_EVERY_S
        try:
            make_directories(os.path.dirname(self.path))
            replace_text(self.path, json.dumps(vars(self.resume_state)) + "\n")
        except OSError as error:
            self._log.warning(f"cannot save the position of the pass in {self.path}: {error.strerror}")

    def clear(self) -> None:
        """Forget the position after a complete pass."""
        if not self.path:
            return
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            return
        except OSError as error:
            self._log.warning(f"cannot remove {self.path}: {error.strerror}")

    def _read(self) -> ResumeState | None:
        """Return the state that an earlier process saved, or None when there is no usable one."""
        if not self.path:
            return None
        try:
            value = parse(read_regular(Disk(), self.path).decode())
            resume_state = ResumeState(**value)
            numbers = (
                resume_state.begun_s,
                resume_state.units,
                resume_state.bytes,
                resume_state.seconds,
                *resume_state.counts.values(),
            )
            if not all(isinstance(number, (int, float)) for number in numbers):
                return None
        except (OSError, UnicodeDecodeError, TypeError, AttributeError):
            return None
        return resume_state

    def __repr__(self) -> str:
        return f"<Cursor {self.path} at {self.position!r}>"


def cursor_path(directory: str, daemon: str, share: str) -> str:
    """Return the path of the cursor file of a share; ``directory`` is that of the recon files."""
    return os.path.join(directory, f"{daemon}.cursors", quote(share, safe=""))

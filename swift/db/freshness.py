"""What a broker knows of its hash directory, and how sure it is of that.

===========  ====================================================  =========================================
state        what it means                                         what may be done
===========  ====================================================  =========================================
UNKNOWN      nobody has looked yet, or what was there went away    look before anything else
ABSENT       there was no database when last looked at             the same
OPENED       the files are open, but names came or went so lately  read and write; look before each request
             that another change might not show
FRESH        the directory has been at rest since the files were   rows may be put without looking, because
             opened                                                putting them looks again
===========  ====================================================  =========================================

Everybody who looks says what he ``saw``, whoever opens files says which; the state follows. Whether rows are
pending is known beside it: None when nobody has looked since the last ``ask_anew``.
"""

from __future__ import annotations

from enum import Enum


class FileState(Enum):
    """See above."""

    UNKNOWN = "unknown"
    ABSENT = "absent"
    OPENED = "opened"
    FRESH = "fresh"


class Freshness:
    """Of one broker; decides without I/O. Names are the tuples of ``db.watch``, told apart as objects."""

    __slots__ = ("state", "has_pending", "opened")

    def __init__(self) -> None:
        self.state = FileState.UNKNOWN
        #: Whether rows wait to be merged; None: nobody has looked.
        self.has_pending: bool | None = None
        #: The names whose files are open; empty where some are not.
        self.opened: tuple[str, ...] = ()

    @property
    def is_fresh(self) -> bool:
        """Whether rows may be put without another look."""
        return self.state is FileState.FRESH

    def saw(self, names: tuple[str, ...]) -> None:
        """Somebody looked: these are there. The same object as before comes from a directory at rest."""
        if not names:
            self.state = FileState.ABSENT
        else:
            self.state = FileState.FRESH if names is self.opened else FileState.OPENED

    def learn_pending(self, has_pending: bool) -> None:
        """What a look said of pending rows, unless somebody put or merged some since."""
        if self.has_pending is None:
            self.has_pending = has_pending

    def lost(self) -> None:
        """What was to be written to is not there."""
        self.state = FileState.UNKNOWN

    def closed(self) -> None:
        """No file is open any more."""
        self.state, self.opened = FileState.UNKNOWN, ()

    def __repr__(self) -> str:
        pending = {None: "pending rows unknown", True: "rows pending", False: "nothing pending"}
        return f"<Freshness {self.state.value}, {pending[self.has_pending]}>"

"""What the names of a hash directory mean, as a value: the vocabulary of both choosers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from swift.base.timestamp import Timestamp
from swift.store.filenames import FileName


@dataclass(frozen=True, slots=True)
class FragmentPreference:
    """A timestamp whose fragments are welcome, except those of the excluded indexes."""

    timestamp: Timestamp
    exclude: frozenset[int] = frozenset()


@dataclass(slots=True)
class Choice:
    """What the names of one hash directory mean."""

    data: FileName | None = None
    meta: FileName | None = None
    ctype: FileName | None = None
    tombstone: FileName | None = None
    obsolete: list[FileName] = field(default_factory=list)
    possible_reclaim: list[FileName] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    #: Erasure coding only: the durable timestamp and every listed set, newest first.
    durable_timestamp: Timestamp | None = None
    fragment_sets: list[tuple[Timestamp, list[FileName]]] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether neither an object nor a tombstone is there."""
        return self.data is None and self.tombstone is None

    def picture(self) -> str:
        """The choice as one line, for logs and tests."""
        shown = {
            "data": self.data,
            "meta": self.meta,
            "ctype": self.ctype,
            "ts": self.tombstone,
            "obsolete": self.obsolete,
            "reclaim": self.possible_reclaim,
        }
        return " ".join(f"{key}={_names(value)}" for key, value in shown.items() if value) or "nothing"


def _names(value: FileName | list[FileName] | None) -> str:
    if isinstance(value, FileName):
        return value.name
    return ",".join(file.name for file in value or ())


Files = dict[str, list[FileName]]
#: Chooses the data files of one policy type; fills ``choice.data`` and takes files out of the groups.
DataRule = Callable[[Files, Choice], None]


def take_out(groups: Files, choice: Choice, is_obsolete: Callable[[FileName], bool]) -> None:
    """Move every file that is obsolete from its group to ``choice.obsolete``."""
    for extension, files in groups.items():
        gone = [file for file in files if is_obsolete(file)]
        if gone:
            choice.obsolete.extend(gone)
            groups[extension] = [file for file in files if file not in gone]

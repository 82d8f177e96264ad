"""Progress of cleaving the rows of a file, stored in metadata (spec: account-container.md §19.3)."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from swift.base.timestamp import Timestamp
from swift.container.broker import ContainerBroker
from swift.db.metadata import Metadata
from swift.http import fields as names

PREFIX = names.SYSMETA_SHARD_CONTEXT.title()
#: Types of a sharder's stored values; true and false are no numbers here.
_KINDS: dict[str, tuple[type, ...]] = {
    "cursor": (str,),
    "cleave_to_row": (int, type(None)),
    "last_cleave_to_row": (int, type(None)),
    "cleaving_done": (bool,),
    "misplaced_done": (bool,),
    "ranges_done": (int,),
    "ranges_todo": (int,),
    "replication_time": (int, float),
}


@dataclass
class CleaveContext:
    """The progress of one old file, ``ref``; ``cursor`` is the upper bound of what is done."""

    ref: str
    cursor: str = ""
    max_row: int = -1
    cleave_to_row: int | None = None
    last_cleave_to_row: int | None = None
    cleaving_done: bool = False
    misplaced_done: bool = False
    ranges_done: int = 0
    ranges_todo: int = 0
    replication_time: float = 0.0

    @classmethod
    def load(cls, metadata: Metadata, ref: str, max_row: int) -> CleaveContext:
        """Return the stored progress, or none yet; what cannot be read counts as none."""
        text = metadata.get(PREFIX + ref, ("", ""))[0]
        try:
            values = json.loads(text) if text else {}
        except (ValueError, RecursionError):
            values = {}
        found = {name: values[name] for name in _KINDS if name in values} if isinstance(values, dict) else {}
        if found.get("cursor", "") is None:
            del found["cursor"]
        if not all(type(value) in _KINDS[name] for name, value in found.items()):
            found = {}
        return cls(ref, max_row=max_row, **found)

    def start(self, max_row: int) -> None:
        """Begin again, up to the rows there are now."""
        self.cursor = ""
        self.ranges_done = self.ranges_todo = 0
        self.cleaving_done = False
        self.last_cleave_to_row, self.cleave_to_row = self.cleave_to_row, max_row

    def store(self, broker: ContainerBroker, now: Timestamp) -> None:
        """Keep it; durable when this returns."""
        broker.update_metadata({PREFIX + self.ref: (json.dumps(asdict(self)), now.internal)})

    def delete(self, broker: ContainerBroker, now: Timestamp) -> None:
        """Forget it."""
        broker.update_metadata({PREFIX + self.ref: ("", now.internal)})

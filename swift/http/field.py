"""Declaration of an internal name (``http/fields.py``, ``http/environkeys.py``)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class FieldKind(Enum):
    """Type of a header's value."""

    TEXT = "text"
    FLAG = "flag"
    NUMBER = "number"
    TIME = "timestamp"
    LIST = "list"
    MAP = "dictionary"
    JSON = "JSON"
    CALL = "function"
    OBJECT = "object"


class Direction(Enum):
    """Sender and receiver of a header."""

    TO_NODE = "to storage servers"
    FROM_NODE = "from storage servers"
    BOTH_WAYS = "to and from storage servers"
    INSIDE = "among filters, proxy and servers"
    STORED = "stored with the entity"
    FILTERS = "among filters and proxy"


@dataclass(frozen=True, slots=True)
class Field:
    """A declared name; a header's is in lower case, and a prefix when it ends in ``-``."""

    name: str
    kind: FieldKind
    direction: Direction
    doc: str

"""The reconciler's queue: which objects lie in a wrong policy (spec: account-container.md §18).

An entry of ``.misplaced_objects/<hour>`` is named ``<policy>:/<account>/<container>/<object>``; its ETag is
the time of what was written there, its content type tells whether that was an object or a deletion. The
newest hour comes first, because clients may be waiting for what they wrote a moment ago.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import md5
from typing import NamedTuple

from swift.base.entity import BadPath, EntityPath, quote_path, split_path
from swift.base.errors import InvalidValue
from swift.base.timestamp import Timestamp, decode_timestamps
from swift.container.misplaced import HOUR_S, QUEUE_ACCOUNT
from swift.gateway.internal_client import InternalClient

PUT_TYPE = "application/x-put"
DELETE_TYPE = "application/x-delete"


class MisplacedObject(NamedTuple):
    """An object that may lie in a wrong policy."""

    #: Container and name of the entry in the queue.
    container: str
    name: str
    #: The policy in which it was written.
    policy_index: int
    path: EntityPath
    #: The newest time of what was written: data, content type or metadata.
    timestamp: Timestamp
    #: When the entry was put into the queue.
    recorded: Timestamp
    is_delete: bool

    def __str__(self) -> str:
        return f"{self.container}/{self.name}"


def parse_entry(container: str, row: Mapping[str, object]) -> MisplacedObject:
    """Return the entry of a row of a queue container's listing; raises ``InvalidValue``."""
    name, kind = str(row.get("name", "")), row.get("content_type")
    index, colon, rest = name.partition(":")
    if not colon or not (index.isascii() and index.isdigit()):
        raise InvalidValue("names no policy")
    if kind not in (PUT_TYPE, DELETE_TYPE):
        raise InvalidValue(f"is of an unknown type, {kind!r}")
    try:
        account, its_container, obj = split_path(quote_path(rest), 3, 3, rest_with_last=True)
    except (BadPath, UnicodeEncodeError):
        raise InvalidValue("names no object")
    times = decode_timestamps(str(row.get("hash", "")))
    return MisplacedObject(
        container,
        name,
        int(index),
        EntityPath(str(account), its_container, obj),
        max(times),
        _recorded(str(row.get("last_modified", ""))),
        kind == DELETE_TYPE,
    )


def _recorded(text: str) -> Timestamp:
    try:
        moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        raise InvalidValue(f"has no time, but {text!r}")
    return Timestamp(moment.timestamp())


class ReconcilerQueue:
    """Reads the queue; ``processes`` of them share it, of which this one is number ``process``."""

    def __init__(
        self,
        client: InternalClient,
        *,
        processes: int = 0,
        process: int = 0,
        warn: Callable[[str], object] = lambda _text: None,
    ):
        self._client = client
        self._processes = processes
        self._process = process
        self._warn = warn

    def containers(self, now_s: float) -> list[str]:
        """Return the queue's containers: that of this hour, then the newest of the others first."""
        names = [str(row.get("name", "")) for row in self._client.containers(QUEUE_ACCOUNT)]
        found = sorted((name for name in names if name.isascii() and name.isdigit()), key=int, reverse=True)
        this_hour = str(int(now_s) // HOUR_S * HOUR_S)
        # Its account may not have heard of it yet.
        return [this_hour, *(name for name in found if name != this_hour)]

    def entries(self, container: str) -> Iterator[MisplacedObject]:
        """Yield the entries of a container that are this process's."""
        for row in self._client.objects(QUEUE_ACCOUNT, container):
            try:
                entry = parse_entry(container, row)
            except InvalidValue as error:
                self._warn(f"{QUEUE_ACCOUNT}/{container}/{row.get('name')} {error}; it is left alone")
                continue
            if self._is_mine(entry):
                yield entry

    def _is_mine(self, entry: MisplacedObject) -> bool:
        if not self._processes:
            return True
        digest = md5(str(entry).encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()
        return int(digest, 16) % self._processes == self._process

    def is_empty(self, container: str) -> bool:
        """Return True if a container of the queue has no entry."""
        return next(iter(self._client.objects(QUEUE_ACCOUNT, container)), None) is None

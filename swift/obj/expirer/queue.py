"""The expirer's queue: what is due in it, in a fair order (spec: replication.md §8)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from hashlib import md5
from itertools import islice
from typing import NamedTuple, TypeVar

from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.cluster.expiry import ASYNC_DELETE_TYPE, SLICE_S, SPREAD, parse_task
from swift.gateway.internal_client import InternalClient
from swift.obj.expirer.settings import Delays

T = TypeVar("T")

#: Of the time that a container of the queue is named after.
_DIGITS = 10


class ExpiringObject(NamedTuple):
    """An object to be deleted."""

    #: Container and name of the task in the queue.
    container: str
    name: str
    #: When it expired, or when its deletion was asked for.
    timestamp: Timestamp
    path: EntityPath
    #: True if a client asked for the deletion, whatever the object says.
    is_async_delete: bool

    def __str__(self) -> str:
        return f"{self.container}/{self.name}"


class ExpirerQueue:
    """Reads the queue; ``processes`` of them share it, of which this one is number ``process``."""

    def __init__(
        self,
        client: InternalClient,
        account: str,
        delays: Delays,
        *,
        processes: int = 0,
        process: int = 0,
        warn: Callable[[str], object] = lambda _text: None,
    ):
        self._client = client
        self._account = account
        self._delays = delays
        self._processes = processes
        self._process = process
        self._warn = warn

    def containers(self, now_s: float) -> Iterator[str]:
        """Yield the queue's containers up to now, oldest first."""
        for row in self._client.containers(self._account):
            name = row.get("name", "")
            if not (name.isascii() and name.isdigit()):
                self._warn(f"{self._account}/{name} is no container of the queue; it is left alone")
                continue
            if len(name) > _DIGITS:
                # Names sort as numbers do only among those of one length: later ones may have come.
                self._warn(
                    f"{self._account}/{name} is too long for a container of the queue; it is left alone"
                )
                continue
            if int(name) > now_s:
                return
            if not is_expected(int(name)):
                self._warn(f"{self._account}/{name} lies at an unusual place of the queue")
            yield name

    def due(self, container: str, now_s: float) -> Iterator[ExpiringObject]:
        """Yield the tasks of a container that are due and this process's, oldest first."""
        for row in self._client.objects(self._account, container):
            name = row.get("name", "")
            parsed = parse_task(name)
            if parsed is None:
                self._warn(f"{container}/{name} is no task; it is left alone")
                continue
            timestamp, path = parsed
            if timestamp.seconds > now_s:
                return
            task = ExpiringObject(
                container, name, timestamp, path, row.get("content_type") == ASYNC_DELETE_TYPE
            )
            if self._is_mine(task) and timestamp.seconds + self._delay_s(task) <= now_s:
                yield task

    def _is_mine(self, task: ExpiringObject) -> bool:
        if not self._processes:
            return True
        digest = md5(str(task).encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()
        return int(digest, 16) % self._processes == self._process

    def _delay_s(self, task: ExpiringObject) -> float:
        return 0.0 if task.is_async_delete else self._delays.of(task.path.account, task.path.container or "")

    def is_empty(self, container: str) -> bool:
        """Return True if a container of the queue has no task, due or not."""
        return next(iter(self._client.objects(self._account, container)), None) is None


def is_expected(container_s: int) -> bool:
    """Return True if a container's name is in the task range: within ``SPREAD`` before a slice's begin."""
    return SLICE_S - (container_s - 1) % SLICE_S <= SPREAD


def interleaved(items: Iterable[T], key: Callable[[T], Hashable], size_max: int) -> Iterator[T]:
    """``items`` so that those of different keys take turns, among ``size_max`` of them at a time."""
    source = iter(items)
    while True:
        # Nothing else holds them, so that each is forgotten when it had its turn.
        groups: dict[Hashable, deque[T]] = {}
        for item in islice(source, size_max):
            groups.setdefault(key(item), deque()).append(item)
        if not groups:
            return
        waiting = deque(groups.values())
        while waiting:
            group = waiting.popleft()
            yield group.popleft()
            if group:
                waiting.append(group)

"""Sets of fragment archives that belong together, and the rule of when they are enough (spec: proxy.md §13).

Nodes may hold archives of several uploads of one object, some of them never committed. ``FragmentSets``
groups the reported archives by the upload's timestamp, ranks the groups, and returns what to request next.
Pure: it performs no requests, and prints itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from swift.base.digits import is_digits
from swift.base.timestamp import ZERO, InvalidTimestamp, Timestamp
from swift.http import fields
from swift.http.headers import HeaderMap

INDEX_HEADER = fields.SYSMETA_EC_FRAG_INDEX
ETAG_HEADER = fields.SYSMETA_EC_ETAG

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class FoundArchive(Generic[S]):
    """One archive that a node reports; ``source`` is the object from which it can be read."""

    index: int
    timestamp: Timestamp
    durable: Timestamp | None
    etag: str
    #: Timestamp → fragment indexes, of all archives that the node has.
    listed: dict[Timestamp, frozenset[int]]
    headers: HeaderMap
    source: S

    @classmethod
    def of(cls, headers: HeaderMap, source: S) -> FoundArchive[S] | None:
        """Return the archive of an object server's response, None when it is no fragment archive."""
        index, etag = headers.get(INDEX_HEADER, ""), headers.get(ETAG_HEADER, "")
        if not is_digits(index) or not etag:
            return None
        try:
            stamp = Timestamp(
                headers.get(fields.BACKEND_DATA_TIMESTAMP) or headers.get(fields.BACKEND_TIMESTAMP)
            )
            durable = headers.get(fields.BACKEND_DURABLE_TIMESTAMP)
            committed = Timestamp(durable) if durable else None
            listed = _parse_listed(headers.get(fields.BACKEND_FRAGMENTS))
        except InvalidTimestamp:
            return None
        return cls(int(index), stamp, committed, etag, listed, headers, source)


def _parse_listed(text: str | None) -> dict[Timestamp, frozenset[int]]:
    if not text:
        return {}
    try:
        return {
            Timestamp(stamp): frozenset(index for index in indexes if type(index) is int)
            for stamp, indexes in json.loads(text).items()
        }
    except (ValueError, AttributeError, TypeError, RecursionError):
        return {}


@dataclass(slots=True)
class FragmentSet(Generic[S]):
    """The archives of one upload, at most one of each index."""

    timestamp: Timestamp
    #: The object's; empty as long as there is no member.
    etag: str = ""
    durable: bool = False
    members: dict[int, FoundArchive[S]] = field(default_factory=dict)
    #: Archives that other members made superfluous; their nodes may be needed later.
    spares: list[FoundArchive[S]] = field(default_factory=list)
    #: Sources whose nodes list (further) indexes of this upload.
    listed_sources: list[tuple[S, frozenset[int]]] = field(default_factory=list)

    def shortfall(self, need: int) -> int:
        """Return the number of missing archives."""
        return max(0, need - len(self.members))

    def shortfall_with_listed(self, need: int) -> int:
        """Return the number of archives that are missing even with those that nodes list."""
        known = set(self.members).union(*(indexes for _, indexes in self.listed_sources))
        return max(0, need - len(known))

    def alternates(self) -> Iterator[S]:
        """Yield sources whose nodes have an index that no member has, once per such index."""
        seen: set[int] = set()
        for source, indexes in self.listed_sources:
            for index in sorted(indexes - set(self.members) - seen):
                seen.add(index)
                yield source

    def pop_alternate(self) -> S | None:
        """Return an alternate and remove it; a source is used once per response that listed it."""
        source = next(self.alternates(), None)
        self.listed_sources = [pair for pair in self.listed_sources if pair[0] is not source]
        return source

    def __str__(self) -> str:
        state = "durable" if self.durable else "pending"
        return f"{self.timestamp.internal} {state} {sorted(self.members)}"


class FragmentSets(Generic[S]):
    """All uploads seen so far; ``need`` distinct archives of one give the object."""

    def __init__(self, need: int):
        self.need = need
        self._sets: dict[Timestamp, FragmentSet[S]] = {}
        self._durable: set[Timestamp] = set()
        self._deleted = ZERO

    def add(self, archive: FoundArchive[S]) -> bool:
        """Add an archive; return False when it is not needed and its source can be closed."""
        if archive.durable is not None:
            self._durable.add(archive.durable)
        group = self._group(archive.timestamp)
        for stamp, indexes in archive.listed.items():
            others = indexes - {archive.index} if stamp == archive.timestamp else indexes
            if others:
                self._group(stamp).listed_sources.append((archive.source, others))
        for stamp in self._durable & set(self._sets):
            self._sets[stamp].durable = True
        group.etag = group.etag or archive.etag
        if archive.etag != group.etag:
            return False
        if archive.index in group.members:
            group.spares.append(archive)
            return False
        group.members[archive.index] = archive
        return archive.timestamp > self._deleted

    def _group(self, stamp: Timestamp) -> FragmentSet[S]:
        group = self._sets.get(stamp)
        if group is None:
            group = self._sets[stamp] = FragmentSet(stamp)
        return group

    def record_deletion(self, stamp: Timestamp) -> None:
        """Record that the object was deleted at a time; older uploads do not count."""
        self._deleted = max(self._deleted, stamp)

    def ranked(self) -> list[FragmentSet[S]]:
        """Return the uploads that still count, the most promising first."""
        return sorted(
            (group for group in self._sets.values() if group.timestamp > self._deleted),
            key=lambda group: (
                group.durable,
                not group.shortfall(self.need),
                -group.shortfall_with_listed(self.need),
                group.timestamp,
            ),
            reverse=True,
        )

    @property
    def best(self) -> FragmentSet[S] | None:
        """The most promising upload."""
        ranked = self.ranked()
        return ranked[0] if ranked else None

    @property
    def complete(self) -> FragmentSet[S] | None:
        """The upload that can be read now."""
        best = self.best
        return best if best is not None and best.durable and not best.shortfall(self.need) else None

    @property
    def shortfall(self) -> int:
        """Archives to ask for."""
        best = self.best
        if best is None:
            return self.need
        missing = best.shortfall(self.need)
        return missing if missing or best.durable else 1

    def preferences(self) -> str:
        """Return the value of X-Backend-Fragment-Preferences for the next request."""
        return json.dumps(
            [
                {"timestamp": group.timestamp.internal, "exclude": sorted(group.members)}
                for group in self.ranked()
            ]
        )

    def archives(self) -> Iterator[FoundArchive[S]]:
        """Yield every member archive."""
        for group in self._sets.values():
            yield from group.members.values()

    def __str__(self) -> str:
        return "; ".join(map(str, self.ranked())) or "nothing"

"""Digests of whole partitions: a few messages show that nodes are in sync.

A digest stands for all suffix hashes of a partition; of an erasure coded one for what archives of one index
and everything without an index say, so that each node tells the digest of its own index and both are equal
when nothing lacks. A question names many partitions of a device and is a REPLICATE with a header of ours
(``BACKEND_PARTITION_DIGESTS``) and a body; a server that does not know it answers with the hashes of the one
partition in the path. A response omits unknown digests, so that no request waits for them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import md5

from swift.base.errors import InvalidValue
from swift.policy.policy import Policy
from swift.store.api import ObjectStore

#: Partitions of one question.
PARTITIONS_MAX = 2000
#: Bytes of a question or an answer: what so many partitions take at most.
BODY_BYTES_MAX = 128 << 10
#: For so long a server computes digests for one question, seconds.
DIGESTS_S = 5.0
#: Partitions that a book remembers; it forgets all of them rather than grow beyond.
ENTRIES_MAX = 1_000_000
#: The digest of a partition in which nothing is.
EMPTY = ""

#: Partition → the index whose archives count (None: replicated).
DigestRequest = Mapping[int, int | None]


class BadDigestMessage(InvalidValue):
    """Malformed digest request or response."""


def encode_request(question: DigestRequest) -> bytes:
    """Return the body of a digest request."""
    return json.dumps({str(part): index for part, index in question.items()}, separators=(",", ":")).encode()


def decode_request(body: bytes) -> dict[int, int | None]:
    """Return the partitions that a request's body names; raises ``BadDigestMessage``."""
    query: dict[int, int | None] = {}
    for part, index in _object_of(body):
        if index is not None and (type(index) is not int or index < 0):
            raise BadDigestMessage(f"{index!r:.40} is no fragment index")
        query[part] = index
    return query


def encode_response(response: Mapping[int, str]) -> bytes:
    """Return the body of a digest response."""
    return json.dumps({str(part): text for part, text in response.items()}, separators=(",", ":")).encode()


def decode_response(body: bytes) -> dict[int, str]:
    """Return the digests in a response's body; raises ``BadDigestMessage``."""
    response: dict[int, str] = {}
    for part, text in _object_of(body):
        if not isinstance(text, str):
            raise BadDigestMessage(f"{text!r:.40} is no digest")
        response[part] = text
    return response


def _object_of(body: bytes) -> list[tuple[int, object]]:
    if len(body) > BODY_BYTES_MAX:
        raise BadDigestMessage(f"{len(body)} bytes are more than {BODY_BYTES_MAX}")
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise BadDigestMessage("the body is not JSON")
    if not isinstance(found, dict) or len(found) > PARTITIONS_MAX:
        raise BadDigestMessage(f"the body is no object of at most {PARTITIONS_MAX} partitions")
    for name in found:
        if not (name.isascii() and name.isdigit() and len(name) <= 10) or str(int(name)) != name:
            raise BadDigestMessage(f"{name!r:.40} is no partition")
    return [(int(name), value) for name, value in found.items()]


def digest_of(hashes: Mapping[str, object], index: int | None) -> str | None:
    """Return the digest of suffix hashes; None while a suffix hash is unknown."""
    texts = []
    for suffix in sorted(hashes):
        value = hashes[suffix]
        if value is None:
            return None
        if isinstance(value, Mapping):
            shared, own = value.get(None), value.get(index) if index is not None else None
            if shared is None and own is None:
                continue
            value = f"{shared}{own}"
        texts.append(f"{suffix}{value}")
    return md5(" ".join(texts).encode(), usedforsecurity=False).hexdigest() if texts else EMPTY


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Cached state of one partition."""

    #: None while a suffix cannot be hashed.
    digest: str | None
    #: Erasure coding: the indexes of which it has archives; None among them stands for what has no index.
    indexes: frozenset[int | None] = frozenset()


@dataclass(slots=True)
class _CacheEntry:
    mark: str
    index: int | None
    entry: PartitionState
    #: When the suffixes were listed last, monotonic seconds.
    listed_s: float


class DigestCache:
    """Cache of the digests of this node's partitions.

    An unchanged partition costs one stat. What has not changed since costs a stat.
    """

    def __init__(self, monotonic: Callable[[], float], recheck_s: float | None = None):
        """List suffixes again after ``recheck_s`` seconds; without it, callers do so."""
        self._monotonic = monotonic
        self._recheck_s = recheck_s
        self._known: dict[tuple[str, int, int], _CacheEntry] = {}

    def entry(
        self, engine: ObjectStore, device: str, part: int, policy: Policy, index: int | None = None
    ) -> PartitionState:
        """Return the state of a partition; raises the errors of ``ObjectStore.hashes``."""
        place = device, policy.index, part
        name = str(part)
        mark = engine.maintenance.change_token(device, name, policy)
        known, now_s = self._known.get(place), self._monotonic()
        is_old = known is None or (self._recheck_s is not None and now_s - known.listed_s >= self._recheck_s)
        if known is not None and not is_old and mark and (known.mark, known.index) == (mark, index):
            return known.entry
        # A suffix that was removed by hand, or a cache that was, leaves no line in the journal.
        is_replaced = known is not None and _stamp_of(mark) != _stamp_of(known.mark)
        lists = is_replaced or (self._recheck_s is not None and is_old)
        hashes = engine.hashes(device, name, policy, list_suffixes=lists)
        entry = PartitionState(digest_of(hashes, index), _indexes(hashes))
        if (
            mark
            and entry.digest is not None
            and engine.maintenance.change_token(device, name, policy) == mark
        ):
            if len(self._known) >= ENTRIES_MAX:
                self._known.clear()
            listed_s = now_s if lists or known is None else known.listed_s
            self._known[place] = _CacheEntry(mark, index, entry, listed_s)
        else:
            self._known.pop(place, None)
        return entry

    def digests(
        self,
        engine: ObjectStore,
        device: str,
        policy: Policy,
        query: DigestRequest,
        seconds: float = DIGESTS_S,
    ) -> dict[int, str]:
        """Return digests of the requested partitions, at least one, until ``seconds`` have passed."""
        deadline_s = self._monotonic() + seconds
        received: dict[int, str] = {}
        for part, index in query.items():
            digest = self.entry(engine, device, part, policy, index).digest
            if digest is not None:
                received[part] = digest
            if self._monotonic() >= deadline_s:
                break
        return received

    def __repr__(self) -> str:
        return f"<DigestCache of {len(self._known)} partitions>"


def _stamp_of(mark: str) -> str:
    """Return the half of a mark that describes the partition's directory and its hash file."""
    return mark.rpartition("/")[2]


def _indexes(hashes: Mapping[str, object]) -> frozenset[int | None]:
    found: set[int | None] = set()
    for value in hashes.values():
        if isinstance(value, Mapping):
            found.update(value)
    return frozenset(found)

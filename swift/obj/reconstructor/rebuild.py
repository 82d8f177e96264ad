"""Rebuild of a lost archive from others of the same object, verified before its end is sent.

The sources are this device's archive and those of other primaries, all of one upload: of the same timestamp
and the same ETag of the object. Segment by segment the lost fragment is made from k others; the bytes of
the object are made as well, and only when their MD5 is the object's does the last piece leave, without
which the receiver stores nothing. spec: replication.md §5.3

A solitary archive is given up: it is one of too few of its object, and no node will ever have more. Such
archives are left behind by a node that was away while the object was deleted, and its tombstone
reclaimed. They are quarantined rather than removed: an operator may know better. spec: replication.md §5.3
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import md5
from itertools import islice

from swift import green
from swift.base.digits import is_digits
from swift.base.entity import quote_path
from swift.cluster.direct import node_path
from swift.cluster.fragmentsets import FoundArchive
from swift.cluster.transport import (
    BackendResponse,
    NodeRequest,
    NodeTimeouts,
    Transport,
    TransportError,
    replication_address,
)
from swift.ec.archive import geometry_of
from swift.ec.codec import Codec, CodecError
from swift.http import fields
from swift.http.body import BodyError
from swift.http.headers import title_case
from swift.obj.ssync.sender import CannotRebuild, SenderTimes
from swift.policy.policy import Policy
from swift.ring.device import Node
from swift.store.api import Found, Location, ObjectKey, ReadOptions
from swift.store.calls import Effort
from swift.store.errors import CorruptBody
from swift.store.handle import StoreHandle
from swift.store.metadata import Metadata


@dataclass(frozen=True)
class LoneFragmentRule:
    """Rule for lone fragments; ``threshold`` 0 disables their quarantine."""

    threshold: int
    age_s: float
    #: Nodes that are to be asked before anything is given up, handoffs among them.
    nodes: int

    def is_old_enough(self, written_s: float, now_s: float) -> bool:
        """Return True if an archive with this Unix time is old enough."""
        return self.threshold > 0 and written_s < now_s - self.age_s

    def should_quarantine(self, *, archives: int, needed: int, unknown: int) -> bool:
        """Return True if ``archives`` in all (including the local one) are too few to rebuild the object.

        ``unknown`` nodes failed, or have another upload: as long as there is one, nothing is known.
        """
        return not unknown and archives <= self.threshold and archives < needed


#: As they are stored.
_FRAG_INDEX = title_case(fields.SYSMETA_EC_FRAG_INDEX)
_SEGMENT_SIZE = title_case(fields.SYSMETA_EC_SEGMENT_SIZE)
_ETAG = title_case(fields.SYSMETA_EC_ETAG)
_NEEDED = ("Content-Length", _FRAG_INDEX, _ETAG)
_NOT_FOUND = 404


@dataclass(frozen=True)
class SourceArchive:
    """One archive that is read piece by piece."""

    index: int
    read: Callable[[int], bytes]
    close: Callable[[], None]


@dataclass
class ArchiveSearch:
    """Archives of one object that other nodes hold."""

    #: Of the upload that is to be rebuilt, by index.
    sources: dict[int, SourceArchive] = field(default_factory=dict)
    #: Of which there is an archive somewhere, useful or not.
    indexes: set[int] = field(default_factory=set)
    #: Nodes that failed or hold another upload: their archives are unknown.
    unknown: int = 0

    def close(self) -> None:
        """Let go of all sources."""
        for source in self.sources.values():
            source.close()


class ArchiveReader:
    """Reads archives of objects of one policy from nodes."""

    def __init__(self, transport: Transport, policy: Policy, times: SenderTimes, agent: str):
        self._transport = transport
        self._policy = policy
        self._times = times
        self._agent = agent

    def request(self, nodes: Sequence[Node], part: int, found: Found, search: ArchiveSearch) -> None:
        """Ask nodes at the same time, and add what they have."""
        for reply in green.gather([partial(self._open, node, part, found) for node in nodes]):
            if reply is None:
                search.unknown += 1
            elif reply.status == _NOT_FOUND:
                reply.stream.close()
            else:
                self._add_source(reply, found, search)

    def _open(self, node: Node, part: int, found: Found) -> BackendResponse | None:
        assert found.key is not None
        target = node_path(node.device, part, quote_path(str(found.key.path)))
        preferences = [{"timestamp": found.state.data_timestamp.internal, "exclude": []}]
        headers = {
            "user-agent": self._agent,
            fields.BACKEND_REPLICATION: "True",
            fields.BACKEND_STORAGE_POLICY_INDEX: str(self._policy.index),
            fields.BACKEND_FRAGMENT_PREFERENCES: json.dumps(preferences),
        }
        try:
            timeouts = NodeTimeouts(self._times.connect_s, self._times.node_s)
            request = NodeRequest(replication_address(node), "GET", target, headers, b"", timeouts)
            return self._transport.stream(request).response()
        except (TransportError, BodyError):
            return None

    def _add_source(self, reply: BackendResponse, found: Found, search: ArchiveSearch) -> None:
        state = found.state
        holding = FoundArchive.of(reply.headers, reply) if reply.status == 200 else None
        written = state.written or {}
        matches = (
            holding is not None
            and holding.timestamp == state.data_timestamp
            and holding.etag == written[_ETAG]
            and reply.headers.get("content-length") == written["Content-Length"]
        )
        if holding is None or not matches:
            search.unknown += 1
            reply.stream.close()
            return
        search.indexes.add(holding.index)
        if holding.index not in search.sources:
            search.sources[holding.index] = SourceArchive(
                holding.index, partial(_read_exactly, reply.stream.read), reply.stream.close
            )
        else:
            reply.stream.close()


def _read_exactly(read: Callable[[int], bytes], size: int) -> bytes:
    """Read ``size`` bytes, fewer at the end."""
    pieces, left = [], size
    while left and (piece := read(left)):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


@dataclass(frozen=True)
class ArchiveNodes:
    """Nodes that may hold a partition's archives."""

    part: int
    #: Primaries that are other devices.
    primaries: Sequence[Node]
    handoffs: Callable[[], Iterator[Node]]


class Rebuilder:
    """Makes archives of one partition of this device."""

    def __init__(
        self,
        archives: ArchiveReader,
        codec: Codec,
        store_at: Callable[[str], StoreHandle],
        archive_nodes: ArchiveNodes,
        rule: LoneFragmentRule,
        now_s: Callable[[], float],
    ):
        self._archives = archives
        self._codec = codec
        self._store_at = store_at
        self._around = archive_nodes
        self._rule = rule
        self._now_s = now_s

    def __call__(self, found: Found, index: int) -> tuple[Metadata, Generator[bytes, None, None]]:
        """See ``ssync.sender.Rebuild``; raises ``CannotRebuild``."""
        key, written = found.key, found.state.written
        if key is None or written is None:
            raise CannotRebuild("it was deleted meanwhile")
        missing = [name for name in _NEEDED if name not in written]
        if missing:
            self._quarantine(key, f"metadata lacks {missing[0]}")
        if not is_digits(written[_FRAG_INDEX]):
            self._quarantine(key, f"metadata has no index but {written[_FRAG_INDEX]!r}")
        own = int(written[_FRAG_INDEX])
        metadata = {name: value for name, value in written.items() if name != "ETag"}
        metadata[_FRAG_INDEX] = str(index)
        if metadata["Content-Length"] == "0":
            return metadata, _nothing()
        search = self._find_sources(found, key, own, index)
        try:
            local = self._open_local(found, key, own)
        except BaseException:
            search.close()
            raise
        chosen = [local, *list(search.sources.values())[: self._codec.data - 1]]
        for source in search.sources.values():
            if source not in chosen:
                source.close()
        pieces = _verified(self._codec, chosen, index, self._fragment_bytes(key, written), written)
        # It is started, so that closing it lets go of the sources.
        next(pieces)
        return metadata, pieces

    def _fragment_bytes(self, key: ObjectKey, written: Metadata) -> int:
        assert key.policy.ec is not None
        text = written.get(_SEGMENT_SIZE, "")
        size = int(text) if text.isascii() and text.isdigit() else 0
        return geometry_of(self._codec, size or key.policy.ec.segment_size).fragment_size

    def _quarantine(self, key: ObjectKey, reason: str) -> None:
        """Move it out of the way; always raises ``CannotRebuild``."""
        location = Location(key.device, key.partition, key.policy, key.hash)
        self._store_at(key.device).maintenance.quarantine(location, reason)
        raise CannotRebuild(f"it was quarantined: {reason}")

    def _find_sources(self, found: Found, key: ObjectKey, own: int, index: int) -> ArchiveSearch:
        """Ask as few nodes as may do, then the others; raises ``CannotRebuild``."""
        needed = self._codec.data - 1
        search = ArchiveSearch(indexes={own})
        for nodes in self._request_rounds(found, own, index):
            self._archives.request(nodes, self._around.part, found, search)
            for place in (own, index):
                superfluous = search.sources.pop(place, None)
                if superfluous is not None:
                    superfluous.close()
            if len(search.sources) >= needed:
                return search
        search.close()
        old = self._rule.is_old_enough(found.state.data_timestamp.seconds, self._now_s())
        archives = len(search.indexes)
        if old and self._rule.should_quarantine(archives=archives, needed=needed + 1, unknown=search.unknown):
            self._quarantine(key, f"solitary: of {needed + 1} archives that it takes, {archives} are left")
        raise CannotRebuild(f"{archives} of {needed + 1} archives were found")

    def _request_rounds(self, found: Found, own: int, index: int) -> Iterator[list[Node]]:
        """Yield nodes to request until enough archives are found: a few, then all primaries, then
        handoffs.
        """
        nodes = self._around.primaries
        first: list[Node] = []
        seen = {own, index}
        for node in nodes:
            expected = (node.index or 0) % self._codec.fragments
            if expected not in seen and len(first) < self._codec.data - 1:
                seen.add(expected)
                first.append(node)
        yield first
        yield [node for node in nodes if node not in first]
        if self._rule.is_old_enough(found.state.data_timestamp.seconds, self._now_s()):
            yield list(islice(self._around.handoffs(), max(0, self._rule.nodes - len(nodes) - 1)))

    def _open_local(self, found: Found, key: ObjectKey, index: int) -> SourceArchive:
        """Open the local archive."""
        options = ReadOptions(found.state.timestamp.seconds, True, None, index)
        stored = self._store_at(key.device).for_purpose(Effort.SSYNC).open(key, options)
        if stored.state.data_timestamp != found.state.data_timestamp or stored.state.written is None:
            stored.close()
            raise CannotRebuild("it was replaced")
        blocks = _Blocks(stored.blocks(0, stored.state.size))
        return SourceArchive(index, partial(_read_exactly, blocks.read), stored.close)


class _Blocks:
    """Blocks of a stored body, read in other pieces."""

    def __init__(self, blocks: Iterator[bytes]):
        self._blocks = blocks
        self._rest = b""

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes, empty at the end."""
        if not self._rest:
            self._rest = bytes(next(self._blocks, b""))
        data, self._rest = self._rest[:size], self._rest[size:]
        return data


def _nothing() -> Generator[bytes, None, None]:
    yield from ()


def _verified(
    codec: Codec, sources: Sequence[SourceArchive], index: int, fragment_bytes: int, written: Metadata
) -> Generator[bytes, None, None]:
    """Yield an empty piece, then the archive; the last piece comes after the whole object was verified."""
    digest = md5(usedforsecurity=False)
    held = b""
    try:
        yield b""
        while True:
            fragments = green.gather([partial(source.read, fragment_bytes) for source in sources])
            if not any(fragments):
                break
            if held:
                yield held
            digest.update(codec.decode(fragments))
            held = codec.reconstruct(fragments, index)
        etag = written[_ETAG]
        if digest.hexdigest() != etag:
            raise CannotRebuild(f"the archives decode to an object with MD5 {digest.hexdigest()}, not {etag}")
        if held:
            yield held
    except (CodecError, TransportError, BodyError, CorruptBody, OSError) as error:
        raise CannotRebuild(str(error))
    finally:
        for source in sources:
            source.close()

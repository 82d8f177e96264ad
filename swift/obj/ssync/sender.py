"""The sending end of SSYNC: offers a partition's objects to a node and sends those that it lacks.

One call of ``Sender.push`` is one conversation (spec: replication.md §3), or several when a body breaks off
in the midst: the receiver then has nothing of that object, and everything but that object is offered again.
What the outcome calls in sync is there durably: the receiver had it already, or has said that it stored it.
What was offered but could not be sent is not in sync.

It refuses to know why something is pushed, and how a lost fragment archive is made: that is ``Rebuild``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from swift.base.errors import SwiftError
from swift.base.truth import is_true
from swift.cluster.direct import node_path
from swift.cluster.transport import (
    BackendResponse,
    Exchange,
    NodeRequest,
    NodeTimeouts,
    Transport,
    replication_address,
)
from swift.http import fields
from swift.http.body import BodyError
from swift.http.headers import HeaderMap
from swift.obj.ssync.decide import has_posted_metadata, local_version
from swift.policy.policy import Policy
from swift.ring.device import Node
from swift.store.api import (
    ABSENT,
    DELETED,
    EXPIRED,
    LIVE,
    Found,
    Location,
    ObjectKey,
    ObjectStore,
    ReadOptions,
    StoredObject,
)
from swift.store.calls import Effort
from swift.store.errors import CorruptBody, FilesChanged
from swift.store.handle import OpenObject, StoreHandle
from swift.store.metadata import Metadata
from swift.telemetry.log import Log
from swift.wire import ssync
from swift.wire.ssync import LineReader, Offer, SsyncError, Subrequest, UpdatesReader, Want, WantsReader

#: Objects that are looked at in one call of a disk thread.
BATCH = 100
READ_BYTES = 65536
#: Bodies of at most so many bytes are read together with others, up to a number of bytes.
SMALL_BYTES = 65536
LOADED_BYTES = 1 << 20
#: Lines and small bodies are gathered until there are so many bytes.
FLUSH_BYTES = 65536
#: Objects whose bodies may break off before a partition is left for the next pass.
BROKEN_MAX = 5
#: Unreadable objects in a session after which the device counts as failing and the session ends.
UNREADABLE_MAX = 100

#: Makes archive ``index`` of a found object: metadata and body. The body is right once its last piece came.
Rebuild = Callable[[Found, int], tuple[Metadata, Generator[bytes, None, None]]]


class PushFailed(SwiftError):
    """The conversation did not come to its end; what was stored before that stays stored."""


class CannotRebuild(SwiftError):
    """An archive cannot be made at the moment, or was not what it should be."""


class _BodyTruncated(SwiftError):
    """An object cannot be sent to its end, and the receiver waits for more."""

    def __init__(self, object_hash: str, reason: str):
        super().__init__(reason)
        self.hash = object_hash


@dataclass(frozen=True, slots=True)
class SsyncJob:
    """Ssync job: local suffixes, the target node and the limits."""

    device: str
    partition: str
    policy: Policy
    node: Node
    suffixes: Sequence[str]
    #: Erasure coding: the index of the archives that are offered; None offers tombstones only.
    fragment: int | None = None
    #: Erasure coding: the index of those that the node should have.
    target: int | None = None
    #: True to offer uncommitted archives as well.
    uncommitted: bool = False
    #: Objects that are offered at most; 0: all.
    objects_max: int = 0
    #: Offer only these, and send nothing: does the node have them?
    confirms: Collection[str] | None = None


@dataclass(slots=True)
class SsyncResult:
    """Objects that a node is known to have, and how many of them were sent."""

    in_sync: dict[str, Offer] = field(default_factory=dict)
    sent: int = 0
    #: Offered, wanted and not sent: vanished, damaged, or not to be rebuilt at the moment.
    failed: int = 0
    #: True if ``objects_max`` left some out.
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class SenderTimes:
    """Timeouts of a sender, seconds."""

    connect_s: float = 0.5
    node_s: float = 10.0
    #: For an answer that takes work: a missing check, or the end of the updates.
    answer_s: float = 60.0


class Sender:
    """Pushes objects of one engine."""

    def __init__(
        self,
        transport: Transport,
        store_at: Callable[[str], StoreHandle],
        times: SenderTimes,
        *,
        agent: str,
        now_s: Callable[[], float],
        log: Log,
    ):
        self.transport = transport
        #: The engine's handle on a device.
        self.store_at = store_at
        self.times = times
        self.agent = agent
        self.now_s = now_s
        self.log = log

    def push(self, job: SsyncJob, rebuild: Rebuild | None = None) -> SsyncResult:
        """Push the objects that a node lacks; raises ``PushFailed``."""
        left_out: set[str] = set()
        while True:
            try:
                pushed = _SsyncSession(self, job, rebuild, left_out).run()
                pushed.failed += len(left_out)
                return pushed
            except _BodyTruncated as error:
                self.log.error(
                    f"ERROR cannot push object {error.hash} of partition {job.partition} of {job.device}: "
                    f"{error}"
                )
                left_out.add(error.hash)
                if len(left_out) > BROKEN_MAX:
                    raise PushFailed(f"{len(left_out)} objects cannot be read")
            except (SwiftError, BodyError, OSError) as error:
                raise PushFailed(f"SSYNC to {job.node.replication_key}: {error}")

    def __repr__(self) -> str:
        return f"<Sender {self.agent}>"


S = TypeVar("S", OpenObject, StoredObject)


@dataclass(slots=True)
class _Loaded:
    """An object to be sent; ``body`` is None unless it is small."""

    want: Want
    found: Found
    body: bytes | None = None
    written: Metadata = field(default_factory=dict)
    is_durable: bool = False

    def read(self, stored: StoredObject, *, size_max: int) -> None:
        """Read the body, which is closed then; the object may be another one by now."""
        try:
            state = stored.state
            if state.kind in (LIVE, EXPIRED) and state.written is not None and state.size <= size_max:
                stored.keep_cache = False
                body = b"".join(stored.blocks(0, state.size))
                self.body, self.written, self.is_durable = body, state.written, state.durable
        except (CorruptBody, OSError):
            # It is met again when it is sent.
            return
        finally:
            stored.close()


class _SsyncSession:
    """One exchange with a receiver."""

    def __init__(self, sender: Sender, job: SsyncJob, rebuild: Rebuild | None, left_out: Collection[str]):
        self._sender = sender
        self._job = job
        self._rebuild = rebuild
        self._left_out = left_out
        self._store = sender.store_at(job.device).for_purpose(Effort.SSYNC)
        self._uncommitted = False
        self._offered: dict[str, Offer] = {}
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self._exchange: Exchange
        self.pushed = SsyncResult()

    def run(self) -> SsyncResult:
        """Run the session from the request to the receiver's last line."""
        job, times = self._job, self._sender.times
        target = node_path(job.node.device, job.partition, "")
        timeouts = NodeTimeouts(times.connect_s, times.node_s)
        request = NodeRequest(replication_address(job.node), "SSYNC", target, self._head(), b"", timeouts)
        self._exchange = self._sender.transport.stream(request)
        try:
            self._exchange_offers(self._exchange.duplex(times.answer_s))
        finally:
            self._exchange.abort()
        return self.pushed

    def _head(self) -> HeaderMap:
        job = self._job
        headers = {
            "transfer-encoding": "chunked",
            "user-agent": self._sender.agent,
            fields.BACKEND_STORAGE_POLICY_INDEX: str(job.policy.index),
        }
        if job.target is not None:
            headers[fields.BACKEND_SSYNC_FRAG_INDEX] = str(job.target)
            headers[fields.BACKEND_SSYNC_NODE_INDEX] = str(job.target)
        return headers

    def _exchange_offers(self, reply: BackendResponse) -> None:
        if reply.status != 200:
            raise SsyncError(f"had the response {reply.status}")
        # A receiver without support for uncommitted archives would make them durable.
        accepts = is_true(reply.headers.get(fields.BACKEND_ACCEPT_NO_COMMIT, ""))
        self._uncommitted = self._job.uncommitted and accepts
        lines = LineReader(lambda: reply.stream.read(READ_BYTES))
        self._offer()
        wants = WantsReader()
        _read_lines(lines, wants)
        unknown = wants.wants.keys() - self._offered.keys()
        if unknown:
            raise SsyncError(f"{min(unknown)!r} was never offered")
        in_sync = dict(self._offered)
        self._send(ssync.encode_line(ssync.UPDATES_START))
        requested = [wants.wants[name] for name in self._offered if name in wants.wants]
        if self._job.confirms is not None:
            for want in requested:
                del in_sync[want.hash]
            requested = []
        while requested:
            loaded = self._store.call(Effort.SSYNC, self._load, requested)
            requested = requested[len(loaded) :]
            for each in loaded:
                if not self._update(each) or self._leaves_metadata(each.want):
                    del in_sync[each.want.hash]
        self._send(ssync.encode_line(ssync.UPDATES_END))
        self._flush()
        _read_lines(lines, UpdatesReader())
        self._exchange.finish()
        self.pushed.in_sync = in_sync

    def _leaves_metadata(self, want: Want) -> bool:
        """Return True if the receiver wants data alone of an object that has newer metadata.

        Servers of the peer do so where they have a tombstone. They want the metadata at the next offer.
        """
        return want.data and not want.meta and has_posted_metadata(self._offered[want.hash])

    # --- sending --------------------------------------------------------------------------------------

    def _send(self, data: bytes) -> None:
        self._gathered.append(data)
        self._gathered_bytes += len(data)
        if self._gathered_bytes >= FLUSH_BYTES:
            self._flush()

    def _flush(self) -> None:
        data, self._gathered, self._gathered_bytes = b"".join(self._gathered), [], 0
        if data:
            self._exchange.send(data)

    # --- the missing check ---------------------------------------------------------------------------

    def _offer(self) -> None:
        self._send(ssync.encode_line(ssync.MISSING_START))
        for some in self._names():
            for offer in self._store.call(Effort.SSYNC, self._offers_of, some):
                if self._job.objects_max and len(self._offered) >= self._job.objects_max:
                    self.pushed.is_partial = True
                    break
                self._offered[offer.hash] = offer
                self._send(ssync.encode_line(offer.encode()))
            if self.pushed.is_partial:
                break
        self._send(ssync.encode_line(ssync.MISSING_END))
        self._flush()

    def _names(self) -> Iterator[Sequence[str]]:
        job = self._job
        if job.confirms is None:
            return self._store.inventory(job.partition, job.policy, job.suffixes)
        names = sorted(job.confirms)
        return (names[start : start + BATCH] for start in range(0, len(names), BATCH))

    def _offers_of(self, engine: ObjectStore, names: Sequence[str]) -> list[Offer]:
        """Return those of them that are worth telling."""
        offers = []
        for name in names:
            if name in self._left_out:
                continue
            try:
                state = self._find(engine, name).state
            except (FilesChanged, OSError) as error:
                self._skip_unreadable(name, error)
                continue
            local = local_version(state)
            if local is not None:
                durable = state.kind == DELETED or state.durable
                offers.append(Offer.of(name, local.data, local.meta, local.ctype, durable=durable))
        return offers

    def _skip_unreadable(self, name: str, error: Exception) -> None:
        """Count and log an unreadable object; raise its error if there are more than ``UNREADABLE_MAX``."""
        job = self._job
        self.pushed.failed += 1
        if self.pushed.failed > UNREADABLE_MAX:
            raise error
        self._sender.log.error(
            f"ERROR cannot read object {name} of partition {job.partition} of {job.device}: {error}"
        )

    def _read_options(self) -> list[ReadOptions]:
        """Return the read options: the newest archive of the index, then the newest durable one.

        The second one is for an object whose newest upload left archives of other indexes only.
        """
        job = self._job
        # An index that no archive has lets only tombstones through.
        fragment = (-1 if job.fragment is None else job.fragment) if job.policy.is_ec else None
        durable = ReadOptions(self._sender.now_s(), True, None, fragment)
        return [durable._replace(preferences=[]), durable] if self._uncommitted else [durable]

    def _find(self, engine: ObjectStore, name: str) -> Found:
        job = self._job
        location = Location(job.device, job.partition, job.policy, name)
        for options in self._read_options():
            found = engine.maintenance.find(location, options)
            if found.state.kind != ABSENT:
                break
        return found

    def _open(self, opener: Callable[[ObjectKey, ReadOptions], S], key: ObjectKey) -> S:
        """Open what ``_find`` found."""
        *others, last = self._read_options()
        for options in others:
            stored = opener(key, options)
            if stored.state.kind != ABSENT:
                return stored
            stored.close()
        return opener(key, last)

    # --- the updates ---------------------------------------------------------------------------------

    def _load(self, engine: ObjectStore, wants: Sequence[Want]) -> list[_Loaded]:
        """Return the first of the objects that are wanted, with small bodies."""
        loaded, read_bytes = list[_Loaded](), 0
        for want in wants[:BATCH]:
            each = _Loaded(want, self._find(engine, want.hash))
            loaded.append(each)
            key, size = each.found.key, each.found.state.size
            if want.data and key is not None and not self._is_rebuilt and size <= SMALL_BYTES:
                # An object that cannot be opened fails when it is sent.
                with suppress(FilesChanged, OSError):
                    each.read(self._open(engine.open, key), size_max=SMALL_BYTES)
                read_bytes += size
            if read_bytes >= LOADED_BYTES:
                break
        return loaded

    @property
    def _is_rebuilt(self) -> bool:
        """True if archives of another index are sent than those that are here."""
        return self._job.target is not None and self._job.target != self._job.fragment

    def _update(self, loaded: _Loaded) -> bool:
        """Send the requested parts of one object; return True on success."""
        found = loaded.found
        key, state = found.key, found.state
        done = key is not None and state.kind in (LIVE, EXPIRED, DELETED)
        if done and key is not None:
            if state.kind == DELETED:
                self._send(ssync.delete_subrequest(key.path.quoted, state.timestamp).encode())
            else:
                done = self._send_object(key, loaded)
        if done:
            self.pushed.sent += 1
        else:
            self.pushed.failed += 1
        return done

    def _send_object(self, key: ObjectKey, loaded: _Loaded) -> bool:
        if loaded.want.data and not self._put(key, loaded):
            return False
        posted = _post_metadata(loaded.found) if loaded.want.meta else None
        if posted is None:
            return True
        head = _encoded(ssync.post_subrequest(key.path.quoted, posted))
        if head is not None:
            self._send(head)
        return head is not None

    def _put(self, key: ObjectKey, loaded: _Loaded) -> bool:
        if self._job.target is not None and self._is_rebuilt:
            return self._put_rebuilt(key, loaded.found, self._job.target)
        if loaded.body is not None:
            put = ssync.put_subrequest(key.path.quoted, loaded.written, durable=loaded.is_durable)
            encoded = _encoded(put)
            if encoded is not None:
                self._send(encoded)
                self._send(loaded.body)
            return encoded is not None
        try:
            stored = self._open(self._store.open, key)
        except (FilesChanged, OSError) as error:
            self._sender.log.error(f"ERROR cannot push {key.path} on {key.device}: {error}")
            return False
        try:
            state = stored.state
            if state.kind not in (LIVE, EXPIRED) or state.written is None:
                return False
            head = ssync.put_subrequest(key.path.quoted, state.written, durable=state.durable)
            return self._body(key.hash, head, self._blocks(stored), state.size)
        finally:
            stored.close()

    def _blocks(self, stored: OpenObject) -> Generator[bytes, None, None]:
        stored.prepare(keep_cache=False)
        yield from stored.blocks(0, stored.state.size)

    def _put_rebuilt(self, key: ObjectKey, found: Found, index: int) -> bool:
        if self._rebuild is None:
            return False
        try:
            metadata, pieces = self._rebuild(found, index)
        except CannotRebuild as error:
            self._sender.log.warning(f"cannot rebuild archive {index} of {key.path}: {error}")
            return False
        head = ssync.put_subrequest(key.path.quoted, metadata)
        return self._body(key.hash, head, pieces, int(metadata["Content-Length"]))

    def _body(self, name: str, head: Subrequest, pieces: Generator[bytes, None, None], size: int) -> bool:
        """Send head and body; raises ``_BodyTruncated`` if the body ends early."""
        left = size
        try:
            encoded = _encoded(head)
            if encoded is None:
                return False
            self._send(encoded)
            for piece in pieces:
                left -= len(piece)
                if left < 0:
                    break
                self._send(piece)
        except (CorruptBody, CannotRebuild, OSError) as error:
            raise _BodyTruncated(name, str(error))
        finally:
            pieces.close()
        if left:
            raise _BodyTruncated(name, f"the body has {size - left} bytes, not {size}")
        return True


def _post_metadata(found: Found) -> Metadata | None:
    """Return the metadata of POSTs for the receiver, including a newer content type with its own file."""
    state = found.state
    if state.posted is None:
        return None
    posted = dict(state.posted)
    newer = state.metadata.get("Content-Type-Timestamp")
    if newer is not None and state.ctype_timestamp > state.data_timestamp:
        posted["Content-Type"] = state.metadata.get("Content-Type", "")
        posted["Content-Type-Timestamp"] = newer
    return posted


def _encoded(head: Subrequest) -> bytes | None:
    """None when its metadata would break the line: it is damage that the auditor has not met yet."""
    try:
        return head.encode()
    except (SsyncError, UnicodeEncodeError):
        return None


def _read_lines(lines: LineReader, reader: WantsReader | UpdatesReader) -> None:
    while not reader.finished:
        text = lines.next_line()
        if text is None:
            raise SsyncError("the receiver closed the connection")
        reader.feed(text)

"""The interface of object engines (object-disk.md is one way to implement it).

An engine keeps, per device, partition and policy, objects addressed by ``ObjectKey``. All calls block, so
callers have a ``store.handle.StoreHandle``, which makes each call where its ``effort`` says. No engine knows
HTTP. Reading goes through ``open``. Every change goes through ``edit``, which holds the object exclusively:
a decision about its state and the change that follows are one step, also between processes:

    with store.edit(key, view, create=True) as edit:
        if edit.state.write_timestamp >= timestamp: ...refuse
        draft = edit.draft(len(body))
        draft.write(body)
        edit.put(draft, timestamp, metadata)

When a change returns, it is durable; when it raises, it did not happen. ``test/contract/test_store.py``
holds for every engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from swift.base.calls import Run
from swift.base.entity import EntityPath
from swift.base.timestamp import ZERO, Timestamp
from swift.http.body import FileBody
from swift.policy.policy import Policy
from swift.store.calls import Effort, effort
from swift.store.metadata import Metadata

ABSENT = "absent"
LIVE = "live"
DELETED = "deleted"
EXPIRED = "expired"


class ObjectKey(NamedTuple):
    """Which object, and where: the partition is the one the request names."""

    device: str
    partition: str
    policy: Policy
    path: EntityPath
    hash: str


@dataclass(frozen=True, slots=True)
class FragmentPreference:
    """A timestamp whose fragments are welcome, except those of the excluded indexes."""

    timestamp: Timestamp
    exclude: frozenset[int] = frozenset()


class Viewpoint(NamedTuple):
    """From where an object is looked at."""

    #: Objects whose X-Delete-At is not after this moment (Unix seconds) are expired.
    moment_s: float
    #: Whether expired objects are to be served all the same.
    open_expired: bool = False
    #: Erasure coding: None means durable archives only, a list allows others.
    preferences: list[FragmentPreference] | None = None
    #: Erasure coding: the only archive index that counts.
    fragment: int | None = None


@dataclass(slots=True)
class ObjectState:
    """What is known about an object without its body."""

    kind: str = ABSENT
    #: Effective metadata (data and POSTs merged); of a tombstone its own.
    metadata: Metadata = field(default_factory=dict)
    #: Effective X-Timestamp, or the tombstone's; zero when nothing is known.
    timestamp: Timestamp = ZERO
    data_timestamp: Timestamp = ZERO
    ctype_timestamp: Timestamp = ZERO
    #: None when no erasure coded set is durable.
    durable_timestamp: Timestamp | None = None
    size: int = 0
    #: What the newest POST stored, without anything merged; None when there was none.
    posted: Metadata | None = None
    #: What came with the body, without anything merged; None when there is no body.
    written: Metadata | None = None
    #: The Content-Type that came with the body, whatever POSTs said later.
    data_content_type: str = ""
    #: Erasure coding: the archive indexes of every listed timestamp, newest first.
    fragments: list[tuple[Timestamp, list[int]]] = field(default_factory=list)
    #: Whether the winning archive is durable; replicated data always is.
    durable: bool = True
    #: Why files were quarantined by the call that returns this state: then it does not say that there was no
    #: object. Empty when none were.
    put_away: str = ""

    @property
    def exists(self) -> bool:
        """Whether an object can be served."""
        return self.kind == LIVE

    @property
    def write_timestamp(self) -> Timestamp:
        """What a PUT or DELETE must be newer than (object-server.md §4.10, §8)."""
        return self.data_timestamp if self.kind == LIVE else self.timestamp

    @property
    def etag(self) -> str | None:
        """MD5 of the body, None when there is none."""
        return self.metadata.get("ETag") if self.kind in (LIVE, EXPIRED) else None

    @property
    def delete_at(self) -> int | None:
        """X-Delete-At as a number."""
        text = self.metadata.get("X-Delete-At")
        return int(text) if text else None


class StoredObject(Protocol):
    """An object opened for reading; close it."""

    state: ObjectState
    #: Whether the kernel should keep what is read in memory; set it before reading.
    keep_cache: bool
    #: Whether the body's MD5 is compared; checksums of our own always are. Set it before reading.
    check_md5: bool

    def read_quickly(self, size_max: int) -> bytes | None:
        """The whole verified body when it is at most ``size_max`` bytes and in memory; else None.

        The only call that is fit for the event loop. Raises ``CorruptBody``.
        """

    def blocks(self, start: int, stop: int) -> Iterator[bytes]:
        """The bytes from ``start`` to ``stop`` in large pieces, verified as far as checksums allow.

        A full read is always verified: its last piece comes only when everything before it was right.
        Raises ``CorruptBody`` after quarantining.
        """

    def pieces(self, start: int, stop: int) -> Iterator[bytes | FileBody]:
        """Like ``blocks``; what was verified a moment ago and is in memory may come as a range of the file.

        Such a range may be sent until the object is closed.
        """

    def close(self) -> None:
        """Release it; again does nothing."""


class Draft(Protocol):
    """A body on its way to the device, visible to nobody."""

    #: Bytes written so far.
    size: int

    def write(self, data: bytes | memoryview) -> None:
        """Append. Raises ``NoSpace`` or OSError."""

    @property
    def etag(self) -> str:
        """MD5 hex of what was written."""

    def accept_etag(self, etag: str, sums: str) -> bool:
        """Take the MD5 that the sender computed, of a draft made with ``etag_follows``.

        False, and the draft is worthless, unless ``sums`` is the ``base.checksum.ChunkSums.digest`` of
        what was written.
        """

    def discard(self) -> None:
        """Throw it away; after it was published this does nothing."""


class Edit(Protocol):
    """One object held exclusively."""

    state: ObjectState

    def __enter__(self) -> Edit: ...

    def __exit__(self, *args: object) -> None: ...

    def draft(self, size: int | None, *, etag: str = "") -> Draft:
        """A new body; ``size`` None when unknown. Raises ``NoSpace``.

        ``etag`` is the MD5 hex of what will be written, when the caller has it already.
        """

    def put(
        self,
        draft: Draft,
        timestamp: Timestamp,
        metadata: Metadata,
        *,
        fragment: int | None = None,
    ) -> None:
        """Make a draft the object. An archive (``fragment``) is not durable before ``commit``.

        Raises ``AttributesTooLarge`` when the device has no room for so much metadata of one object.
        """

    def commit(self, timestamp: Timestamp, fragment: int) -> None:
        """Make a fragment archive durable."""

    def withdraw(self, timestamp: Timestamp, fragment: int) -> None:
        """Forget a fragment archive that will not be committed; one that is durable stays."""

    def post(self, timestamp: Timestamp, ctype_timestamp: Timestamp | None, metadata: Metadata) -> None:
        """Store metadata beside the data; ``ctype_timestamp`` is given when it has a Content-Type.

        Raises ``AttributesTooLarge`` as ``put`` does.
        """

    def delete(self, timestamp: Timestamp) -> None:
        """Leave a tombstone."""


class Reservation(Protocol):
    """An object promised to one writer (``wire.reservation``)."""

    def holds(self) -> bool:
        """Whether the promise is still good: not given back, and not older than its lease."""

    def release(self) -> None:
        """Give it back unused, so that all is as before; again does nothing."""

    def fulfil(self) -> None:
        """The writer's version is stored here, and supersedes those of all who vanished before."""

    def abandon(self) -> None:
        """The writer is gone, and may have stored its version on other nodes.

        From now on the object is promised to newer writers only, whose versions supersede that one.
        """


class AsyncUpdate(NamedTuple):
    """A container update to be delivered later (object-disk.md §14)."""

    op: str
    path: EntityPath
    headers: dict[str, str]
    db_state: str | None = None
    container_path: str | None = None


class UpdateRef(NamedTuple):
    """Where a kept update is; ``name`` is the engine's, and tells object and time."""

    device: str
    policy: Policy
    name: str

    def __str__(self) -> str:
        return f"{self.device}/{self.policy.name}/{self.name}"


@dataclass(frozen=True)
class PendingUpdate:
    """A kept update that is to be delivered, and how far that is."""

    ref: UpdateRef
    timestamp: Timestamp
    update: AsyncUpdate
    #: Ids of container ring devices that have it.
    successes: tuple[int, ...] = ()
    #: Containers (``account/container``) to which it was redirected.
    redirects: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.update.op} {self.update.path} ({self.ref})"


class PendingUpdates(Protocol):
    """Container updates kept for later (object-disk.md §14). Errors are those of ``ObjectStore``."""

    @effort(Effort.SHORT)
    def save(self, device: str, policy: Policy, update: AsyncUpdate, timestamp: Timestamp) -> None:
        """Keep an update for later, durably; one of the same object and time is replaced."""

    @effort(Effort.SHORT)
    def groups(self, device: str, policy: Policy) -> list[str]:
        """The parts in which the updates of a policy are walked, unsorted; what they mean is the engine's."""

    @effort(Effort.SHORT)
    def objects(self, device: str, policy: Policy, group: str) -> tuple[list[list[UpdateRef]], list[str]]:
        """The updates of each object in a group, newest first; and names of what are no updates."""

    @effort(Effort.SHORT)
    def strangers(self, device: str, policies: Iterable[Policy]) -> list[str]:
        """Where a device keeps updates of none of these policies: names for a warning."""

    @effort(Effort.SHORT)
    def load(self, ref: UpdateRef) -> PendingUpdate | None:
        """Read one; None when it is gone. Raises ``Damaged``."""

    @effort(Effort.SHORT)
    def rewrite(self, pending: PendingUpdate) -> None:
        """Remember how far the delivery is, durably."""

    @effort(Effort.SHORT)
    def remove(self, ref: UpdateRef) -> bool:
        """Forget one that was delivered; whether it was there.

        Should a power cut bring it back, it is delivered again, which changes nothing.
        """

    @effort(Effort.SHORT)
    def quarantine(self, ref: UpdateRef, reason: str = "") -> str | None:
        """Move a damaged one out of the way; where it is now, None when it was gone."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine can do that not every engine can."""

    #: What it keeps are files and directories of a device as object-disk.md has them: rsync may bring them.
    rsyncable: bool
    #: ``StoredObject.pieces`` may give ranges of files, which the kernel sends.
    sendfile: bool


class Location(NamedTuple):
    """Where an object is, known by its hash only: what walks over a device meet."""

    device: str
    partition: str
    policy: Policy
    hash: str


class Found(NamedTuple):
    """What is at a location; the key is None when no readable file tells the object's name."""

    key: ObjectKey | None
    state: ObjectState


class AuditReport(NamedTuple):
    """What an audit found out about one location."""

    found: Found
    #: Why the object was quarantined; None when nothing is wrong.
    quarantined: str | None = None
    #: Bytes of body that were read.
    bytes_read: int = 0
    #: Path of the file with the body, for whoever wants to look at it; empty when there is none.
    data_path: str = ""


class HandedOver(NamedTuple):
    """What another node is known to have, so that a handoff may forget it (replication.md §5.2)."""

    #: Of the data, or of the tombstone.
    timestamp: Timestamp
    #: Erasure coding: the index of the archive; None when it was a tombstone.
    fragment: int | None = None
    #: Erasure coding: whether it was handed over as durable.
    durable: bool = True
    #: Of the newest POST that was handed over with it; None when its metadata is to stay.
    meta_timestamp: Timestamp | None = None


#: Called with the number of bytes that were just read, to slow an audit down.
Pace = Callable[[int], None]


class Upkeep(Protocol):
    """What daemons do with stored objects. Errors are those of ``ObjectStore``."""

    @effort(Effort.SSYNC)
    def find(self, location: Location, view: Viewpoint) -> Found:
        """What is at a location. Damage is quarantined, a name of another hash is damage."""

    @effort(Effort.AUDIT)
    def audit(self, location: Location, *, full: bool, pace: Pace, temporary_age_s: float) -> AuditReport:
        """Check an object's files, the body's checksum only when ``full``, and quarantine what is broken.

        Partial files of rsync older than ``temporary_age_s`` are removed, missing checksums of metadata
        added, and the suffix of a tombstone past its time is marked dirty. Raises like ``look``.
        """

    @effort(Effort.SSYNC)
    def quarantine(self, location: Location, reason: str) -> None:
        """Move what is at a location out of sight, as damage is."""

    @effort(Effort.SSYNC)
    def purge(self, location: Location, handed: HandedOver) -> bool:
        """Forget exactly what was handed over; whether nothing is left at the location."""

    @effort(Effort.HASHES)
    def mark(self, device: str, partition: str, policy: Policy) -> str:
        """Another text whenever ``ObjectStore.hashes`` may be others; empty when nobody can say.

        What follows its slash is another text when suffixes came or went, or the cache of hashes did: then
        the suffixes have to be listed. It costs three stats.
        """

    @effort(Effort.HASHES)
    def idle_s(self, device: str, partition: str, policy: Policy) -> float:
        """Seconds since the partition was last changed; infinite when nobody can say. It costs a stat."""

    @effort(Effort.HASHES)
    def make_durable(self, device: str, partition: str, policy: Policy, suffixes: Iterable[str]) -> None:
        """Return when all that these suffixes hold survives a power cut, whoever wrote it there."""

    @effort(Effort.HASHES)
    def prepare(self, device: str, policy: Policy, before_s: float) -> list[str]:
        """Make a device ready for objects of a policy that others bring; names of what has no place there.

        What was left half-written before ``before_s`` (Unix seconds) is removed.
        """

    @effort(Effort.HASHES)
    def remove_partition(self, device: str, partition: str, policy: Policy) -> bool:
        """Remove a partition that holds no objects; whether it is gone."""


class ObjectStore(Protocol):
    """An object engine. Every call may raise ``DeviceUnavailable``, ``NoSpace`` or OSError."""

    @property
    def capabilities(self) -> Capabilities:
        """What this engine can do beyond its verbs."""

    @property
    def upkeep(self) -> Upkeep:
        """What daemons need."""

    @property
    def updates(self) -> PendingUpdates:
        """Container updates that are kept for later."""

    def run(self, device: str, effort: Effort) -> Run:
        """Return where calls of an effort to a device are made, see ``store.calls``.

        Raises ``DeviceUnavailable`` before anything is set up for a device.
        """

    @effort(Effort.SHORT)
    def look(self, key: ObjectKey, view: Viewpoint) -> ObjectState:
        """The state of an object. Raises ``HashCollision`` and ``FilesChanged``."""

    @effort(Effort.SHORT)
    def open(self, key: ObjectKey, view: Viewpoint) -> StoredObject:
        """The object for reading; its state tells whether there is one. Raises like ``look``."""

    def edit(
        self,
        key: ObjectKey,
        view: Viewpoint,
        *,
        create: bool,
        is_new: bool = False,
        next_part_power: int | None = None,
    ) -> Edit:
        """Hold the object exclusively (enter the result). Raises like ``look``, and ``LockTimeout``.

        ``create`` false promises that nothing will be put or deleted. ``is_new`` is a guess that there was
        nothing before, which costs a little when it is wrong; what another process writes at the same moment
        may then count as written later, so whoever asks whether the object exists must not guess. While
        partitions are being split, ``next_part_power`` has every change made in the future partition as well.
        """

    @effort(Effort.SHORT)
    def gather(self, key: ObjectKey, partition: str) -> None:
        """Have an object's partition know what is left of it in the one it had before they were split."""

    def reserve(self, key: ObjectKey, writer: Timestamp) -> Reservation:
        """Promise an object to the writer of a version; raises ``AlreadyReserved``.

        It binds only those who ask for it, in any process of this node, and outlives its process: what a
        killed one promised is given to others only when nobody can rely on it any more, and then, as after
        ``Reservation.abandon``, only to newer ones.
        """

    @effort(Effort.SHORT)
    def draft(self, key: ObjectKey, size: int | None, *, etag_follows: bool = False) -> Draft:
        """A new body before the object is held; hand it to ``Edit.put``. Raises ``NoSpace``.

        With ``etag_follows`` the MD5 is not computed but comes from the sender: ``Draft.accept_etag``.
        """

    @effort(Effort.HASHES)
    def hashes(
        self,
        device: str,
        partition: str,
        policy: Policy,
        *,
        recalculate: Iterable[str] = (),
        list_suffixes: bool = False,
    ) -> Mapping[str, object]:
        """Suffix → hash of a partition, dirty ones computed afresh (object-disk.md §11)."""

    @effort(Effort.HASHES)
    def invalidate(self, device: str, partition: str, policy: Policy, suffixes: Iterable[str]) -> None:
        """Mark suffixes as changed; creates a missing partition."""

    @effort(Effort.HASHES)
    def partitions(self, device: str, policy: Policy) -> list[str]:
        """The partitions that a device holds, unsorted."""

    @effort(Effort.SSYNC)
    def inventory(
        self, device: str, partition: str, policy: Policy, suffixes: Iterable[str] | None = None
    ) -> Iterator[str]:
        """The hashes of the objects and tombstones of a partition, or of some of its suffixes.

        In ascending order within ascending suffixes, listed as the walk goes on. Some may be empty by then.
        """

    @effort(Effort.SSYNC)
    def replication_lock(
        self, device: str, partition: str, policy: Policy, timeout_s: float, *, incoming: bool = True
    ) -> AbstractContextManager[None]:
        """Hold a partition, which is made if need be, against everybody else who replicates into it.

        Who writes what is ``incoming`` also takes one of the few places of its device. Who sends must not:
        two devices that send to each other would each hold the place that the other waits for.
        Entering blocks: do it where waiting harms nobody, or with ``timeout_s`` 0 again and again. It raises
        ``LockTimeout``.
        """

"""The interface of object engines (object-disk.md is one way to implement it).

An engine keeps, per device, partition and policy, objects addressed by ``ObjectKey``. Calls block, so
callers have a ``store.handle.StoreHandle``, which makes each call where its ``effort`` says. A verb that
memory may answer has a second method, ``try_*``: it waits for no disk, changes nothing, and returns None
where memory does not suffice. The handle tries it on the event loop first. No engine knows HTTP. Reading goes
through ``open``. Every change goes through ``edit``, which holds the object exclusively: a decision about its
state and the change that follows are one step, also between processes:

    with store.edit(key, view, create=True) as edit:
        if edit.state.write_timestamp >= timestamp: ...refuse
        draft = edit.draft(len(body))
        draft.write(body)
        edit.put(draft, timestamp, metadata)

When a change returns, it is durable; when it raises, it did not happen. ``test/contract/test_store.py``
holds for every engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, Required, TypedDict, Unpack

from swift.base.calls import Attempt, Run, never
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
    """Identity and location of an object: the partition is the request's."""

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


class ReadOptions(NamedTuple):
    """From where an object is looked at."""

    #: Objects whose X-Delete-At is not after this moment (Unix seconds) are expired.
    moment_s: float
    #: True if expired objects are to be served all the same.
    open_expired: bool = False
    #: Erasure coding: None means durable archives only, a list allows others.
    preferences: list[FragmentPreference] | None = None
    #: Erasure coding: the only archive index that counts.
    fragment: int | None = None


@dataclass(slots=True)
class ObjectState:
    """State of an object without its body."""

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
    #: Metadata of the newest POST alone; None when there was none.
    posted: Metadata | None = None
    #: Metadata of the body alone; None when there is no body.
    written: Metadata | None = None
    #: The Content-Type that came with the body, whatever POSTs said later.
    data_content_type: str = ""
    #: Erasure coding: the archive indexes of every listed timestamp, newest first.
    fragments: list[tuple[Timestamp, list[int]]] = field(default_factory=list)
    #: True if the winning archive is durable; replicated data always is.
    durable: bool = True
    #: True if the device lost records, which may have been newer: other replicas have to be read first.
    is_unconfirmed: bool = False
    #: Why files were quarantined by the call that returns this state: then it does not say that there was no
    #: object. Empty when none were.
    quarantine_reason: str = ""

    @property
    def exists(self) -> bool:
        """True if an object can be served."""
        return self.kind == LIVE

    @property
    def write_timestamp(self) -> Timestamp:
        """Timestamp that a PUT or DELETE must exceed (object-server.md §4.10, §8)."""
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
    #: True if the kernel should keep what is read in memory; set it before reading.
    keep_cache: bool
    #: True if the body's MD5 is compared; checksums of our own always are. Set it before reading.
    check_md5: bool

    def read_cached(self, size_max: int) -> bytes | None:
        """Return the verified body if it is at most ``size_max`` bytes, in memory and sound; else None.

        The only call that is fit for the event loop.
        """

    def blocks(self, start: int, stop: int) -> Iterator[bytes]:
        """Yield the bytes from ``start`` to ``stop`` in large pieces, verified as far as checksums allow.

        A full read is always verified: its last piece comes only when everything before it was right.
        Raises ``CorruptBody`` after quarantining.
        """

    def pieces(self, start: int, stop: int) -> Iterator[bytes | FileBody]:
        """Yield pieces like ``blocks``; recently verified pieces in memory may come as file ranges.

        Such a range may be sent until the object is closed.
        """

    def close(self) -> None:
        """Close the object; repeated calls do nothing."""


class Draft(Protocol):
    """Body being written; invisible to readers."""

    #: Bytes written so far.
    size: int

    def write(self, data: bytes | memoryview) -> None:
        """Append. Raises ``NoSpace`` or OSError."""

    def may_block(self, size_bytes: int) -> bool:
        """Return True if appending so many bytes, or publishing the draft, may wait for a disk."""

    @property
    def etag(self) -> str:
        """MD5 hex of what was written."""

    def accept_etag(self, etag: str, sums: str) -> bool:
        """Set the MD5 that the sender computed, for a draft made with ``etag_follows``.

        False, and the draft is worthless, unless ``sums`` is the ``base.checksum.ChunkSums.digest`` of
        what was written.
        """

    def discard(self) -> None:
        """Remove the draft; does nothing after it was published."""


class _Locking(TypedDict, total=False):
    create: Required[bool]
    next_part_power: int | None


class EditOptions(_Locking, total=False):
    """Options of ``ObjectStore.edit``."""

    is_new: bool


class TryEditOptions(_Locking, total=False):
    """Options of ``ObjectStore.try_edit``."""

    size_bytes: int


class HashesOptions(TypedDict, total=False):
    """Options of ``ObjectStore.hashes``: suffixes to recompute; True to look for new ones."""

    recalculate: Iterable[str]
    list_suffixes: bool


class Edit(Protocol):
    """Exclusive lock on one object, with its changes."""

    state: ObjectState

    def __enter__(self) -> Edit: ...

    def __exit__(self, *args: object) -> None: ...

    def draft(self, size: int | None, *, etag: str = "") -> Draft:
        """Return a new body; ``size`` is None if unknown. Raises ``NoSpace``.

        ``etag`` is the MD5 hex of what will be written, when the caller has it already.
        """

    def put(
        self, draft: Draft, timestamp: Timestamp, metadata: Metadata, *, fragment: int | None = None
    ) -> None:
        """Publish a draft as the object. An archive (``fragment``) is not durable before ``commit``.

        Raises ``AttributesTooLarge`` when the device has no room for so much metadata of one object.
        """

    def commit(self, timestamp: Timestamp, fragment: int) -> None:
        """Make a fragment archive durable."""

    def abort(self, timestamp: Timestamp, fragment: int) -> None:
        """Remove an uncommitted fragment archive; a durable one stays."""

    def post(self, timestamp: Timestamp, ctype_timestamp: Timestamp | None, metadata: Metadata) -> None:
        """Store metadata beside the data; ``ctype_timestamp`` is given when it has a Content-Type.

        Raises ``AttributesTooLarge`` as ``put`` does.
        """

    def delete(self, timestamp: Timestamp) -> None:
        """Write a tombstone."""


class Reservation(Protocol):
    """Reservation of an object for one writer (``wire.reservation``)."""

    def holds(self) -> bool:
        """Return True if the reservation is valid: neither released nor past its lease."""

    def release(self) -> None:
        """Release the reservation without a change; repeated calls do nothing."""

    def complete(self) -> None:
        """Record that the writer's version is stored; it supersedes those of all vanished writers."""

    def abandon(self) -> None:
        """Record that the writer vanished and may have stored its version on other nodes.

        From now on only newer writers can reserve the object: their versions supersede that one.
        """


class AsyncUpdate(NamedTuple):
    """A container update to be delivered later (object-disk.md §14)."""

    op: str
    path: EntityPath
    headers: dict[str, str]
    db_state: str | None = None
    container_path: str | None = None


class UpdateRef(NamedTuple):
    """Location of a pending update; ``name`` is the engine's and encodes object and time."""

    device: str
    policy: Policy
    name: str

    def __str__(self) -> str:
        return f"{self.device}/{self.policy.name}/{self.name}"


@dataclass(frozen=True)
class PendingUpdate:
    """Pending update with the progress of its delivery."""

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
    """Container updates saved for later (object-disk.md §14).

    Errors are those of ``ObjectStore``.
    """

    @effort(Effort.SHORT)
    def save(self, device: str, policy: Policy, update: AsyncUpdate, timestamp: Timestamp) -> None:
        """Save an update durably; replaces one of the same object and time."""

    @effort(Effort.SHORT)
    def groups(self, device: str, policy: Policy) -> list[str]:
        """Return the engine's groups of a policy's updates, unsorted."""

    @effort(Effort.SHORT)
    def objects(self, device: str, policy: Policy, group: str) -> tuple[list[list[UpdateRef]], list[str]]:
        """Return the updates of each object in a group, newest first, and names that are no updates."""

    @effort(Effort.SHORT)
    def unknown_policies(self, device: str, policies: Iterable[Policy]) -> list[str]:
        """Return directories with updates of unknown policies, for a warning."""

    @effort(Effort.SHORT)
    def load(self, ref: UpdateRef) -> PendingUpdate | None:
        """Read an update; None if it is gone. Raises ``Damaged``."""

    @effort(Effort.SHORT)
    def rewrite(self, pending: PendingUpdate) -> None:
        """Save the progress of a delivery durably."""

    @effort(Effort.SHORT)
    def remove(self, ref: UpdateRef) -> bool:
        """Remove a delivered update; return True if it existed.

        Should a power cut bring it back, it is delivered again, which changes nothing.
        """

    @effort(Effort.SHORT)
    def quarantine(self, ref: UpdateRef, reason: str = "") -> str | None:
        """Move a damaged update to the quarantine; return its new path, None if it was gone."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Optional features of an engine."""

    #: It stores files and directories of a device as object-disk.md has them: rsync may bring them.
    rsyncable: bool
    #: ``StoredObject.pieces`` may give ranges of files, which the kernel sends.
    sendfile: bool
    #: Changes that it can make durable together; a daemon brings no more at the same moment.
    changes_together: int = 1


class Location(NamedTuple):
    """Location of an object by its hash alone, as device walks find it."""

    device: str
    partition: str
    policy: Policy
    hash: str


class Found(NamedTuple):
    """Object at a location; the key is None if no readable file holds the object's name."""

    key: ObjectKey | None
    state: ObjectState


class AuditReport(NamedTuple):
    """Result of the audit of one location."""

    found: Found
    #: Why the object was quarantined; None when nothing is wrong.
    quarantined: str | None = None
    #: Bytes of body that were read.
    bytes_read: int = 0
    #: Path of the file with the body, for audit watchers; empty if there is none.
    data_path: str = ""


class SyncedVersion(NamedTuple):
    """Version that another node is known to have, so that a handoff may remove it (replication.md §5.2)."""

    #: Of the data, or of the tombstone.
    timestamp: Timestamp
    #: Erasure coding: the index of the archive; None when it was a tombstone.
    fragment: int | None = None
    #: Erasure coding: whether it was handed over as durable.
    durable: bool = True
    #: Of the newest POST that was handed over with it; None: of none.
    meta_timestamp: Timestamp | None = None
    #: Erasure coding: the device is to have another archive, which the metadata belongs to.
    keeps_metadata: bool = False


#: Called with the number of bytes that were just read, to slow an audit down.
Pace = Callable[[int], None]


class Maintenance(Protocol):
    """Maintenance operations of daemons.

    Errors are those of ``ObjectStore``.
    """

    @effort(Effort.SSYNC)
    def find(self, location: Location, options: ReadOptions) -> Found:
        """Return the object at a location.

        Damage is quarantined; a name with another hash is damage.
        """

    @effort(Effort.AUDIT)
    def audit(self, location: Location, *, full: bool, pace: Pace, temporary_age_s: float) -> AuditReport:
        """Check an object's files, with ``full`` also the body's checksum, and quarantine damaged ones.

        Partial files of rsync older than ``temporary_age_s`` are removed, missing checksums of metadata
        added, and the suffix of a tombstone past its time is marked dirty. Raises like ``stat``.
        """

    @effort(Effort.AUDIT)
    def reading_order(self, device: str, policy: Policy) -> list[str]:
        """Return the names of parts of a device, in the order in which they are best read.

        Empty if partitions are as good; see ``locations_in``.
        """

    @effort(Effort.AUDIT)
    def locations_in(self, device: str, part: str, policies: Sequence[Policy]) -> Iterator[Location]:
        """Yield the objects in a part of ``reading_order``, in the order in which they lie there.

        An object that lies in several parts is in at least one of them.
        """

    @effort(Effort.SSYNC)
    def quarantine(self, location: Location, reason: str) -> None:
        """Move the object at a location to the quarantine."""

    @effort(Effort.SSYNC)
    def purge(self, location: Location, synced: SyncedVersion) -> bool:
        """Remove exactly the synced version; return True if the location is empty.

        Its metadata goes with it. Data stays while it has metadata newer than ``synced.meta_timestamp``,
        which another node lacks; a tombstone takes newer metadata along, since it is never offered.
        """

    @effort(Effort.SSYNC)
    def purge_all(self, purges: Sequence[tuple[Location, SyncedVersion]]) -> None:
        """Remove exactly the synced versions of several objects of a device; see ``purge``."""

    @effort(Effort.SSYNC)
    def remove_lone_metadata(self, locations: Sequence[Location]) -> None:
        """Remove what was posted to objects of which neither data nor a tombstone is there.

        For handoffs: such metadata is never offered, and would keep its partition until it is reclaimed.
        """

    @effort(Effort.HASHES)
    def change_token(self, device: str, partition: str, policy: Policy) -> str:
        """Return a token that changes whenever ``ObjectStore.hashes`` may change; empty if unknown.

        What follows its slash is another text when suffixes came or went, or the cache of hashes did: then
        the suffixes have to be listed. It costs three stats.
        """

    @effort(Effort.HASHES)
    def idle_s(self, device: str, partition: str, policy: Policy) -> float:
        """Return the seconds since the partition's last change; infinite if unknown.

        It costs a stat.
        """

    @effort(Effort.HASHES)
    def confirm(self, device: str, partitions: Sequence[str], policy: Policy) -> None:
        """Note that partitions equal another replica, so that their objects are no longer unconfirmed."""

    @effort(Effort.HASHES)
    def make_durable(self, device: str, partition: str, policy: Policy, suffixes: Iterable[str]) -> None:
        """Return when everything in these suffixes survives a power cut."""

    @effort(Effort.HASHES)
    def prepare(self, device: str, policy: Policy, before_s: float) -> list[str]:
        """Prepare a device for objects of a policy; return the names that do not belong there.

        What was left half-written before ``before_s`` (Unix seconds) is removed.
        """

    @effort(Effort.HASHES)
    def remove_partition(self, device: str, partition: str, policy: Policy) -> bool:
        """Remove a partition without objects; return True if it is gone."""


class ObjectStore(Protocol):
    """An object engine. Every call may raise ``DeviceUnavailable``, ``NoSpace`` or OSError."""

    @property
    def capabilities(self) -> Capabilities:
        """Optional features of this engine."""

    @property
    def maintenance(self) -> Maintenance:
        """Maintenance operations for daemons."""

    @property
    def updates(self) -> PendingUpdates:
        """Pending container updates."""

    def run(self, device: str, effort: Effort) -> Run:
        """Return the executor of calls of an effort to a device, see ``store.calls``.

        Raises ``DeviceUnavailable`` before anything is set up for a device.
        """

    def attempt(self, device: str) -> Attempt:
        """Return the executor of ``try_*`` on the event loop. Raises ``DeviceUnavailable``."""

    def close(self) -> None:
        """Close what the engine holds open; it opens it again when it is used."""

    def try_stat(self, key: ObjectKey, options: ReadOptions) -> ObjectState | None:
        """Return what ``stat`` does if it is in memory; else None."""

    @effort(Effort.LOOK)
    def stat(self, key: ObjectKey, options: ReadOptions) -> ObjectState:
        """Return the state of an object.

        Raises ``HashCollision`` and ``FilesChanged``.
        """

    def try_open(self, key: ObjectKey, options: ReadOptions) -> StoredObject | None:
        """Return what ``open`` does if it is in memory; else None."""

    @effort(Effort.LOOK)
    def open(self, key: ObjectKey, options: ReadOptions) -> StoredObject:
        """Open the object for reading; its state tells if it exists.

        Raises like ``stat``.
        """

    def try_edit(self, key: ObjectKey, options: ReadOptions, **how: Unpack[TryEditOptions]) -> Edit | None:
        """Return what ``edit`` does, locked already, if its changes only wait for a committer; else None.

        ``size_bytes`` is that of a body that its ``draft`` is to take.
        """

    def edit(self, key: ObjectKey, options: ReadOptions, **how: Unpack[EditOptions]) -> Edit:
        """Lock the object exclusively (enter the result). Raises like ``stat``, and ``LockTimeout``.

        ``create`` false promises that nothing will be put or deleted. ``is_new`` is a guess that there was
        nothing before, which costs a little when it is wrong; what another process writes at the same moment
        may then count as written later, so callers that must know if the object exists may not guess. While
        partitions are being split, ``next_part_power`` has every change made in the future partition as well.
        """

    @effort(Effort.SHORT)
    def relink(self, key: ObjectKey, partition: str) -> None:
        """Link the files of an object from its partition before the split into its current one."""

    def reserve(self, key: ObjectKey, writer: Timestamp) -> Reservation:
        """Reserve an object for the writer of a version; raises ``AlreadyReserved``.

        It binds only writers that reserve, in any process of this node, and outlives its process: a killed
        process's reservation ends with its lease, and then, as after ``Reservation.abandon``, only newer
        writers can reserve.
        """

    def try_draft(self, key: ObjectKey, size: int | None, *, etag_follows: bool = False) -> Draft | None:
        """Return what ``draft`` does if the body begins in memory; else None. Raises ``NoSpace``."""

    @effort(Effort.LOOK)
    def draft(self, key: ObjectKey, size: int | None, *, etag_follows: bool = False) -> Draft:
        """Return a new body before the object is locked; pass it to ``Edit.put``. Raises ``NoSpace``.

        With ``etag_follows`` the MD5 is not computed but comes from the sender: ``Draft.accept_etag``.
        """

    @effort(Effort.HASHES)
    def hashes(
        self, device: str, partition: str, policy: Policy, **how: Unpack[HashesOptions]
    ) -> Mapping[str, object]:
        """Return suffix → hash of a partition; dirty ones are recomputed (object-disk.md §11)."""

    @effort(Effort.HASHES)
    def invalidate(self, device: str, partition: str, policy: Policy, suffixes: Iterable[str]) -> None:
        """Mark suffixes as changed; creates a missing partition."""

    @effort(Effort.HASHES)
    def partitions(self, device: str, policy: Policy) -> list[str]:
        """Return the partitions of a device, unsorted."""

    @effort(Effort.SSYNC)
    def inventory(
        self, device: str, partition: str, policy: Policy, suffixes: Iterable[str] | None = None
    ) -> Iterator[str]:
        """Yield the hashes of objects and tombstones of a partition, or of some of its suffixes.

        In ascending order within ascending suffixes, listed as the walk goes on. Some may be empty by then.
        """

    @effort(Effort.SSYNC)
    def replication_lock(
        self, device: str, partition: str, policy: Policy, timeout_s: float, *, incoming: bool = True
    ) -> AbstractContextManager[None]:
        """Lock a partition, created if missing, against other replication into it.

        Who writes what is ``incoming`` also takes one of the few places of its device. Who sends must not:
        two devices that send to each other would each hold the place that the other waits for.
        Entering blocks: do it in a thread that may wait, or poll with ``timeout_s`` 0. It raises
        ``LockTimeout``.
        """


class EngineDefaults:
    """Base of engines of which memory answers nothing, and which hold nothing open."""

    def attempt(self, _device: str) -> Attempt:
        """Return the executor that never tries."""
        return never

    def close(self) -> None:
        """Do nothing."""

    def try_stat(self, _key: ObjectKey, _options: ReadOptions) -> ObjectState | None:
        """Return None."""
        return None

    def try_open(self, _key: ObjectKey, _options: ReadOptions) -> StoredObject | None:
        """Return None."""
        return None

    def try_edit(self, _key: ObjectKey, _options: ReadOptions, **_how: Unpack[TryEditOptions]) -> Edit | None:
        """Return None."""
        return None

    def try_draft(self, _key: ObjectKey, _size: int | None, *, etag_follows: bool = False) -> Draft | None:
        """Return None."""
        return None

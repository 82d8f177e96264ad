"""Volumes of the packed engine, for the command that looks at them: use, records, comparison, rebuilding."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial

from swift.base.errors import ConfigError, LockTimeout
from swift.operations.packed import PackedNode
from swift.policy.policy import Policy
from swift.store.layout import partition_dir, suffix_of
from swift.store.lmdbindex import Index
from swift.store.metadata import BadMetadata, decode_metadata
from swift.store.packed import rows
from swift.store.packed.compaction import Compactor, volume_uses
from swift.store.packed.device import DIRECTORY, PackedDevice
from swift.store.packed.entry import EXPLICIT, Entry, decode_entries
from swift.store.packed.lost import LostRanges
from swift.store.packed.objects import HEAD_BYTES
from swift.store.packed.opening import IndexOpening
from swift.store.packed.record import ALIGNMENT, BadRecord, Header, Position
from swift.store.packed.rows import Spaces
from swift.store.packed.verify import all_entries
from swift.store.packed.volumes import OpenVolume, StoredRecord, Volumes, only_unreadable

Facts = dict[str, object]


@dataclass(frozen=True)
class VolumeInfo:
    """One volume of a device; sizes in bytes."""

    device: str
    volume: int
    #: End of its records.
    size: int
    live: int
    dead: int
    #: Space on the device: less than ``size`` where holes were punched, more where zeros are written ahead.
    allocated: int
    #: True if a process appends to it.
    is_open: bool
    #: Of ranges whose records could not be indexed.
    lost: int = 0

    @property
    def dead_percent(self) -> float:
        """Part of its records that compaction would return."""
        return 100 * self.dead / self.size if self.size else 0.0

    def as_facts(self) -> Facts:
        """Return all of it for programs."""
        return {**asdict(self), "dead_percent": round(self.dead_percent, 1)}


def volume_infos(device: PackedDevice, name: str) -> Iterator[VolumeInfo]:
    """Yield the volumes of a device. Raises OSError."""
    uses = {use.number: use for use in volume_uses(device)}
    for number in device.volumes.numbers():
        use = uses.get(number)
        try:
            allocated = os.stat(device.volumes.path(number)).st_blocks * 512
        except FileNotFoundError:
            continue
        try:
            is_open = device.volumes.lock(number) is None
        except OSError as error:
            only_unreadable(error)
            is_open = False
        size, live, dead, lost = (use.end, use.live, use.dead, use.lost) if use else (0, 0, 0, 0)
        # Sizes of live records are rounded up.
        yield VolumeInfo(name, number, size, min(live, size), dead, allocated, is_open, lost)


def volume_numbers(node: PackedNode, device: str) -> list[int]:
    """Return the numbers of the volumes of a device, which is not opened. Raises OSError."""
    path = node.disks.path(device)
    return Volumes(node.store.core.disk, f"{path}/{DIRECTORY}", device_path=path).numbers()


def volume_records(node: PackedNode, device: PackedDevice, number: int, *, metadata: bool) -> Iterator[Facts]:
    """Yield the records of a volume. Raises ``ConfigError`` if there is none, ``Damaged``, OSError."""
    try:
        volume = device.volumes.open_anew(number)
    except FileNotFoundError:
        raise ConfigError(f"{device.volumes.path(number)} does not exist")
    compactor = Compactor(node.store.core.disk, device)
    for position, header in device.volumes.scan(volume, 0, LostRanges().add):
        spots = list(compactor.spots(position, header))
        facts = {**record_facts(node, position, header), "is_live": bool(spots)}
        if metadata:
            facts["metadata"] = _metadata_at(volume, position.unit * ALIGNMENT)
        yield facts


def _metadata_at(volume: OpenVolume, offset: int) -> Facts | None:
    try:
        return metadata_of(StoredRecord(volume, offset, volume.read(offset, HEAD_BYTES)))
    except BadRecord:
        return None


def record_facts(node: PackedNode, position: Position, header: Header) -> Facts:
    """Return the header of a record for programs."""
    policy = node.cluster.policies.get(header.policy)
    return {
        "volume": position.volume,
        "offset": position.unit * ALIGNMENT,
        "kind": header.kind.name.lower(),
        "policy": header.policy if policy is None else policy.name,
        "partition": header.partition,
        "also_partition": header.also_partition,
        "hash": header.hash.hex(),
        "timestamp": header.timestamp.internal,
        "name": header.name or None,
        "fragment": header.fragment,
        "is_external": header.external,
        "size": header.body_bytes,
        "written": header.written_ns / 1e9,
        "references": [
            {"partition": where, "volume": at.volume, "offset": at.unit * ALIGNMENT}
            for where, at in header.references
        ],
    }


def find_hash(node: PackedNode, name: str) -> bytes:
    """Return the hash of ACCOUNT/CONTAINER/OBJECT, or of a hash in hexadecimal. Raises ``ConfigError``."""
    if len(name) == 32 and set(name.lower()) <= set("0123456789abcdef"):
        return bytes.fromhex(name)
    parts = name.lstrip("/").split("/", 2)
    if len(parts) != 3 or not all(parts):
        raise ConfigError(f"{name!r} is neither ACCOUNT/CONTAINER/OBJECT nor a hash of 32 digits")
    return node.cluster.config.hasher.digest(*parts)


def object_records(
    node: PackedNode, device: PackedDevice, object_hash: bytes, policies: list[Policy]
) -> Iterator[Facts]:
    """Yield what the index has of an object in any partition, with its metadata. Raises OSError."""
    wanted = {policy.index for policy in policies}
    for entries in device.read_index(partial(_entries_of, object_hash, sorted(wanted))):
        for entry in entries:
            try:
                record = device.read(entry, entry.read_bytes)
                problem = _problem(record)
            except (BadRecord, FileNotFoundError) as error:
                facts: Facts = {
                    "volume": entry.position.volume,
                    "offset": entry.position.unit * ALIGNMENT,
                    "hash": object_hash.hex(),
                    "name": entry.name,
                    "problem": str(error),
                }
                yield facts
                continue
            # An archive became durable after its record was written.
            facts = {**record_facts(node, entry.position, record.header), "name": entry.name}
            policy = node.cluster.policies.get(record.header.policy)
            if record.header.external and policy is not None:
                facts["file"] = external_file(device, policy, record.header)
            yield {**facts, "metadata": metadata_of(record), "problem": problem}


def external_file(device: PackedDevice, policy: Policy, header: Header) -> str:
    """Return the path of the file that has the body of a record."""
    parent, hash_hex = partition_dir(device.path, policy, str(header.partition)), header.hash.hex()
    return f"{parent}/{suffix_of(hash_hex)}/{hash_hex}/{header.name}"


def _entries_of(object_hash: bytes, policies: list[int], index: Index, spaces: Spaces) -> list[list[Entry]]:
    """Return the entries of an object in all partitions."""
    values = []
    for policy in policies:
        for prefix, bits in spaces.of_policy(index, policy):
            if bits != EXPLICIT:
                values.append(index.get(bytes((prefix,)) + object_hash))
                continue
            begin, end = bytes((prefix,)), bytes((prefix + 1,))
            while some := index.items(begin, end, rows.SOME):
                values.extend(value for key, value in some if key.endswith(object_hash))
                begin = some[-1][0] + b"\0"
    return [decode_entries(value) for value in values if value]


def object_versions(
    device: PackedDevice, object_hash: bytes, policies: list[Policy]
) -> Iterator[StoredRecord]:
    """Yield the records of an object in all partitions. Raises ``BadRecord``, FileNotFoundError, OSError."""
    wanted = sorted(policy.index for policy in policies)
    for entries in device.read_index(partial(_entries_of, object_hash, wanted)):
        for entry in entries:
            yield device.read(entry, entry.read_bytes)


def _problem(record: StoredRecord) -> str | None:
    if record.header.external:
        return None
    try:
        record.body()
    except BadRecord as error:
        return str(error)
    return None


def metadata_of(record: StoredRecord) -> Facts | None:
    """Return the metadata of a record; None when it has none or cannot be read."""
    if not record.metadata:
        return None
    try:
        return dict(decode_metadata(record.metadata))
    except BadMetadata:
        return None


def rebuild_index(node: PackedNode, device: str) -> int:
    """Make the index of a device again from its volumes; return the number of objects.

    Raises ``IndexInUse`` while another process uses it, ``ConfigError`` without volumes, OSError.
    """
    if not node.has_volumes(device):
        raise ConfigError(f"{device} has no volumes: the packed engine was not used on it")
    directory = f"{node.disks.path(device)}/{DIRECTORY}"
    opening = IndexOpening(node.settings, node.store.core.disk)
    with opening.unused(directory):
        index = opening.path(directory)
    try:
        # The ends of volumes in the former index tell which records are lost.
        node.open(device).index.discard()
    except (OSError, LockTimeout):
        with opening.unused(directory):
            for name in os.listdir(index) if os.path.isdir(index) else ():
                if name.endswith(".mdb"):
                    os.unlink(f"{index}/{name}")
    return sum(1 for _each in all_entries(node.open(device)))

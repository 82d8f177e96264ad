"""Partitions of a device: listing, hashing, and what links objects into another one.

All of it comes from the index; no directory is read and nothing is cached.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from swift.base.digits import is_digits
from swift.platform.disk import names_in
from swift.policy.policy import Policy
from swift.store.api import ObjectKey
from swift.store.chooser import choose
from swift.store.core import EngineCore
from swift.store.hashes import SuffixFeeds, SuffixHash
from swift.store.layout import is_plain_data, is_suffix, objects_dir, partition_dir, suffix_of
from swift.store.lmdbindex import Index
from swift.store.packed import rows
from swift.store.packed.changes import Change, Update
from swift.store.packed.device import PackedDevice
from swift.store.packed.entry import Entry, decode_entries, object_hash_of, partition_prefix
from swift.store.packed.files import link_file, remove
from swift.store.packed.objects import Reader
from swift.store.packed.place import Place
from swift.store.packed.record import Kind, Record, Reference
from swift.store.packed.rows import Spaces
from swift.store.reader import ANY_NAME

#: Keys of one read of the index.
SOME = 1000


class Partitions:
    """The partitions of one device, by its name."""

    def __init__(self, core: EngineCore, device: PackedDevice, name: str):
        self._core = core
        self._device = device
        self._device_name = name

    def numbers(self, policy: Policy) -> list[int]:
        """Return the partitions of a policy. Raises OSError."""
        found = self._device.read_index(lambda index, _spaces: rows.partitions(index, policy.index))
        if self._device.conversion.is_indexed(policy.index):
            return found
        names = names_in(self._core.disk, objects_dir(self._device.path, policy))
        return sorted({*found, *(int(name) for name in names if is_digits(name))})

    def row(self, partition: int, policy: Policy) -> rows.PartitionRow | None:
        """Return the row of a partition, None when it does not exist. Raises OSError."""
        return self._device.read_index(
            lambda index, _spaces: rows.read_partition(index, policy.index, partition)
        )

    def touch(self, partition: int, policy: Policy) -> None:
        """Make a partition, or note a change in it. Raises OSError."""
        now_ns = self._core.disk.now_ns()
        self._device.change_index(
            lambda writing: rows.touch_partition(writing, policy.index, partition, now_ns)
        )

    def remove(self, partition: int, policy: Policy) -> bool:
        """Remove a partition without objects; return True if it is gone. Raises OSError."""

        def work(index: Index, spaces: Spaces) -> bool:
            with index.writing() as writing:
                for prefix, bits in spaces.of_policy(writing, policy.index):
                    begin, end = partition_prefix(prefix, bits, partition)
                    if begin and writing.items(begin, end, 1):
                        return False
                rows.delete_partition(writing, policy.index, partition)
            return True

        return self._device.read_index(work)

    def objects(self, partition: int, policy: Policy) -> Iterator[tuple[bytes, list[Entry]]]:
        """Yield the hashes and the entries of the objects of a partition. Raises OSError."""
        if not self._device.conversion.may_have_unindexed(policy.index, partition):
            yield from self.indexed(partition, policy)
            return
        found = dict(self.indexed(partition, policy))
        hashes = {each.hex() for each, entries in found.items() if any(entry.external for entry in entries)}
        path = partition_dir(self._device.path, policy, str(partition))
        for suffix in filter(is_suffix, names_in(self._core.disk, path)):
            names = names_in(self._core.disk, f"{path}/{suffix}")
            hashes.update(name for name in names if len(name) == 32 and name.endswith(suffix))
        for name in hashes:
            place = Place(
                self._core, self._device, ObjectKey(self._device_name, str(partition), policy, ANY_NAME, name)
            )
            found[place.hash] = place.entries()
        yield from ((object_hash, entries) for object_hash, entries in found.items() if entries)

    def indexed(self, partition: int, policy: Policy) -> Iterator[tuple[bytes, list[Entry]]]:
        """Yield the objects of a partition that the index has, by space. Raises OSError."""
        spaces = self._device.read_index(lambda index, spaces: spaces.of_policy(index, policy.index))
        for prefix, bits in spaces:
            begin, end = partition_prefix(prefix, bits, partition)
            while begin and (some := self._some(begin, end)):
                for key, value in some:
                    yield object_hash_of(key), decode_entries(value)
                begin = some[-1][0] + b"\0"

    def all_indexed(self, policy: Policy) -> Iterator[list[Entry]]:
        """Yield the entries of each object of a policy that the index has. Raises OSError."""
        spaces = self._device.read_index(lambda index, spaces: spaces.of_policy(index, policy.index))
        for prefix, _bits in spaces:
            begin, end = bytes((prefix,)), bytes((prefix + 1,))
            while some := self._some(begin, end):
                yield from (decode_entries(value) for _key, value in some)
                begin = some[-1][0] + b"\0"

    def _some(self, begin: bytes, end: bytes) -> list[tuple[bytes, bytes]]:
        return self._device.read_index(lambda index, _spaces: index.items(begin, end, SOME))

    def inventory(self, partition: int, policy: Policy, suffixes: Iterable[str] | None = None) -> list[str]:
        """Return the hashes in a partition (or in some suffixes), by suffix and hash. Raises OSError."""
        wanted = None if suffixes is None else set(filter(is_suffix, suffixes))
        found = [object_hash.hex() for object_hash, _entries in self.objects(partition, policy)]
        kept = found if wanted is None else [each for each in found if suffix_of(each) in wanted]
        return sorted(kept, key=lambda each: (suffix_of(each), each))

    def hashes(self, partition: int, policy: Policy) -> dict[str, SuffixHash]:
        """Return the suffix hashes of a partition, after cleanup of what is due. Raises OSError."""
        by_suffix: dict[str, list[tuple[str, list[Entry]]]] = {}
        for object_hash, entries in self.objects(partition, policy):
            text = object_hash.hex()
            by_suffix.setdefault(suffix_of(text), []).append((text, entries))
        hashes: dict[str, SuffixHash] = {}
        for suffix in sorted(by_suffix):
            feeds = SuffixFeeds()
            is_empty = True
            for text, entries in sorted(by_suffix[suffix]):
                key = ObjectKey(self._device_name, str(partition), policy, ANY_NAME, text)
                names = [entry.name for entry in self._cleaned(key, entries)]
                if len(names) == 1 and not policy.is_ec and is_plain_data(names[0]):
                    feeds.common.append(names[0])
                elif names:
                    feeds.add(choose(names, policy.ec), is_ec=policy.is_ec)
                else:
                    continue
                is_empty = False
            if not is_empty:
                hashes[suffix] = feeds.result(is_ec=policy.is_ec)
        return hashes

    def _cleaned(self, key: ObjectKey, entries: list[Entry]) -> list[Entry]:
        """Return the entries of an object after cleanup."""
        if len(entries) == 1 and entries[0].kind is Kind.DATA and not key.policy.is_ec:
            return entries
        place = Place(self._core, self._device, key)
        reader = place.reader()
        if not place.obsolete(entries, reader):
            return entries
        with self._device.holding(place.lock):
            entries = place.entries()
            obsolete = place.obsolete(entries, reader)
            if obsolete:
                remove(place, place.partition, obsolete)
            return [entry for entry in entries if entry not in obsolete]

    def link(self, place: Place, source: int) -> None:
        """Put the entries that an object has in another partition into its own as well. Raises OSError."""
        reader = place.reader()
        with self._device.holding(place.lock):
            own = place.entries()
            names = {entry.name for entry in own}
            for entry in place.entries(source):
                if entry.name in names:
                    continue
                if entry.external:
                    link_file(place, entry.name, place.partition, source=source)
                self._link_one(place, entry, reader)

    def _link_one(self, place: Place, entry: Entry, reader: Reader) -> None:
        everything = [*place.entries(), entry]
        obsolete = place.obsolete(everything, reader)
        if entry in obsolete:
            return
        kept = [each for each in everything if each not in obsolete]
        header = place.header(Kind.LINK, entry.timestamp)._replace(
            durable=entry.durable, references=(Reference(place.partition, entry.position),)
        )
        self._device.commit(Change(Record(header), [Update(place.partition, kept)]))
        if obsolete:
            # The index has them no more; the record that says so makes it last.
            remove(place, place.partition, obsolete)

"""A reader of packed objects written from doc/formats/packed.md alone."""

from __future__ import annotations

import pickle
import struct
import zlib
from hashlib import md5

import lmdb
import pytest

from swift.store.api import LIVE, Location, SyncedVersion
from test.contract.test_store import EC, NOW_S, key_of, put, ts
from test.unit.store.packed.test_compaction import ANY_ARCHIVE, KEYS, SmallVolumes, change_at_random, read

HEADER = struct.Struct("<4s8sIBBHIII16sQQQQQIIIII")
DATA, META, TOMBSTONE, COMMIT, GONE, LINK, UNWANTED = range(1, 8)
DURABLE, EXTERNAL = 1, 2


def timestamp_text(ticks, offset=0):
    text = f"{ticks // 100000:010d}.{ticks % 100000:05d}"
    return f"{text}_{offset:016x}" if offset else text


class Record:
    """A record at a unit of a volume."""

    def __init__(self, data, volume, unit):
        at = unit * 64
        fields = HEADER.unpack_from(data, at)
        (_magic, self.nonce, checksum, self.kind, self.flags, self.fragment, self.policy) = fields[:7]
        (self.partition, self.also, self.hash, self.ticks, self.offset, self.ctype) = fields[7:13]
        (self.written, body, metadata, references, self.batch, self.metadata_crc, self.body_crc) = fields[13:]
        end = at + HEADER.size + 12 * references
        assert zlib.crc32(data[at + 16 : end]) == checksum
        words = struct.unpack_from(f"<{3 * references}I", data, at + HEADER.size)
        self.references = [words[start : start + 3] for start in range(0, len(words), 3)]
        self.metadata = data[end : end + metadata]
        self.body = data[end + metadata : end + metadata + body]
        self.place = volume, unit
        self.units = -(-(end + metadata + body - at) // 64)

    def partitions(self):
        return [self.partition] + ([self.also] if self.also != 0xFFFFFFFF else [])

    def archive(self):
        return self.ticks, self.offset, self.fragment

    def is_sound(self):
        return zlib.crc32(self.metadata) == self.metadata_crc and zlib.crc32(self.body) == self.body_crc

    def name(self, durable):
        text = timestamp_text(self.ticks, self.offset)
        if self.kind == TOMBSTONE:
            return f"{text}.ts"
        if self.kind == DATA:
            archive = "" if self.fragment == 0xFFFF else f"#{self.fragment}{'#d' if durable else ''}"
            return f"{text}{archive}.data"
        assert self.kind == META
        return f"{text}.meta" if self.ctype == 2**64 - 1 else f"{text}+{self.ctype - self.ticks:x}.meta"


def records_of(path):
    """The records of a volume that count as written."""
    data = path.read_bytes()
    magic, nonce, number, checksum = struct.unpack_from("<8s8sII", data)
    assert (magic, number, zlib.crc32(data[:20])) == (b"SWPACKV1", int(path.name[:8]), checksum)
    found, unit = [], 1
    while unit * 64 + HEADER.size <= len(data):
        if data[unit * 64 : unit * 64 + 12] != b"SwR1" + nonce:
            unit += 1
            continue
        record = Record(data, number, unit)
        found.append(record)
        unit += record.units
    return [each for each in found if each.batch != found[-1].batch or each.is_sound()]


def objects_of(directory):
    """(policy, partition, hash) → name → record, by the section "Which records count"."""
    records = {
        record.place: record for path in sorted(directory.glob("*.volume")) for record in records_of(path)
    }
    never = {tuple(ref[1:]) for each in records.values() if each.kind == UNWANTED for ref in each.references}
    counting = [each for each in records.values() if each.place not in never]
    placed = {}
    for each in counting:
        if each.kind in (DATA, META, TOMBSTONE):
            for partition in each.partitions():
                placed[each.policy, partition, each.hash, each.place] = each, bool(each.flags & DURABLE)
        if each.kind == LINK:
            (_partition, *place), linked = each.references[0], tuple(each.references[0][1:])
            if linked in records:
                durable = bool((each.flags | records[linked].flags) & DURABLE)
                placed[each.policy, each.partition, each.hash, tuple(place)] = records[linked], durable
    committed = set()
    for each in counting:
        for partition in each.partitions() if each.kind == COMMIT else ():
            meant = [
                place
                for place, (data, _durable) in placed.items()
                if place[:3] == (each.policy, partition, each.hash) and data.archive() == each.archive()
            ]
            before = [place for place in meant if records[place[3]].written <= each.written]
            committed.update(before or meant)
    for each in [*counting, *(record for record in records.values() if record.kind == UNWANTED)]:
        for partition, *place in each.references if each.kind != LINK else ():
            placed.pop((each.policy, partition, each.hash, tuple(place)), None)
    objects = {}
    for place, (each, durable) in placed.items():
        objects.setdefault(place[:3], {})[each.name(durable or place in committed)] = each
    return objects


@pytest.fixture
def bench(tmp_path):
    made = SmallVolumes(tmp_path)
    for seed in range(3):
        change_at_random(made, seed, 60)
        made.reopen()
        made.compact_all()
    change_at_random(made, 9, 30)
    yield made
    made.store.close()


def test_volumes_alone_have_every_object(bench):
    objects = objects_of(bench.root / "sda" / "packed")
    assert len(objects) > 10
    for key in KEYS:
        found = objects.get((key.policy.index, 7, bytes.fromhex(key.hash)), {})
        assert sorted(found) == bench.names(key)
        state = bench.store.stat(key, ANY_ARCHIVE)
        if state.kind != LIVE:
            continue
        bodies = {md5(each.body).hexdigest() for each in found.values() if each.kind == DATA}
        assert state.etag in bodies and read(bench.store, key, options=ANY_ARCHIVE) in {
            each.body for each in found.values()
        }
        (written,) = [each for each in found.values() if md5(each.body).hexdigest() == state.etag][:1]
        metadata = {k.decode(): v.decode() for k, v in pickle.loads(written.metadata).items()}
        assert metadata["name"] == str(key.path)


def test_a_commit_is_about_the_archives_that_were_written_before_it(tmp_path):
    made = SmallVolumes(tmp_path)
    key = key_of("o", EC)
    put(made.store, key, ts(NOW_S), fragment=1)
    at = Location("sda", key.partition, EC, key.hash)
    assert made.store.maintenance.purge(at, SyncedVersion(ts(NOW_S), fragment=1))
    made.clock.advance(1)
    put(made.store, key, ts(NOW_S), fragment=1, commit=False)
    (names,) = objects_of(made.root / "sda" / "packed").values()
    assert list(names) == made.names(key) == [f"{ts(NOW_S).internal}#1.data"]
    made.reopen(without_index=True)
    assert list(names) == made.names(key)
    made.store.close()


def entries_of(value):
    """What an entry of the index says: names and places."""
    found = []
    while value:
        word, place = int.from_bytes(value[:8], "big"), int.from_bytes(value[8:15], "big")
        flags, ticks, kind, offset, ctype = word >> 8 & 15, word >> 14, word >> 12 & 3, 0, None
        value = value[15:]
        if flags & 4:
            _zero, offset, ctype = struct.unpack(">BQQ", value[:17])
            value = value[17:]
        name = timestamp_text(ticks, offset)
        if kind == DATA:
            archive = f"#{word & 255}{'#d' if flags & 1 else ''}" if flags & 8 else ""
            name = f"{name}{archive}.data"
        else:
            name = f"{name}.ts" if kind == TOMBSTONE else f"{name}.meta"
        found.append((name, (place >> 32, place >> 8 & 0xFFFFFF), 64 * 2 ** ((place & 255) / 12)))
    return found


def test_the_index_says_where_each_record_is(bench):
    objects = objects_of(bench.root / "sda" / "packed")
    bench.store.close()
    (path,) = (bench.root / "sda" / "packed" / "index").glob("*.mdb")
    env = lmdb.open(str(path), subdir=False, readonly=True, lock=False)
    with env.begin() as txn:
        rows = {bytes(key): bytes(value) for key, value in txn.cursor()}
    env.close()
    spaces = {value: struct.unpack(">IB", key[2:]) for key, value in rows.items() if key.startswith(b"\0s")}
    seen = {}
    for key, value in rows.items():
        if key[0] == 0:
            continue
        policy, bits = spaces[key[:1]]
        hash_ = key[-16:]
        if bits == 255:
            partition = int.from_bytes(key[1:5], "big")
        else:
            partition = int.from_bytes(hash_, "big") >> (128 - bits) if bits else 0
        for name, place, size in entries_of(value):
            record = objects[policy, partition, hash_][name]
            assert record.place == place and record.units * 64 <= size + 64
            seen.setdefault((policy, partition, hash_), []).append(name)
    assert {key: sorted(names) for key, names in seen.items()} == {
        key: sorted(names) for key, names in objects.items() if names
    }
    assert rows[b"\0complete"] == b"1"

"""Ring files of both versions survive a round trip, and no damaged file is taken for a ring."""

from __future__ import annotations

import gzip
import json
import os
import struct
import zlib
from array import array

import pytest

from swift.ring.errors import RingFileError
from swift.ring.ringfile import encode, load_table, save_table
from swift.ring.table import RingTable

RECORDS = (
    {
        "id": 0,
        "region": 1,
        "zone": 1,
        "ip": "10.0.0.1",
        "port": 6200,
        "replication_ip": "10.0.0.1",
        "replication_port": 6200,
        "device": "sda",
        "weight": 1.0,
        "meta": "ünïcode",
    },
    None,
    {
        "id": 2,
        "region": 1,
        "zone": 2,
        "ip": "::1",
        "port": 6200,
        "replication_ip": "::1",
        "replication_port": 6200,
        "device": "sda",
        "weight": 1.0,
        "meta": "",
    },
)


def make_table(*, typecode: str = "H", rows: tuple[list[int], ...] = ([0, 2, 0, 2], [2, 0])) -> RingTable:
    return RingTable(
        part_shift=30,
        rows=tuple(array(typecode, row) for row in rows),
        records=RECORDS,
        build_version=5,
        next_part_power=3,
    )


def write(path, body: bytes) -> str:
    path.write_bytes(gzip.compress(body))
    return str(path)


def v1_body(head: dict, rows: bytes) -> bytes:
    text = json.dumps(head).encode()
    return b"R1NG\0\1" + struct.pack(">I", len(text)) + text + rows


@pytest.mark.parametrize(("version", "typecode"), [(1, "H"), (2, "H"), (2, "I")])
def test_a_ring_is_read_back_as_written(tmp_path, version, typecode):
    path = str(tmp_path / "object.ring.gz")
    save_table(make_table(typecode=typecode), path, format_version=version)
    table = load_table(path)
    assert (table.format_version, table.build_version, table.next_part_power) == (version, 5, 3)
    assert table.rows == make_table(typecode=typecode).rows
    assert table.records == RECORDS
    assert table.replica_count == 1.5
    assert table.size == os.path.getsize(path)
    assert os.stat(path).st_mode & 0o777 == 0o644
    assert os.listdir(tmp_path) == ["object.ring.gz"]


@pytest.mark.parametrize("version", [1, 2])
def test_a_ring_without_rows_can_be_written(tmp_path, version):
    path = str(tmp_path / "object.ring.gz")
    save_table(make_table(rows=()), path, format_version=version)
    assert load_table(path).rows == ()
    assert load_table(path).replica_count == 0


def test_version_1_cannot_hold_wide_ids(tmp_path):
    path = str(tmp_path / "object.ring.gz")
    with pytest.raises(RingFileError, match="Ring v1 only supports 2-byte dev IDs"):
        save_table(make_table(typecode="I"), path, format_version=1)
    assert os.listdir(tmp_path) == []


def test_equal_rings_are_equal_files():
    assert encode(make_table(), "a.ring.gz") == encode(make_table(), "a.ring.gz")
    assert encode(make_table(), "a.ring.gz", format_version=2)[:10] == bytes.fromhex("1f8b0808f42a844d02ff")


def test_a_version_2_index_is_found_31_bytes_before_the_end():
    data = encode(make_table(), "a.ring.gz", format_version=2)

    def inflate(start: int, size: int) -> bytes:
        return zlib.decompressobj(-15).decompress(data[start:], size)

    (index_start,) = struct.unpack(">Q", inflate(len(data) - 31, 8))
    (length,) = struct.unpack(">Q", inflate(index_start, 8))
    index = json.loads(inflate(index_start, 8 + length)[8:])
    assert sorted(index) == ["swift/ring/assignments", "swift/ring/devices", "swift/ring/metadata"]
    compressed_start, start, _, end, _, _ = index["swift/ring/metadata"]
    metadata = json.loads(inflate(compressed_start, end - start)[8:])
    assert metadata["replica_count"] == 1.5


def test_a_big_endian_version_1_ring_is_read(tmp_path):
    head = {"byteorder": "big", "devs": [dict(RECORDS[0])], "part_shift": 31, "replica_count": 1}
    table = load_table(write(tmp_path / "r", v1_body(head, struct.pack(">2H", 0, 0))))
    assert list(table.rows[0]) == [0, 0]


def test_old_device_records_get_their_replication_address(tmp_path):
    dev = {
        "id": 0,
        "region": 1,
        "zone": 1,
        "ip": "1.2.3.4",
        "port": 5,
        "device": "d",
        "weight": 0,
        "meta": "",
    }
    head = {"byteorder": "little", "devs": [dev], "part_shift": 32, "replica_count": 1}
    record = load_table(write(tmp_path / "r", v1_body(head, b"\0\0"))).records[0]
    assert (record["replication_ip"], record["replication_port"]) == ("1.2.3.4", 5)


GOOD_HEAD = {"byteorder": "little", "devs": [dict(RECORDS[0])], "part_shift": 31, "replica_count": 1}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "bad magic"),
        (b"NOPE\0\1", "bad magic"),
        (b"R1NG\0\0", "ring format version 0 is not supported"),
        (b"R1NG\0\3", "ring format version 3 is not supported"),
        (b"R1NG\0\1\0", "ends before its JSON header"),
        (b"R1NG\0\1\0\0\xff\xff{}", "ends inside its JSON header"),
        (b"R1NG\0\1\0\0\0\2[]", "JSON header is not an object"),
        (b"R1NG\0\1\0\0\0\2{!", "JSON header is not JSON"),
        (v1_body({**GOOD_HEAD, "part_shift": 99}, b""), "part_shift is 99"),
        (v1_body({**GOOD_HEAD, "part_shift": "1"}, b""), "part_shift is '1'"),
        (v1_body({**GOOD_HEAD, "devs": None}, b""), "device list is missing"),
        (v1_body({**GOOD_HEAD, "devs": [{"id": 0}]}, b""), "device 0 lacks zone"),
        (v1_body({**GOOD_HEAD, "replica_count": 2.5}, b""), "replica_count is 2.5"),
        (v1_body({**GOOD_HEAD, "byteorder": "pdp"}, b""), "byteorder is 'pdp'"),
        (v1_body({**GOOD_HEAD, "replica_count": 10**9}, b"\0\0\0\0"), "ends after 1 of 1000000000"),
        (v1_body(GOOD_HEAD, b""), "ends after 0 of 1 assignment rows"),
        (v1_body(GOOD_HEAD, b"\0\0\0"), "ends inside a device id"),
        (v1_body(GOOD_HEAD, b"\0\0\7\0"), "assigned to device 7, which does not exist"),
        (v1_body({**GOOD_HEAD, "next_part_power": "x"}, b"\0\0\0\0"), "next_part_power is 'x'"),
        (v1_body({**GOOD_HEAD, "version": "x"}, b"\0\0\0\0"), "version is 'x'"),
        (b"R1NG\0\2", "ends before its index"),
        (b"R1NG\0\2" + bytes(16), "index"),
        (b"R1NG\0\2" + b"\xff" * 16, "index lies outside of the file"),
    ],
)
def test_a_damaged_ring_is_refused_with_its_name_and_the_reason(tmp_path, body, reason):
    path = write(tmp_path / "bad.ring.gz", body)
    with pytest.raises(RingFileError, match=reason) as caught:
        load_table(path)
    assert str(caught.value).startswith(path + ": ")
    assert "\n" not in str(caught.value)


def test_what_is_not_gzip_is_refused(tmp_path):
    (tmp_path / "r").write_bytes(b"garbage")
    with pytest.raises(RingFileError, match="it is not gzip"):
        load_table(str(tmp_path / "r"))


@pytest.mark.parametrize("name", ["a-v1.ring.gz", "a-v2.ring.gz"])
def test_a_ring_cut_anywhere_is_refused(golden, tmp_path, name):
    data = (golden / name).read_bytes()
    path = tmp_path / name
    for length in range(0, len(data), 7):
        path.write_bytes(data[:length])
        with pytest.raises(RingFileError):
            load_table(str(path))


@pytest.mark.parametrize("name", ["a-v1.ring.gz", "a-v2.ring.gz"])
def test_a_ring_with_a_changed_byte_is_refused(golden, tmp_path, name):
    data = bytearray((golden / name).read_bytes())
    path = tmp_path / name
    # The gzip header holds a time and a name that do not matter; everything behind is protected.
    for place in range(30, len(data), 5):
        data[place] ^= 0x55
        path.write_bytes(data)
        with pytest.raises(RingFileError):
            load_table(str(path))
        data[place] ^= 0x55


def version_2_body(*, extra: bool = False, digest: str = "", entry: list | None = None) -> bytes:
    """A version 2 body made from the specification alone."""
    import hashlib

    body = bytearray(b"R1NG\0\2")
    index: dict[str, list] = {}
    pieces = [
        (
            "swift/ring/metadata",
            b'{"dev_id_bytes": 2, "part_shift": 31, "replica_count": 1.0, "version": null}',
        ),
        ("swift/ring/devices", json.dumps([RECORDS[0]]).encode()),
        ("swift/ring/assignments", bytes(4)),
    ]
    if extra:
        pieces.insert(1, ("vendor/extra", b"whatever"))
    for name, piece in pieces:
        blob = struct.pack(">Q", len(piece)) + piece
        start = len(body)
        body += blob
        index[name] = [0, start, 0, len(body), "md5", hashlib.md5(blob).hexdigest()]
    if digest:
        index["swift/ring/devices"][4] = digest
    if entry is not None:
        index["swift/ring/devices"] = entry
    start = len(body)
    text = json.dumps(index).encode()
    body += struct.pack(">Q", len(text)) + text + struct.pack(">QQ", start, 0)
    return bytes(body)


def test_unknown_sections_are_ignored(tmp_path):
    table = load_table(write(tmp_path / "r", version_2_body(extra=True)))
    assert list(table.rows[0]) == [0, 0]
    assert table.build_version is None


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (version_2_body(digest="crc32"), "digest of unknown kind 'crc32'"),
        (version_2_body(digest="sha1"), "does not match its digest"),
        (version_2_body(entry=[0, 6, 0]), "does not have six elements"),
        (version_2_body(entry=[0, 6, 0, 7, "md5", ""]), "differs from the index"),
        (version_2_body(entry=[0, "6", 0, 7, "md5", ""]), "holds no offsets"),
        (version_2_body(entry=[0, 10**9, 0, 7, "md5", ""]), "lies outside of the file"),
        (version_2_body().replace(b"swift/ring/devices", b"swift/ring/devicez"), "devices is missing"),
    ],
)
def test_a_version_2_section_that_does_not_add_up_is_refused(tmp_path, body, reason):
    with pytest.raises(RingFileError, match=reason):
        load_table(write(tmp_path / "r", body))

"""Rings written by upstream are read, looked up and rewritten exactly as upstream does (spec: ring.md)."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path

import pytest

from swift.ring.ring import Ring
from swift.ring.ringfile import encode, load_table

DATA = Path(__file__).parent.parent / "data" / "rings"
LOOKUPS = json.loads((DATA / "ring-lookups.json").read_text())
NUMBERS = (
    "format_version",
    "build_version",
    "part_power",
    "next_part_power",
    "replica_count",
    "partition_count",
    "dev_id_bytes",
    "size",
    "raw_size",
)
RINGS = sorted(LOOKUPS["rings"])


@pytest.mark.parametrize("name", RINGS)
def test_every_name_is_found_on_the_devices_upstream_would_choose(name):
    ring = Ring(str(DATA / name))
    expected = LOOKUPS["rings"][name]["lookups"]
    assert len(expected) == len(LOOKUPS["names"]) == 50
    for path, (part, primary_ids, handoff_ids) in zip(LOOKUPS["names"], expected, strict=True):
        found, primaries = ring.nodes(bytes.fromhex(path["md5"]))
        assert found == ring.partition_of(bytes.fromhex(path["md5"])) == part
        assert [node.id for node in primaries] == primary_ids
        assert [node.index for node in primaries] == list(range(len(primary_ids)))
        handoffs = list(itertools.islice(ring.handoffs(part), 12))
        assert [node.id for node in handoffs] == handoff_ids
        assert [node.handoff_index for node in handoffs] == list(range(len(handoff_ids)))


@pytest.mark.parametrize("name", RINGS)
def test_the_numbers_of_a_ring_are_those_upstream_reports(name):
    facts = LOOKUPS["rings"][name]
    view = Ring(str(DATA / name)).view()
    for field in NUMBERS:
        assert getattr(view, field) == facts[field], field
    assert [len(row) for row in view.rows] == facts["row_lengths"]
    assert [place for place, device in enumerate(view.devices) if device is None] == facts["hole_ids"]
    assert len({dev_id for row in view.rows for dev_id in row}) == facts["assigned_device_count"]


@pytest.mark.long
@pytest.mark.parametrize("name", RINGS)
def test_a_ring_is_rewritten_byte_for_byte(name):
    packed = (DATA / name).read_bytes()
    original_name = packed[10 : packed.index(b"\0", 10)].decode()
    table = load_table(str(DATA / name))
    assert gzip.decompress(encode(table, original_name, format_version=table.format_version)) == (
        gzip.decompress(packed)
    )
    if zlib_made_the_same_stream():
        assert encode(table, original_name, format_version=table.format_version) == packed


def zlib_made_the_same_stream() -> bool:
    """Whether this machine's zlib compresses like the one that made the golden files."""
    packed = (DATA / "h-composite.ring.gz").read_bytes()
    table = load_table(str(DATA / "h-composite.ring.gz"))
    return encode(table, packed[10 : packed.index(b"\0", 10)].decode()) == packed

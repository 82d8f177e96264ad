"""Manifests in both forms, and what they mean (swift/middleware/slo/manifest.py)."""

import base64
import json
from hashlib import md5

import pytest

from swift.base.entity import EntityPath
from swift.base.ranges import Span
from swift.middleware.slo.manifest import (
    MANIFEST_BYTES_MAX,
    BadManifest,
    InlineData,
    Part,
    SegmentReference,
    make_inline_part,
    manifest_etag,
    overlapping_parts,
    parse_stored,
    parse_upload,
    part_span,
    render_raw,
    render_stored,
    total_bytes,
)
from test.support.checks import every

OWN = EntityPath("a", "c", "own")


def parsed(*items):
    return parse_upload(json.dumps(items).encode(), OWN)


def refused(*items):
    with pytest.raises(BadManifest) as info:
        parsed(*items)
    return info.value.text


def test_entries_are_references_and_inline_bytes():
    first, second = parsed({"path": "/c/o/p", "etag": "e", "size_bytes": 9, "range": "1-2"}, {"data": "aGk="})
    assert (first.container, first.obj, first.etag, first.size, first.ranges) == (
        "c",
        "o/p",
        "e",
        9,
        ((1, 2),),
    )
    assert second == InlineData("aGk=", b"hi")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[",
        b"\xff\xfe",
        b"[" * 100_000,
        b'[{"path": "/c/o", "size_bytes": ' + b"9" * 5000 + b"}]",
    ],
)
def test_what_is_no_json_is_refused_whatever_its_depth(text):
    with pytest.raises(BadManifest, match="valid JSON"):
        parse_upload(text, OWN)


@pytest.mark.parametrize("value", ["{}", "1", "null", '"x"'])
def test_what_is_no_list_is_refused(value):
    with pytest.raises(BadManifest, match="must be a list"):
        parse_upload(value.encode(), OWN)


@pytest.mark.parametrize("value", ["1e400", "NaN", "-Infinity", "9" * 30, "[]", "{}", '"x"', '""'])
def test_what_is_no_size_is_refused(value):
    text = f'[{{"path": "/c/o", "size_bytes": {value}}}]'
    with pytest.raises(BadManifest, match="invalid size_bytes"):
        parse_upload(text.encode(), OWN)


@pytest.mark.parametrize("value", ["5", "5.0", "5.9", '"5"', "null"])
def test_sizes_are_read_as_the_peer_reads_them(value):
    text = f'[{{"path": "/c/o", "size_bytes": {value}}}]'
    (entry,) = parse_upload(text.encode(), OWN)
    assert entry.size == (None if value == "null" else 5)


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (1, "not a JSON object"),
        ({}, '"path" must be a string'),
        ({"path": ["x"]}, '"path" must be a string'),
        ({"path": "/c"}, "path does not refer to an object"),
        ({"path": "c//"[:2]}, "path does not refer to an object"),
        ({"path": "/c/\ud800"}, "path does not refer to an object"),
        ({"path": "/c/o", "etag": 1}, '"etag" must be a string'),
        ({"path": "/c/o", "x": 1, "b": 2}, 'extraneous keys "b", "x"'),
        ({"path": "/c/o", "range": "5"}, "invalid range"),
        ({"path": "/c/o", "range": {"x": 1}}, "invalid range"),
        ({"path": "/c/o", "range": "1-2,3-4"}, "multiple ranges"),
        ({"path": "/c/o", "range": "9-", "size_bytes": 9}, "unsatisfiable range"),
        ({"path": "/c/own"}, "manifest must not include itself"),
        ({"path": "c/own"}, "manifest must not include itself"),
        ({"data": "a"}, "data must be valid base64"),
        ({"data": ""}, "too small"),
    ],
)
def test_an_entry_that_is_none_is_named_by_its_index(item, text):
    assert refused({"path": "/c/ok"}, item).startswith(f"Index 1: {text}")


def test_all_mistakes_are_told_at_once():
    assert refused({"path": 1}, {"path": "/c/ok"}, 2).count("Index") == 2


def test_bytes_alone_are_no_large_object():
    assert "at least one object-backed" in refused({"data": "YQ=="})
    assert parsed() == []


# --- the stored form ----------------------------------------------------------------------------------

PARTS = [
    Part("/c/x", Span(0, 4), 4, "e1", "t/x", "2026-01-01T00:00:00.000000"),
    make_inline_part(InlineData(base64.b64encode(b"in").decode(), b"in")),
    Part("/c/y", Span(2, 5), 9, "e2", "t/y", "2026-01-01T00:00:00.000000", is_manifest=True),
]


def test_the_stored_form_reads_back():
    assert parse_stored(render_stored(PARTS)) == PARTS


def test_the_stored_form_is_that_of_the_peer():
    first, second, third = json.loads(render_stored(PARTS))
    assert list(first) == ["name", "bytes", "hash", "content_type", "last_modified"]
    assert second == {"data": "aW4="}
    assert list(third)[5:] == ["range", "sub_slo"]
    assert (third["range"], third["sub_slo"]) == ("2-4", True)


def test_the_raw_form_can_be_uploaded_again():
    first, second, third = parse_upload(render_raw(PARTS), OWN)
    assert isinstance(first, SegmentReference)
    assert (first.name, first.etag, first.size, first.ranges) == ("/c/x", "e1", 4, None)
    assert second == InlineData("aW4=", b"in")
    assert third.ranges == ((2, 4),)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}x",
        b"5",
        b"[5]",
        b'[{"name": "/c/o"}]',
        b'[{"name": "/c", "bytes": 1, "hash": ""}]',
        b'[{"name": 4, "bytes": 1, "hash": ""}]',
        b'[{"name": "/c/o", "bytes": -1, "hash": ""}]',
        b'[{"name": "/c/o", "bytes": 5, "hash": "", "range": "7-9"}]',
        b'[{"name": "/c/o", "bytes": 5, "hash": "", "range": "x"}]',
        b'[{"data": "!"}]',
        b"[" * 100_000,
    ],
)
def test_a_damaged_manifest_is_said_to_be_one(text):
    with pytest.raises(BadManifest):
        parse_stored(text)


def test_size_and_etag_are_those_of_what_is_taken():
    assert total_bytes(PARTS) == 4 + 2 + 3
    joined = "e1" + md5(b"in").hexdigest() + "e2:2-4;"
    assert manifest_etag(PARTS) == md5(joined.encode()).hexdigest()


@every("start", range(10))
@every("stop", range(10))
def test_every_span_is_found_in_the_parts(start, stop):
    letters = {"/c/x": "abcd", "": "in", "/c/y": "..ghi...."}
    whole = "abcdinghi"
    found = "".join(
        letters[part.name][span.start : span.stop]
        for part, span in overlapping_parts(PARTS, Span(start, stop))
    )
    assert found == whole[start:stop]


def test_parts_are_numbered_from_one():
    assert [part_span(PARTS, n) for n in range(5)] == [None, Span(0, 4), Span(4, 6), Span(6, 9), None]


def test_no_manifest_of_as_many_parts_as_an_object_may_have_is_too_long_to_be_read():
    # Six letters of JSON for each.
    name = "/segments/" + "\1" * 1024
    part = Part(name, Span(0, 5 << 30), 5 << 30, "e" * 32, "type/" + "t" * 100, "2026-11-24T11:00:00.000000")
    assert len(render_stored([part])) * 10_000 < MANIFEST_BYTES_MAX

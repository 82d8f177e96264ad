"""Metadata survives storing whatever its characters are, and damage is noticed."""

from __future__ import annotations

import os
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.platform.disk import Disk
from swift.store.metadata import (
    CHECKSUM_ATTRIBUTE,
    METADATA_ATTRIBUTE,
    BadMetadata,
    decode_metadata,
    encode_metadata,
    read_metadata,
    write_metadata,
)

_WIRE = st.text(st.characters(min_codepoint=0, max_codepoint=255), max_size=20)


@given(st.dictionaries(_WIRE, _WIRE, max_size=6), st.text(max_size=10))
def test_any_wire_value_and_any_name_come_back(metadata, name):
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        name = "n"
    # Real metadata begins with its time, which is what tells readers who wrote it.
    metadata = {"X-Timestamp": "1.00000", **metadata, "name": name}
    blob = encode_metadata(metadata)
    assert decode_metadata(blob) == metadata
    assert b"_codecs\nencode" in blob[:32]


def test_an_undecodable_byte_in_a_name_comes_back():
    name = b"/a/c/\xff".decode("utf-8", "surrogateescape")
    assert decode_metadata(encode_metadata({"name": name})) == {"name": name}


def test_a_stored_file_has_both_attributes(tmp_path):
    path = str(tmp_path / "f")
    open(path, "w").close()
    write_metadata(Disk(), path, {"name": "/a/c/o"})
    assert read_metadata(Disk(), path) == {"name": "/a/c/o"}
    assert len(os.getxattr(path, CHECKSUM_ATTRIBUTE)) == 32


def test_pieces_of_any_size_are_put_together_until_the_checksum_fits(tmp_path):
    path = str(tmp_path / "f")
    open(path, "w").close()
    write_metadata(Disk(), path, {"name": "/a/c/o", "X-Object-Meta-A": "b" * 400})
    blob = os.getxattr(path, METADATA_ATTRIBUTE)
    for number, start in enumerate(range(0, len(blob), 254)):
        os.setxattr(path, f"{METADATA_ATTRIBUTE}{number or ''}", blob[start : start + 254])
    assert read_metadata(Disk(), path)["X-Object-Meta-A"] == "b" * 400
    os.removexattr(path, f"{METADATA_ATTRIBUTE}1")
    with pytest.raises(BadMetadata):
        read_metadata(Disk(), path)


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"junk",
        pickle.dumps(["not", "a", "dict"], 2),
        pickle.dumps({b"a": 1}, 2),
        pickle.dumps({b"a": b"b"}, 2)[:-3],
        b"cos\nsystem\n(S'true'\ntR.",
    ],
)
def test_what_is_not_metadata_is_refused(blob):
    with pytest.raises(BadMetadata):
        decode_metadata(blob)


def test_a_file_without_metadata_is_damaged(tmp_path):
    path = str(tmp_path / "f")
    open(path, "w").close()
    with pytest.raises(BadMetadata):
        read_metadata(Disk(), path)

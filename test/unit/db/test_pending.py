"""Pending files: the peer's format, torn entries, failed syncs."""

import base64
import errno
import os
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.db import pending
from swift.platform.disk import Disk

OBJECT_ENTRY = (
    b":gAIoWAUAAABvYmrDqXEAWBAAAAAxNzk1MjI4NDMwLjczMjIxcQFLBVgKAAAAdGV4dC9wbGFpbnECWCAAAAA1ZDQxNDAyYWJjNGIy"
    b"YTc2Yjk3MTlkOTExMDE3YzU5MnEDSwBLAE5OdHEELg=="
)
OBJECT_ROW = (
    "objé",
    "1795228430.73221",
    5,
    "text/plain",
    "5d41402abc4b2a76b9719d911017c592",
    0,
    0,
    None,
    None,
)
ACCOUNT_ENTRY = (
    b":gAIoWAIAAABnMXEAWBAAAAAxNzk1MjI4NDMwLjUwNDE0cQFYAQAAADBxAmgCaAJLAGgCdHEDLg=="
)  # fmt: skip
ACCOUNT_ROW = ("g1", "1795228430.50414", "0", "0", "0", 0, "0")


def read(data):
    refused = []
    return list(pending.entries(data, refused.append)), refused


def test_entries_of_the_peer_decode():
    assert read(OBJECT_ENTRY + ACCOUNT_ENTRY) == ([OBJECT_ROW, ACCOUNT_ROW], [])


def test_what_we_write_decodes_to_the_same():
    assert read(pending.encode(OBJECT_ROW) + pending.encode(ACCOUNT_ROW))[0] == [OBJECT_ROW, ACCOUNT_ROW]


def test_we_write_pickle_protocol_two():
    assert base64.b64decode(pending.encode(OBJECT_ROW)[1:])[:2] == b"\x80\x02"


def test_empty_pieces_are_skipped_and_bad_ones_reported():
    rows, refused = read(b"::" + ACCOUNT_ENTRY + b":!!!:" + base64.b64encode(b"junk") + b":")
    assert rows == [ACCOUNT_ROW]
    assert len(refused) == 2


class Evil:
    def __reduce__(self):
        return (os.system, ("true",))


def test_an_entry_cannot_run_code():
    rows, refused = read(b":" + base64.b64encode(pickle.dumps(Evil(), protocol=2)))
    assert rows == [] and len(refused) == 1


@given(st.integers(min_value=0, max_value=200))
def test_a_torn_entry_never_hides_the_ones_around_it(cut):
    torn = OBJECT_ENTRY[: min(cut, len(OBJECT_ENTRY) - 1)]
    rows, _ = read(ACCOUNT_ENTRY + torn + ACCOUNT_ENTRY)
    assert rows[0] == ACCOUNT_ROW and rows[-1] == ACCOUNT_ROW
    assert OBJECT_ROW not in rows


class FailingSync(Disk):
    def fdatasync(self, fd):
        raise OSError(errno.EIO, "injected")


def test_a_failed_sync_is_an_error_and_leaves_the_file_as_it_was(tmp_path):
    path = str(tmp_path / "p")
    entry = pending.encode(ACCOUNT_ROW)
    assert pending.append(Disk(), path, entry) == 0
    with pytest.raises(OSError, match="injected"):
        pending.append(FailingSync(), path, pending.encode(OBJECT_ROW))
    assert pending.append(Disk(), path, entry) == os.path.getsize(path) // 2 == len(entry)


class Recorder(Disk):
    def __init__(self):
        self.calls = []

    def fdatasync(self, fd):
        self.calls.append("data")
        os.fdatasync(fd)

    def fsync(self, fd):
        self.calls.append("directory")
        os.fsync(fd)


def test_a_new_file_has_its_name_synced_too(tmp_path):
    disk = Recorder()
    path = str(tmp_path / "p")
    pending.append(disk, path, pending.encode(ACCOUNT_ROW))
    pending.append(disk, path, pending.encode(ACCOUNT_ROW))
    assert disk.calls == ["data", "directory", "data"]
    assert pending.read(disk, path) == ACCOUNT_ENTRY.replace(b"\n", b"") * 2 or read(
        pending.read(disk, path)
    )[0] == [ACCOUNT_ROW, ACCOUNT_ROW]


def test_clearing_keeps_the_file(tmp_path):
    path = str(tmp_path / "p")
    pending.append(Disk(), path, pending.encode(ACCOUNT_ROW))
    pending.clear(Disk(), path)
    assert os.path.getsize(path) == 0
    assert pending.read(Disk(), str(tmp_path / "none")) == b""


def test_rows_added_since_the_file_was_empty_are_known_by_their_bytes():
    recent = pending.Recent()
    assert recent.split(b":ours") == ([], b":ours")
    recent.add(0, b":a", ["a"])
    recent.add(2, b":b:c", ["b", "c"])
    assert recent.split(b":a:b:c") == (["a", "b", "c"], b"")
    assert recent.split(b":a:b:c:theirs") == (["a", "b", "c"], b":theirs")


@pytest.mark.parametrize("data", [b"", b":", b":a:b:", b":a:b:d", b":theirs:a:b:c"])
def test_a_file_that_others_changed_is_decoded_whole(data):
    recent = pending.Recent()
    recent.add(0, b":a:b:c", ["a", "b", "c"])
    assert recent.split(data) == ([], data)


def test_what_follows_the_entry_of_another_process_is_not_remembered():
    recent = pending.Recent()
    recent.add(0, b":a", ["a"])
    recent.add(9, b":b", ["b"])
    assert recent.split(b":a:theirs:b") == ([], b":a:theirs:b")
    recent.add(0, b":c", ["c"])
    assert recent.split(b":c") == (["c"], b"")
    recent.add(0, b":d", ["d"])
    assert recent.split(b":d") == (["d"], b"")

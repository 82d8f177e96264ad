"""swift/store/packed/drafts.py: bodies in memory until they are large."""

from __future__ import annotations

from hashlib import md5

import pytest

from swift.store.packed.drafts import PackedDraft


class File:
    """A ``FileDraft`` that keeps what it gets."""

    def __init__(self, fails=False):
        self.data, self.is_discarded, self.fails = b"", False, fails
        self.etag = "of the file"

    @property
    def size(self):
        return len(self.data)

    def write(self, data):
        if self.fails:
            raise OSError(28, "full")
        self.data += data

    def accept_etag(self, etag, sums):
        return (etag, sums) == ("e", "s")

    def discard(self):
        self.is_discarded = True


def draft(size=None, size_max=10, file=None, **how):
    return PackedDraft(size, size_max, lambda: file or File(), **how)


def test_a_small_body_stays_in_memory():
    made = draft()
    made.write(b"01234")
    made.write(memoryview(b"56789"))
    assert made.file is None
    assert (made.body, made.size, made.etag) == (b"0123456789", 10, md5(b"0123456789").hexdigest())


def test_what_was_handed_over_may_change_afterwards():
    made, data = draft(), bytearray(b"body")
    made.write(data)
    data[:] = b"xxxx"
    assert made.body == b"body"


def test_a_body_that_grows_beyond_the_limit_goes_on_as_a_file():
    made = draft()
    made.write(b"01234567")
    made.write(b"89ab")
    assert (made.file.data, made.size, made.etag) == (b"0123456789ab", 12, "of the file")


def test_a_body_that_is_known_to_be_large_begins_as_a_file():
    assert draft(11).file is not None
    assert draft(10).file is None


def test_an_empty_body_is_a_body():
    assert (draft(0).body, draft(0).etag) == (b"", md5(b"").hexdigest())


def test_a_given_etag_is_not_computed():
    made = draft(etag="given")
    made.write(b"x")
    assert made.etag == "given"


def test_a_later_etag_is_taken_when_the_checksums_agree():
    made, other = draft(etag_follows=True), draft(etag_follows=True)
    made.write(b"body")
    other.write(b"body")
    assert not made.accept_etag("e", "wrong")
    assert made.accept_etag("e", other._sums.digest())
    assert made.etag == "e"


def test_a_later_etag_of_a_file_is_the_file_s():
    made = draft(11, etag_follows=True)
    assert made.accept_etag("e", "s") and not made.accept_etag("e", "t")


def test_a_file_that_cannot_take_what_was_in_memory_is_discarded():
    file = File(fails=True)
    made = draft(file=file)
    made.write(b"01234567")
    with pytest.raises(OSError):
        made.write(b"89ab")
    assert file.is_discarded and made.file is None


def test_discarding_drops_the_body():
    file = File()
    made = draft(11, file=file)
    made.discard()
    made.discard()
    assert file.is_discarded and made.file is None


def test_a_long_body_of_a_known_size_is_gathered_in_one_buffer():
    made, data = draft(100_000, 1 << 20, etag_follows=True), bytearray(b"x" * 60_000)
    made.write(memoryview(data))
    data[:] = b"y" * 60_000
    made.write(memoryview(data)[:40_000])
    assert made.body == b"x" * 60_000 + b"y" * 40_000


def test_a_body_that_is_longer_than_was_said_goes_on_as_a_file():
    file = File()
    made = draft(100_000, 1 << 20, file=file)
    made.write(b"x" * 100_000)
    made.write(b"y" * (1 << 20))
    assert file.data == b"x" * 100_000 + b"y" * (1 << 20)


def test_a_buffer_is_used_again_only_after_its_body_was_stored():
    first = draft(100_000, 1 << 20)
    first.write(b"x" * 100_000)
    kept = first.body
    first.discard()
    second = draft(100_000, 1 << 20)
    second.write(b"y" * 100_000)
    assert kept == b"x" * 100_000
    kept = second.body
    second.release()
    third = draft(100_000, 1 << 20)
    third.write(b"z" * 100_000)
    assert kept == b"z" * 100_000

"""The small cache of an all-in-one cluster: memcached's answers, within bounds, whatever a client sends."""

import pytest

from swift.aio.cache import LINE_BYTES_MAX, VALUE_BYTES_MAX, CacheSession, CacheStore


@pytest.fixture
def session():
    return CacheSession(CacheStore())


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"set k 7 0 5\r\nhello\r\nget k\r\n", b"STORED\r\nVALUE k 7 5\r\nhello\r\nEND\r\n"),
        (b"set k 0 0 2\r\n\r\n\r\nget k\r\n", b"STORED\r\nVALUE k 0 2\r\n\r\n\r\nEND\r\n"),
        (b"set k 0 0 0\r\n\r\nget k x\r\n", b"STORED\r\nVALUE k 0 0\r\n\r\nEND\r\n"),
        (b"get\r\n", b"END\r\n"),
        (b"add k 0 0 1\r\n1\r\nadd k 0 0 1\r\n2\r\n", b"STORED\r\nNOT_STORED\r\n"),
        (b"set n 0 0 1\r\n5\r\nincr n 3\r\ndecr n 99\r\n", b"STORED\r\n8\r\n0\r\n"),
        (b"incr n 1\r\n", b"NOT_FOUND\r\n"),
        (b"set n 0 0 1\r\nx\r\nincr n 1\r\n", b"STORED\r\nNOT_FOUND\r\n"),
        (b"delete k\r\nset k 0 0 1\r\n1\r\ndelete k\r\n", b"NOT_FOUND\r\nSTORED\r\nDELETED\r\n"),
        (b"set k 0 -1 1\r\n1\r\nget k\r\n", b"STORED\r\nEND\r\n"),
        (b"set k 0 9999999999 1\r\n1\r\nget k\r\n", b"STORED\r\nVALUE k 0 1\r\n1\r\nEND\r\n"),
        (b"set k 0 2592001 1\r\n1\r\nget k\r\n", b"STORED\r\nEND\r\n"),
        (
            b"version\r\n\r\nincr n\r\nincr n x\r\ndelete\r\nflush_all\r\n",
            b"VERSION swift-aio\r\n" + b"ERROR\r\n" * 5,
        ),
        (b"quit\r\nget k\r\n", b""),
    ],
)
@pytest.mark.parametrize("piece", [1, 3, 999])
def test_commands_are_answered_however_they_arrive(session, sent, answer, piece):
    assert b"".join(session.feed(sent[at : at + piece]) for at in range(0, len(sent), piece)) == answer


@pytest.mark.parametrize(
    "sent",
    [
        b"set k 0 0\r\n",
        b"set k 0 0 x\r\n",
        b"set k 0 0 -1\r\n",
        b"set k 0 - 1\r\n1\r\n",
        b"set k 0 --1 1\r\n1\r\n",
        b"set k 0 0 %d\r\n" % (VALUE_BYTES_MAX + 1),
        b"set k 0 0 " + b"9" * 5000 + b"\r\n",
        b"set k 0 " + b"9" * 5000 + b" 1\r\n1\r\n",
        b"set k 0 " + b"9" * 4000 + b" 1\r\n1\r\n",
        b"set k 0 -" + b"9" * 4000 + b" 1\r\n1\r\n",
        b"set n 0 0 1\r\n1\r\nincr n " + b"9" * 5000 + b"\r\n",
        b"set n 0 0 5000\r\n" + b"9" * 5000 + b"\r\nincr n 1\r\n",
        b"x" * (VALUE_BYTES_MAX + LINE_BYTES_MAX + 1),
    ],
)
def test_a_command_that_cannot_be_meant_ends_its_connection(session, sent):
    with pytest.raises(ValueError):
        session.feed(sent)


def test_a_value_of_the_greatest_size_is_kept(session):
    value = b"x" * VALUE_BYTES_MAX
    assert session.feed(b"set k 0 0 %d\r\n" % len(value) + value + b"\r\n") == b"STORED\r\n"
    assert session.feed(b"get k\r\n").endswith(value + b"\r\nEND\r\n")


def test_the_cache_forgets_what_was_used_least_recently_when_its_bytes_are_full():
    store = CacheStore(bytes_max=10_000)
    for name in (b"a", b"b", b"c"):
        store.set(name, b"0", b"x" * 2500, 0)
    assert store.get(b"a") is not None
    store.set(b"d", b"0", b"x" * 2500, 0)
    assert store.get(b"b") is None
    assert [name for name in (b"a", b"c", b"d") if store.get(name)] == [b"a", b"c", b"d"]
    assert store.size_bytes <= 10_000


def test_the_cache_counts_its_bytes_whatever_happens_to_an_entry():
    store = CacheStore()
    store.set(b"n", b"0", b"9", 0)
    once = store.size_bytes
    assert store.change(b"n", 1) == b"10"
    assert store.size_bytes == once + 1
    store.set(b"n", b"0", b"1", 0)
    assert store.size_bytes == once
    store.set(b"gone", b"0", b"v", -1)
    assert store.get(b"gone") is None
    assert store.delete(b"n")
    assert store.size_bytes == 0

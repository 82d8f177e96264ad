"""A nonce is taken once by all processes, and remembered for the window."""

import os
import random

import pytest

from swift.platform.nonces import BUCKETS, ENTRIES, NonceTable

NOW = 1_700_000_000.5
WINDOW = 60


@pytest.fixture
def table(tmp_path):
    return NonceTable.shared(str(tmp_path / "nonces"), window_s=WINDOW)


def test_a_nonce_is_taken_once(table):
    assert table.take(12345, NOW, NOW)
    assert not table.take(12345, NOW, NOW)
    assert not table.take(12345, NOW, NOW + WINDOW)


def test_all_bits_of_a_nonce_count(table):
    for bit in range(64):
        # In other buckets than those before, so that none is full.
        nonce = (0x0123_4567_89AB_CDEF * (2 * bit + 1)) & ((1 << 64) - 1)
        assert table.take(nonce, NOW, NOW)
        assert table.take(nonce ^ 1 << bit, NOW, NOW), bit
        assert not table.take(nonce, NOW, NOW)


def test_nonces_of_the_whole_range_are_taken(table):
    for nonce in (0, 1, (1 << 64) - 1, BUCKETS - 1, BUCKETS):
        assert table.take(nonce, NOW, NOW)
        assert not table.take(nonce, NOW, NOW)


@pytest.mark.process
def test_processes_share_the_table(table, tmp_path):
    other = NonceTable.shared(str(tmp_path / "nonces"), window_s=WINDOW)
    assert table.take(7, NOW, NOW)
    assert not other.take(7, NOW, NOW)
    pid = os.fork()
    if not pid:
        os._exit(int(table.take(7, NOW, NOW)) + 2 * int(table.take(8, NOW, NOW)))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 2
    assert not table.take(8, NOW, NOW)


@pytest.mark.process
def test_of_processes_at_once_one_takes_a_nonce(tmp_path):
    path = str(tmp_path / "nonces")
    nonces = [random.getrandbits(64) for _ in range(4000)]
    begin_read, begin_write = os.pipe()
    results = []
    for _ in range(3):
        read, write = os.pipe()
        if not os.fork():
            table = NonceTable.shared(path, window_s=WINDOW)
            os.close(begin_write)
            os.read(begin_read, 1)
            os.write(write, bytes(table.take(nonce, NOW, NOW) for nonce in nonces))
            os._exit(0)
        os.close(write)
        results.append(read)
    os.close(begin_write)
    taken = []
    for read in results:
        with open(read, "rb", closefd=False) as file:
            taken.append(file.read())
    for read in (begin_read, *results):
        os.close(read)
    for _ in results:
        os.wait()
    assert [sum(each) for each in zip(*taken, strict=True)] == [1] * len(nonces)


def same_bucket(count):
    return [index * BUCKETS + 5 for index in range(1, count + 1)]


def test_entries_after_the_window_give_way(table):
    for nonce in same_bucket(ENTRIES):
        assert table.take(nonce, NOW, NOW)
    for nonce in same_bucket(2 * ENTRIES)[ENTRIES:]:
        assert table.take(nonce, NOW + WINDOW + 2, NOW + WINDOW + 2)
    assert table.overwritten == 0


def test_in_a_full_bucket_the_oldest_gives_way_and_is_counted(table):
    first, *others, last = same_bucket(ENTRIES + 1)
    assert table.take(first, NOW - 50, NOW)
    for nonce in others:
        # A sender's clock may be ahead.
        assert table.take(nonce, NOW + 50, NOW)
    assert table.overwritten == 0
    assert table.take(last, NOW, NOW)
    assert table.overwritten == 1
    assert not any(table.take(nonce, NOW, NOW) for nonce in (*others, last))
    assert table.take(first, NOW - 50, NOW)


def test_seconds_may_pass_a_multiple_of_their_range(table):
    before = (1_700_000_000 // 65536 + 1) * 65536 - 1.0
    for nonce in same_bucket(ENTRIES):
        assert table.take(nonce, before, before)
    assert table.take(5, before + 2, before + 2)
    assert table.overwritten == 1


def test_a_file_that_others_may_write_is_refused(tmp_path):
    path = tmp_path / "nonces"
    path.write_bytes(b"")
    path.chmod(0o622)
    with pytest.raises(PermissionError):
        NonceTable.shared(str(path), window_s=WINDOW)


def test_a_link_and_a_fifo_are_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    os.mkfifo(tmp_path / "fifo", 0o600)
    for name in ("link", "fifo"):
        with pytest.raises(OSError):
            NonceTable.shared(str(tmp_path / name), window_s=WINDOW)
    assert not (tmp_path / "target").exists()


def test_the_file_is_of_its_user_alone(table, tmp_path):
    assert (tmp_path / "nonces").stat().st_mode & 0o777 == 0o600


def test_without_a_file_a_process_has_its_own_table():
    table = NonceTable.private(window_s=WINDOW)
    assert table.take(1, NOW, NOW)
    assert not table.take(1, NOW, NOW)
    table.close()

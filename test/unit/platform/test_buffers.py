"""Buffers for bodies are used again, and no more of them are kept than was said."""

from pathlib import Path

from swift.platform.buffers import BufferPool


def test_a_buffer_that_was_given_back_is_taken_again():
    buffers = BufferPool(10, kept_max=2)
    first = buffers.acquire()
    buffers.release(first)
    assert buffers.acquire() is first
    assert buffers.acquire() is not first


def test_buffers_have_the_size_that_was_asked_for():
    assert len(BufferPool(10, kept_max=1).acquire()) == 10


def test_only_so_many_are_kept():
    buffers = BufferPool(10, kept_max=2)
    given = [buffers.acquire() for _ in range(5)]
    buffers.release(given[0])
    buffers.release(given[1], given[2])
    buffers.release(*given[3:])
    assert repr(buffers) == "<Buffers 2 x 10>"
    buffers.release(*given)
    assert repr(buffers) == "<Buffers 2 x 10>"


def resident_kib():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4


def test_buffers_of_stalled_uploads_take_no_memory_and_give_back_what_they_took():
    buffers = BufferPool(512 << 10, kept_max=0)
    before = resident_kib()
    stalled = [buffers.acquire() for _ in range(400)]
    for buffer in stalled:
        buffer[:3] = b"abc"
    assert resident_kib() - before < 400 * 16
    for buffer in stalled:
        buffer[:] = b"x" * len(buffer)
    assert resident_kib() - before > 400 * 500
    del buffer
    stalled.clear()
    assert resident_kib() - before < 400 * 16

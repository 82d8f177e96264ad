"""Threads that share the heaps of the C library."""

from types import SimpleNamespace

from swift.platform.heap import ARENAS_MAX, M_ARENA_MAX, limit_heaps, return_free_memory


def test_the_heaps_of_a_process_are_bounded():
    messages = []
    limit_heaps(SimpleNamespace(mallopt=lambda *words: messages.append(words)))
    assert messages == [(M_ARENA_MAX, ARENAS_MAX)]


def test_a_library_that_knows_no_heaps_is_left_alone():
    limit_heaps(SimpleNamespace())
    return_free_memory(SimpleNamespace())

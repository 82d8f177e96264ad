"""Buffers for bodies are used again, and no more of them are kept than was said."""

from swift.platform.buffers import Buffers


def test_a_buffer_that_was_given_back_is_taken_again():
    buffers = Buffers(10, kept_max=2)
    first = buffers.take()
    buffers.give(first)
    assert buffers.take() is first
    assert buffers.take() is not first


def test_buffers_have_the_size_that_was_asked_for():
    assert len(Buffers(10, kept_max=1).take()) == 10


def test_only_so_many_are_kept():
    buffers = Buffers(10, kept_max=2)
    given = [buffers.take() for _ in range(5)]
    buffers.give(given[0])
    buffers.give(given[1], given[2])
    buffers.give(*given[3:])
    assert repr(buffers) == "<Buffers 2 x 10>"
    buffers.give(*given)
    assert repr(buffers) == "<Buffers 2 x 10>"

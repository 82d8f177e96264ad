"""Objects have bytes of their own, and a checker knows them however they are cut."""

from hypothesis import given
from hypothesis import strategies as st

from swift.load.share import PIECE_BYTES, Content

CONTENT = Content(1)


@given(st.integers(0, 2**50), st.integers(0, 3 * PIECE_BYTES), st.integers(1000, PIECE_BYTES * 2))
def test_a_checker_takes_an_object_in_pieces_of_any_size(number, size, cut):
    data = b"".join(CONTENT.pieces(number, size))
    assert len(data) == size
    checker = CONTENT.checker(number)
    assert all(checker.feed(data[at : at + cut]) for at in range(0, size, cut))
    assert checker.received == size


@given(st.integers(0, 2**50), st.integers(1, 5000), st.data())
def test_one_wrong_byte_is_noticed(number, size, data):
    wrong = bytearray(b"".join(CONTENT.pieces(number, size)))
    wrong[data.draw(st.integers(0, size - 1))] ^= 1
    assert not CONTENT.checker(number).feed(wrong)


def test_neighbours_differ_and_seeds_differ():
    one = b"".join(CONTENT.pieces(1, 100))
    assert one != b"".join(CONTENT.pieces(2, 100))
    assert one != b"".join(Content(2).pieces(1, 100))

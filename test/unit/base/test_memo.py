"""What is remembered stays within its bounds."""

from swift.base.memo import Memo


def test_a_result_is_made_once_while_there_is_room():
    made = []
    memo = Memo(lambda key: made.append(key) or key * 2, 2)
    assert [memo[1], memo[2], memo[3], memo[1], memo[3]] == [2, 4, 6, 2, 6]
    assert made == [1, 2, 3, 3]
    assert len(memo) == 2


def test_what_is_known_beforehand_is_never_made():
    memo = Memo(str, 0, {1: "one"})
    assert (memo[1], memo[2], len(memo)) == ("one", "2", 1)


def test_long_texts_are_not_kept():
    memo = Memo(len, 2)
    assert (memo["x" * 256], memo["y" * 257], list(memo)) == (256, 257, ["x" * 256])

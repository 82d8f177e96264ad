"""What is remembered stays within its bounds."""

from swift.base.memo import Memo, SizedCache


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


def test_the_oldest_values_make_room_for_the_bytes_of_a_new_one():
    cache = SizedCache(10)
    assert [cache.keep(key, key.upper(), 4) for key in "ab"] == ["A", "B"]
    assert cache.keep("c", "C", 2) == "C"
    assert (list(cache), cache.size_bytes) == (["a", "b", "c"], 10)
    cache.keep("d", "D", 5)
    assert (list(cache), cache.size_bytes) == (["c", "d"], 7)
    cache.keep("c", "C", 3)
    assert (list(cache), cache.size_bytes) == (["d", "c"], 8)
    cache.drop("d")
    cache.drop("d")
    assert (list(cache), cache.size_bytes) == (["c"], 3)


def test_a_value_that_is_too_large_is_not_kept_and_drops_the_one_before():
    cache = SizedCache(10)
    cache.keep("a", 1, 4)
    cache.keep("b", 2, 4)
    assert cache.keep("a", 3, 11) == 3
    assert (list(cache), cache.size_bytes) == (["b"], 4)

"""What workloads draw follows what they say, and is the same for whoever asks."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.load.samples import (
    BadSample,
    Constant,
    OperationMix,
    SequentialPicker,
    Uniform,
    UniformPicker,
    Weighted,
    ZipfPicker,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [(4096, 4096), ("64 KiB", 65536), ("1.5MB", 1500000), ("7", 7), ("2g", 2 * 10**9), ("0", 0)],
)
def test_sizes_are_numbers_or_have_units_of_thousands_or_powers_of_two(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", [-1, True, None, 1.5, "", "KB", "1 XB", "-1", "1e3", [], "nan"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(BadSample, match="a size is"):
        parse_size(text)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 2**50), st.integers(0, 99))
def test_an_objects_size_lies_in_its_range_and_never_changes(low, more, number, seed):
    sizes = Weighted(((Uniform(low, low + more), 1.0), (Constant(low), 2.0)))
    assert low <= sizes.of(seed, number) <= low + more
    assert sizes.of(seed, number) == sizes.of(seed, number)


def test_sizes_without_meaning_are_refused():
    for make in (lambda: Uniform(2, 1), lambda: Weighted(()), lambda: Weighted(((Constant(1), 0.0),))):
        with pytest.raises(BadSample):
            make()


@given(st.integers(1, 10**7), st.floats(0.05, 4), st.integers(0, 2**32))
def test_names_are_those_of_objects_that_are_there(count, exponent, seed):
    chance = random.Random(seed)
    for names in (UniformPicker(count), ZipfPicker(count, exponent), SequentialPicker(count, seed, 7)):
        assert all(0 <= names.draw(chance) < count for _ in range(5))


@pytest.mark.parametrize("exponent", [0.8, 1.0, 1.5])
def test_zipf_ranks_come_as_often_as_the_law_says(exponent):
    count, draws, chance = 50, 40_000, random.Random(7)
    names = ZipfPicker(count, exponent)
    seen = Counter(names.rank(chance) for _ in range(draws))
    total = sum(rank**-exponent for rank in range(1, count + 1))
    for rank in (1, 2, 5, 20, 50):
        expected = draws * rank**-exponent / total
        assert abs(seen[rank] - expected) < 5 * expected**0.5 + 1, rank


@given(st.integers(1, 500))
def test_every_rank_of_zipf_is_an_object_of_its_own(count):
    names = ZipfPicker(count, 1.1)
    assert len({rank * names._step % count for rank in range(count)}) == count


@given(st.integers(1, 40), st.integers(1, 8))
def test_clients_in_sequence_read_all_objects_between_them(count, clients):
    chance = random.Random(1)
    drawn = [SequentialPicker(count, number, clients).draw(chance) for number in range(clients)]
    assert drawn == [number % count for number in range(clients)]
    one = SequentialPicker(count)
    assert [one.draw(chance) for _ in range(count)] == list(range(count))


def test_a_mix_draws_by_weight_and_never_what_has_none():
    chance, mix = random.Random(3), OperationMix([("get", 3), ("put", 1), ("head", 0)])
    seen = Counter(mix.draw(chance) for _ in range(4000))
    assert set(seen) == {"get", "put"} and 2800 < seen["get"] < 3200
    with pytest.raises(BadSample):
        OperationMix([("get", 0)])

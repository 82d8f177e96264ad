"""Numbers of a simulation are read from words, and a wrong word is named."""

import pytest

from swift.plan.errors import PlanError
from swift.plan.parameters import Parameter, parse_counts, parse_parameters

KNOWN = {"rate": Parameter(20, 1, 100, "MB/s"), "size": Parameter(4, 0, 1000, "MB")}


def test_what_is_not_given_has_its_default():
    assert parse_parameters([], KNOWN, "--x") == {"rate": 20, "size": 4}
    assert parse_parameters(["rate=50", "size=0", "rate=60"], KNOWN, "--x") == {"rate": 60, "size": 0}


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("rate", "write NAME=NUMBER; names are rate, size"),
        ("speed=1", "names are rate, size"),
        ("rate=", "'' is not a number"),
        ("rate=x", "'x' is not a number"),
        ("rate=nan", "rate is nan"),
        ("rate=inf", "rate is inf"),
        ("rate=0.5", "at least 1"),
        ("rate=101", "at most 100, not 101"),
    ],
)
def test_a_wrong_word_is_named(word, message):
    with pytest.raises(PlanError) as error:
        parse_parameters([word], KNOWN, "--x")
    assert message in str(error.value) and str(error.value).startswith("--x ")


@pytest.mark.parametrize(
    ("text", "numbers"), [("1..4", (1, 2, 3, 4)), ("3", (3,)), ("8,1,8", (8, 1)), ("2..2", (2,))]
)
def test_counts_are_a_range_or_a_list(text, numbers):
    assert parse_counts(text, "devices", 8) == numbers


@pytest.mark.parametrize("text", ["", "0", "9", "4..1", "1..", "..3", "1,,2", "x", "-1", "1.5", "1" * 9, "²"])
def test_anything_else_is_no_count(text):
    with pytest.raises(PlanError, match="devices"):
        parse_counts(text, "devices", 8)

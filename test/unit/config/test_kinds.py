"""Kinds of option values: text to value, and back for the samples."""

import os
import re

import pytest

from swift.base.errors import ConfigError
from swift.config.common import LogSettings
from swift.config.kinds import (
    ABSOLUTE_PATH,
    AUTO_COUNT,
    COUNT,
    LIST,
    NUMBER,
    PORT,
    RESERVE,
    SECONDS,
    TEXT_KIND,
    TRUTH,
    WORDS,
    Reserve,
    choice,
)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (COUNT, " 5 ", 5),
        (PORT, "65535", 65535),
        (SECONDS, "1.5", 1.5),
        (NUMBER, "-2e3", -2000.0),
        (LIST, "a, b,,c ", ("a", "b", "c")),
        (WORDS, " a  b ", ("a", "b")),
        (TRUTH, "Yes", True),
        (TEXT_KIND, " x ", "x"),
        (RESERVE, "1%", Reserve(1.0, True)),
        (RESERVE, "1024", Reserve(1024, False)),
        (AUTO_COUNT, "AUTO", os.cpu_count() or 1),
        (AUTO_COUNT, "3", 3),
        (choice("copy", "move"), "Move", "move"),
        (ABSOLUTE_PATH, " /srv/ssd ", "/srv/ssd"),
        (ABSOLUTE_PATH, "", ""),
    ],
)
def test_text_becomes_a_value(kind, text, value):
    assert kind.parse(text) == value


def test_a_word_that_is_neither_true_nor_false_is_refused():
    assert TRUTH.parse("Yes") and TRUTH.parse(" 1")
    assert not any(TRUTH.parse(text) for text in ("off", "NO", "none", ""))
    assert TRUTH.parse(TRUTH.show(True)) and not TRUTH.parse(TRUTH.show(False))
    for text, hint in (("yess", "; did you mean yes?"), ("7", ""), ("ture", "; did you mean true?")):
        with pytest.raises(ValueError, match=re.escape(f"must be true or false, not {text!r}{hint}") + "$"):
            TRUTH.parse(text)


@pytest.mark.parametrize("kind", [COUNT, SECONDS, LIST, WORDS, RESERVE, TEXT_KIND])
@pytest.mark.parametrize("text", ["0", "7"])
def test_a_value_that_is_shown_reads_as_the_same(kind, text):
    value = kind.parse(text)
    assert kind.parse(kind.show(value)) == value


@pytest.mark.parametrize(
    ("kind", "text", "complaint"),
    [
        (COUNT, "five", "a whole number"),
        (COUNT, "-1", "at least 0"),
        (PORT, "65536", "from 0 to 65535"),
        (SECONDS, "-0.1", "at least 0"),
        (SECONDS, "nan", "a number"),
        (NUMBER, "", "a number"),
        (RESERVE, "101%", "over 100%"),
        (RESERVE, "-1", "negative"),
        (RESERVE, "nan%", "negative"),
        (RESERVE, "1.5", "bytes or a percentage"),
        (AUTO_COUNT, "some", "auto or a whole number"),
        (choice("copy", "move"), "lose", "one of copy, move"),
        (ABSOLUTE_PATH, "srv/ssd", "an absolute path"),
    ],
)
def test_bad_text_is_refused_with_a_sentence(kind, text, complaint):
    with pytest.raises(ValueError, match=f"^must .*{complaint}"):
        kind.parse(text)


def test_a_reserve_is_bytes_or_a_part_of_the_filesystem():
    assert Reserve(1.5, True).bytes_of(1000) == 15
    assert Reserve(700, False).bytes_of(1000) == 700
    assert (str(Reserve(1.5, True)), str(Reserve(700, False))) == ("1.5%", "700")


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("log_level", ["INFO", "warn", "Notice", ""], "infos"),
        ("log_facility", ["LOG_LOCAL3", "local3", ""], "LOG_LOCAL9"),
    ],
)
def test_a_level_or_facility_that_does_not_exist_is_refused(name, good, bad):
    for word in good:
        assert getattr(LogSettings.parse({name: word}), name) == word
    with pytest.raises(ConfigError, match=f"option {name} must be one of .*; did you mean "):
        LogSettings.parse({name: bad})

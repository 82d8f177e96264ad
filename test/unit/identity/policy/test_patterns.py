"""Patterns of policies match what they say."""

import time

import pytest

from swift.identity.policy.patterns import Glob, escape_wildcards, split_outside_variables

VALUES = {"aws:username": "a*b", "s3:prefix": "home/"}


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("abc", ["abc"], ["", "ab", "abcd", "xabc"]),
        ("*", ["", "a", "a/b\n"], []),
        ("a*", ["a", "ab", "a/b/c"], ["", "ba"]),
        ("*a", ["a", "ba"], ["ab"]),
        ("a*b*c", ["abc", "aXbYc", "abbbc", "abcbc"], ["ac", "acb", "ab"]),
        ("a?c", ["abc", "a\nc"], ["ac", "abbc"]),
        ("?*?", ["ab", "abc"], ["", "a"]),
        ("*a?", ["xab", "ab"], ["a", "abx"]),
        ("ab*ba", ["abba", "abxba"], ["aba"]),
        ("x.[y]", ["x.[y]"], ["xa[y]", "x.y"]),
        ("a/${aws:username}/*", ["a/a*b/x"], ["a/aXb/x", "a//x"]),
        ("${s3:prefix}*", ["home/", "home/x"], ["hom"]),
        ("${*}${?}${$}", ["*?$"], ["aba"]),
        ("a${s3:delimiter}", [], ["a", "a${s3:delimiter}"]),
        ("${", ["${"], ["$"]),
    ],
)
def test_a_pattern_matches_what_it_says(pattern, good, bad):
    glob = Glob(pattern)
    assert [text for text in good if not glob.matches(text, VALUES.get)] == []
    assert [text for text in bad if glob.matches(text, VALUES.get)] == []


def test_case_counts_where_it_does():
    assert Glob("Ab*", ignore_case=True).matches("aBc")
    assert not Glob("Ab*").matches("abc")


def test_a_variable_is_text_where_there_are_none():
    assert Glob("${aws:username}", has_variables=False).matches("${aws:username}")


def test_no_pattern_makes_it_slow():
    started = time.process_time()
    assert not Glob("*a" * 5000 + "b").matches("a" * 1024)
    assert not Glob("*?a" * 3000 + "b").matches("a" * 1024)
    assert not Glob("?" * 9000 + "*" + "?" * 9000).matches("a" * 1024)
    assert time.process_time() - started < 2


def test_only_a_text_is_fixed():
    fixed = {text: Glob(text).is_fixed for text in ("a", "a*", "a?", "${aws:username}", "${*}")}
    assert fixed == {"a": True, "a*": False, "a?": False, "${aws:username}": False, "${*}": True}


def test_a_text_becomes_the_pattern_of_itself():
    for text in ("a*b", "?", "${aws:username}", "$", "*${*}?"):
        glob = Glob(escape_wildcards(text))
        assert glob.matches(text, VALUES.get) and glob.is_fixed
    assert not Glob(escape_wildcards("a*b")).matches("axb")


def test_separators_within_variables_split_nothing():
    assert split_outside_variables("a:${aws:x}:c:d", ":", 2) == ["a", "${aws:x}", "c:d"]
    assert split_outside_variables("${a/b}", "/", 1) == ["${a/b}"]

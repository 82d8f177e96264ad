"""Prose is judged by its words and the length of its sentences; pages are filled to one width."""

import pytest

from tools import prose
from tools.prose import Text, wrap

LONG = "one two three four five six seven eight nine " * 7 + "ten"


def test_banned_words_are_told_with_what_to_write_instead():
    assert prose.banned_words(Text("page.md", "Nobody answers.")) == [
        "page.md: 'Nobody': write no server, no client, ..."
    ]
    assert prose.banned_words(Text("page.md", "The user `nobody` runs it.")) == []


def test_sentences_end_at_marks_blank_lines_and_items():
    text = "One two three. Four five six\n\nSeven eight nine\n- ten eleven twelve\n"
    assert len(prose.sentences_of(text)) == 4


def test_long_sentences_are_found_and_tables_and_blocks_left_out():
    page = f"# {LONG}\n\n| {LONG} |\n\n```\n{LONG}\n```\n\n{LONG}.\n"
    (found,) = prose.long_sentences(Text("page.md", prose.prose_of(page)))
    assert found.startswith("page.md: 64 words: one two three")


def test_nine_of_ten_sentences():
    texts = [Text("a", "one two three. " * 9), Text("b", "one two three four five six.")]
    assert prose.nine_of_ten(texts) == 6
    assert prose.nine_of_ten([]) == 0


def test_docstrings_and_messages_are_texts(tmp_path):
    path = tmp_path / "m.py"
    path.write_text('"""About it."""\ndef f():\n    """Do it."""\n    log.error(f"cannot {x} it")\n')
    assert [text.text for text in prose.docstrings([path], tmp_path)] == ["About it.", "Do it."]
    assert [text.where for text in prose.messages([path], tmp_path)] == ["m.py:4"]


@pytest.mark.parametrize(
    ("page", "wrapped"),
    [
        ("aa bb cc dd ee", "aa bb cc\ndd ee"),
        ("- aa bb cc dd", "- aa bb\n  cc dd"),
        ("| aa bb cc dd |", "| aa bb cc dd |"),
        ("```\naa bb cc dd\n```", "```\naa bb cc dd\n```"),
        ("aa `bb cc` dd", "aa\n`bb cc`\ndd"),
        ("aaaa bbb - ccc", "aaaa\nbbb - ccc"),
        ("aa\nbb\n\ncc", "aa bb\n\ncc"),
    ],
)
def test_paragraphs_and_items_are_filled(page, wrapped):
    assert wrap(page, width=9) == wrapped
    assert wrap(wrapped, width=9) == wrapped

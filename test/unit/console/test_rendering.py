"""Names and cells as pages and files show them."""

import re
from pathlib import Path

import pytest

import swift.console
from swift.console.core.rendering import inert_cell, visible

#: Characters that look like nothing, or like a space.
INVISIBLE = (
    "\xa0\u034f\u115f\u1160\u180b\u180e\u200b\u2003\u202e\u202f\u2800\u3164\ufe0f\uffa0\U000e0101\U000e0020"
)


@pytest.mark.parametrize("character", INVISIBLE)
def test_names_that_look_alike_are_told_apart(character):
    assert visible(f"a{character}b") == f"a\\u{{{ord(character):x}}}b"


def test_letters_and_marks_are_shown_as_they_are():
    text = "e\u0301 \u65e5\u672c\u8a9e\u0939\u093f \U0001f4a9"
    assert visible(text) == text


@pytest.mark.long
def test_the_script_hides_the_same_characters():
    script = (Path(swift.console.__file__).parent / "static" / "console.js").read_text()
    listed = re.search(r"HIDDEN = /\(\?! \)\[\\p\{C\}\\p\{Z\}(.*)\]/gu", script)[1]
    blank = re.compile(f"[{re.sub(r'.u.([0-9a-f]+).', lambda found: chr(int(found[1], 16)), listed)}]")
    for character in map(chr, range(0xF0000)):
        hidden = not character.isprintable() or blank.match(character) is not None
        assert (visible(character) != character) == hidden, hex(ord(character))


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\nx", " =1", "\xa0=1", "\uff1d1"])
def test_no_cell_is_a_formula(text):
    assert inert_cell(text) == f"'{text}"


@pytest.mark.parametrize("cell", ["photos", "a=b", " x", 5, ""])
def test_other_cells_stay(cell):
    assert inert_cell(cell) == cell

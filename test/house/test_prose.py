"""The docs keep to the norm of language: words, sentences, width."""

import re
from pathlib import Path

from tools import prose

ROOT = Path(__file__).parents[2]
#: Pages that are written by ``tools.generate``: their words stand in the code.
GENERATED = {
    f"doc/reference/{name}.md"
    for name in ("actions", "commands", "configuration", "headers", "metrics", "s3-operations")
}
FILES = sorted([*ROOT.glob("*.md"), *(ROOT / "doc").rglob("*.md")])
CODE = sorted((ROOT / "swift").rglob("*.py"))
#: A docstring that begins so is a riddle: it names nothing.
RIDDLE = re.compile(r"(What|Whether|How|Who|Whom|Where|Which)\b")
#: Words of a sentence in a docstring, and in a message.
DOCSTRING, MESSAGE = 60, 25
WRITTEN = [path for path in FILES if str(path.relative_to(ROOT)) not in GENERATED]


def test_no_banned_word_is_used():
    assert not [word for text in prose.pages(WRITTEN) for word in prose.banned_words(text)]


def test_no_sentence_is_endless():
    assert not [sentence for text in prose.pages(WRITTEN) for sentence in prose.long_sentences(text)]


def test_nine_of_ten_sentences_are_short():
    assert prose.nine_of_ten(prose.pages(WRITTEN)) <= prose.NINE_OF_TEN


def test_pages_are_filled_to_the_same_width():
    wide = [
        str(path.relative_to(ROOT)) for path in WRITTEN if prose.wrap(path.read_text()) != path.read_text()
    ]
    assert not wide, "python -m tools.prose --wrap fills them"


def test_docstrings_begin_with_what_they_are_about():
    assert not [text.where for text in prose.docstrings(CODE) if RIDDLE.match(text.text)]


def test_docstrings_say_no_sentence_twice():
    twice = re.compile(r"(?:^|\s)(\S[^.]{12,}\.)\s+\1")
    assert not [text.where for text in prose.docstrings(CODE) if twice.search(" ".join(text.text.split()))]


def test_comments_of_constants_name_what_they_are_about():
    comment = re.compile(rf"#: {RIDDLE.pattern}")
    assert not [
        f"{path.relative_to(ROOT)}: {text}" for path in CODE for text in comment.findall(path.read_text())
    ]


def test_code_speaks_of_machines_as_things():
    texts = (prose.Text(str(path.relative_to(ROOT)), path.read_text()) for path in CODE)
    assert not [word for text in texts for word in prose.banned_words(text)]


def test_sentences_of_docstrings_and_messages_are_short():
    texts = [*prose.docstrings(CODE)]
    assert prose.nine_of_ten(texts) <= 25
    long = [
        sentence
        for text in texts
        for sentence in prose.long_sentences(text, DOCSTRING)
        if "===" not in sentence
    ]
    assert not long + [
        sentence for text in prose.messages(CODE) for sentence in prose.long_sentences(text, MESSAGE)
    ]

"""Every text of the console is used, and every text that is used is there."""

import re
from pathlib import Path

import swift.console
from swift.console.core.rendering import load_texts

HERE = Path(swift.console.__file__).parent
SOURCES = [*HERE.rglob("*.py"), *HERE.glob("templates/*.html")]
#: A whole key in quotes, and the beginning of one to which a name is added.
WHOLE = re.compile(r"""['"]([a-z_]+\.\w+)['"](?!\s*~)""")
BEGINNING = re.compile(r"""['"]([a-z_]+\.\w*)(?:['"]\s*~|\{)""")
#: What was done, by its key in the table of that name.
DONE = re.compile(r"""['"]([a-z_]+)['"]""")


def known():
    return set(load_texts().keys())


def used():
    """Return the keys that sources name, and the beginnings of others."""
    texts = [path.read_text() for path in SOURCES]
    keys = {key for text in texts for key in WHOLE.findall(text)}
    keys |= {f"done.{name}" for text in texts for name in DONE.findall(text)}
    beginnings = {beginning for text in texts for beginning in BEGINNING.findall(text)}
    return keys, tuple(beginnings)


def test_all_texts_are_used():
    keys, beginnings = used()
    assert not sorted(key for key in known() - keys if not key.startswith(beginnings))


def test_all_used_texts_are_there():
    tables = {key.partition(".")[0] for key in known()} - {"done"}
    keys, beginnings = used()
    named = {key for key in keys if key.partition(".")[0] in tables and not key.endswith(".html")}
    assert not sorted(named - known())
    lonely = [each for each in beginnings if not any(key.startswith(each) for key in known())]
    assert not [each for each in lonely if each.partition(".")[0] in tables]

"""HTML from templates, and the texts of one file, so that it can be translated."""

from __future__ import annotations

import functools
import re
import time
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from swift.base.documents import JsonObject
from swift.console.core.web import link

_HERE = Path(__file__).parents[1]
#: Characters without a picture, besides those that are not printable: fillers, joiners, variant selectors.
_is_blank = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
).match
#: Spreadsheets take a cell that begins like that for a formula, after blanks and in full width as well.
_is_formula = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]").match
#: No clock shows a later time, Unix seconds.
TIME_MAX_S = 1e11
_UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB", "EB")


class Texts:
    """The texts of the pages."""

    def __init__(self, tables: Mapping[str, Mapping[str, str]]):
        self._texts = {f"{area}.{key}": text for area, table in tables.items() for key, text in table.items()}

    def __call__(self, key: str, /, **values: object) -> str:
        """Return a text with its values; raises KeyError."""
        text = self._texts[key]
        return text.format(**values) if values else text

    def keys(self) -> Iterable[str]:
        """Return the names of all texts."""
        return self._texts.keys()

    def __contains__(self, key: str) -> bool:
        return key in self._texts


@functools.cache
def load_texts() -> Texts:
    """Return the texts of ``texts.toml``."""
    return Texts(tomllib.loads((_HERE / "texts.toml").read_text("utf-8")))


def visible(text: str) -> str:
    """Return a name with an escape for each character that would be invisible or change others."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"\\u{{{ord(c):x}}}" if not c.isprintable() or _is_blank(c) else c for c in text)


def inert_cell(cell: object) -> object:
    """Return a cell of a CSV file so that no spreadsheet takes a text for a formula."""
    return f"'{cell}" if isinstance(cell, str) and _is_formula(cell) else cell


def size_text(count: float) -> str:
    """Return a number of bytes for people, in powers of 1000."""
    value, unit = float(count), 0
    while abs(value) >= 999.5 and unit + 1 < len(_UNITS):
        value, unit = value / 1000, unit + 1
    digits = 0 if unit == 0 or abs(value) >= 99.5 else 1
    return f"{value:.{digits}f} {_UNITS[unit]}"


def count_text(number: int) -> str:
    """Return a whole number with thin spaces between thousands."""
    return f"{number:,}".replace(",", "\u2009")


def moment_text(seconds: float) -> str:
    """Return a Unix time for people, in UTC; "?" for what no clock shows."""
    if not 0 <= seconds < TIME_MAX_S:
        return "?"
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))


def span_text(seconds: float) -> str:
    """Return a duration for people, in its greatest unit."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


class Renderer:
    """Makes pages."""

    def __init__(self, texts: Texts):
        # Templates are read once: a page changes with a new release only.
        self._environment = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals.update(t=texts, link=link)
        self._environment.filters.update(
            visible=visible, size=size_text, count=count_text, moment=moment_text, span=span_text
        )

    def render(self, template: str, values: JsonObject) -> bytes:
        """Return a template's text as UTF-8."""
        return self._environment.get_template(template).render(values).encode("utf-8", "backslashreplace")

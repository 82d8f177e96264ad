"""The language of prose, kept by machine: words, length of sentences, width of pages.

``python -m tools.prose`` reports; ``--wrap FILE...`` fills paragraphs of Markdown pages to ``WIDTH`` columns.
Decisions are functions of texts: pages, docstrings and messages are only different sources of them.
"""

from __future__ import annotations

import argparse
import ast
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
WIDTH = 100
#: Words of a sentence: the longest one, and the one that nine of ten do not exceed.
LONGEST = 60
NINE_OF_TEN = 28
#: Words that make persons of machines or say nothing, and what to write instead.
BANNED = {
    "nobody": "no server, no client, ...",
    "somebody": "a client, an operator, ...",
    "everybody": "all clients, all servers, ...",
    "anybody": "any client, any server, ...",
    "whoever": "the client that, the server that, ...",
    "utilize": "use",
    "leverage": "use",
}
_BANNED = re.compile(rf"\b({'|'.join(BANNED)})\b", re.I)
_END = re.compile(r"(?<=[.!?])\s+|\n\s*\n|\n\s*[-*] ")
_FENCED = re.compile(r"^ *```.*?^ *```", re.M | re.S)
_LOG = frozenset(("debug", "info", "warning", "error", "exception", "critical"))


@dataclass(frozen=True)
class Text:
    """A piece of prose and its location."""

    where: str
    text: str


def prose_of(page: str) -> str:
    """Return a Markdown page without blocks of code, tables and headings."""
    lines = _FENCED.sub("", page).splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith(("|", "#")))


def sentences_of(text: str) -> list[str]:
    """Return the sentences of prose that have three words or more."""
    return [part for part in _END.split(text) if len(part.split()) > 2]


def banned_words(text: Text) -> list[str]:
    """Return a sentence for each banned word of a text; words in backticks are names."""
    plain = re.sub(r"`[^`\n]*`", "", text.text)
    return [f"{text.where}: {word!r}: write {BANNED[word.lower()]}" for word in _BANNED.findall(plain)]


def long_sentences(text: Text, limit: int = LONGEST) -> list[str]:
    """Return a sentence for each one of a text that is longer than ``limit`` words."""
    found = [s for s in sentences_of(text.text) if len(s.split()) > limit]
    return [f"{text.where}: {len(s.split())} words: {' '.join(s.split()[:8])} ..." for s in found]


def nine_of_ten(texts: Iterable[Text]) -> int:
    """Return the number of words that nine of ten sentences do not exceed; 0 without sentences."""
    lengths = sorted(len(s.split()) for text in texts for s in sentences_of(text.text))
    return lengths[int(len(lengths) * 0.9)] if lengths else 0


# --- sources of texts -----------------------------------------------------------------------------


def pages(paths: Iterable[Path], root: Path = ROOT) -> Iterator[Text]:
    """Return the prose of Markdown pages."""
    for path in paths:
        yield Text(str(path.relative_to(root)), prose_of(path.read_text()))


def docstrings(paths: Iterable[Path], root: Path = ROOT) -> Iterator[Text]:
    """Return the docstrings of modules, classes and functions."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, kinds) and (text := ast.get_docstring(node)):
                yield Text(f"{path.relative_to(root)}:{getattr(node, 'lineno', 1)}", text)


def messages(paths: Iterable[Path], root: Path = ROOT) -> Iterator[Text]:
    """Return the constant parts of the messages that are logged."""
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            if node.func.attr not in _LOG or not node.args:
                continue
            parts = [part.value for part in ast.walk(node.args[0]) if isinstance(part, ast.Constant)]
            if text := " ".join(part for part in parts if isinstance(part, str)):
                yield Text(f"{path.relative_to(root)}:{node.lineno}", text)


# --- wrapping -------------------------------------------------------------------------------------

_ITEM = re.compile(r"( *)([-*+]|\d+\.) +")
_CODE = re.compile(r"`[^`]+`")
#: Code up to this width is not broken; the space in it meanwhile.
CODE_WIDTH = 60
_KEPT = "\0"
_MARK = re.compile(r"(?:[-*+>|#]|\d+[.)])(?:\s|$)")


def wrap(page: str, width: int = WIDTH) -> str:
    """Return a Markdown page whose paragraphs and items are filled to ``width`` columns."""
    out: list[str] = []
    paragraph: list[str] = []
    is_fenced = False

    def flush() -> None:
        if paragraph:
            out.extend(_filled(paragraph, width))
            paragraph.clear()

    for line in page.split("\n"):
        bare = line.lstrip()
        if bare.startswith("```"):
            flush()
            is_fenced = not is_fenced
            out.append(line)
        elif is_fenced or not bare or bare.startswith(("|", "#", "<", ">", "![")):
            flush()
            out.append(line)
        elif not paragraph and line.startswith("    ") and not _ITEM.match(line):
            out.append(line)
        else:
            if _ITEM.match(line):
                flush()
            paragraph.append(line)
    flush()
    return "\n".join(out)


def _filled(lines: Sequence[str], width: int) -> list[str]:
    item = _ITEM.match(lines[0])
    first = item[0] if item else re.match(r" *", lines[0])[0]  # type: ignore[index]
    rest = " " * len(first)
    words = " ".join(" ".join(lines).split())[len(first.strip()) :].strip()
    # Code in backticks stays on one line, unless it is long.
    words = _CODE.sub(
        lambda code: code[0].replace(" ", _KEPT) if len(code[0]) <= CODE_WIDTH else code[0], words
    )
    filled = textwrap.wrap(
        words,
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    # A word that would begin an item or a heading gets the word before it in front.
    for number in range(len(filled) - 1, 0, -1):
        if _MARK.match(filled[number].lstrip()):
            filled[number - 1], word = filled[number - 1].rsplit(" ", 1)
            filled[number] = f"{rest}{word} {filled[number].lstrip()}"
    return [line.replace(_KEPT, " ") for line in filled]


def main(argv: Sequence[str] | None = None) -> int:
    """Report on the docs, or wrap pages; return 0."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.prose", description="Look after the language of docs."
    )
    parser.add_argument(
        "--wrap", nargs="+", type=Path, metavar="FILE", help="fill the paragraphs of these pages"
    )
    args = parser.parse_args(argv)
    for path in args.wrap or ():
        text = path.read_text()
        wrapped = wrap(text)
        if wrapped != text:
            path.write_text(wrapped)
    if not args.wrap:
        sources = sorted((ROOT / "swift").rglob("*.py"))
        for name, texts in (
            ("doc", list(pages(sorted((ROOT / "doc").rglob("*.md"))))),
            ("docstrings", list(docstrings(sources))),
            ("log messages", list(messages(sources))),
        ):
            words = sum(len(banned_words(text)) for text in texts)
            longest = max(len(s.split()) for text in texts for s in sentences_of(text.text))
            print(
                f"{name}: {words} banned words, sentences p90 {nine_of_ten(texts)}, longest {longest} words"
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Names in backticks exist: paths, modules, classes, functions and options on pages and in docstrings."""

import ast
import re
from functools import cache

from test.support.sources import MODULES, ROOT, nodes_of

DOC = ROOT / "doc"
PAGES = (
    DOC / "ARCHITECTURE.md",
    DOC / "naming.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(page for folder in ("explanation", "howto") for page in (DOC / folder).glob("*.md")),
)
#: Where a relative path may begin.
FOLDERS = (ROOT, ROOT / "swift", ROOT / "test", DOC, ROOT / "etc")
PATH = re.compile(
    r"^[\w.-]+(?:/[\w.-]+)*\.(?:py|md|sh|svg)$|^(?:swift|test|tools|doc|etc|bin|debian)(?:/[\w.-]+)+/?$"
)
#: Names of code: one word or dotted, perhaps called; on pages only with an underscore or an inner capital.
NAME = re.compile(r"^[A-Za-z_]\w*(?:\.\w+)*(?:\(.*\))?$")
MARKED = re.compile(r"_|[a-z][A-Z]")
#: Prefixes of names, placeholders, OpenTelemetry's variables, the standard library, AWS.
OTHERS = re.compile(r"_$|_NAME$|^name\d$|^OTEL_|^io\.|^BinaryEquals$")
FENCE = re.compile(r"^ *```.*?^ *```", re.M | re.S)


def quoted_on(page):
    """Return the words in backticks of a page outside blocks; without the avoided words in naming.md."""
    text = FENCE.sub("", page.read_text())
    if page.name == "naming.md":
        text = re.sub(r"^(\|[^|]*\|[^|]*\|)[^|]*\|$", r"\1", text, flags=re.M)
    return set(re.findall(r"`([^`\n]+)`", text))


def quoted_in(module):
    """Return the words in double backticks of a module's docstrings."""
    found = set()
    for node in nodes_of(module):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            found.update(re.findall(r"``([^`\n]+)``", ast.get_docstring(node) or ""))
    return found


@cache
def known_words():
    """Return all words of the code of ``swift/``, without docstrings, and of tools, tests and samples."""
    words = set()
    for module in MODULES:
        words.update(module.relative_to(ROOT).with_suffix("").parts)
        words.update(_words_of(module))
    for pattern in ("swift/**/*.json", "tools/**/*.py", "test/**/*.py", "etc/**/*"):
        for path in ROOT.glob(pattern):
            if path.is_file():
                words.update(re.findall(r"\w+", path.read_text()))
    return words


def _words_of(module):
    docs = {id(node.value) for node in nodes_of(module) if isinstance(node, ast.Expr)}
    for node in nodes_of(module):
        for field in ("id", "attr", "name", "arg", "module"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                yield from value.split(".")
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield from re.findall(r"\w+", node.value)


@cache
def files_of_tests():
    return {path.name for path in (ROOT / "test").rglob("test_*.py")}


def exists(path, nearby):
    return path in files_of_tests() or any(
        (folder / path.rstrip("/")).exists() for folder in (*FOLDERS, nearby)
    )


@cache
def members():
    """Return class name → names that its classes define or inherit, as far as the bases are ours."""
    own, bases = {}, {}
    for module in MODULES:
        for node in nodes_of(module):
            if isinstance(node, ast.ClassDef):
                names = own.setdefault(node.name, set())
                bases.setdefault(node.name, set()).update(
                    ast.unparse(b).partition("[")[0] for b in node.bases
                )
                names.update(_words_of_node(node))
    for _ in range(6):
        for name, above in bases.items():
            for base in above & own.keys():
                own[name] |= own[base]
    return own


def _words_of_node(node):
    for each in ast.walk(node):
        for field in ("id", "attr", "name", "arg"):
            if isinstance(value := getattr(each, field, None), str):
                yield value


def missing(words, nearby, is_marked=lambda _word: True):
    """Yield the words that are no path, also from the folder ``nearby``, and no name of the code."""
    for word in sorted(words):
        if PATH.match(word):
            if not exists(word, nearby):
                yield word
        elif NAME.match(word) and is_marked(word) and not OTHERS.search(word):
            owner, _, name = re.sub(r"\(.*", "", word).rpartition(".")
            if name not in known_words() or name not in members().get(owner, {name}):
                yield word


def test_pages_name_what_exists():
    found = {
        str(page.relative_to(ROOT)): names
        for page in PAGES
        if (names := list(missing(quoted_on(page), page.parent, MARKED.search)))
    }
    assert not found


def test_docstrings_name_what_exists():
    found = {
        str(m.relative_to(ROOT)): names for m in MODULES if (names := list(missing(quoted_in(m), m.parent)))
    }
    assert not found


def test_a_name_that_is_gone_is_found():
    words = {
        "store/gone.py",
        "nowhere" + "_found",
        "Transport.request",
        "Transport.request" + "_everything",
        "no word",
    }
    assert list(missing(words, ROOT)) == [
        "Transport.request" + "_everything",
        "nowhere" + "_found",
        "store/gone.py",
    ]

"""What the documents for those who work on this name is there: paths, links, classes, commands, options."""

import ast
import re
from functools import cache
from pathlib import Path

from swift import DISTRIBUTION
from swift.entry import commands as commands_of_the_distribution
from test.support.sources import MODULES, nodes_of

ROOT = Path(__file__).parents[2]
#: Pages that name the tests of their claims.
TRUST = ("durability", "limits", "security", "support", "testing")
DOCUMENTS = sorted(
    [
        *(
            ROOT / name
            for name in ("README.md", "CONTRIBUTING.md", "doc/ARCHITECTURE.md", "doc/reference/glossary.md")
        ),
        *(ROOT / "doc/decisions").glob("*.md"),
        *(ROOT / f"doc/explanation/{name}.md" for name in TRUST),
    ]
)
#: Where a path may begin.
BASES = tuple(ROOT / name for name in (".", "swift", "doc", "test"))
WORD = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w.*-]+(?:/[\w.*-]+)*/?")


def words_of(document):
    """What stands in backticks outside of blocks, with the line."""
    text = re.sub(
        r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), document.read_text(), flags=re.M | re.S
    )
    for number, line in enumerate(text.split("\n"), 1):
        for word in WORD.findall(line):
            yield number, word


@cache
def rooms():
    """The first names of paths that lead somewhere."""
    return frozenset(path.name for base in BASES for path in base.iterdir() if path.is_dir())


def is_path(word):
    """Whether a word names a file or a folder of this tree."""
    if not PATH.fullmatch(word):
        return False
    first, slash, _ = word.partition("/")
    return word.endswith((".py", ".md")) or bool(slash and first in rooms())


def leads_somewhere(word, folders):
    """Whether it does, from one of the bases or, for a name alone, from a folder that was named before."""
    return any(any(base.glob(word)) for base in (*BASES, *folders) if not word.startswith("/"))


def lost_paths(document):
    """Where a document names a path that is not there."""
    folders, lost = [], []
    for line, word in words_of(document):
        if not is_path(word):
            continue
        if not leads_somewhere(word.rstrip("/"), folders):
            lost.append(f"{document.name}:{line} {word}")
        folders += [(base / word).parent for base in BASES if (base / word).exists()]
        folders += [base / word for base in BASES if (base / word).is_dir()]
    return lost


def test_paths_lead_somewhere():
    lost = [where for document in DOCUMENTS for where in lost_paths(document)]
    assert not lost, "\n".join(lost)


def test_claims_name_tests_that_exist():
    text = "\n".join(path.read_text() for path in (ROOT / "test").rglob("test_*.py"))
    known = set(re.findall(r"^def (test_\w+)", text, re.M))
    named = {
        word
        for name in TRUST
        for _line, word in words_of(ROOT / f"doc/explanation/{name}.md")
        if re.fullmatch(r"test_\w+", word)
    }
    assert len(named) >= 11
    assert not named - known


@cache
def names_in(place):
    """The names of all classes and functions of a module, or of all modules below a folder."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    modules = [path for path in MODULES if path == place or place in path.parents]
    return frozenset(node.name for path in modules for node in nodes_of(path) if isinstance(node, kinds))


def test_nouns_of_the_architecture_stand_where_it_says():
    text = (ROOT / "doc/ARCHITECTURE.md").read_text().partition("\n## Nouns\n")[2].partition("\n## ")[0]
    text = " ".join(text.split())
    lost = []
    for nouns, places in re.findall(r"\*\*([^*]+)\*\*(?: \(([^)]*)\))?", text):
        named = [ROOT / "swift" / word for word in WORD.findall(places)] or [ROOT / "swift"]
        known = frozenset().union(*map(names_in, named))
        lost += [noun for noun in nouns.split(", ") if noun not in known]
    assert not lost, lost


def test_commands_exist():
    lost = []
    for document in DOCUMENTS:
        for line, word in words_of(document):
            names = set(re.findall(r"(?<![\w/.-])swift-[a-z0-9-]+", word))
            lost += [
                f"{document.name}:{line} {name}"
                for name in names - commands_of_the_distribution().keys() - {DISTRIBUTION}
            ]
        for name in re.findall(r"python -m ((?:swift|test|tools)[\w.]*)", document.read_text()):
            path = ROOT / name.replace(".", "/")
            if not path.with_suffix(".py").exists() and not (path / "__main__.py").exists():
                lost.append(f"{document.name}: python -m {name}")
    assert not lost, "\n".join(lost)

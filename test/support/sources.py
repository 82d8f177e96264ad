"""The sources of this project as syntax trees, parsed once for all house tests of a process."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODULES = tuple(sorted((ROOT / "swift").rglob("*.py")))


@cache
def text_of(path):
    return path.read_text()


@cache
def tree_of(path):
    """Return a module's syntax tree; callers must not change it."""
    return ast.parse(text_of(path))


@cache
def nodes_of(path):
    """Return all nodes of a module's syntax tree."""
    return tuple(ast.walk(tree_of(path)))

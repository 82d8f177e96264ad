"""A request's path is parsed once, in ``Request.entity``; no filter takes it apart again."""

import ast
from pathlib import Path

import pytest

from test.support.sources import nodes_of

PACKAGE = Path(__file__).parents[2] / "swift"
FILTERS = sorted(
    path for room in ("middleware", "s3", "gateway", "proxy") for path in (PACKAGE / room).rglob("*.py")
)
#: Where only the kind of wrong path matters, which has no entity.
ALLOWED = {"proxy/app.py"}


@pytest.mark.parametrize("path", FILTERS, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_filter_splits_paths(path):
    if str(path.relative_to(PACKAGE)) in ALLOWED:
        return
    for node in nodes_of(path):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        assert name != "split_path", f"{path.name}:{node.lineno}: request.entity is there"

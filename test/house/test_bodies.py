"""Nobody asks a body what it can do but through its base class (swift/http/body.py)."""

import ast
from pathlib import Path

from test.support.sources import nodes_of

PACKAGE = Path(__file__).parents[2] / "swift"
#: What bodies have, each with a default.
PARTS = {
    *("read", "read_all", "read_into", "splice_into", "whole", "fills_buffers", "length", "close"),
    *("received", "trailers", "send_continue", "next_stage"),
}
#: PEP 3333 lets the iterable of a foreign application have a ``close`` or none.
FOREIGN = {("runtime/wsgi.py", "close")}
ROOMS = ("http", "runtime", "middleware", "gateway", "proxy", "obj", "cluster", "account", "container")


def probes(path):
    for node in nodes_of(path):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("getattr", "hasattr")
            and len(node.args) > 1
            and isinstance(node.args[1], ast.Constant)
        ):
            yield node.args[1].value, node.lineno


def test_no_body_is_probed():
    found = []
    for path in (path for room in ROOMS for path in sorted((PACKAGE / room).rglob("*.py"))):
        where = str(path.relative_to(PACKAGE))
        for name, line in probes(path):
            if name in PARTS and (where, name) not in FOREIGN:
                found.append(
                    f"swift/{where}:{line}: every body has {name}; give the base class a better default"
                )
    assert not found, "\n".join(found)

"""Who stores or cares for what is stored asks the clock that it was given, or the disk's about files."""

import ast

from test.support.sources import MODULES, ROOT, nodes_of

PACKAGES = ("account", "container", "db", "dbsync", "obj", "store")
#: Where the machine's time is meant.
ALLOWED = {
    "container/broker.py": "a container that was never split has been in one piece until now",
    "obj/auditor/dark_data.py": "a watcher is made of its options and a logger alone",
    "obj/request.py": "no sender's time counts for more than the machine's",
    "store/tier/entries.py": "what is used unless a test hands down another",
    "store/tier/tier.py": "what is used unless a test hands down another",
}
CLOCKS = {"time.time", "time.time_ns", "_time.time", "datetime.now", "Timestamp.now"}


def clocks_of(path):
    """The clocks that a module asks by their own names."""
    for node in nodes_of(path):
        if isinstance(node, ast.Attribute) and ast.unparse(node) in CLOCKS:
            yield f"{path.relative_to(ROOT / 'swift')}:{node.lineno}: {ast.unparse(node)}"


def found(*, allowed):
    for path in MODULES:
        name = str(path.relative_to(ROOT / "swift"))
        if name.split("/", maxsplit=1)[0] in PACKAGES and (name in ALLOWED) is allowed:
            yield from clocks_of(path)


def test_a_clock_is_handed_down():
    assert list(found(allowed=False)) == []


def test_every_exception_is_still_one():
    assert {line.split(":")[0] for line in found(allowed=True)} == set(ALLOWED)

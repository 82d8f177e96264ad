"""A request's path is parsed once, in ``Request.entity``; no filter takes it apart again."""

from pathlib import Path

from test.support.sources import nodes_of

PACKAGE = Path(__file__).parents[2] / "swift"
FILTERS = sorted(
    path for room in ("middleware", "s3", "gateway", "proxy") for path in (PACKAGE / room).rglob("*.py")
)
#: Where only the kind of wrong path matters, which has no entity.
ALLOWED = {"proxy/app.py"}


def test_no_filter_splits_paths():
    found = []
    for path in FILTERS:
        name = str(path.relative_to(PACKAGE))
        for node in nodes_of(path) if name not in ALLOWED else ():
            if "split_path" in (getattr(node, "attr", ""), getattr(node, "id", "")):
                found.append(f"swift/{name}:{node.lineno}: request.entity is there")
    assert not found, "\n".join(found)

"""One word for one thing within a package: a reader of a class's name there knows which one is meant."""

import ast
from collections import defaultdict
from pathlib import Path

from test.support.sources import tree_of

ROOT = Path(__file__).parents[2]


def public_classes():
    """(package, class) to the modules that define it."""
    places = defaultdict(list)
    for path in sorted((ROOT / "swift").rglob("*.py")):
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where = path.relative_to(ROOT)
                places[str(where.parent), node.name].append(f"{where}:{node.lineno}")
    return places


def test_no_two_modules_of_a_package_have_a_public_class_of_the_same_name():
    shared = {name: where for name, where in public_classes().items() if len(where) > 1}
    assert not shared, "say in the name what kind each is"

"""One word for one thing: whoever reads a class's name in one room knows which one is meant."""

import ast
from collections import defaultdict
from pathlib import Path

from test.support.sources import tree_of

ROOT = Path(__file__).parents[2]


def test_no_two_modules_have_a_public_class_of_the_same_name():
    places = defaultdict(list)
    for path in sorted((ROOT / "swift").rglob("*.py")):
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(ROOT)))
    shared = {name: where for name, where in places.items() if len(where) > 1}
    assert not shared, "say in the name what kind each is"

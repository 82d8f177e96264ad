"""Every package has tests that import it, so that a reader finds what it promises.

Commands are tested by running them: ``swift.cli`` counts as one package.
"""

import ast
import re

from test.support.sources import MODULES, ROOT, tree_of

IMPORT = re.compile(r"^\s*(?:from (swift[\w.]*) import (\([^)]*\)|.*)|import (swift[\w.]*))", re.MULTILINE)


def imported_by_tests():
    """The modules that files in ``test/`` import."""
    found = set()
    for path in (ROOT / "test").rglob("*.py"):
        for module, names, plain in IMPORT.findall(path.read_text()):
            found.add(module or plain)
            found.update(f"{module}.{name}" for name in re.findall(r"\w+", names))
    return found


def packages():
    """Packages with code, as dotted names, to their modules."""
    found = {}
    for path in MODULES:
        if not any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in tree_of(path).body):
            continue
        parts = path.relative_to(ROOT).with_suffix("").parts
        package = ("swift", "cli") if parts[:2] == ("swift", "cli") else parts[:-1]
        found.setdefault(".".join(package), []).append(".".join(parts))
    return found


def test_every_package_is_imported_by_a_test():
    imported = imported_by_tests()
    untested = [
        f"{package.replace('.', '/')}/: no test imports any of its {len(modules)} modules"
        for package, modules in packages().items()
        if not imported.intersection(modules)
    ]
    assert not untested, "\n".join(untested)

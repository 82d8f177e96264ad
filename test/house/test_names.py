"""Every module has a test file of its name, where a reader finds what it promises and adds to that.

Names are looked for in all of ``test/``. Where several rooms have a module of one name, each has a test of
its own, in the folder of its package or with the package's name in its own.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from test.support.sources import tree_of

ROOT = Path(__file__).parents[2]
#: Parts of a whole that is tested as such: by the suite of the interface, or by running their command.
WITHIN = {
    "swift/load/distributed.py": "functional/test_load.py",
    "swift/load/failures/site.py": "functional/test_load.py",
    "swift/load/failures/command.py": "functional/test_load.py",
    "swift/load/transports.py": "functional/test_load.py",
    "swift/plan/errors.py": "unit/cli/test_plan.py",
    "swift/cli/account_audit.py": "probe/test_tools.py",
    "swift/cli/recon_cron.py": "probe/test_tools.py",
    "swift/ring/commands/assignment.py": "unit/cli/test_ring_builder.py",
    "swift/ring/commands/settings.py": "unit/cli/test_ring_builder.py",
    "swift/container/replicator.py": "sim/test_database_replication.py",
    "swift/http/environkeys.py": "house/test_fields.py",
    "swift/dbsync/kind.py": "unit/dbsync/test_convergence.py",
    "swift/store/changes.py": "contract/test_store.py",
    "swift/store/chooser_ec.py": "unit/store/test_chooser.py",
    "swift/store/core.py": "unit/store/test_engine.py",
    "swift/store/edit.py": "contract/test_store.py",
    "swift/store/layered.py": "contract/test_store.py",
    "swift/store/place.py": "unit/store/test_engine.py",
}
TESTS = tuple(path.relative_to(ROOT / "test") for path in sorted((ROOT / "test").rglob("test_*.py")))


def definitions(path: Path) -> list[str]:
    """What a module defines that runs: its functions, and its classes that are more than an interface."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [node.name for node in tree_of(path).body if isinstance(node, kinds)]


def is_declaration(path: Path) -> bool:
    """Whether a module only declares options, which ``test_options.py`` looks at all together."""
    classes = [node for node in tree_of(path).body if isinstance(node, ast.ClassDef)]
    bases = {getattr(base, "id", "") for node in classes for base in node.bases}
    return path.stem == "settings" and bool(bases) and all(base.endswith("Settings") for base in bases)


def modules() -> list[str]:
    """Those that need a test file: not packages' own files, and nothing that only says values.

    Modules that are only the ``main`` of a command are run as that command by ``test_commands``.
    """
    found = []
    for path in sorted((ROOT / "swift").rglob("*.py")):
        module = str(path.relative_to(ROOT))
        if path.stem.startswith("__") or module in WITHIN or definitions(path) in ([], ["main"]):
            continue
        if is_declaration(path):
            continue
        found.append(module)
    return found


def speaks_of(test: Path, package: str) -> bool:
    """Whether a test lies in a package's folder, or has its name in its own."""
    return (
        package in test.parts[:-1] or re.search(rf"(^|_){package.rstrip('s')}s?(_|$)", test.stem) is not None
    )


MODULES = modules()
STEMS = Counter(path.stem for path in (ROOT / "swift").rglob("*.py"))


@pytest.mark.parametrize("module", MODULES)
def test_a_module_has_a_test_file_of_its_name(module):
    path = Path(module)
    stem, package = path.stem.strip("_"), path.parent.name
    pattern = re.compile(rf"test_(\w+_)?{re.escape(stem)}(_\w+)?")
    found = [test for test in TESTS if pattern.fullmatch(test.stem)]
    if STEMS[path.stem] > 1 and package != "swift":
        found = [test for test in found if speaks_of(test, package)]
    assert found, f"there is no test_{stem}.py of {package}"


def test_parts_are_there_and_so_is_what_tests_them():
    for module, suite in WITHIN.items():
        assert (ROOT / module).is_file() and (ROOT / "test" / suite).is_file(), module

"""Modules say what they are and are complete; sizes beyond doc/ARCHITECTURE.md are warnings."""

import ast
import re
import warnings
from pathlib import Path

from test.support.sources import nodes_of, tree_of

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "swift").rglob("*.py"))
FILE_LINES = 600
FUNCTION_LINES = 60
PUBLIC_METHODS = 15
#: Where a request to a node is a value, so that no function needs more parameters.
FEW_PARAMETERS = ("swift/cluster", "swift/proxy")
PARAMETERS = 7
FORBIDDEN_NAMES = {"utils", "util", "common_utils", "helpers", "misc", "tools"}


def name_of(path):
    return str(path.relative_to(ROOT))


def large_things(path):
    """Sentences about the file, its functions and its classes that are beyond the budgets."""
    name, lines = name_of(path), path.read_text().count("\n")
    if lines > FILE_LINES:
        yield f"{name} has {lines} lines; split it if it has two topics"
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            size = node.end_lineno - node.lineno + 1
            if size > FUNCTION_LINES:
                yield f"{name}:{node.lineno} {node.name} has {size} lines"
        if isinstance(node, ast.ClassDef):
            public = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name[0] != "_"]
            methods = [n for n in public if not any(_is_property(d) for d in n.decorator_list)]
            if len(methods) > PUBLIC_METHODS:
                yield f"{name}:{node.lineno} class {node.name} has {len(methods)} public methods"


def _is_property(decorator):
    return isinstance(decorator, ast.Name) and decorator.id == "property"


def test_sizes_beyond_the_budgets_are_told_as_warnings(tmp_path, monkeypatch):
    for path in MODULES:
        for sentence in large_things(path):
            warnings.warn(sentence, stacklevel=1)
    (tmp_path / "large.py").write_text("def f():\n" + "    pass\n" * 700)
    monkeypatch.setattr("test.house.test_budgets.ROOT", tmp_path)
    assert len(list(large_things(tmp_path / "large.py"))) == 2


def parameters_of(function):
    """Return the number of a function's parameters, ``self`` and ``cls`` not counted."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    count = sum(argument.arg not in ("self", "cls") for argument in named)
    return count + (arguments.vararg is not None) + (arguments.kwarg is not None)


def test_functions_that_send_to_nodes_have_few_parameters():
    source = "def f(self, a, b, /, c, *d, e, **g): pass"
    assert parameters_of(ast.parse(source).body[0]) == 6
    found = [
        f"{name_of(path)}:{node.lineno} {node.name} has {parameters_of(node)} parameters"
        for folder in FEW_PARAMETERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and parameters_of(node) > PARAMETERS
    ]
    assert not found, "group them in a value:\n" + "\n".join(found)


def test_no_module_is_a_drawer_for_everything():
    found = [name_of(path) for path in MODULES if path.stem in FORBIDDEN_NAMES]
    assert not found, f"a function lives with its noun: {found}"


def test_nothing_is_left_unfinished():
    found = []
    for path in MODULES:
        text = path.read_text()
        for marker in re.finditer(r"\b(TODO|FIXME|XXX|HACK|NotImplementedError)\b", text):
            line = text.count("\n", 0, marker.start()) + 1
            found.append(f"{name_of(path)}:{line}: {text.splitlines()[line - 1].strip()}")
    assert not found, "\n".join(found)


def test_modules_and_public_things_say_what_they_are():
    found = []
    for path in MODULES:
        tree = tree_of(path)
        if tree.body and not ast.get_docstring(tree):
            found.append(f"{name_of(path)}:1 opens without a docstring")
        for node in tree.body:
            if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name.startswith("_"):
                continue
            if not ast.get_docstring(node):
                found.append(f"{name_of(path)}:{node.lineno} {node.name} has no docstring")
    assert not found, "\n".join(found)

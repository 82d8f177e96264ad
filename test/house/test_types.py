"""What a value is stands in its annotation; ``Any`` is for what really may be anything."""

import ast
from pathlib import Path

from test.support.sources import nodes_of

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "swift").rglob("*.py"))
#: May only shrink.
ANY_MAX = 131


def uses_of_any(source):
    """The lines in which ``Any`` is used, once for each use; importing it is none.

    Annotations in quotes count like all others.
    """
    lines = []
    if "Any" not in source:
        return lines
    for node in ast.walk(ast.parse(source)):
        if (isinstance(node, ast.Name) and node.id == "Any") or (
            isinstance(node, ast.Attribute) and node.attr == "Any"
        ):
            lines.append(node.lineno)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "Any" in node.value:
            lines += [node.lineno] * uses_in_quotes(node.value)
    return lines


def uses_in_quotes(text):
    """How often a string names ``Any``, if it is an expression as annotations are; prose is none."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError:
        return 0
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(tree))


def test_uses_are_counted_wherever_they_stand():
    source = (
        "from typing import Any\nimport typing\n"
        "Row = dict[str, Any]\n"
        "def f(a: Any, b: 'list[Any]') -> typing.Any: 'Any text about Any is none.'\n"
    )
    assert sorted(uses_of_any(source)) == [3, 4, 4, 4]


def test_any_is_used_no_more_than_it_was():
    counts = {str(path.relative_to(ROOT)): len(uses_of_any(path.read_text())) for path in MODULES}
    total = sum(counts.values())
    most = sorted(counts.items(), key=lambda item: -item[1])[:5]
    assert total <= ANY_MAX, f"Any is used {total} times in swift/, {ANY_MAX} are allowed; most: {most}"


def test_nobody_imports_it_under_another_name():
    for path in MODULES:
        source = path.read_text()
        for node in nodes_of(path) if "Any as " in source else ():
            if isinstance(node, ast.ImportFrom):
                hidden = [alias.asname for alias in node.names if alias.name == "Any" and alias.asname]
                assert not hidden, f"{path.relative_to(ROOT)}:{node.lineno} calls Any {hidden[0]}"

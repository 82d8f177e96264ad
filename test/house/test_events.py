"""Every event that a daemon counts is declared, and every declared one is counted."""

import ast
import re

from swift.runtime.events import EVENTS
from test.support.sources import MODULES, ROOT, nodes_of

#: Modules that return the name of an event as the outcome of a unit.
OUTCOMES = ("swift/container/reconciler/task.py", "swift/s3/daemons/notifier.py")


def literals(node):
    """Yield the texts of an argument, with {} for each value."""
    for each in ast.walk(node):
        if isinstance(each, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in each.values)
            return
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value


def counted():
    """Return event → where it is counted."""
    found = {}
    for module in MODULES:
        name = str(module.relative_to(ROOT))
        for node in nodes_of(module):
            texts = []
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                owner = ast.unparse(node.func.value)
                if node.func.attr == "_note" or (node.func.attr == "add" and owner.endswith("counters")):
                    texts = literals(node.args[0])
            elif (
                isinstance(node, ast.keyword)
                and node.arg == "failed"
                or isinstance(node, ast.Assign)
                and ast.unparse(node.targets[0]) == "unavailable_event"
            ):
                texts = literals(node.value)
            elif isinstance(node, ast.Return) and name in OUTCOMES and isinstance(node.value, ast.Constant):
                texts = [text for text in literals(node.value) if text]
            for text in texts:
                found.setdefault(text, f"{name}:{node.lineno if hasattr(node, 'lineno') else 0}")
    return found


def pattern(event):
    return re.compile(re.sub(r"\\\{\w+\\\}", r"[\\w{}]+", re.escape(event)))


def test_counted_events_are_declared():
    patterns = [pattern(event) for event in EVENTS]
    assert {e: where for e, where in counted().items() if not any(p.fullmatch(e) for p in patterns)} == {}


def test_declared_events_are_counted():
    events = counted()
    unused = [
        event
        for event in EVENTS
        if not any(
            pattern(event).fullmatch(each) or pattern(each.replace("{}", "{x}")).fullmatch(event)
            for each in events
        )
    ]
    assert unused == []

"""A lock that a green thread and another thread may want at once is ``green.PlainLock``.

Those of ``threading`` become cooperative in our programs: who waits for one in a thread of a device would
never be told that the loop has let it go.
"""

import ast

from test.support.sources import MODULES, ROOT, nodes_of

#: Programs that are not cooperative.
ELSEWHERE = ("aio", "cli", "load", "operations", "plan")
KINDS = ("Lock", "RLock", "Condition", "Event", "Semaphore", "BoundedSemaphore", "Barrier")
LOCKS = {f"threading.{kind}" for kind in KINDS}


def test_nobody_shares_a_lock_of_threading():
    found = []
    for path in MODULES:
        name = str(path.relative_to(ROOT / "swift"))
        if name.split("/", maxsplit=1)[0] in ELSEWHERE:
            continue
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom) and node.module in ("threading", "queue"):
                found.append(f"{name}:{node.lineno}: from {node.module} import")
            elif isinstance(node, ast.Attribute) and ast.unparse(node) in LOCKS:
                found.append(f"{name}:{node.lineno}: {ast.unparse(node)}")
    assert found == []

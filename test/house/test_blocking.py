"""A blocking call of the standard library would stop the event loop with all its green threads.

Modules that run in a loop wait through ``swift.green``. ``threading.Lock`` and ``RLock`` are allowed: they
protect short steps that threads and green threads share, and no holder waits for the loop.
"""

import ast

from test.support.sources import MODULES, ROOT, nodes_of

#: Programs without an event loop, and the loop itself.
ELSEWHERE = ("aio", "cli", "entry", "load", "loop", "operations", "plan")
#: Modules whose functions block on sockets or on other threads.
BLOCKING_MODULES = ("http.client", "urllib.request", "requests", "queue", "concurrent.futures", "asyncio")
BLOCKING_CALLS = {
    *(f"threading.{kind}" for kind in ("Event", "Semaphore", "BoundedSemaphore", "Barrier")),
    *("time.sleep", "socket.create_connection", "select.select", "select.poll", "subprocess.run"),
}
ALLOWED = {
    # No green thread waits for it.
    "platform/batches.py: threading.Condition",
    # At the start, before there are requests.
    "middleware/keymaster/external.py: subprocess.run",
    # Before the workers are forked, and in commands: there is no loop yet.
    "runtime/service/checks.py: subprocess.run",
    "runtime/service/launch.py: subprocess.run",
    "runtime/service/processes.py: time.sleep",
    "runtime/service/serve.py: time.sleep",
}


def test_modules_of_the_loop_wait_through_green():
    found = []
    for path in MODULES:
        name = str(path.relative_to(ROOT / "swift"))
        if name.split("/", maxsplit=1)[0] in ELSEWHERE:
            continue
        for node in nodes_of(path):
            if isinstance(node, ast.Import):
                found += [f"{name}: {alias.name}" for alias in node.names if alias.name in BLOCKING_MODULES]
            elif isinstance(node, ast.ImportFrom) and node.module in (*BLOCKING_MODULES, "threading"):
                found.append(f"{name}: {node.module}")
            elif isinstance(node, ast.Attribute) and ast.unparse(node) in {
                *BLOCKING_CALLS,
                "threading.Condition",
            }:
                found.append(f"{name}: {ast.unparse(node)}")
    assert not sorted(set(found) - ALLOWED)


def test_nothing_is_monkey_patched():
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute | ast.Name) and "monkey" in ast.unparse(node)
    ]
    assert found == []

"""Engines, disks and brokers are reached through handles, which make each call where it may block.

A call of an engine on the event loop stops every request of the worker. The types make that impossible: only
``swift/store``, ``swift/db`` and the handles have an engine or a ``Run``. A function that is handed an engine
runs as one call, and must not keep it.
"""

import ast

import pytest

from test.support.sources import MODULES, ROOT, tree_of

#: The engines, the handles, and what the handles are made of.
INSIDE = (
    *("store/", "db/", "base/", "loop/", "green.py", "runtime/diskcalls.py", "runtime/backendapp.py"),
    "platform/diskhandle.py",
)
#: Commands without an event loop may block.
COMMANDS = ("cli/", "load/", "aio/", "operations/", "plan/")
#: Types whose values block. A value of the first ones is the argument of a function that is one call.
ENGINES = ("ObjectStore", "Edit", "Maintenance", "PendingUpdates")
#: What makes an engine, or a connection to a database.
MAKERS = {"FileStore", "EngineCore", "TierStore", "file_store", "load_factory", "connect", "Database"}
RUNS = {"Run", "run_inline"}
#: Attributes that lead from a handle or a registry to what is behind it.
WAYS = {"_engine", "_target", "_runs", "_run_of", "_stored"}
ALLOWED = {
    "dbsync/receivedfiles.py: connect": "in functions of a disk, which are calls",
    "runtime/deviceidentity.py: connect": "at the start, before there are requests",
}


def faults_of(tree):
    """What a module outside of the engines must not do, as sentences."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name in MAKERS | RUNS and (node.module or "").startswith("swift."):
                    yield alias.name
        elif isinstance(node, ast.Attribute):
            yield from _ways(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _escapes(node)
        elif isinstance(node, ast.AnnAssign) and _is_raw(node.annotation, ENGINES):
            yield f"{ast.unparse(node.target)} keeps an engine"


def _ways(node):
    owner = ast.unparse(node.value)
    last = owner.rpartition(".")[2]
    if node.attr in WAYS and last in (
        "store",
        "stores",
        "_store",
        "_stores",
        "handle",
        "stored",
        "maintenance",
    ):
        yield f"{owner}.{node.attr}"
    if node.attr == "engine" and last in ("stores", "_stores", "registry"):
        yield f"{owner}.engine"
    if node.attr in ("run", "threads") and last in ("pools", "_pools", "store", "_store", "stores", "engine"):
        yield f"{owner}.{node.attr}"
    if last == "disk" and owner != last and node.attr not in ("now_ns", "tells_failures"):
        yield f"{owner}.{node.attr}"
    if node.attr in ("disk", "run") and last in ("engine", "_engine", "_disk") and owner != "self.engine":
        yield f"{owner}.{node.attr}"


def _is_raw(annotation, names):
    return annotation is not None and ast.unparse(annotation).split(" | ")[0].strip("'\"") in names


def _escapes(function):
    """Uses of an engine by which it outlives the call that was given it."""
    arguments = function.args
    raw = {
        argument.arg
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        if _is_raw(argument.annotation, ENGINES)
    }
    if not raw:
        if any(
            isinstance(node, ast.Attribute) and node.attr == "raw" and "draft" in ast.unparse(node.value)
            for node in ast.walk(function)
        ):
            yield f"{function.name}: an open draft's raw one outside of a call"
        return
    fine = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            fine |= {id(argument) for argument in (*node.args, *(each.value for each in node.keywords))}
        elif isinstance(node, ast.Attribute):
            fine.add(id(node.value))
    inner = {
        id(part)
        for node in ast.walk(function)
        if isinstance(node, ast.Lambda | ast.FunctionDef | ast.GeneratorExp) and node is not function
        for part in ast.walk(node)
    }
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id in raw and (id(node) not in fine or id(node) in inner):
            yield f"{function.name}: {node.id} outlives its call"
        elif isinstance(node, ast.Yield | ast.YieldFrom):
            yield f"{function.name}: a generator is no call"


def test_engines_are_reached_through_handles():
    found = []
    for path in MODULES:
        name = str(path.relative_to(ROOT / "swift"))
        if not name.startswith(INSIDE + COMMANDS):
            found += [f"{name}: {fault}" for fault in faults_of(tree_of(path))]
    assert sorted(set(found) - ALLOWED.keys()) == []
    assert ALLOWED.keys() <= set(found), "every exception is still one"


@pytest.mark.parametrize(
    "seed",
    [
        "from swift.store.engine import FileStore",
        "from swift.base.calls import run_inline",
        "from swift.db.connection import connect",
        "def get(self, key): return self._stores.engine(key.policy).look(key, view)",
        "def get(self, key): return self.stores.at(key.policy, 'd').store._engine.look(key)",
        "def get(self, key): return self._store._engine.look(key, view)",
        "def get(self): return self.context.pools.run('sda')(function)",
        "def get(self, key): return store.run(key.device, effort)(function)",
        "def size(broker): return broker.engine.disk.stat(broker.newest.path)",
        "def size(self): return self._disk.run(os.stat, path)",
        "def size(self, path): return self._task.disk.stat(path)",
        "def keep(self, engine: ObjectStore): self.engine = engine",
        "def give(engine: ObjectStore): return engine",
        "def later(engine: ObjectStore): return lambda: engine.look(key, view)",
        "def walk(engine: ObjectStore):\n    yield engine.look(key, view)",
        "class A:\n    store: ObjectStore",
        "def publish(draft): return draft.raw.write(b'')",
    ],
)
def test_a_seeded_call_is_found(seed):
    assert list(faults_of(ast.parse(seed)))


def test_a_function_that_is_one_call_is_no_fault():
    work = (
        "def f(engine: ObjectStore, key):\n    with engine.edit(key) as edit:\n        return g(engine, edit)"
    )
    assert list(faults_of(ast.parse(work))) == []

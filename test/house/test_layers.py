"""A module imports only from a lower layer or its own package (doc/ARCHITECTURE.md)."""

import ast
from pathlib import Path

from test.support.sources import nodes_of

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "swift"

LAYERS = {
    "base": 0,
    "loop": 1,
    "green": 1,
    "platform": 1,
    "config": 1,
    "telemetry": 1,
    "wire": 2,
    "ring": 2,
    "ec": 2,
    "policy": 2,
    "http": 2,
    "store": 3,
    "db": 3,
    "cluster": 4,
    "runtime": 4,
    "gateway": 5,
    "identity": 5,
    "dbserver": 5,
    "dbsync": 5,
    "compose": 5,
    "account": 6,
    "container": 6,
    "obj": 6,
    "proxy": 6,
    "middleware": 6,
    "runtime/service": 6,
    "aio": 7,
    "operations": 7,
    "load": 8,
    "layout": 8,
    "plan": 9,
    "console": 10,
    "cli": 10,
    "entry": 10,
    "common": 10,
    "s3": 6,
}
#: (importer, imported) pairs of one layer that are allowed, each with its reason.
SIBLINGS = {
    ("green", "loop"): "the event loop is what waits are made on, and hands them on",
    ("telemetry", "config"): "log and statsd options are settings like all others",
    ("platform", "green"): "waiting for a lock must not stop the event loop",
    ("telemetry", "platform"): "recon files are locked like all others",
    ("policy", "ec"): "a policy names its erasure code",
    ("wire", "http"): "codecs speak of headers and body errors",
    ("runtime", "cluster"): "a backend context carries the transport",
    ("dbsync", "dbserver"): "the REPLICATE verb is one of a database server",
    ("identity", "gateway"): "records are objects, read and changed by requests to the pipeline",
    ("s3", "middleware"): "the S3 API is a filter, and takes forms and versions as other filters do",
    ("compose", "gateway"): "the composition root may see its own layer",
}
MODULES = sorted(PACKAGE.rglob("*.py"))


def room_of(module):
    """Return the innermost room that has a layer, for the parts of a dotted name without ``swift``."""
    pair = "/".join(module[:2])
    return pair if pair in LAYERS else module[0]


def room_of_file(path):
    return room_of(path.relative_to(PACKAGE).with_suffix("").parts)


def imports_of(path):
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node.lineno
            if node.module == "swift":
                yield from ((f"swift.{alias.name}", node.lineno) for alias in node.names)


def test_every_room_has_a_layer():
    rooms = {room_of_file(path) for path in MODULES} - {"__init__"}
    assert rooms <= set(LAYERS), f"give these rooms a layer here and in the plan: {rooms - set(LAYERS)}"


def wrong_imports(path):
    """Sentences about imports of siblings and of higher layers."""
    room = room_of_file(path)
    if room == "__init__":
        return
    for name, line in imports_of(path):
        parts = name.split(".")
        if (
            parts[0] != "swift"
            or len(parts) < 2
            or parts[1] in ("__version__", "DISTRIBUTION")
            or room_of(parts[1:]) == room
        ):
            continue
        other = room_of(parts[1:])
        where = f"{path.relative_to(ROOT)}:{line}"
        if LAYERS[other] == LAYERS[room] and (room, other) not in SIBLINGS:
            yield (
                f"{where}: {room} and {other} are siblings of layer {LAYERS[room]} and blind to each other; "
                "move what both need one layer down"
            )
        elif LAYERS[other] > LAYERS[room]:
            yield (
                f"{where}: {room} (layer {LAYERS[room]}) imports {other} (layer {LAYERS[other]}) above it; "
                "pass it in from the composition root instead"
            )


def test_the_distribution_needs_neither_tools_nor_tests():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in MODULES
        for name, line in imports_of(path)
        if name.split(".")[0] in ("tools", "test")
    ]
    assert not found, "\n".join(found)


def test_imports_point_down():
    found = [sentence for path in MODULES for sentence in wrong_imports(path)]
    assert not found, "\n".join(found)


def folder_imports():
    """Return (package, folder, imported folder) → the imports, for the sub-folders of every package."""
    found = {}
    for path in MODULES:
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        for name, line in imports_of(path):
            other = tuple(name.split(".")[1:]) if name.startswith("swift.") else ()
            shared = zip(parts, other, strict=False)
            depth = next((n for n, (own, named) in enumerate(shared) if own != named), 0)
            if depth and len(parts) > depth + 1 and (PACKAGE.joinpath(*other[: depth + 1])).is_dir():
                place = "/".join(parts[:depth]), parts[depth], other[depth]
                found.setdefault(place, []).append(f"{path.relative_to(ROOT)}:{line}")
    return found


def test_folders_of_a_package_import_in_one_direction():
    imports = folder_imports()
    found = [
        f"swift/{package}: {one} imports {other}, which imports it too: {', '.join(lines[:3])}"
        for (package, one, other), lines in sorted(imports.items())
        if (package, other, one) in imports
    ]
    assert not found, "\n".join(found)


def modules_imported():
    """Each module of ours → those of ours that it imports, wherever in the file and for whatever purpose."""
    names = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in MODULES
    }
    found = {}
    for module, path in names.items():
        found[module] = set()
        for node in nodes_of(path):
            if isinstance(node, ast.Import):
                found[module].update(alias.name for alias in node.names if alias.name in names)
            elif isinstance(node, ast.ImportFrom) and node.module in names:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                found[module].update(inner & names.keys() or {node.module})
    return found


def circle_in(imports):
    """Modules that import each other, as the way around; empty when there are none."""
    done, way = set(), []

    def visit(module):
        if module in way:
            return [*way[way.index(module) :], module]
        if module in done:
            return []
        done.add(module)
        way.append(module)
        for other in sorted(imports[module]):
            if circle := visit(other):
                return circle
        way.pop()
        return []

    return next((circle for module in sorted(imports) if (circle := visit(module))), [])


def test_a_circle_is_found():
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


def test_no_modules_import_each_other_in_a_circle():
    circle = circle_in(modules_imported())
    assert not circle, f"{' -> '.join(circle)}: give what they share a module that both import"


#: Packages whose folders may import each other.
ENTANGLED = {"swift", "swift.s3"}


def test_no_two_folders_of_a_package_import_each_other():
    folders = {}
    for module, others in modules_imported().items():
        here = folders.setdefault(module.rpartition(".")[0], set())
        here.update(other.rpartition(".")[0] for other in others)
    found = {
        frozenset((one, other))
        for one, others in folders.items()
        for other in others - {one}
        if one in folders.get(other, ())
        and one.rpartition(".")[0] == other.rpartition(".")[0]
        and one.rpartition(".")[0] not in ENTANGLED
    }
    assert not found, f"{sorted(map(sorted, found))}: which of them is below the other?"


def test_only_green_knows_eventlet():
    found = []
    for path in MODULES:
        if path.name == "green.py" and path.parent == PACKAGE:
            continue
        for name, line in imports_of(path):
            where = f"{path.relative_to(ROOT)}:{line}"
            if name.startswith("eventlet"):
                found.append(f"{where}: eventlet may be exchanged; only swift/green.py may know it")
            if name.startswith("greenlet") and room_of_file(path) != "loop":
                found.append(f"{where}: who switches to whom is decided in swift/green.py and swift/loop")
    assert not found, "\n".join(found)


def test_base_never_does_io():
    found = [
        f"{path.relative_to(ROOT)}:{line}: layer 0 is pure"
        for path in (PACKAGE / "base").glob("*.py")
        for name, line in imports_of(path)
        if name.split(".")[0] in {"os", "socket", "sqlite3", "subprocess", "pathlib"}
    ]
    assert not found, "\n".join(found)

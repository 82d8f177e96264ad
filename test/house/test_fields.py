"""Internal headers and environment keys are declared once, in swift/http/fields.py."""

import ast
import re
from pathlib import Path

import pytest

from swift.http import fields
from swift.http.internal import is_internal
from test.support.sources import tree_of

PACKAGE = Path(__file__).parents[2] / "swift"
HOME = PACKAGE / "http" / "fields.py"
#: Packages that name no such thing but by its constant.
MOVED = ("http", "wire", "cluster", "middleware", "gateway", "proxy", "runtime")
#: Literals that other packages still have. These numbers only become smaller.
LEFT = {"account": 8, "container": 27, "dbsync": 1, "obj": 55, "store": 3}
HEADER = re.compile(r"x-(backend|(account|container|object|object-transient)-sysmeta)\b[a-z0-9-]*")
KEY = re.compile(r"swift\.[a-z_]+(\.[a-z_]+)*|swift_owner|swift_sync_key|reseller_request|swob\.\w+")
#: Of the same shape, and something else: names of settings.
OTHERS = {"swift.auto_create_account_prefix", "swift.valid_api_versions"}


def literals(path):
    tree = tree_of(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.lower() if node.value[:2] in ("X-", "x-") else node.value
            if HEADER.fullmatch(name):
                yield name, node.lineno, True
            elif name in fields.ENVIRON or (KEY.fullmatch(name) and name not in OTHERS):
                yield name, node.lineno, False


def modules(room):
    return [path for path in sorted((PACKAGE / room).rglob("*.py")) if path != HOME]


@pytest.mark.parametrize("room", MOVED)
def test_packages_that_have_moved_use_the_constants(room):
    for path in modules(room):
        for name, line, _ in literals(path):
            raise AssertionError(f"{path.relative_to(PACKAGE.parent)}:{line}: http/fields.py has {name}")


ROOMS = {path.name for path in PACKAGE.iterdir() if path.is_dir()} - {"__pycache__"}


@pytest.mark.parametrize("room", sorted(ROOMS - set(MOVED)))
def test_other_packages_lose_their_literals_and_use_none_that_is_not_declared(room):
    found = [(path, *hit) for path in modules(room) for hit in literals(path)]
    headers = [(path, name, line) for path, name, line, is_header in found if is_header]
    for path, name, line in headers:
        assert name in fields.HEADERS, f"{path.relative_to(PACKAGE.parent)}:{line}: declare {name}"
    assert len(headers) <= LEFT.get(room, 0), f"{room}: use the constants of http/fields.py"


def test_every_declaration_says_what_it_means():
    for field in (*fields.HEADERS.values(), *fields.ENVIRON.values()):
        assert field.doc.endswith("."), field.name
        assert field.name == field.name.lower() or field.name in fields.ENVIRON


def test_every_declared_header_is_internal():
    assert [name for name in fields.HEADERS if not is_internal(name)] == []


@pytest.mark.parametrize(
    "name", ["x-object-meta-a", "x-account-meta-x-backend", "host", "x-backen", "sysmeta"]
)
def test_what_is_the_clients_is_not(name):
    assert not is_internal(name)


@pytest.mark.parametrize("name", ["x-backend", "x-backend-new", "x-object-sysmeta-a", "x-account-sysmeta-"])
def test_what_is_not_declared_yet_is_internal_by_its_family(name):
    assert is_internal(name)


def test_no_client_makes_the_classification_remember_anything():
    known = is_internal.__self__
    size = len(known)
    for n in range(5000):
        assert is_internal(f"x-backend-{n}")
        assert not is_internal(f"x-object-meta-{n}")
    assert len(known) == size

"""Internal headers and environment keys are declared once, in swift/http/fields.py and environkeys.py."""

import ast
import re
from pathlib import Path

import pytest

from swift.http import environkeys, fields
from swift.http.internal import is_internal
from test.support.sources import tree_of

PACKAGE = Path(__file__).parents[2] / "swift"
HOMES = (PACKAGE / "http" / "fields.py", PACKAGE / "http" / "environkeys.py")
HEADER = re.compile(r"x-(backend|(account|container|object|object-transient)-sysmeta)\b[a-z0-9-]*")
KEY = re.compile(r"swift\.[a-z_]+(\.[a-z_]+)*|swift_owner|swift_sync_key|reseller_request|swob\.\w+")
#: Of the same shape, and something else: names of settings, groups of entry points, attributes of spans, a
#: command that is started.
OTHERS = {
    "swift.account",
    "swift.auto_create_account_prefix",
    "swift.cli.plan",
    "swift.container",
    "swift.device",
    "swift.diskfile",
    "swift.object",
    "swift.object_audit_watcher",
    "swift.partition",
    "swift.store_wrapper",
    "swift.transaction_id",
    "swift.valid_api_versions",
}


#: Packages that see no requests: names of this shape are modules and files there.
SEE_NO_REQUESTS = {
    "aio",
    "base",
    "cli",
    "compose.py",
    "load",
    "operations",
    "plan",
    "policy",
    "ring",
    "service",
}


def is_internal_name(text, room):
    if HEADER.fullmatch(text.lower() if text[:2] in ("X-", "x-") else text) or text in environkeys.ENVIRON:
        return True
    return room not in SEE_NO_REQUESTS and KEY.fullmatch(text) is not None and text not in OTHERS


def literals(path):
    parts = path.relative_to(PACKAGE).parts
    room = "service" if parts[:2] == ("runtime", "service") else parts[0]
    texts = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Constant)]
    for node in texts:
        if isinstance(node.value, str) and is_internal_name(node.value, room):
            yield node.value, node.lineno


MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if path not in HOMES]


def test_everybody_uses_the_constants():
    found = [
        f"{path.relative_to(PACKAGE.parent)}:{line}: http/fields.py declares {name}"
        for path in MODULES
        for name, line in literals(path)
    ]
    assert not found, "\n".join(found)


def test_every_declaration_says_what_it_means():
    for field in (*fields.HEADERS.values(), *environkeys.ENVIRON.values()):
        assert field.doc.endswith("."), field.name
        assert field.name == field.name.lower() or field.name in environkeys.ENVIRON


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

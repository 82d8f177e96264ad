"""No internal header comes in from a client or goes out to one (public-api.md §2, §17)."""

import ast
import re
from pathlib import Path

import pytest

from swift.http import fields
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.gatekeeper import Gatekeeper, GatekeeperSettings
from test.support.checks import every

#: What public-api.md §2 lists; written again here, so that nobody shortens one list alone.
PREFIXES = [
    "x-account-sysmeta-",
    "x-container-sysmeta-",
    "x-object-sysmeta-",
    "x-object-transient-sysmeta-",
    "x-backend",
]
NAMES = [
    "x-account-host",
    "x-account-device",
    "x-account-partition",
    "x-container-host",
    "x-container-device",
    "x-container-partition",
    "x-container-root-db-state",
    "x-delete-at-host",
    "x-delete-at-device",
    "x-delete-at-partition",
    "x-delete-at-container",
]
#: Names that look like internal ones, and are not.
PUBLIC = [
    "x-account-meta-sysmeta-a",
    "x-container-meta-a",
    "x-object-meta-x-backend-a",
    "x-object-sysmeta",
    "x-container-sysmeta",
    "x-account-sysmetas",
    "x-accounts-sysmeta-a",
    "x-account-hosts",
    "x-delete-at",
    "x-delete-after",
    "x-container-read",
    "x-storage-policy",
    "x-auth-token",
    "backend-a",
    "x-back-end",
]


def written_in_the_code():
    """Every internal header's name, or prefix of such names, that the code knows.

    Only one file names them: ``test/house/test_fields.py``.
    """
    looks_internal = re.compile(
        r"x-(backend|(account|container|object)-(transient-)?sysmeta-)[a-z0-9-]*", re.I
    )
    texts = [
        node.value
        for node in ast.walk(ast.parse(Path(fields.__file__).read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    names = [text.lower() for text in texts if looks_internal.fullmatch(text)]
    return sorted({name + ("a" if name.endswith("-") else "") for name in names})


INTERNAL = sorted(
    {*written_in_the_code(), *NAMES, *(prefix + "a" for prefix in PREFIXES), "x-backend", "x-backend-"}
)


class Behind:
    """The rest of the pipeline: keeps the headers that reach it, answers with its own."""

    def __init__(self, answered=None):
        self.answered = answered or {}
        self.reached = None

    def handle(self, request):
        self.reached = dict(request.headers)
        return Response(200, dict(self.answered), b"")


def ask(headers, behind, **options):
    request = Request("PUT", "/v1/a/c/o", dict(headers))
    return Gatekeeper(behind, GatekeeperSettings.parse(options)).handle(request)


def test_the_code_names_internal_headers():
    assert len(written_in_the_code()) > 50


@every("name", INTERNAL)
def test_an_internal_header_does_not_come_in(name):
    behind = Behind()
    ask({name: "x", "x-object-meta-a": "b"}, behind)
    assert behind.reached == {"x-object-meta-a": "b"}


@every("name", INTERNAL)
def test_an_internal_header_does_not_go_out(name):
    assert ask({}, Behind({name: "x", "etag": "e"})).headers == {"etag": "e"}


@pytest.mark.parametrize("name", PUBLIC)
def test_other_headers_pass_both_ways(name):
    behind = Behind({name: "out"})
    response = ask({name: "in"}, behind)
    assert behind.reached == {name: "in"}
    assert response.headers == {name: "out"}


def test_all_internal_headers_of_one_message_go():
    behind = Behind(dict.fromkeys(INTERNAL, "x"))
    response = ask(dict.fromkeys(INTERNAL, "x"), behind)
    assert (behind.reached, response.headers) == ({}, {})


def test_many_names_do_not_make_it_forget_what_is_internal():
    behind = Behind()
    for number in range(3000):
        ask({f"x-object-meta-{number}": "v", f"x-backend-{number}": "v"}, behind)
        assert behind.reached == {f"x-object-meta-{number}": "v"}


def test_a_client_s_timestamp_is_hidden_unless_configured_otherwise():
    behind = Behind()
    ask({"x-timestamp": "1", "x-backend-inbound-x-timestamp": "2"}, behind)
    assert behind.reached == {"x-backend-inbound-x-timestamp": "1"}
    ask({"x-timestamp": "1"}, behind, shunt_inbound_x_timestamp="false")
    assert behind.reached == {"x-timestamp": "1"}


@pytest.mark.parametrize(("said", "allowed"), [("true", True), ("no", False)])
def test_reserved_names_are_for_configured_proxies_only(said, allowed):
    behind = Behind()
    ask({"x-allow-reserved-names": said, "x-backend-allow-reserved-names": "true"}, behind)
    assert "x-backend-allow-reserved-names" not in behind.reached
    ask({"x-allow-reserved-names": said}, behind, allow_reserved_names_header="true")
    assert ("x-backend-allow-reserved-names" in behind.reached) == allowed

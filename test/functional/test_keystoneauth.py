"""keystoneauth in a live cluster, right of a foreign filter that authenticates requests."""

import os
from pathlib import Path

import pytest

from test.support.cluster import LiveCluster

OPTIONS = """
[filter:authtoken]
paste.filter_factory = test.support.tokens:filter_factory

[filter:tempauth]
use = egg:swift#keystoneauth
reseller_prefix = AUTH
"""
OWNER, OTHER, GUEST = "ann:p1:admin", "bob:p2:admin", "eve:p1:member"


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    places = {"authtoken": "tempauth"}
    cluster = LiveCluster(tmp_path_factory.mktemp("keystone") / "data", places=places, options=OPTIONS)
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[2])
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


def ask(live, who, method, path, headers=None, body=None):
    token = {"X-Auth-Token": who} if who else {}
    return live.raw(method, f"/v1/{path}", {**token, **(headers or {})}, body)


def test_projects_access_only_their_accounts_unless_an_acl_permits_more(live):
    assert ask(live, OWNER, "PUT", "AUTH_p1/c").status == 201
    assert ask(live, OWNER, "PUT", "AUTH_p1/c/o", body=b"data").status == 201
    assert ask(live, OTHER, "GET", "AUTH_p1/c/o").status == 403
    assert ask(live, GUEST, "GET", "AUTH_p1/c/o").status == 403
    assert ask(live, None, "GET", "AUTH_p1/c/o").status == 401
    acl = {"X-Container-Read": "p2-name:bob-name, member"}
    assert ask(live, OWNER, "POST", "AUTH_p1/c", acl).status == 204
    for who in (OTHER, GUEST):
        assert ask(live, who, "GET", "AUTH_p1/c/o").body == b"data"
        assert ask(live, who, "PUT", "AUTH_p1/c/o", body=b"mine").status == 403
        assert "x-container-read" not in ask(live, who, "HEAD", "AUTH_p1/c").headers
    assert ask(live, OWNER, "HEAD", "AUTH_p1/c").headers["x-container-read"] == "p2-name:bob-name,member"


def test_identity_headers_of_clients_are_ignored(live):
    said = {"X-Identity-Status": "Confirmed", "X-Roles": "ResellerAdmin", "X-Project-Id": "p1"}
    assert ask(live, None, "GET", "AUTH_p1", said).status == 401
    assert ask(live, OTHER, "GET", "AUTH_p1", said).status == 403


def test_an_account_created_by_its_first_container_records_its_domain(live):
    assert ask(live, "kim:fresh:admin", "PUT", "AUTH_fresh/c").status == 201
    response = ask(live, "kim:fresh:admin", "HEAD", "AUTH_fresh")
    assert response.headers["x-account-project-domain-id"] == "default"
    assert ask(live, "root:p0:ResellerAdmin", "PUT", "AUTH_foreign/c").status == 201
    response = ask(live, "root:p0:ResellerAdmin", "HEAD", "AUTH_foreign")
    assert response.headers["x-account-project-domain-id"] == "_unknown"


def test_large_objects_and_copies_are_read_with_the_rights_of_the_caller(live):
    assert ask(live, OTHER, "PUT", "AUTH_p2/hidden").status == 201
    assert ask(live, OTHER, "PUT", "AUTH_p2/hidden/part-1", body=b"secret").status == 201
    assert ask(live, OWNER, "PUT", "AUTH_p1/taken").status == 201
    copied = ask(
        live,
        OWNER,
        "PUT",
        "AUTH_p1/taken/o",
        {"X-Copy-From": "/hidden/part-1", "X-Copy-From-Account": "AUTH_p2", "Content-Length": "0"},
    )
    assert copied.status == 403
    assert ask(live, OTHER, "PUT", "AUTH_p2/open", {"X-Container-Read": ".r:*"}).status == 201
    manifest = {"X-Object-Manifest": "hidden/part-", "Content-Length": "0"}
    assert ask(live, OTHER, "PUT", "AUTH_p2/open/whole", manifest).status == 201
    assert ask(live, OWNER, "GET", "AUTH_p2/open/whole").status == 403
    assert ask(live, OTHER, "GET", "AUTH_p2/open/whole").body == b"secret"
    assert "Traceback" not in live.log_text()

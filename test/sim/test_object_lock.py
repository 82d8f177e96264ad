"""Object lock over the simulated cluster: locked objects survive all requests and node failures."""

import time

import pytest

from swift.http import fields
from swift.http.objectlock import COMPLIANCE, GOVERNANCE, MAY_BYPASS, MAY_RELEASE, MAY_WITHDRAW, ObjectLock
from test.support.sim import node_port

LATER = int(time.time()) + 3600
G, C = ObjectLock(GOVERNANCE, LATER), ObjectLock(COMPLIANCE, LATER)
FLAG = {fields.SYSMETA_S3_OBJECT_LOCK: "true"}
PATHS = {0: "/a/locked/o", 1: "/a/coded/o"}


def locked(lock):
    return {fields.TRANSIENT_S3_LOCK: str(lock)}


def with_rights(*words):
    return {fields.BACKEND_OBJECT_LOCK: ",".join(words)}


@pytest.fixture
def vault(sim):
    assert sim("PUT", "/a/locked", FLAG).status == 201
    assert sim("PUT", "/a/coded", {**FLAG, "x-storage-policy": "ec32"}).status == 201
    return sim


@pytest.fixture(params=PATHS)
def path(request):
    return PATHS[request.param]


BODY = b"kept" * 1000


def test_a_locked_object_cannot_be_deleted_replaced_or_posted_to(vault, path):
    assert vault("PUT", path, locked(C), BODY).status == 201
    assert vault("DELETE", path).status == 403
    assert vault("DELETE", path, with_rights(MAY_BYPASS)).status == 403
    assert vault("PUT", path, body=b"other").status == 403
    assert vault("PUT", path, locked(C), b"other").status == 403
    assert vault("POST", path, {"x-object-meta-a": "1"}).status == 403
    assert vault("POST", path, {"x-delete-at": str(LATER - 10)}).status == 403
    response = vault("GET", path)
    assert (response.status, response.body) == (200, BODY)
    assert "x-object-meta-a" not in response.headers


def test_the_expirer_does_not_delete_a_locked_object(vault, path):
    ends = int(time.time()) + 1000
    assert vault("PUT", path, {"x-delete-at": str(ends)}, BODY).status == 201
    assert vault("POST", path, {"x-delete-at": str(ends), **locked(C)}).status == 400
    assert vault("POST", path, locked(C)).status == 202
    assert vault("DELETE", path, {"x-if-delete-at": str(ends)}).status in (403, 412)
    assert vault("PUT", "/a/locked/p", {**locked(C), "x-delete-at": str(ends)}, BODY).status == 400
    assert vault("GET", path).body == BODY


def test_unlocked_objects_are_deleted_as_usual_even_after_expiry(vault):
    past = int(time.time()) - 5
    assert vault("PUT", "/a/locked/o", body=b"1").status == 201
    assert vault("POST", "/a/locked/o", {"x-object-meta-a": "1"}).status == 202
    assert vault("DELETE", "/a/locked/o").status == 204
    assert vault("DELETE", "/a/locked/o").status == 404
    assert vault("PUT", "/a/locked/o", locked(ObjectLock(COMPLIANCE, past)), b"1").status == 201
    assert vault("PUT", "/a/locked/o", body=b"2").status == 201
    assert vault("DELETE", "/a/locked/o").status == 204


def test_governance_can_be_bypassed_and_compliance_only_extended(vault, path):
    assert vault("PUT", path, locked(G), BODY).status == 201
    assert vault("DELETE", path).status == 403
    assert vault("POST", path, locked(G._replace(until_s=LATER - 60))).status == 403
    assert (
        vault("POST", path, {**locked(G._replace(until_s=LATER - 60)), **with_rights(MAY_BYPASS)}).status
        == 202
    )
    assert vault("POST", path, locked(C)).status == 202
    shorter = {**locked(C._replace(until_s=LATER - 60)), **with_rights(MAY_BYPASS)}
    assert vault("POST", path, shorter).status == 403
    assert vault("POST", path, locked(C._replace(until_s=LATER + 60))).status == 202
    assert vault("DELETE", path, with_rights(MAY_BYPASS)).status == 403


def test_objects_in_governance_mode_are_deleted_with_the_bypass(vault, path):
    assert vault("PUT", path, locked(G), BODY).status == 201
    assert vault("DELETE", path, with_rights(MAY_BYPASS)).status == 204
    assert vault("GET", path).status == 404


def test_a_legal_hold_ends_only_on_request(vault, path):
    held = ObjectLock(has_legal_hold=True)
    assert vault("PUT", path, locked(held), BODY).status == 201
    assert vault("DELETE", path, with_rights(MAY_BYPASS)).status == 403
    assert vault("POST", path, locked(ObjectLock())).status == 403
    assert vault("POST", path, {**locked(ObjectLock()), **with_rights(MAY_RELEASE)}).status == 202
    assert vault("DELETE", path).status == 204


def test_an_unacknowledged_locked_upload_is_removed(vault, path):
    assert vault("PUT", path, locked(C), BODY).status == 201
    assert vault("DELETE", path, with_rights(MAY_WITHDRAW)).status == 204


@pytest.mark.parametrize("away", range(3))
def test_a_node_that_missed_the_upload_cannot_end_the_lock(vault, away):
    primaries = vault.primaries("object", "a", "locked", "o")
    with vault.refusing("object", primaries[away]):
        assert vault("PUT", "/a/locked/o", locked(C), BODY).status == 201
    for other in range(3):
        if other == away:
            continue
        with vault.refusing("object", primaries[other]):
            assert vault("DELETE", "/a/locked/o").status in (403, 503)
    assert vault("DELETE", "/a/locked/o").status == 403
    assert not vault.holders(".ts")
    assert vault("GET", "/a/locked/o").body == BODY


@pytest.mark.parametrize("away", range(3))
def test_a_node_that_missed_the_lock_cannot_end_it(vault, away):
    primaries = vault.primaries("object", "a", "locked", "o")
    assert vault("PUT", "/a/locked/o", body=BODY).status == 201
    with vault.refusing("object", primaries[away]):
        assert vault("POST", "/a/locked/o", locked(C)).status == 202
    for other in range(3):
        if other != away:
            with vault.refusing("object", primaries[other]):
                assert vault("DELETE", "/a/locked/o").status in (403, 503)
                assert vault("POST", "/a/locked/o", {"x-object-meta-a": "1"}).status in (403, 503)
    assert not vault.holders(".ts")


def test_a_lock_on_too_few_nodes_is_not_acknowledged(vault):
    primaries = vault.primaries("object", "a", "locked", "o")
    with vault.refusing("object", *primaries[:2]):
        assert vault("PUT", "/a/locked/o", locked(C), BODY).status == 503
    assert vault("PUT", "/a/locked/o", body=BODY).status == 201
    with vault.refusing("object", *primaries[:2]):
        assert vault("POST", "/a/locked/o", locked(C)).status == 503
    assert vault("DELETE", "/a/locked/o").status == 204


def test_object_servers_refuse_deletions_without_the_flag(sim):
    assert sim("PUT", "/a/c/o", locked(C), BODY).status == 201
    assert sim("DELETE", "/a/c/o").status == 403
    assert sim("PUT", "/a/c/o", body=b"other").status == 403
    assert sim("POST", "/a/c/o", {"x-object-meta-a": "1"}).status == 403
    assert sim("GET", "/a/c/o").body == BODY
    assert not sim.holders(".ts")


def test_nodes_without_reservations_get_no_request_to_end_a_lock(vault):
    assert vault("PUT", "/a/locked/o", locked(C), BODY).status == 201
    vault.faults.answers.update({node_port("object", n): 405 for n in range(1, 7)})
    assert vault("DELETE", "/a/locked/o").status == 501

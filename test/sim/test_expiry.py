"""Expired objects are deleted with their expiry timestamp; newer writes on any node survive."""

import time

import pytest

#: Objects expire at ``EXPIRY``, which has passed when the expirer asks for their deletion.
EXPIRY = int(time.time()) - 100


def put(sim, policy, at, body, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return sim("PUT", f"/a/p{policy}/o", {"content-type": "t/p", "x-timestamp": f"{at:.5f}", **named}, body)


def expire(sim, policy):
    """Send the expirer's request to its internal proxy."""
    at = f"{EXPIRY:010d}.00000"
    headers = {
        "x-timestamp": at,
        "x-if-delete-at": at,
        "x-backend-clean-expiring-object-queue": "no",
    }
    return sim("DELETE", f"/a/p{policy}/o", headers).status


@pytest.fixture(params=[0, 1], ids=["copies", "archives"])
def policy(request, sim):
    name = sim.policies.get(request.param).name
    assert sim("PUT", f"/a/p{request.param}", {"x-storage-policy": name}).status == 201
    return request.param


def primaries(sim, policy):
    return sim.primaries("object", "a", f"p{policy}", "o", policy=policy)


def test_an_expired_object_is_deleted_with_its_expiry_timestamp(sim, policy):
    assert put(sim, policy, EXPIRY - 50, b"old", x_delete_at=str(EXPIRY)).status == 201
    assert expire(sim, policy) == 204
    assert sim.holders(".ts", policy=policy) == sorted(primaries(sim, policy))
    assert sim.holders(policy=policy) == []


def test_nodes_do_not_clean_the_queue_that_the_expirer_cleans(sim, policy):
    assert put(sim, policy, EXPIRY - 50, b"old", x_delete_at=str(EXPIRY)).status == 201
    sim.transport.requests.clear()
    assert expire(sim, policy) == 204
    sent = [h for kind, _n, method, _p, h in sim.transport.requests if (kind, method) == ("object", "DELETE")]
    assert sent and {h["x-backend-clean-expiring-object-queue"] for h in sent} == {"no"}


def overwrite_without(sim, policy, missing):
    """Overwrite the object without these nodes; the expirer's queue entry stays."""
    assert put(sim, policy, EXPIRY - 50, b"old", x_delete_at=str(EXPIRY)).status == 201
    with sim.refusing("object", *missing):
        assert put(sim, policy, EXPIRY - 20, b"new").status == 201
    sim.clear_node_errors()


def check_survived(sim, policy):
    assert sim.holders(".ts", policy=policy) == [], "a tombstone would be newer than the newer version"
    response = sim("GET", f"/a/p{policy}/o", {"x-newest": "true"})
    assert (response.status, response.body) == (200, b"new")


@pytest.mark.parametrize("away", [1, 2])
def test_a_newer_version_survives_on_nodes_without_the_expired_one(sim, policy, away):
    overwrite_without(sim, policy, primaries(sim, policy)[:away])
    assert expire(sim, policy) == 412
    check_survived(sim, policy)


def test_a_newer_version_survives_that_no_primary_has_yet(sim):
    assert sim("PUT", "/a/p0").status == 201
    overwrite_without(sim, 0, primaries(sim, 0))
    assert expire(sim, 0) == 412
    check_survived(sim, 0)


def test_a_later_expiry_survives_although_a_node_missed_it(sim, policy):
    assert put(sim, policy, EXPIRY - 50, b"old", x_delete_at=str(EXPIRY)).status == 201
    with sim.refusing("object", primaries(sim, policy)[0]):
        headers = {"x-timestamp": f"{EXPIRY - 20:.5f}", "x-delete-at": str(EXPIRY + 10_000)}
        assert sim("POST", f"/a/p{policy}/o", headers).status == 202
    sim.clear_node_errors()
    assert expire(sim, policy) == 412
    assert sim.holders(".ts", policy=policy) == []


def test_versions_older_than_the_expired_one_do_not_prevent_its_deletion(sim, policy):
    with sim.refusing("object", *primaries(sim, policy)[1:2]):
        assert put(sim, policy, EXPIRY - 80, b"older").status == 201
    sim.clear_node_errors()
    with sim.refusing("object", primaries(sim, policy)[0]):
        assert put(sim, policy, EXPIRY - 50, b"old", x_delete_at=str(EXPIRY)).status == 201
    sim.clear_node_errors()
    # The node that missed it disagrees, and gets the tombstone from the others.
    assert expire(sim, policy) == 204
    assert sim("GET", f"/a/p{policy}/o", {"x-newest": "true"}).status == 404


@pytest.mark.parametrize("odd", ["", "x", "nan", "9" * 40])
def test_an_invalid_expiry_is_refused_by_the_nodes(sim, policy, odd):
    assert put(sim, policy, EXPIRY - 50, b"old").status == 201
    assert sim("DELETE", f"/a/p{policy}/o", {"x-if-delete-at": odd}).status == 400
    assert sim.holders(".ts", policy=policy) == []

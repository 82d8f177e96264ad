"""What expires goes as of its moment; what was written since stays, whichever nodes know of it."""

import time

import pytest

#: Objects expire at ``EXPIRY``, which has passed when the expirer asks for their deletion.
EXPIRY = int(time.time()) - 100


def put(sim, policy, at, body, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return sim("PUT", f"/a/p{policy}/o", {"content-type": "t/p", "x-timestamp": f"{at:.5f}", **named}, body)


def expire(sim, policy):
    """What the expirer asks of the proxy in its process."""
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


def test_an_expired_object_is_deleted_as_of_its_moment(sim, policy):
    assert put(sim, policy, EXPIRY - 50, b"old", x_delete_at=str(EXPIRY)).status == 201
    assert expire(sim, policy) == 204
    assert sim.holders(".ts", policy=policy) == sorted(primaries(sim, policy))
    assert sim.holders(policy=policy) == []


def test_no_node_is_asked_to_clean_the_queue_that_the_expirer_cleans(sim, policy):
    assert put(sim, policy, EXPIRY - 50, b"old", x_delete_at=str(EXPIRY)).status == 201
    sim.transport.requests.clear()
    assert expire(sim, policy) == 204
    sent = [h for kind, _n, method, _p, h in sim.transport.requests if (kind, method) == ("object", "DELETE")]
    assert sent and {h["x-backend-clean-expiring-object-queue"] for h in sent} == {"no"}


def overwrite_without(sim, policy, missing):
    """The expirer's entry stays: it is removed by asynchronous updates of nodes that had the older one."""
    assert put(sim, policy, EXPIRY - 50, b"old", x_delete_at=str(EXPIRY)).status == 201
    with sim.refusing("object", *missing):
        assert put(sim, policy, EXPIRY - 20, b"new").status == 201
    sim.forgive()


def check_survived(sim, policy):
    assert sim.holders(".ts", policy=policy) == [], "a tombstone would be newer than the newer version"
    answer = sim("GET", f"/a/p{policy}/o", {"x-newest": "true"})
    assert (answer.status, answer.body) == (200, b"new")


@pytest.mark.parametrize("away", [1, 2])
def test_a_newer_version_survives_that_holders_of_the_older_one_missed(sim, policy, away):
    overwrite_without(sim, policy, primaries(sim, policy)[:away])
    assert expire(sim, policy) == 412
    check_survived(sim, policy)


def test_a_newer_version_survives_that_no_primary_has_yet(sim):
    assert sim("PUT", "/a/p0").status == 201
    overwrite_without(sim, 0, primaries(sim, 0))
    assert expire(sim, 0) == 412
    check_survived(sim, 0)


def test_a_longer_life_survives_that_a_holder_missed(sim, policy):
    assert put(sim, policy, EXPIRY - 50, b"old", x_delete_at=str(EXPIRY)).status == 201
    with sim.refusing("object", primaries(sim, policy)[0]):
        headers = {"x-timestamp": f"{EXPIRY - 20:.5f}", "x-delete-at": str(EXPIRY + 10_000)}
        assert sim("POST", f"/a/p{policy}/o", headers).status == 202
    sim.forgive()
    assert expire(sim, policy) == 412
    assert sim.holders(".ts", policy=policy) == []


def test_what_is_older_than_the_version_that_expired_is_in_nobodys_way(sim, policy):
    with sim.refusing("object", *primaries(sim, policy)[1:2]):
        assert put(sim, policy, EXPIRY - 80, b"older").status == 201
    sim.forgive()
    with sim.refusing("object", primaries(sim, policy)[0]):
        assert put(sim, policy, EXPIRY - 50, b"old", x_delete_at=str(EXPIRY)).status == 201
    sim.forgive()
    # The node that missed it disagrees, and gets the tombstone from the others.
    assert expire(sim, policy) == 204
    assert sim("GET", f"/a/p{policy}/o", {"x-newest": "true"}).status == 404


@pytest.mark.parametrize("odd", ["", "x", "nan", "9" * 40])
def test_an_odd_moment_is_refused_by_the_nodes_as_before(sim, policy, odd):
    assert put(sim, policy, EXPIRY - 50, b"old").status == 201
    assert sim("DELETE", f"/a/p{policy}/o", {"x-if-delete-at": odd}).status == 400
    assert sim.holders(".ts", policy=policy) == []

"""A row is on a majority of a container's servers before its write is acknowledged."""

from dataclasses import replace

import pytest

from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.cluster.transport import BackendResponse
from swift.gateway.info import ContainerInfo
from swift.http import fields
from swift.http.request import Request
from swift.proxy.obj.location import locate_for_write
from swift.proxy.obj.rowupdates import ensure_row_majority, row_of_put
from test.support.databases import server_rows


@pytest.fixture
def sim(make_sim):
    cluster = make_sim(strong_listing="all")
    assert cluster("PUT", "/a/c").status == 201
    return cluster


@pytest.fixture
def containers(sim):
    return sim.primaries("container", "a", "c")


TEXT = {"content-type": "text/plain"}


def test_the_proxy_sends_rows_that_object_servers_did_not_report(sim, containers):
    request = Request("PUT", "/v1/a/c/o", {"x-timestamp": Timestamp.now().internal, **TEXT}, env={})
    path = EntityPath("a", "c", "o")
    target = locate_for_write(sim.context, request, path, ContainerInfo(200))
    silent = [BackendResponse(201), BackendResponse(201, headers={fields.BACKEND_CONTAINER_SERVERS: ""})]
    row = row_of_put(request, 5, "0" * 32)
    assert ensure_row_majority(sim.context, request, target, silent, "PUT", row)
    assert [server_rows(sim, n) for n in containers] == [["o"]] * 3
    with sim.refusing("container", *containers[1:]):
        assert not ensure_row_majority(sim.context, request, target, silent, "DELETE", {})
    nodes = ring_of(sim).primaries(ring_of(sim).partition_of(sim.hasher.digest("a", "c")))
    told = [BackendResponse(201, headers={fields.BACKEND_CONTAINER_SERVERS: node.key}) for node in nodes[:2]]
    with sim.refusing("container", *containers):
        assert ensure_row_majority(sim.context, request, target, told, "PUT", row)


def ring_of(sim):
    return sim.context.rings.container.view()


def test_a_row_that_its_shard_refuses_is_sent_to_the_root(sim, containers):
    request = Request("PUT", "/v1/a/c/o", {"x-timestamp": Timestamp.now().internal, **TEXT}, env={})
    target = locate_for_write(
        sim.context, request, EntityPath("a", "c", "o"), ContainerInfo(200, sharding_state="sharded")
    )
    target = replace(target, shard=EntityPath(".shards_a", "c-gone"))
    row = row_of_put(request, 5, "0" * 32)
    assert ensure_row_majority(sim.context, request, target, [], "PUT", row)
    assert [server_rows(sim, n) for n in containers] == [["o"]] * 3
    with sim.refusing("container", *containers[1:]):
        assert not ensure_row_majority(sim.context, request, target, [], "PUT", row)


def test_listings_are_eventual_by_default(make_sim):
    sim = make_sim()
    assert sim("PUT", "/a/c").status == 201
    request = Request("PUT", "/v1/a/c/o", {"x-timestamp": Timestamp.now().internal, **TEXT}, env={})
    target = locate_for_write(sim.context, request, EntityPath("a", "c", "o"), ContainerInfo(200))
    assert not target.is_strongly_listed

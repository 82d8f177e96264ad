"""A layout is kept in a hidden account of the cluster; the store in memory of other tests does the same."""

import shutil
from dataclasses import replace

import pytest

from swift.base.entity import EntityPath
from swift.gateway.documents import Conflict, StoreUnavailable, document_client
from swift.layout.operations import LayoutOperations
from swift.layout.seal import StateSeal
from swift.layout.state import DamagedLayout
from swift.layout.store import ACCOUNT, AGENT, ClusterLayoutStore, Lease, NoLayout
from swift.ring.errors import LayoutError
from swift.ring.layoutfiles import create_keys
from test.support.layouts import MemoryLayoutStore, make_builder
from test.support.sim import NODES, node_port

DEVICES = [(1, zone, f"10.0.0.{zone}", "sdb", 100.0) for zone in (1, 2, 3)]


@pytest.fixture
def client(sim):
    return document_client(sim.app.handle, AGENT)


@pytest.fixture
def cluster_store(client, tmp_path):
    create_keys(str(tmp_path))
    return ClusterLayoutStore(client, StateSeal(str(tmp_path)))


@pytest.fixture(params=["cluster", "memory"])
def store(request, cluster_store):
    return cluster_store if request.param == "cluster" else MemoryLayoutStore()


@pytest.fixture
def builder():
    return make_builder(DEVICES)


def test_a_layout_is_there_after_it_was_made(store, builder):
    with pytest.raises(NoLayout):
        store.read()
    state = LayoutOperations(store, lambda: 5.0).create({"object": builder})
    held = store.read()
    assert held.state == state
    assert store.read_builder(state.rings["object"].builder).rows == builder.rows


def test_only_the_newest_state_is_replaced(store, builder):
    operations = LayoutOperations(store, lambda: 5.0)
    operations.create({"object": builder})
    first = store.read()
    operations.pause("a")
    with pytest.raises(Conflict):
        store.write(first.state, first.etag)
    with pytest.raises(Conflict):
        store.write(first.state, "")
    assert store.read().state.paused == "a"


def test_builders_that_are_not_needed_go(store, builder):
    name = store.add_builder(builder)
    builder.version += 1
    other = store.add_builder(builder)
    store.remove_builders({other})
    assert store.read_builder(other).version == builder.version
    with pytest.raises(StoreUnavailable):
        store.read_builder(name)


def test_the_lease_has_one_holder(store):
    assert store.read_lease() == (None, "")
    etag = store.write_lease(Lease("one", 0), "")
    with pytest.raises(Conflict):
        store.write_lease(Lease("other", 0), "")
    etag = store.write_lease(Lease("one", 1, "all is well"), etag)
    assert store.read_lease() == (Lease("one", 1, "all is well"), etag)


def test_a_damaged_builder_is_not_used(client, cluster_store, builder):
    store = cluster_store
    name = store.add_builder(builder)
    client.put(EntityPath(ACCOUNT, "builders", name), b"garbage")
    with pytest.raises(DamagedLayout):
        store.read_builder(name)


def test_a_state_that_no_holder_of_the_key_stored_is_not_used(client, cluster_store, builder, tmp_path):
    state = LayoutOperations(cluster_store, lambda: 5.0).create({"object": builder})
    signed = cluster_store.read()
    other = tmp_path / "other"
    other.mkdir()
    create_keys(str(other))
    forged = replace(state, version=7)
    place = EntityPath(ACCOUNT, "state", "layout")
    for content in (forged.to_document(), StateSeal(str(other)).sign(forged.to_document()), b""):
        client.put(place, content)
        with pytest.raises(DamagedLayout, match="is not used"):
            cluster_store.read()
    client.put(place, StateSeal(str(tmp_path)).sign(state.to_document()))
    assert cluster_store.read().state == signed.state


def test_nodes_without_the_key_read_and_change_nothing(client, cluster_store, builder, tmp_path):
    LayoutOperations(cluster_store, lambda: 5.0).create({"object": builder})
    node = tmp_path / "node"
    node.mkdir()
    store = ClusterLayoutStore(client, StateSeal(str(node)))
    with pytest.raises(LayoutError, match="layout.pub is missing: copy it"):
        store.read()
    shutil.copy(tmp_path / "layout.pub", node)
    assert store.read().state.version == 1
    with pytest.raises(LayoutError, match="layout.key is missing: run this where the controller runs"):
        LayoutOperations(store, lambda: 5.0).pause("a")


def test_without_a_majority_nothing_is_changed(sim, cluster_store, builder):
    store = cluster_store
    LayoutOperations(store, lambda: 5.0).create({"object": builder})
    held = store.read()
    sim.faults.refuses.update(node_port("object", number) for number in range(1, NODES + 1))
    with pytest.raises(StoreUnavailable):
        store.write(held.state, held.etag)

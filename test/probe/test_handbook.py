"""Operators paste the pages of the handbook from top to bottom, and they work."""

import shutil
import tempfile
from pathlib import Path

import pytest

from test.support.handbook import (
    CLUSTER,
    DISKS,
    GROWTH,
    KEYS,
    LAYOUT,
    NEW_NODE,
    NODES,
    ONE_HOST,
    SERVICE,
    TAKING_OVER,
    World,
    can_make_worlds,
)
from test.support.peer import PEER_BIN, needs_peer

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not can_make_worlds(), reason="needs root and namespaces"),
]


@pytest.fixture
def root():
    # A short path that every user may enter: pages print it, servers work below it.
    made = Path(tempfile.mkdtemp(prefix="handbook-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def world(root):
    made = World(root)
    yield made
    made.end()
    print(made.times)


@pytest.mark.long
def test_pages_about_one_host(world):
    world.add_host(NODES[0])
    for page in ONE_HOST:
        world.paste(page)


@pytest.mark.long
@pytest.mark.parametrize(
    "pages", [DISKS, GROWTH, LAYOUT, SERVICE + KEYS], ids=["disks", "growth", "layout", "service"]
)
def test_pages_about_a_cluster_of_three_hosts(world, pages):
    for address in NODES:
        world.add_host(address)
    world.paste(CLUSTER)
    for page in pages:
        if page == "nodes.md":
            world.add_host(NEW_NODE)
        if page == "layout-nodes.md":
            world.add_host(NEW_NODE)
            world.paste("howto/nodes.md", until="### 3. Add its devices")
        world.paste(f"howto/{page}")


@pytest.mark.peer
@needs_peer
def test_a_cluster_of_the_peer_is_taken_over_and_given_back(root):
    world = World(root, peer_bin=PEER_BIN)
    try:
        for address in NODES:
            world.add_host(address)
        world.paste(CLUSTER, until="## 5. Start")
        for address in NODES:
            world.must(address, "swift-init all start")
        world.paste(TAKING_OVER)
    finally:
        world.end()

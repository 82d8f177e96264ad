"""Operators paste the pages of the handbook from top to bottom, and they work."""

import shutil
import tempfile
from pathlib import Path

import pytest

from test.support.handbook import (
    CLUSTER,
    DISKS,
    KEYS,
    NEW_NODE,
    NODES,
    ONE_HOST,
    SERVICE,
    World,
    can_make_worlds,
)

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not can_make_worlds(), reason="needs root and namespaces"),
]


@pytest.fixture
def world(request):
    # Short paths: pages print them.
    root = Path(tempfile.mkdtemp(prefix="handbook-"))
    root.chmod(0o755)
    made = World(root)
    try:
        yield made
    finally:
        made.end()
        shutil.rmtree(root, ignore_errors=True)
    print(request.node.name, made.times)


def test_pages_about_one_host(world):
    world.add_host(NODES[0])
    for page in ONE_HOST:
        world.paste(page)


@pytest.mark.parametrize("pages", [DISKS, SERVICE + KEYS], ids=["disks", "service"])
def test_pages_about_a_cluster_of_three_hosts(world, pages):
    for address in NODES:
        world.add_host(address)
    world.paste(CLUSTER)
    for page in pages:
        if page == "nodes.md":
            world.add_host(NEW_NODE)
        world.paste(f"howto/{page}")

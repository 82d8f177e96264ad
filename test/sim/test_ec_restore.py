"""A version that only some nodes have is restored to the others from its archives, if possible."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.proxy.obj.controller import ObjectController
from swift.proxy.obj.location import WriteLocation
from swift.proxy.obj.read.ec import ArchiveReader
from swift.proxy.obj.scheme import Schemes
from swift.proxy.obj.write.ec import ArchiveCoder
from swift.proxy.obj.write.restore import ArchiveRestorer

BODY = random.Random(5).randbytes(5500)
PATH = EntityPath("a", "c", "o")


@pytest.fixture
def world(make_sim):
    """A cluster with an object of policy ec32, and its restorer."""
    sim = make_sim()
    assert sim("PUT", "/a/c", {"x-storage-policy": "ec32"}).status == 201
    assert sim("PUT", "/a/c/o", {"x-object-meta-a": "ö", "content-type": "text/x"}, BODY).status == 201
    controller = ObjectController(sim.context, sim.handle, SimpleNamespace())
    schemes = Schemes(sim.context)
    reader = ArchiveReader(sim.context, controller.backends, schemes)
    coder = ArchiveCoder(sim.context, schemes)
    restorer = ArchiveRestorer(sim.context, controller.backends, reader.read, coder)
    policy = sim.policies.get(1)
    view = sim.context.rings.object(policy).view()
    part = view.partition_of(sim.hasher.digest("a", "c", "o"))
    target = WriteLocation(PATH, SimpleNamespace(), policy, view, part, 4)
    head = sim("HEAD", "/a/c/o")
    return SimpleNamespace(
        sim=sim,
        restorer=restorer,
        target=target,
        primaries=list(view.primaries(part)),
        version=Timestamp(head.headers["x-timestamp"]),
    )


def lose(world, *places):
    """Wipe the primaries at these ring positions."""
    for place in places:
        number = number_of(world.primaries[place])
        for path in world.sim.root.glob(f"node{number}/sdb*/objects-1/*/*/*/*"):
            path.unlink()


def number_of(node):
    return int(node.device[3:])


def restore(world, *places, need=1):
    outdated = [world.primaries[place] for place in places]
    return world.restorer.restore(world.target, world.version, outdated, need)


@pytest.mark.files
def test_lost_archives_are_restored_with_their_timestamp(world):
    lose(world, 1, 3)
    got = restore(world, 1, 3)
    assert {node.id for node in got} == {world.primaries[place].id for place in (1, 3)}
    for place in (0, 2):
        lose(world, place)
    response = world.sim("GET", "/a/c/o")
    assert response.body == BODY and response.headers["x-object-meta-a"] == "ö"
    assert response.headers["x-timestamp"] == world.version.normal


@pytest.mark.files
def test_nothing_is_restored_when_too_few_archives_are_left(world):
    lose(world, 1, 3, 4)
    assert restore(world, 1, 3, 4) == []
    assert len(world.sim.holders(policy=1)) == 2


@pytest.mark.files
def test_other_versions_than_the_requested_one_are_unchanged(world):
    lose(world, 1)
    world.sim("PUT", "/a/c/o", {}, b"newer")
    before = world.sim.files(policy=1)
    assert restore(world, 1) == []
    assert world.sim.files(policy=1) == before


@pytest.mark.files
def test_an_unreachable_outdated_node_does_not_count_as_restored(world):
    lose(world, 1, 3)
    with world.sim.refusing("object", number_of(world.primaries[3])):
        assert restore(world, 1, 3) == [world.primaries[1]]


@pytest.mark.files
def test_restoring_fails_when_fewer_nodes_than_needed_store_archives(world):
    lose(world, 1, 3)
    with world.sim.refusing("object", number_of(world.primaries[3])):
        assert restore(world, 1, 3, need=2) == []
    assert number_of(world.primaries[1]) not in world.sim.holders("#d.data", policy=1)

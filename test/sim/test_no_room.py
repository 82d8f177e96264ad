"""Uploads without enough space on the nodes are refused before their first byte.

See doc/explanation/admission.md, Room.
"""

import errno
import os

import pytest

from swift.http.body import RequestBody
from swift.obj.server import ObjectServer
from swift.platform.disk import Disk
from test.support.disks import cramped_stores
from test.support.sim import node_port

SIZE = 3_000_000


class SmallDisk(Disk):
    """A disk with space for files up to ``room`` bytes."""

    def __init__(self, room):
        self.room = room
        self.asked = []

    def preallocate(self, fd, size_bytes):
        self.asked.append(size_bytes)
        if size_bytes > self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Untouched(RequestBody):
    """A body that counts its reads."""

    def __init__(self, *, is_known=True):
        self.length = SIZE if is_known else None
        self.given = 0

    def read(self, size=-1):
        size = min(size if size >= 0 else SIZE, SIZE - self.given)
        self.given += size
        return bytes(size)


def shrink(sim, room, *nodes):
    disks = []
    for n in nodes:
        kind, number, app = sim.transport.apps[node_port("object", n)]
        disks.append(SmallDisk(room))
        server = ObjectServer(app.context, app.settings, cramped_stores(app.context, disks[-1]))
        sim.transport.apps[node_port("object", n)] = (kind, number, server)
    return disks


@pytest.fixture
def make(make_sim):
    def make(**options):
        cluster = make_sim(**options)
        assert cluster("PUT", "/a/c").status == 201
        assert cluster("PUT", "/a/coded", {"x-storage-policy": "ec32"}).status == 201
        return cluster

    return make


@pytest.mark.parametrize("container", ["c", "coded"])
@pytest.mark.parametrize(("says", "status"), [(False, 503), (True, 507)])
@pytest.mark.parametrize("headers", [{}, {"if-none-match": "*"}])
def test_an_upload_that_fits_nowhere_is_refused_before_a_byte_is_read(make, container, says, status, headers):
    sim = make(answer_insufficient_storage=says)
    shrink(sim, SIZE // 4, *range(1, 7))
    body = Untouched()
    response = sim("PUT", f"/a/{container}/o", headers, body)
    assert (response.status, body.given) == (status, 0)
    assert (b"not enough room" in response.body) is says
    assert sim("PUT", f"/a/{container}/small", headers, b"x").status == 201, "what fits is taken"


@pytest.mark.files
def test_the_requested_space_is_that_of_the_replica_or_archive(make):
    sim = make()
    disks = shrink(sim, SIZE, *range(1, 7))
    assert sim("PUT", "/a/c/o", {}, Untouched()).status == 201
    assert [size for disk in disks for size in disk.asked] == [SIZE] * 3
    for disk in disks:
        disk.asked.clear()
    assert sim("PUT", "/a/coded/o", {}, Untouched()).status == 201
    asked = [size for disk in disks for size in disk.asked]
    assert len(asked) == 5 and len(set(asked)) == 1
    stored = [path.stat().st_size for path in sim.root.glob("node*/sdb*/objects-1/*/*/*/*.data")]
    assert set(asked) == set(stored)


def test_a_node_without_space_is_replaced_by_a_handoff(make):
    sim = make(answer_insufficient_storage=True)
    shrink(sim, SIZE // 2, *sim.primaries("object", "a", "c", "o")[:1])
    assert sim("PUT", "/a/c/o", {}, Untouched()).status == 201


def test_missing_space_with_other_failures_is_503(make):
    sim = make(answer_insufficient_storage=True)
    nodes = sim.primaries("object", "a", "c", "o")
    shrink(sim, SIZE // 2, nodes[0])
    with sim.refusing("object", *(n for n in range(1, 7) if n != nodes[0])):
        assert sim("PUT", "/a/c/o", {}, Untouched()).status == 503


def test_an_upload_of_unknown_size_is_not_refused(make):
    sim = make(answer_insufficient_storage=True)
    shrink(sim, SIZE // 2, *range(1, 7))
    body = Untouched(is_known=False)
    assert sim("PUT", "/a/c/o", {"transfer-encoding": "chunked"}, body).status == 201

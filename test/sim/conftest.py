"""One set of rings for all simulations, a fresh cluster for each test."""

import contextlib
import os
import tempfile
from pathlib import Path

import pytest

from test.support.daemons import Sharders
from test.support.filters import ETAG, PIECES
from test.support.filters import LargeObjectFixture as LargeFront
from test.support.s3_fixtures import S3Cluster
from test.support.sim import SimCluster, write_rings


@pytest.fixture(scope="session")
def rings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rings")
    write_rings(folder)
    return folder


@pytest.fixture
def make_sim(tmp_path, rings, request):
    if request.node.get_closest_marker("files"):
        keeps_files = {"packed": lambda _number: False}
    else:
        keeps_files = {}
    with contextlib.ExitStack() as clusters:

        def make(*, root=tmp_path, **options):
            return clusters.enter_context(
                contextlib.closing(SimCluster(root, rings, **{**keeps_files, **options}))
            )

        yield make


@pytest.fixture
def sim(make_sim):
    """A cluster with account a and container c."""
    cluster = make_sim()
    assert cluster("PUT", "/a/c").status == 201
    return cluster


@pytest.fixture
def sharders(sim, tmp_path):
    assert sim("POST", "/a/c", {"x-container-sysmeta-sharding": "True"}).status == 204
    return Sharders(sim, tmp_path)


@pytest.fixture
def s3(sim):
    """The S3 API over a cluster, with a bucket."""
    world = S3Cluster(sim)
    assert world("PUT", "/bucket").status == 200
    return world


@pytest.fixture
def root():
    """Return a directory in memory, where fsync costs nothing."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


@pytest.fixture
def make_slo(sim):
    assert sim("PUT", "/a/s").status == 201
    for name, piece in PIECES.items():
        assert sim("PUT", f"/a/s/{name}", {"content-type": "t/p"}, piece).status == 201
    return lambda **options: LargeFront(sim, **options)


@pytest.fixture
def slo(make_slo):
    front = make_slo()
    response = front.upload("/a/c/m", [{"path": f"/s/{name}"} for name in PIECES], {"content-type": "v/x"})
    assert (response.status, response.headers["etag"]) == (201, f'"{ETAG}"')
    return front

"""One set of rings for all simulations, a fresh cluster for each test."""

import os
import tempfile
from pathlib import Path

import pytest

from test.support.sim import SimCluster, write_rings


@pytest.fixture(scope="session")
def rings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rings")
    write_rings(folder)
    return folder


@pytest.fixture
def make_sim(tmp_path, rings):
    return lambda **options: SimCluster(tmp_path, rings, **options)


@pytest.fixture
def sim(make_sim):
    """A cluster with account a and container c."""
    cluster = make_sim()
    assert cluster("PUT", "/a/c").status == 201
    return cluster


@pytest.fixture
def root():
    """A directory in memory, where syncs cost nothing."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)

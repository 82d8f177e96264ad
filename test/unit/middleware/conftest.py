"""The simulated cluster for filters that are tested over one."""

import os

import pytest

from test.sim.conftest import make_sim, make_slo, rings, root, s3, slo

__all__ = ["make_sim", "make_slo", "rings", "root", "s3", "sim", "slo"]


@pytest.fixture
def sim(make_sim, root, tmp_path):
    """A cluster with account a and container c, in memory where memory has extended attributes."""
    try:
        os.setxattr(root, "user.test", b"1")
    except OSError:
        root = tmp_path
    cluster = make_sim(root=root)
    assert cluster("PUT", "/a/c").status == 201
    return cluster

"""What tests of inventories share."""

import pytest

from test.support.s3_fixtures import LifecycleFixture


@pytest.fixture
def bench(sim, tmp_path):
    return LifecycleFixture(sim, tmp_path / "rig")

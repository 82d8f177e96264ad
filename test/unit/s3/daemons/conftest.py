"""What tests of lifecycles share."""

import pytest

from test.support.lifecycles import Bench


@pytest.fixture
def bench(sim, tmp_path):
    return Bench(sim, tmp_path / "rig")

"""Object engines, each in turn."""

import pytest

from test.contract.test_store import BENCHES, NAMES, running


@pytest.fixture(params=BENCHES, ids=NAMES)
def bench(request, tmp_path):
    with running(request.param, tmp_path) as made:
        yield made


@pytest.fixture
def store(bench):
    return bench.store

"""What tests of bulk operations share."""

import pytest

from test.support.filters import BulkBackend


@pytest.fixture
def app():
    return BulkBackend()

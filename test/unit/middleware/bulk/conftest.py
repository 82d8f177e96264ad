"""What tests of bulk operations share."""

import pytest

from test.support.bulky import App


@pytest.fixture
def app():
    return App()

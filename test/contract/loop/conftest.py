"""Runs every test of this folder on each event loop that is installed."""

from importlib.util import find_spec

import pytest

from swift import green
from swift.loop import base

INSTALLED = [name for name in green.LOOPS if name == "epoll" or find_spec(name)]


@pytest.fixture(autouse=True, params=INSTALLED)
def event_loop(request, monkeypatch):
    """The name of the loop that the test runs on, in this process and in those that it starts."""
    monkeypatch.setenv(green.VARIABLE, request.param)
    before = base.loop()
    base.use(green.LOOPS[request.param]())
    yield request.param
    base.use(before)

"""Accounts and containers keep, return and remove metadata of any UTF-8 name and value."""

from __future__ import annotations

import itertools

import pytest

from swift.account.server import AccountServer
from swift.container.server import ContainerServer
from swift.http.request import Request
from swift.platform.devices import Devices
from swift.runtime.backendapp import BackendContext

NAMES = ["\xc3\xbc", "\xc3\x9c", "a b", '"(a)"', "\x7f", "a\x01"]
VALUES = ["v", "\x01\x02\x1b", "\x7f", "\xc3\xbc", "a\tb"]
SERVERS = {"account": (AccountServer, "/sda/1/a"), "container": (ContainerServer, "/sda/1/a/c")}


@pytest.fixture(params=sorted(SERVERS))
def ask(request, tmp_path):
    """Asks one of the servers; ``ask.prefix`` is that of its metadata."""
    (tmp_path / "sda").mkdir()
    server, path = SERVERS[request.param]
    app = server(BackendContext(devices=Devices(str(tmp_path), mount_check=False)))
    seconds = itertools.count(1)

    def ask(method, **headers):
        sent = {"x-timestamp": f"{next(seconds):010d}.00000", **headers}
        return app.handle(Request(method, path, sent, b""))

    ask.prefix = f"x-{request.param}-meta-"
    assert ask("PUT").status == 201
    return ask


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", VALUES)
def test_odd_metadata_is_stored_returned_and_removed(ask, name, value):
    header = ask.prefix + name
    for method in ("PUT", "POST"):
        assert ask(method, **{header: value}).status in (202, 204)
        assert ask("HEAD").headers[header] == value
        assert ask("GET").headers[header] == value
        assert ask("POST", **{header: ""}).status == 204
        assert header not in ask("HEAD").headers
    assert ask("DELETE").status == 204

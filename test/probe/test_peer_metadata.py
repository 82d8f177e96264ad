"""Metadata with odd names and values that the peer stored is served by us, and removed through the API.

The peer's servers, all of them, write to the devices of an all-in-one cluster; then ours are started on them.
"""

import pytest

from test.functional.test_malformed import status_of
from test.functional.test_odd_metadata import LINES, ask, told
from test.support.cluster import LiveCluster
from test.support.peer import PEER_BIN, needs_peer
from tools.bench.contestants import Contestant

pytestmark = [pytest.mark.peer, needs_peer]
#: Values that only the peer accepts, and how we return them: clients disagree about the end of such lines.
BROKEN = {b"v\n w": b"v  w", b"v\n\tw": b"v \tw"}
OBJECTS = [*LINES, (b"nul", b"v\0w"), *((b"broken", value) for value in BROKEN)]
#: Without values that the peer does not accept as UTF-8 here.
ENTITIES = [line for line in OBJECTS if all(byte < 128 for byte in b"".join(line)) and line[0] != b"nul"]


def lines_of(kind, pairs):
    """Return a header line for each pair; a number makes the names unique."""
    return [b"X-%s-Meta-%d%s: %s" % (kind, i, name.title(), value) for i, (name, value) in enumerate(pairs)]


@pytest.fixture(scope="module")
def taken_over(tmp_path_factory):
    """Our cluster on devices that the peer's servers wrote."""
    live = LiveCluster(tmp_path_factory.mktemp("taken") / "data")
    peer = Contestant("peer", live.plan, lambda kind, conf: [f"{PEER_BIN}/swift-{kind}-server", conf, "-v"])
    try:
        peer.start()
        assert live.request("PUT", "c").status == 201
        for i, line in enumerate(lines_of(b"Object", OBJECTS)):
            assert status_of(ask(live, b"PUT", b"/c/%d" % i, line)) == 201, line
        for line in lines_of(b"Container", ENTITIES):
            assert status_of(ask(live, b"POST", b"/c", line)) == 204, line
        for line in lines_of(b"Account", ENTITIES):
            assert status_of(ask(live, b"POST", b"", line)) == 204, line
    finally:
        peer.stop_servers()
    live.tokens.clear()
    live.start()
    yield live
    live.stop()


def shown(lines):
    """Return the lines as our servers return them."""
    for broken, mended in BROKEN.items():
        lines = [line.replace(broken, mended) for line in lines]
    return lines


@pytest.mark.parametrize("i", range(len(OBJECTS)))
def test_objects_are_served_and_repaired(taken_over, i):
    line = shown(lines_of(b"Object", OBJECTS))[i]
    path = b"/c/%d" % i
    for method in (b"GET", b"HEAD"):
        response = ask(taken_over, method, path)
        assert (status_of(response), told(response, b"Object")) == (200, [line])
    assert status_of(ask(taken_over, b"POST", path)) == 202
    assert told(ask(taken_over, b"HEAD", path), b"Object") == []


@pytest.mark.parametrize(("kind", "path"), [(b"Container", b"/c"), (b"Account", b"")])
def test_containers_and_accounts_are_served_and_repaired(taken_over, kind, path):
    lines = shown(lines_of(kind, ENTITIES))
    for method in (b"GET", b"HEAD"):
        response = ask(taken_over, method, path)
        assert status_of(response) in (200, 204)
        assert sorted(told(response, kind)) == sorted(lines)
    for line in lines:
        assert status_of(ask(taken_over, b"POST", path, line.partition(b":")[0] + b":")) == 204
    assert told(ask(taken_over, b"HEAD", path), kind) == []
    assert "malformed answer" not in taken_over.log_text()

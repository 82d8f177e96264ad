"""Creators that must not replace anything, where some or all object servers are the peer's.

Those promise nothing, so two creators at one moment are decided as the peer decides; one after the other they
are refused as ever, and nothing of an upload is lost or half-stored on either kind of node.
"""

import pytest

from test.probe.test_peer_ec import Mixed
from test.support.peer import can_hide_etc, needs_peer

pytestmark = [
    pytest.mark.peer,
    needs_peer,
    pytest.mark.skipif(not can_hide_etc(), reason="needs root and unshare(1) for an /etc of its own"),
]
EXCLUSIVE = {"If-None-Match": "*"}
BODIES = {"empty": b"", "small": b"s" * 100, "large": b"l" * 3_000_000}


@pytest.fixture(scope="module", params=[(1, 2), (1, 2, 3, 4)], ids=["half", "all"])
def mixed(request, tmp_path_factory):
    live = Mixed(tmp_path_factory.mktemp("mixed") / "data", ec="2+1")
    try:
        live.start()
        live.give_to_peer(*request.param)
        for policy in ("gold", "ec"):
            assert live.request("PUT", policy, {"X-Storage-Policy": policy}).status == 201
        yield live
    finally:
        live.stop()


@pytest.mark.parametrize("policy", ["gold", "ec"])
@pytest.mark.parametrize("size", BODIES)
def test_the_first_creator_wins_and_the_second_is_refused(mixed, policy, size):
    for number in range(4):
        path = f"{policy}/{size}-{number}"
        assert mixed.request("PUT", path, EXCLUSIVE, BODIES[size]).status == 201
        assert mixed.request("PUT", path, EXCLUSIVE, b"other").status == 412
        answer = mixed.request("GET", path, {"X-Newest": "true"})
        assert (answer.status, answer.body) == (200, BODIES[size])
    assert "Traceback" not in mixed.log_text()

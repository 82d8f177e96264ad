"""The peer's object server during a part power increase; our guide warns about this behaviour."""

import subprocess

import pytest

from swift.aio.supervisor import accepts_connections
from swift.ring.partpower import increase, prepare_increase
from test.probe.test_relinker import POWER, Growing, part_of
from test.support.cluster import LiveCluster
from test.support.peer import can_hide_etc, environment, needs_peer, peer_command

pytestmark = [
    pytest.mark.peer,
    needs_peer,
    pytest.mark.skipif(not can_hide_etc(), reason="needs root and unshare(1) for an /etc of its own"),
]


@pytest.fixture
def growing(tmp_path):
    """A node with an object server of the peer, and a ring whose part power grows."""
    made = Growing(tmp_path)
    words = peer_command("swift-object-server", made.server.conf, "-v", swift_dir=tmp_path)
    with open(tmp_path / "log", "ab") as log:
        child = subprocess.Popen(words, stdout=log, stderr=log, env=environment(), start_new_session=True)
    try:
        LiveCluster.await_true(
            lambda: accepts_connections("127.0.0.1", made.server.port), "the peer answers", 60
        )
        yield made
    finally:
        child.terminate()
        child.wait(20)


def moving():
    """Return the name of an object whose partition changes with the part power."""
    return next(f"o{n}" for n in range(99) if part_of(f"o{n}", POWER) != part_of(f"o{n}", POWER + 1))


def put(growing, name, body, power):
    headers = {"Content-Type": "text/plain", "X-Backend-Next-Part-Power": str(POWER + 1)}
    path = f"/sda/{part_of(name, power)}/a/c/{name}"
    return growing.server.ask("PUT", path, headers, body).status


def test_the_peer_links_before_the_increase_and_keeps_partitions_apart_after_it(growing):
    name = moving()
    prepare_increase(growing.builder)
    growing.write_ring()
    assert put(growing, name, b"first", POWER) == 201
    assert growing.get(name, POWER) == growing.get(name, POWER + 1) == b"first"
    increase(growing.builder)
    growing.write_ring()
    assert put(growing, name, b"second", POWER + 1) == 201
    assert growing.get(name, POWER + 1) == b"second"
    # A proxy with a ring some seconds older reads this object.
    assert growing.get(name, POWER) == b"first"

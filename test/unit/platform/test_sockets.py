"""Sockets on which servers take connections."""

import socket

import pytest

from swift.platform.sockets import listen


@pytest.mark.parametrize("ip", ["127.0.0.1", "::1"])
def test_connections_are_taken_without_waiting_for_one(ip):
    try:
        listener = listen(ip, 0, 5)
    except OSError as error:
        pytest.skip(f"{ip} is not there: {error}")
    with listener:
        with pytest.raises(BlockingIOError):
            listener.accept()
        with socket.create_connection(listener.getsockname()[:2], timeout=5):
            listener.setblocking(True)
            listener.settimeout(5)
            listener.accept()[0].close()


def test_a_taken_address_is_an_error():
    with listen("127.0.0.1", 0, 5) as listener, pytest.raises(OSError, match="in use"):
        listen("127.0.0.1", listener.getsockname()[1], 5)


def test_silent_connections_are_probed_when_that_is_wanted():
    for seconds, probes in ((0, 0), (60, 1)):
        with listen("127.0.0.1", 0, 5, keep_idle_s=seconds) as listener:
            assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == probes

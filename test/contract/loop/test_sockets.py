"""Waits for sockets: deadlines, connections, and one waiter for each descriptor."""

import os
import socket
import time

import pytest

from swift import green
from test.support.processes import free_ports


def test_a_socket_wait_ends_at_its_deadline_and_leaves_the_descriptor_usable():
    reader, writer = os.pipe()
    try:
        with pytest.raises(green.DeadlineExceeded):
            green.wait_readable(reader, time.monotonic() + 0.05)
        os.write(writer, b"x")
        green.wait_readable(reader, time.monotonic() + 30)
        assert os.read(reader, 1) == b"x"
    finally:
        os.close(reader)
        os.close(writer)


def test_two_cannot_wait_for_one_descriptor():
    reading, writing = os.pipe()
    try:
        green.spawn(green.wait_readable, reading)
        green.sleep(0)
        with pytest.raises(RuntimeError, match=f"two green threads wait for descriptor {reading}"):
            green.wait_readable(reading, time.monotonic() + 1)
    finally:
        os.close(writing)
        green.sleep(0.01)
        os.close(reading)


@pytest.mark.parametrize("ip", ["127.0.0.1", "::1"])
def test_a_connection_is_there_and_does_not_block(ip):
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    with socket.socket(family) as listener:
        try:
            listener.bind((ip, 0))
        except OSError as error:
            pytest.skip(f"no such address here: {error}")
        listener.listen()
        with green.connect(ip, listener.getsockname()[1], time.monotonic() + 30) as sock:
            assert not sock.getblocking()
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_where_nobody_listens_it_is_an_error():
    with pytest.raises(ConnectionRefusedError):
        green.connect("127.0.0.1", free_ports(1)[0], time.monotonic() + 30)


def test_a_listener_whose_queue_is_full_is_given_up_at_the_deadline():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port, begun = listener.getsockname()[1], []
        try:
            with pytest.raises(green.DeadlineExceeded):
                for _ in range(10):
                    begun.append(green.connect("127.0.0.1", port, time.monotonic() + 0.1))
        finally:
            for sock in begun:
                sock.close()

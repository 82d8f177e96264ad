"""Processes of tests that run side by side get ports of their own."""

import socket

import pytest

from test.support.processes import SLICE, Ports


def test_two_processes_get_different_ports():
    one, other = Ports(), Ports()
    taken = [range(first, first + 60) for first in (holder.free_range(60) for holder in (one, other) * 9)]
    assert len({port for ports in taken for port in ports}) == 18 * 60


def test_a_port_that_somebody_listens_at_is_passed_over_and_given_ports_come_again():
    ports = Ports(most=1)
    first = ports.free_range(1)
    with socket.create_server(("127.0.0.1", first)):
        assert first not in {ports.free_range(1) for _ in range(SLICE - 1)}
        assert ports.free_range(1) == first + 1
    assert first in {ports.free_range(1) for _ in range(SLICE)}


def test_what_fits_nowhere_is_told():
    with pytest.raises(RuntimeError, match="no free ports"):
        Ports(most=1).free_range(SLICE + 1)

"""Services tell systemd, and whoever reloads them, how they are doing."""

import os
import socket

import pytest

from swift.runtime.notify import READY, notify_systemd, reload_address


@pytest.fixture
def listener():
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.settimeout(10)
        yield sock


def test_whoever_reloads_a_process_hears_of_it_by_its_pid(listener, monkeypatch):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    listener.bind(reload_address(os.getpid()))
    notify_systemd("RELOADING=1")
    assert listener.recv(100) == b"RELOADING=1"


def test_systemd_hears_of_it_at_a_path(listener, monkeypatch, tmp_path):
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "n"))
    listener.bind(str(tmp_path / "n"))
    notify_systemd(READY)
    assert listener.recv(100) == b"READY=1"


def test_and_at_an_abstract_name(listener, monkeypatch):
    name = f"swift-test-{os.getpid()}"
    monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
    listener.bind(f"\0{name}")
    notify_systemd(READY)
    assert listener.recv(100) == b"READY=1"


@pytest.mark.parametrize("address", ["", "/no/such/socket", "@" + "x" * 500])
def test_where_nobody_listens_nothing_happens(monkeypatch, address):
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    notify_systemd(READY)


def test_a_listener_that_takes_nothing_holds_nobody_up(listener, monkeypatch, tmp_path):
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "n"))
    listener.bind(str(tmp_path / "n"))
    for _ in range(5000):
        notify_systemd(READY)
    assert listener.recv(100) == b"READY=1"

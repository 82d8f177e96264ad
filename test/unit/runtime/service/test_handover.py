"""What a server leaves to its next image: sockets that still listen, and its workers."""

import errno
import json
import os
import socket
import sys

import pytest

from swift.runtime.notify import READY, refusal_message
from swift.runtime.service.handover import ENVIRONMENT_KEY, SocketHandover, restart_command
from swift.telemetry.log import silent_log


def left(sockets, workers=()):
    return {ENVIRONMENT_KEY: json.dumps({"sockets": sockets, "workers": list(workers)})}


@pytest.fixture
def listening():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen(5)
        yield sock


def test_a_server_that_was_not_reloaded_takes_nothing_over():
    handover = SocketHandover({})
    assert handover.workers == []
    sock = handover.listen("127.0.0.1", 0, 5)
    try:
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
    finally:
        handover.stop_listening()
    assert sock.fileno() == -1


def test_what_was_left_is_known_once_and_not_told_to_children():
    environ = left({}, [11, 12])
    assert SocketHandover(environ).workers == [11, 12]
    assert environ == {}


def test_a_socket_that_was_left_for_an_address_goes_on_listening_and_is_not_inherited(listening):
    port = listening.getsockname()[1]
    fd = listening.detach()
    os.set_inheritable(fd, True)
    handover = SocketHandover(left({f"127.0.0.1:{port}": fd}))
    sock = handover.listen("127.0.0.1", port, 5)
    assert sock.fileno() == fd and not os.get_inheritable(fd)
    with socket.create_connection(("127.0.0.1", port), timeout=5):
        handover.close_unclaimed_sockets()
        assert sock.fileno() == fd
    handover.stop_listening()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


def test_sockets_of_addresses_that_are_no_longer_configured_are_closed(listening):
    port = listening.getsockname()[1]
    fd = listening.detach()
    handover = SocketHandover(left({f"127.0.0.1:{port}": fd}))
    handover.close_unclaimed_sockets()
    with pytest.raises(OSError) as caught:
        os.fstat(fd)
    assert caught.value.errno == errno.EBADF
    handover.close_unclaimed_sockets()


def test_an_address_that_another_process_has_is_an_error(listening):
    with pytest.raises(OSError):
        SocketHandover({}).listen("127.0.0.1", listening.getsockname()[1], 5)


def test_addresses_are_told_apart_also_when_they_are_ipv6(listening):
    port = listening.getsockname()[1]
    fd = listening.detach()
    handover = SocketHandover(left({f"[::1]:{port}": fd}))
    assert handover.listen("::1", port, 5).fileno() == fd
    assert f"[::1]:{port}" in repr(handover)
    handover.stop_listening()


class Renewal:
    """A reload of a server whose command line is ``code`` for Python."""

    def __init__(self, sock, code, *, check_timeout_s=60.0):
        self.environ = left({f"127.0.0.1:{sock.getsockname()[1]}": sock.fileno()})
        command = [sys.executable, "-c", code]
        self.handover = SocketHandover(self.environ, command=command, check_timeout_s=check_timeout_s)
        self.told = []
        self.handover.renew([], silent_log(), self.told.append)


def test_a_configuration_check_that_does_not_end_refuses_the_reload(listening):
    renewal = Renewal(listening, "import time; time.sleep(600)", check_timeout_s=0.2)
    assert renewal.told == [refusal_message("the configuration check took longer than 0.2 s")]


def test_a_configuration_check_that_fails_refuses_the_reload_with_its_last_line(listening):
    renewal = Renewal(listening, "print('first'); raise SystemExit('no such filter')")
    assert renewal.told == [refusal_message("no such filter")]


def test_a_next_image_that_cannot_be_executed_leaves_the_server_as_it_was(monkeypatch, listening):
    def failing_execv(_path, _command):
        raise OSError(errno.ENOMEM, "no memory")

    monkeypatch.setattr(os, "execv", failing_execv)
    renewal = Renewal(listening, "pass")
    assert renewal.told == ["RELOADING=1", READY, refusal_message("[Errno 12] no memory")]
    assert renewal.environ == {}
    assert not os.get_inheritable(listening.fileno())


def test_inherited_workers_are_taken_once():
    handover = SocketHandover(left({}, [11]))
    assert handover.take_workers() == [11]
    assert handover.take_workers() == []


@pytest.fixture
def script(tmp_path):
    def make(text, mode=0o755):
        path = tmp_path / "swift-object-server"
        path.write_text(text)
        path.chmod(mode)
        return str(path)

    return make


LONG = "/" + "x" * 200 + "/python"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#!/opt/0.1/bin/python3\n", ["/opt/0.1/bin/python3"]),
        ("#!/usr/bin/python3 -I\n", ["/usr/bin/python3", "-I"]),
        ("#!/usr/bin/env python3\n", ["python3"]),
        (f"#!/bin/sh\n'''exec' \"{LONG}\" \"$0\" \"$@\"\n' '''\n", [LONG]),
    ],
)
def test_a_script_that_names_its_interpreter_is_executed_itself(script, text, words):
    path = script(text)
    assert restart_command([*words, path, "a.conf"], path, "/opt/0.1/bin/python3") == [path, "a.conf"]


def test_an_interpreter_that_the_operator_named_is_kept(script):
    path = script("#!/opt/0.1/bin/python3\n")
    for words in (["/opt/swift/bin/python"], ["/opt/0.1/bin/python3", "-X", "dev"], ["python3"]):
        told = restart_command([*words, path, "a.conf"], path, "/opt/swift/bin/python")
        assert told == ["/opt/swift/bin/python", *words[1:], path, "a.conf"]


def test_a_script_that_cannot_be_executed_is_left_to_its_interpreter(script):
    for path in (script("#!/usr/bin/python3\n", 0o644), script("import swift\n")):
        assert restart_command(["/usr/bin/python3", path], path, "/usr/bin/python3") == [
            "/usr/bin/python3",
            path,
        ]


def test_a_module_is_started_as_before():
    words = ["python3", "-m", "swift.cli.object_server", "a.conf"]
    assert restart_command(words, "/x/swift/cli/object_server.py", "/usr/bin/python3") == [
        "/usr/bin/python3",
        *words[1:],
    ]


def test_a_relative_script_is_found_from_any_directory(script, tmp_path, monkeypatch):
    path = script("#!/usr/bin/python3\n")
    monkeypatch.chdir(tmp_path)
    name = "./swift-object-server"
    assert restart_command(["/usr/bin/python3", name], name, "/usr/bin/python3") == [path]

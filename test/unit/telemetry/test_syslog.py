"""Lines to syslog: the bytes of the ordinary handler, whoever listens, and no noise when nobody does."""

import logging
import logging.handlers
import os
import socket
from dataclasses import replace

import pytest

from swift.config.common import LogSettings
from swift.telemetry.accesslog import AccessLog
from swift.telemetry.log import make_log
from swift.telemetry.syslog import NOTICE, LineFormatter, Syslog, syslog_handler

_SAMPLES = ["one", "two\nlines", "long " * 40, "caf\xe9 \u20ac", "", "100% of %s"]


@pytest.fixture
def listener(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "log"))
        sock.settimeout(10)
        yield sock


def settings_for(listener, **more):
    return replace(LogSettings(), log_address=listener.getsockname(), **more)


def ordinary_line(settings, level, message, listener):
    """What the standard library's way makes of it."""
    handler = syslog_handler(settings)
    handler.setFormatter(LineFormatter("proxy", settings.log_max_line_length))
    logger = logging.Logger("ordinary")
    logger.addHandler(handler)
    logger.log(level, "%s", message)
    handler.close()
    return listener.recv(65536)


@pytest.mark.parametrize("longest", [0, 3, 60])
@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO, NOTICE, logging.WARNING, logging.ERROR])
def test_the_bytes_are_those_of_the_ordinary_handler(listener, level, longest):
    settings = settings_for(listener, log_facility="LOG_LOCAL3", log_max_line_length=longest)
    formatter = LineFormatter("proxy", longest)
    syslog = Syslog(syslog_handler(settings), formatter)
    for message in _SAMPLES:
        assert syslog.send(level, message)
        assert listener.recv(65536) == ordinary_line(settings, level, message, listener)


def test_events_and_access_lines_arrive_in_order_with_their_priorities(listener):
    log = make_log(settings_for(listener), name="object-server")
    log.raw("an access line")
    log.notice("started", txid="tx1")
    log.debug("not wanted")
    log.error("broken tx2", txid="tx2")
    assert [listener.recv(65536) for _ in range(3)] == [
        b"<134>object-server: an access line",
        b"<133>object-server: started (txn: tx1)",
        b"<131>object-server: broken tx2",
    ]


def test_access_lines_below_the_level_are_not_sent(listener):
    log = make_log(settings_for(listener, log_level="ERROR"))
    AccessLog(log).write("an access line")
    log.error("an error")
    assert listener.recv(65536) == b"<131>swift: an error"


def test_what_is_no_text_for_the_wire_does_not_fail_a_request(listener):
    make_log(settings_for(listener)).error("odd \udcff")
    assert listener.recv(65536) == b"<131>swift: odd \\udcff"


def test_lines_that_nobody_takes_are_lost_in_silence_until_somebody_listens_again(listener, capfd):
    settings = settings_for(listener)
    log = make_log(settings)
    log.info("first")
    assert listener.recv(65536) == b"<134>swift: first"
    os.unlink(settings.log_address)
    log.info("lost: the socket is gone")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as successor:
        successor.bind(settings.log_address)
        log.info("heard by the successor")
        assert successor.recv(65536) == b"<134>swift: heard by the successor"
    log.info("lost: nobody reads the socket")
    assert capfd.readouterr() == ("", "")


def test_a_full_queue_is_left_to_the_handler_that_can_wait(listener):
    syslog = Syslog(syslog_handler(settings_for(listener)), LineFormatter("swift", 0))
    sent = 0
    while syslog.send(logging.INFO, "x" * 1000):
        sent += 1
    assert sent
    for _ in range(sent):
        listener.recv(65536)
    assert syslog.send(logging.INFO, "room again")


def test_a_stream_socket_is_served_the_ordinary_way(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(tmp_path / "log"))
        server.listen(1)
        log = make_log(settings_for(server))
        log.info("by stream")
        connection, _ = server.accept()
        with connection:
            assert connection.recv(65536) == b"<134>swift: by stream"


def test_lines_go_to_a_host_by_udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(10)
        port = server.getsockname()[1]
        log = make_log(replace(LogSettings(), log_udp_host="127.0.0.1", log_udp_port=port))
        log.info("one")
        log.info("two")
        assert [server.recv(100), server.recv(100)] == [b"<134>swift: one", b"<134>swift: two"]


def test_without_a_socket_lines_go_to_an_address_that_needs_no_name_service(tmp_path):
    """Containers without /etc/hosts do not even know localhost."""
    settings = LogSettings.parse({"log_address": str(tmp_path / "none")})
    assert syslog_handler(settings).address == ("127.0.0.1", 514)

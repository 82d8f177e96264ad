"""Where servers and their metrics pages listen."""

import errno
import os

import pytest

from swift.base.errors import ConfigError
from swift.config.common import ServerSettings
from swift.platform import sockets
from swift.runtime.service.serve import bind, bind_metrics
from swift.telemetry.telemetry import Telemetry


class Lines:
    """A log that keeps its warnings."""

    def __init__(self):
        self.lines = []

    def warning(self, text):
        self.lines.append(text)


@pytest.mark.parametrize(
    ("port", "own", "expected"),
    [(8080, 0, 18080), (6200, 0, 16200), (60000, 0, 50000), (8080, 9100, 9100), (0, 0, 0), (0, 9100, 9100)],
)
def test_the_page_has_a_port_of_its_own(port, own, expected):
    settings = ServerSettings(bind_port=port, metrics_bind_port=own)
    assert settings.metrics_port == expected
    assert settings.metrics_bind_ip == "127.0.0.1"


def test_a_server_whose_page_cannot_be_had_serves_without_it():
    taken = sockets.listen("127.0.0.1", 0, 1)
    log = Lines()
    try:
        port = taken.getsockname()[1]
        assert bind_metrics(ServerSettings(metrics_bind_port=port), Telemetry(log)) is None
    finally:
        taken.close()
    assert [line.startswith("no metrics page: cannot listen on 127.0.0.1") for line in log.lines] == [True]
    assert bind_metrics(ServerSettings(bind_port=8080, metrics_path=""), Telemetry(log)) is None


@pytest.mark.parametrize(
    ("number", "port", "told"),
    [
        (errno.EADDRINUSE, 8080, "cannot listen on 10.0.0.1:8080: Address already in use"),
        (errno.EACCES, 80, "cannot listen on 10.0.0.1:80: Permission denied: ports below 1024 are for root"),
        (errno.EADDRNOTAVAIL, 8080, "cannot listen on 10.0.0.1:8080: Cannot assign requested address"),
    ],
)
def test_a_start_tells_at_once_what_it_waits_for(number, port, told):
    """Only an address in use may become free; the wait is told when it begins."""
    tries, lines = [], []

    def listen(*_args, **_options):
        tries.append(1)
        raise OSError(number, os.strerror(number))

    settings = ServerSettings(bind_ip="10.0.0.1", bind_port=port, bind_timeout=0.15)
    with pytest.raises(ConfigError, match=told):
        bind(settings, listen, lines.append)
    if number == errno.EADDRINUSE:
        assert lines == ["10.0.0.1:8080 is in use by another process; trying for 0.15 s"] and len(tries) > 1
    else:
        assert lines == [] and len(tries) == 1

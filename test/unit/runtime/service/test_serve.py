"""Where the metrics page listens."""

import pytest

from swift.config.common import ServerSettings
from swift.platform import sockets
from swift.runtime.service.serve import bind_metrics
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

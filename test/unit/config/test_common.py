"""Options that every server shares."""

import pytest

from swift.config.common import ServerSettings


@pytest.mark.parametrize(
    ("bind_port", "metrics", "port"),
    [(8080, 0, 18080), (55535, 0, 65535), (55536, 0, 45536), (8080, 9100, 9100), (0, 0, 0), (0, 9100, 9100)],
)
def test_the_page_of_metrics_has_a_port_of_its_own(bind_port, metrics, port):
    assert ServerSettings(bind_port=bind_port, metrics_bind_port=metrics).metrics_port == port

"""What a service tells the outside."""

from swift.telemetry.telemetry import Telemetry


def test_without_anything_said_it_is_silent_and_each_has_its_own():
    one, other = Telemetry(), Telemetry()
    assert not one.statsd.enabled and not one.log.is_debug_enabled
    assert one.metrics is not other.metrics

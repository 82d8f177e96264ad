"""Latencies of the phases of a growing cluster."""

from tools.bench.growth import GrowthClients, percentile


def test_a_phase_has_the_requests_that_ended_in_it():
    clients = GrowthClients(None, None, 1, 0)
    clients._results = [
        *((5.0, "PUT", 0.001 * number) for number in range(1, 101)),
        (5.0, "GET", 0.002),
        (5.0, "GET", -1.0),
        (9.0, "GET", 7.0),
    ]
    phase = clients.phase("now", 4.0, 9.0)
    assert (phase.requests, phase.failed, phase.seconds) == (102, 1, 5.0)
    assert [round(value) for value in (phase.put_p50, phase.put_p99, phase.get_p50)] == [51, 100, 2]


def test_nothing_has_no_latency():
    assert percentile([], 0.5) == 0.0

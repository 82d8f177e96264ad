"""Results add up, whoever measured them, and travel as JSON."""

import json

from hypothesis import given
from hypothesis import strategies as st

from swift.load.measure import PhaseResult, latency_bin, latency_bin_start_ms

EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["get", "put"]),
        st.floats(0, 50),
        st.floats(0, 5),
        st.integers(0, 10**7),
        st.sampled_from([None, None, "503", "timeout"]),
    ),
    max_size=30,
)


def result_of(events, seconds=1.0):
    made = PhaseResult()
    made.seconds = seconds
    for name, at_s, latency_s, size, error in events:
        made.of(name).add(at_s, latency_s, size, error)
    return made


@given(EVENTS, EVENTS)
def test_two_processes_together_measured_what_one_would_have(first, second):
    merged = result_of(first)
    merged.merge(PhaseResult.from_json(json.loads(json.dumps(result_of(second, 2.0).to_json()))))
    whole = result_of(first + second)
    assert merged.count == whole.count and merged.seconds == 2.0
    for name, one in whole.operations.items():
        other = merged.of(name)
        assert (other.bytes, other.failed, other.errors) == (one.bytes, one.failed, one.errors)
        assert other.latency_ms(99) == one.latency_ms(99)
        assert other.seconds.keys() == one.seconds.keys()


@given(st.floats(1, 3.6e9))
def test_a_latency_lies_in_its_bin(latency_us):
    number = latency_bin(latency_us)
    assert latency_bin_start_ms(number) * 1000 <= latency_us * 1.000001
    assert latency_us <= latency_bin_start_ms(number + 1) * 1000 * 1.000001


def test_failures_have_no_latency():
    found = result_of([("get", 0.5, 3.0, 0, "503")]).of("get")
    assert (found.count, found.failed, found.latency_ms(50), found.mean_ms) == (0, 1, 0.0, 0.0)

"""statsd over UDP: one metric a packet, never waiting, never failing a request."""

import socket

import pytest

from swift.config.common import LogSettings
from swift.telemetry.statsd import Statsd


@pytest.fixture
def listener():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind(("127.0.0.1", 0))
        made.settimeout(5)
        yield made


def sender(listener, tail="", **options):
    port = listener.getsockname()[1]
    return Statsd(LogSettings(log_statsd_host="127.0.0.1", log_statsd_port=port, **options), tail)


def test_counts_and_durations_have_their_names_and_kinds(listener):
    statsd = sender(listener, "object-server", log_statsd_metric_prefix="host1")
    statsd.increment("PUT.errors")
    statsd.increment("PUT.bytes", 17)
    statsd.timing("PUT.timing", 0.0123)
    assert [listener.recv(200) for _ in range(3)] == [
        b"host1.object-server.PUT.errors:1|c",
        b"host1.object-server.PUT.bytes:17|c",
        b"host1.object-server.PUT.timing:12.3|ms",
    ]


def test_a_sampled_metric_says_so(listener):
    statsd = sender(listener, log_statsd_default_sample_rate=0.5, log_statsd_sample_rate_factor=0.5)
    for _ in range(200):
        statsd.increment("x")
    assert listener.recv(200) == b"x:1|c|@0.25"


def test_a_rate_of_nothing_sends_nothing(listener):
    statsd = sender(listener, log_statsd_default_sample_rate=0.0)
    for _ in range(100):
        statsd.increment("never")
    sender(listener).increment("once")
    assert listener.recv(200) == b"once:1|c"


def test_without_a_host_nothing_is_sent_and_nobody_listening_does_no_harm():
    silent = Statsd(LogSettings())
    assert not silent.enabled
    silent.increment("x")
    for host in ("127.0.0.1", "no.such.host.invalid", "::1"):
        statsd = Statsd(LogSettings(log_statsd_host=host, log_statsd_port=1))
        statsd.increment("x")
        statsd.timing("x", 1)


@pytest.mark.parametrize(
    ("mode", "packet"),
    [
        ("librato", b"m#a=b,c=,user_dc=east:1|c|@0.999999"),
        ("influxdb", b"m,a=b,c=,user_dc=east:1|c|@0.999999"),
        ("graphite", b"m;a=b;c=;user_dc=east:1|c|@0.999999"),
        ("dogstatsd", b"m:1|c|@0.999999|#a:b,c:,user_dc:east"),
    ],
)
def test_labels_are_written_as_each_server_reads_them(listener, mode, packet):
    port = listener.getsockname()[1]
    settings = LogSettings(
        log_statsd_host="127.0.0.1",
        log_statsd_port=port,
        log_statsd_default_sample_rate=0.999999,
        statsd_label_mode=mode,
        statsd_emit_legacy=False,
    )
    statsd = Statsd(settings, "proxy-server", {"user_dc": "east"})
    statsd.increment("not.sent")
    statsd.increment_labelled("m", {"c": "", "a": "b"})
    assert listener.recv(200) == packet


def test_a_name_that_a_client_chose_adds_no_label_and_no_metric(listener):
    statsd = sender(listener, statsd_label_mode="dogstatsd")
    statsd.timing_labelled("m", {"container": "a,b:c|#d\nother:1|c"}, 0.001)
    assert listener.recv(200) == b"m:1|ms|#container:a_b_c__d_other_1_c"


def test_labels_are_off_without_a_mode(listener):
    assert not sender(listener).labels_enabled
    assert not Statsd(LogSettings(statsd_label_mode="graphite")).labels_enabled

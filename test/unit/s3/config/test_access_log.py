"""Lines of access logs: AWS's format, whatever clients send."""

import dataclasses
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift import green
from swift.http.response import Response
from swift.s3.config.access_log import (
    BUFFERED_BYTES_MAX,
    AccessLogDelivery,
    AccessLogRecord,
    LogDestination,
    LogTarget,
    operation_name,
    parse_log_target,
)
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry

USUAL = AccessLogRecord(
    owner="AUTH_test",
    bucket="photos",
    key="a b/c",
    begun_s=1_700_000_000.0,
    address="10.0.0.1",
    requester="test:tester",
    txid="tx1",
    operation="REST.GET.OBJECT",
    request_line="GET /photos/a%20b/c HTTP/1.1",
    status=200,
    error_code="",
    sent_bytes=5,
    object_bytes=5,
    total_s=0.012,
    turnaround_s=0.01,
    headers={"user-agent": "aws-cli/2", "referer": "", "host": "s3.test"},
    version="",
    signature="SigV4",
    authentication="AuthHeader",
)
#: How readers of such logs take a line apart.
FIELDS = re.compile(r'\[[^\]]*\]|"[^"]*"|[^ ]+')


def test_a_line_is_as_aws_writes_it():
    assert USUAL.text == (
        "AUTH_test photos [14/Nov/2023:22:13:20 +0000] 10.0.0.1 test:tester tx1 REST.GET.OBJECT a%20b/c "
        '"GET /photos/a%20b/c HTTP/1.1" 200 - 5 5 12 10 "-" "aws-cli/2" - tx1 '
        "SigV4 - AuthHeader s3.test - - -\n"
    )


@given(*[st.text(max_size=50)] * 5)
def test_nobody_writes_into_another_field_or_another_line(key, agent, host, requester, line):
    entry = dataclasses.replace(
        USUAL, key=key, headers={"user-agent": agent, "host": host}, requester=requester, request_line=line
    )
    text = entry.text
    assert text.isascii() and text.count("\n") == 1 and text.endswith("\n") and "\r" not in text
    assert len(FIELDS.findall(text[:-1])) == 26


@pytest.mark.parametrize("name", ["X-Amz-Signature", "x-amz-signature", "Signature", "X-Amz-Security-Token"])
def test_what_signs_a_link_is_left_out(name):
    for query in (f"{name}=secret", f"a=1&{name}=secret&b=2"):
        text = dataclasses.replace(USUAL, request_line=f"GET /b/k?{query} HTTP/1.1").text
        assert "secret" not in text and f"{name}=-" in text


@pytest.mark.parametrize(
    "method, key, params, headers, wanted",
    [
        ("GET", "", {}, {}, "REST.GET.BUCKET"),
        ("PUT", "k", {}, {}, "REST.PUT.OBJECT"),
        ("PUT", "k", {}, {"x-amz-copy-source": "b/k"}, "REST.COPY.OBJECT"),
        ("PUT", "k", {"uploadId": "u", "partNumber": "1"}, {}, "REST.PUT.PART"),
        ("POST", "k", {"uploadId": "u"}, {}, "REST.POST.UPLOAD"),
        ("POST", "k", {"uploads": ""}, {}, "REST.POST.UPLOADS"),
        ("GET", "", {"versioning": ""}, {}, "REST.GET.VERSIONING"),
        ("GET", "", {"versions": ""}, {}, "REST.GET.BUCKETVERSIONS"),
        ("POST", "", {"delete": ""}, {}, "REST.POST.MULTI_OBJECT_DELETE"),
        ("GET", "", {"list-type": "2"}, {}, "REST.GET.BUCKET"),
    ],
)
def test_operations_have_the_names_of_logs(method, key, params, headers, wanted):
    assert operation_name(method, key, params, headers) == wanted


def test_where_a_log_goes_is_kept_as_text():
    for target in (LogTarget("logs", ""), LogTarget("logs", "a b/ü")):
        assert target.encoded.isascii() and parse_log_target(target.encoded) == target
    assert parse_log_target(None) is parse_log_target("") is parse_log_target("logs") is None


# --- lines of access logs are gathered, stored once, and dropped when they are too much ---------------


PLACE = LogDestination("AUTH_test", LogTarget("logs", "p/"))


class Store:
    def __init__(self, status=201):
        self.status = status
        self.stored = []

    def handle(self, request):
        self.stored.append((request.entity.path, request.body.read()))
        return Response(self.status)


def delivery(store, interval_s=0.01):
    told = Telemetry(silent_log())
    return AccessLogDelivery(store.handle, told.log, told.statsd, interval_s)


def await_stored(store, number=1):
    end = time.monotonic() + 30
    while len(store.stored) < number and time.monotonic() < end:
        green.sleep(0.01)
    return store.stored


def test_lines_are_gathered_and_stored_once():
    store = Store()
    logs = delivery(store)
    for n in range(3):
        logs.add(PLACE, f"{n}\n", None)
    ((path, content),) = await_stored(store)
    assert (path.account, path.container) == ("AUTH_test", "logs") and path.obj.startswith("p/20")
    assert content == b"0\n1\n2\n"
    logs.add(PLACE, "3\n", None)
    assert await_stored(store, 2)[1][1] == b"3\n"


def test_a_log_that_cannot_be_stored_is_dropped():
    store = Store(404)
    logs = delivery(store)
    logs.add(PLACE, "x\n", None)
    await_stored(store)
    logs.add(PLACE, "y\n", None)
    assert [content for _, content in await_stored(store, 2)] == [b"x\n", b"y\n"]


def test_logs_hold_only_so_much():
    store = Store()
    logs = delivery(store, 60)
    line = "x" * 100_000
    for n in range(200):
        logs.add(PLACE._replace(account=f"a{n}"), line, None)
    assert BUFFERED_BYTES_MAX - len(line) < logs.buffered_bytes <= BUFFERED_BYTES_MAX

"""A storage server answers every request and says so in one line; no error becomes anything but a status."""

from __future__ import annotations

import re
from ipaddress import ip_network

import pytest

from swift.base.clock import ManualClock
from swift.base.entity import NotUTF8
from swift.base.errors import DeviceUnavailable, LockTimeout, NoSpace
from swift.base.timestamp import InvalidTimestamp
from swift.cluster.transport import NodeAddress, NodeRequest, NodeTimeouts
from swift.http.body import BadFraming, BodyTimeout, ClientDisconnected
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.platform.devices import Devices
from swift.runtime.backendapp import ACCESS_FIELDS, BackendApp, BackendContext, DateLimit, split_backend_path
from swift.telemetry.logtemplate import Anonymizer, LogTemplate
from swift.telemetry.metrics import CounterMetric


class Lines:
    """An access log that keeps its lines."""

    is_wanted = True

    def __init__(self):
        self.lines = []

    def write(self, line):
        self.lines.append(line)


class Words:
    """A log that keeps errors."""

    def __init__(self):
        self.errors = []

    def error(self, message, *, txid=None):
        self.errors.append((message, txid))

    def exception(self, message, error, *, txid=None):
        self.errors.append((message, txid))


class App(BackendApp):
    server_type = "object"

    def __init__(self, context, answer):
        self.answer = answer
        super().__init__(context)

    def verbs(self):
        return {"GET": self._get, "REPLICATE": self._get}

    def _get(self, request):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def make(tmp_path, answer=None, **context):
    made = BackendContext(Devices(str(tmp_path), mount_check=False), access_log=Lines(), **context)
    made.telemetry.log = Words()
    return App(made, answer if answer is not None else Response(200, {}, b"x"))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (HTTPError(422), 422),
        (DeviceUnavailable("sda"), 507),
        (NoSpace("full"), 507),
        (InvalidTimestamp("x"), 400),
        (NotUTF8("x"), 412),
        (BodyTimeout("slow"), 408),
        (ClientDisconnected("gone"), 499),
        (BadFraming("odd"), 400),
        (LockTimeout("/srv/x", 10), 503),
        (ZeroDivisionError("ours"), 500),
        (RecursionError("deep"), 500),
    ],
)
def test_every_error_is_a_status_and_only_ours_are_logged(tmp_path, error, status):
    app = make(tmp_path, error)
    response = app.handle(Request("GET", "/sda/1/a/c/o", {"x-trans-id": "tx1"}))
    assert response.status == status
    assert [txid for _message, txid in app.context.telemetry.log.errors] == ["tx1"] * (status in (500, 503))
    assert b"ours" not in response.read_body()


def test_a_full_device_is_named(tmp_path):
    response = make(tmp_path, NoSpace("full")).handle(Request("GET", "/sdb/1/a/c/o"))
    assert b"sdb" in response.read_body()


@pytest.mark.parametrize("path", ["", "/", "x", "/sda"])
def test_a_full_device_that_no_path_names_is_still_an_answer(tmp_path, path):
    assert make(tmp_path, NoSpace("full")).handle(Request("GET", path)).status == 507


@pytest.mark.parametrize("sent", [{}, {"x-timestamp": "soon"}])
def test_it_is_said_whether_a_timestamp_lacks_or_is_bad(tmp_path, sent):
    response = make(tmp_path, InvalidTimestamp("x")).handle(Request("GET", "/sda/1/a", sent))
    assert response.read_body() == (b"Invalid" if sent else b"Missing") + b" X-Timestamp header"


def test_methods_that_there_are_not_are_refused_with_those_that_there_are(tmp_path):
    app = make(tmp_path)
    for method in ("PATCH", "_options", "__init__", "get"):
        response = app.handle(Request(method, "/sda/1/a"))
        assert (response.status, response.headers["allow"]) == (405, "GET, OPTIONS, REPLICATE")
    assert app.handle(Request("OPTIONS", "/")).headers["server"].startswith("object-server/")


def test_a_server_of_the_client_network_does_not_replicate(tmp_path):
    app = make(tmp_path, replication_server=False)
    assert app.handle(Request("REPLICATE", "/sda/1")).status == 405
    assert app.handle(Request("GET", "/sda/1")).status == 200


def test_each_request_has_one_line_with_its_facts(tmp_path):
    app = make(tmp_path, Response(200, {"content-length": "3"}, b"abc"))
    headers = {"x-trans-id": "tx1", "user-agent": "proxy-server 5", "x-backend-storage-policy-index": "2"}
    app.handle(Request("GET", "/sda/1/a/c%0Ao", headers, remote_addr="10.0.0.1"))
    (line,) = app.context.access_log.lines
    pattern = (
        r'10\.0\.0\.1 - - \[[^]]+\] "GET /sda/1/a/c%0Ao" 200 3 "-" "tx1" "proxy-server 5" \d\.\d{4} "-" \d+ 2'
    )
    assert re.fullmatch(pattern, line), line


def test_a_line_has_the_format_of_the_operator(tmp_path):
    text = "{remote_addr}|{method}|{path}|{status}|{content_length}|{referer}|{txn_id}|{user_agent}|"
    template = LogTemplate(
        f"{text}{{trans_time:.0f}}|{{additional_info}}|{{policy_index}}|{{time.iso8601}}",
        ACCESS_FIELDS,
        option="log_format",
        anonymize=Anonymizer(),
    )
    app = make(tmp_path, Response(404), access_template=template)
    headers = {
        "x-trans-id": "tx1",
        "user-agent": "u a",
        "referer": "r r",
        "x-backend-storage-policy-index": "0",
    }
    app.handle(Request("GET", "/sda/0/a/c%20d/o", headers, remote_addr="127.0.0.1"))
    (line,) = app.context.access_log.lines
    start = "127.0.0.1|GET|/sda/0/a/c%20d/o|404|-|r r|tx1|u a|0|-|0|"
    assert re.fullmatch(re.escape(start) + r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", line), line


def test_durations_and_answers_are_counted(tmp_path):
    app = make(tmp_path)
    for _ in range(3):
        app.handle(Request("GET", "/sda/1/a"))
    app.handle(Request("PATCH", "/sda/1/a"))
    metrics = app.context.telemetry.metrics
    metric = CounterMetric("swift_backend_responses_total", "", ("server", "status"))
    counts = [metric.of(metrics, server="object", status=status).value for status in ("200", "405")]
    assert counts == [3, 1]


@pytest.mark.parametrize(
    "path", ["/sda", "//1/a", "/sda//a", "/../1/a", "/./1/a", "/sda/../a", "sda/1/a", ""]
)
def test_paths_that_name_nothing_on_a_device_are_refused(path):
    with pytest.raises(HTTPError) as caught:
        split_backend_path(Request("GET", path), 3, 3)
    assert caught.value.response.status == 400


def test_a_path_is_device_partition_and_names_the_last_of_which_may_have_slashes():
    assert split_backend_path(Request("GET", "/sda/1/a/c/o/p%2Fq"), 5, 5) == ["sda", "1", "a", "c", "o/p/q"]
    with pytest.raises(NotUTF8):
        split_backend_path(Request("GET", "/sda/1/%FF"), 3, 3)


def test_a_context_without_a_network_reaches_nobody(tmp_path):
    context = BackendContext(Devices(str(tmp_path), mount_check=False))
    with pytest.raises(Exception, match="no transport"):
        context.transport.request(
            NodeRequest(NodeAddress("10.0.0.1", 6200), "GET", "/", {}, b"", NodeTimeouts(1.0, 1.0))
        )


@pytest.mark.parametrize(
    ("limit", "headers", "is_refused"),
    [
        (DateLimit(60.0), {}, True),
        (DateLimit(180.0), {}, False),
        (DateLimit(), {}, False),
        (DateLimit(60.0), {"x-backend-replication": "true"}, False),
        (DateLimit(60.0, [ip_network("10.1.0.0/16")]), {}, False),
        (DateLimit(60.0, [ip_network("10.2.0.0/16")]), {}, True),
    ],
    ids=["beyond", "within", "off", "replication", "exempt", "another network"],
)
def test_changes_from_the_future_are_refused(limit, headers, is_refused):
    clock = ManualClock()
    sent = {"x-timestamp": f"{clock.time() + 120:.5f}", **headers}
    request = Request("PUT", "/sda/1/a/c/o", sent, remote_addr="10.1.2.3")
    if not is_refused:
        limit.check(request, clock)
        return
    with pytest.raises(HTTPError) as caught:
        limit.check(request, clock)
    response = caught.value.response
    assert (response.status, response.headers["x-backend-timestamp-ahead"]) == (400, "120.0")

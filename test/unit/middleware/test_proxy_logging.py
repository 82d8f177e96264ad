"""The access line, field by field, and when it is written (proxy.md §16, §17)."""

import re

import pytest

from swift.gateway.subrequest import make_subrequest
from swift.http.environkeys import LOGGED_POLICY, S3_CALL
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.middleware.gatekeeper import Gatekeeper, GatekeeperSettings
from swift.middleware.proxy_logging import ProxyLogging, ProxyLoggingSettings, access_log_conf
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry

SAMPLE = (
    "127.0.0.1 127.0.0.1 21/Nov/2026/02/15/22 GET /auth/v1.0 HTTP/1.0 200 - - - - - - "
    "txef8a-006b00feba - 0.0024 - - 1795227322.977623224 1795227322.979996443 - test:tester"
)


class Lines:
    """An access log in memory."""

    is_wanted = True

    def __init__(self):
        self.lines = []

    def write(self, line):
        self.lines.append(line)


class Packets:
    """A statsd in memory."""

    enabled = labels_enabled = True

    def __init__(self):
        self.names = []
        self.labelled = []

    def timing(self, name, seconds):
        self.names.append(name)

    def increment(self, name, amount=1):
        self.names.append(f"{name}={amount}")

    def timing_labelled(self, name, labels, seconds):
        self.labelled.append((name, labels))

    def increment_labelled(self, name, labels, amount=1):
        self.labelled.append((f"{name}={amount}", labels))


class Bench:
    def __init__(self, answer, **options):
        self.log = Lines()
        telemetry = Telemetry(silent_log())
        telemetry.statsd = Packets()
        self.statsd = telemetry.statsd
        app = type("App", (), {"handle": staticmethod(answer)})()
        self.filter = ProxyLogging(app, ProxyLoggingSettings.parse(options), self.log, telemetry)
        self.metrics = telemetry.metrics

    def ask(self, method="GET", path="/v1/a/c/o", headers=None, *, sent=0, complete=True, **more):
        request = Request(method, path, headers or {}, remote_addr="127.0.0.1", **more)
        response = self.filter.handle(request)
        response.report_end(sent, complete)
        return response

    def fields(self):
        return self.log.lines[-1].split(" ")


def test_a_line_has_the_shape_of_the_peers_sample():
    def answer(request):
        request.env["swift.access_logging"] = {"user_id": "test:tester"}
        return Response(200)

    bench = Bench(answer)
    request = Request(
        "GET", "/auth/v1.0", env={"swift.trans_id": "txef8a-006b00feba"}, remote_addr="127.0.0.1"
    )
    request.http_minor = 0
    bench.filter.handle(request).report_end(0, True)
    shape = re.sub(r"(?<=[ /])\d+(\.\d+)?(?=[ /]|$)", "0", SAMPLE)
    ours = re.sub(r"(?<=[ /])\d+(\.\d+)?(?=[ /]|$)", "0", bench.log.lines[0])
    assert re.sub(r"/[A-Z][a-z]{2}/", "/Mon/", ours) == re.sub(r"/[A-Z][a-z]{2}/", "/Mon/", shape)


def test_values_are_quoted_so_that_fields_stay_fields():
    bench = Bench(lambda request: Response(200, {"x-backend-storage-policy-index": "1"}))
    headers = {
        "referer": "http://r/ x",
        "user-agent": "a b\nc",
        "etag": '"e"',
        "x-auth-token": "AUTH_tk" + "0" * 32,
    }
    bench.ask("PUT", "/v1/a/c/o", headers, query="x=a b&y=%20", sent=10)
    fields = bench.fields()
    assert len(fields) == 22
    assert fields[4] == "/v1/a/c/o%3Fx%3Da%20b%26y%3D%2520"
    assert fields[7:10] == ["http://r/%20x", "a%20b%0Ac", "AUTH_tk000000000..."]
    assert fields[11:13] == ["10", "%22e%22"]
    assert fields[20] == "1"


@pytest.mark.parametrize(
    ("headers", "client"),
    [
        ({}, "127.0.0.1"),
        ({"x-forwarded-for": "9.9.9.9, 8.8.8.8"}, "9.9.9.9"),
        ({"x-cluster-client-ip": "7.7.7.7", "x-forwarded-for": "9.9.9.9"}, "7.7.7.7"),
    ],
)
def test_the_client_is_who_proxies_in_front_say(headers, client):
    bench = Bench(lambda request: Response(200))
    bench.ask(headers=headers)
    assert bench.fields()[:2] == [client, "127.0.0.1"]


def test_nothing_is_logged_before_the_body_has_ended():
    bench = Bench(lambda request: Response(200))
    response = bench.filter.handle(Request("GET", "/v1/a"))
    assert bench.log.lines == []
    response.report_end(3, True)
    assert len(bench.log.lines) == 1


def test_no_line_is_made_for_a_log_that_wants_none():
    bench = Bench(lambda request: Response(200))
    bench.log.is_wanted = False
    bench.ask()
    assert bench.log.lines == []


def test_a_client_that_vanishes_is_a_499_and_an_exception_a_500():
    bench = Bench(lambda request: Response(200))
    bench.ask(complete=False)
    assert bench.fields()[6] == "499"

    def fail(_request):
        raise RuntimeError

    bench = Bench(fail)
    with pytest.raises(RuntimeError):
        bench.ask()
    assert bench.fields()[6] == "500"


@pytest.mark.parametrize(
    ("path", "query", "logged"),
    [
        ("/v1/a/c/o", "", "/v1/a/c/o"),
        ("/v1/a%2Fc/%C3%BC%20x", "", "/v1/a/c/%25C3%25BC%2520x"),
        ("/v1/%ff", "", "/v1/%25FF"),
        ("/v1/a'b\"c,d:e~{}", "", "/v1/a%2527b%2522c%252Cd%253Ae~%257B%257D"),
        ("/v1/a", "q='a',%2F{}:", "/v1/a%3Fq%3D%27a%27%2C%252F{}:"),
    ],
)
def test_paths_are_quoted_twice_as_the_peer_does(path, query, logged):
    bench = Bench(lambda request: Response(200))
    bench.ask("GET", path, query=query)
    assert bench.fields()[4] == logged


def test_the_policy_of_the_container_is_named_when_the_answer_does_not():
    def denied(request):
        request.env[LOGGED_POLICY] = 3
        return Response(401)

    bench = Bench(denied)
    bench.ask()
    assert bench.fields()[20] == "3"


def test_access_lines_have_options_of_their_own_and_stay_at_the_syslog_socket():
    conf = {
        "log_address": "/s1",
        "log_facility": "LOG_LOCAL2",
        "log_name": "proxy",
        "access_log_headers": "yes",
    }
    assert "log_address" not in access_log_conf(conf)
    assert access_log_conf(conf)["log_facility"] == "LOG_LOCAL2"
    own = {"access_log_address": "/s2", "access_log_facility": "LOG_LOCAL3", "access_log_name": "acc"}
    found = access_log_conf({**conf, **own})
    assert (found["log_address"], found["log_facility"], found["log_name"]) == ("/s2", "LOG_LOCAL3", "acc")
    assert "log_headers" not in found


def test_a_sub_request_comes_from_nobody():
    bench = Bench(lambda request: Response(200))
    parent = Request("GET", "/v1/a/c/o", {"user-agent": "me"}, remote_addr="127.0.0.1")
    bench.filter.handle(make_subrequest(parent, "GET", "/v1/a/c/s", source="X")).report_end(5, True)
    fields = bench.fields()
    assert fields[:2] == ["-", "-"]
    assert (fields[8], fields[11], fields[16]) == ("me", "5", "X")


def test_a_refusal_by_a_filter_is_logged_as_what_it_is():
    def fail(_request):
        raise HTTPError(400, "Invalid Accept header")

    bench = Bench(fail)
    assert bench.ask().status == 400
    assert bench.fields()[6] == "400"


def test_a_request_is_logged_once_and_sub_requests_with_their_source():
    bench = Bench(lambda request: Response(200))
    env = {"swift.proxy_access_log_made": True}
    bench.ask(env=env)
    assert bench.log.lines == []
    bench.ask(env={"swift.source": "DLO", "swift.log_info": ["one", "two"]})
    assert bench.fields()[16:18] == ["DLO", "one%2Ctwo"]
    assert "DLO.GET.200.timing" in bench.statsd.names


def test_statsd_names_and_amounts():
    bench = Bench(lambda request: Response(200, {"x-backend-storage-policy-index": "1"}))
    bench.ask("GET", sent=7)
    bench.ask("BREW", "/v1/a/c")
    bench.ask("HEAD", "/v1/a")
    bench.ask("GET", "/info")
    expected = {
        "object.GET.200.timing",
        "object.GET.200.first-byte.timing",
        "object.GET.200.xfer=7",
        "object.policy.1.GET.200.timing",
        "container.BAD_METHOD.200.timing",
        "account.HEAD.200.timing",
        "UNKNOWN.GET.200.timing",
    }
    assert expected <= set(bench.statsd.names)
    assert "account.HEAD.200.first-byte.timing" not in bench.statsd.names


def test_headers_are_logged_when_asked_for_and_secrets_veiled():
    bench = Bench(lambda request: Response(200), access_log_headers_only="x-a, x-auth-token")
    bench.ask(headers={"x-a": "1", "x-b": "2", "x-auth-token": "secret" * 10})
    assert bench.fields()[14] == "X-A:%201%0AX-Auth-Token:%20secretsecretsecr..."


# --- gatekeeper ---------------------------------------------------------------------------------------


def gate(headers, answer=None, **options):
    seen = []
    app = type(
        "App", (), {"handle": staticmethod(lambda r: seen.append(r) or Response(200, dict(answer or {})))}
    )()
    response = Gatekeeper(app, GatekeeperSettings.parse(options)).handle(
        Request("GET", "/v1/a", dict(headers))
    )
    return seen[0].headers, response.headers


INTERNAL = {
    "x-account-sysmeta-a": "1",
    "x-container-sysmeta-a": "1",
    "x-object-sysmeta-a": "1",
    "x-object-transient-sysmeta-a": "1",
    "x-backend-anything": "1",
    "x-container-host": "1",
    "x-delete-at-container": "1",
}
FINE = {"x-object-meta-a": "1", "x-delete-at": "1", "x-container-meta-host": "1"}


def test_internal_headers_pass_in_neither_direction():
    inside, outside = gate({**INTERNAL, **FINE}, {**INTERNAL, **FINE})
    assert inside == FINE
    assert outside == FINE


def test_a_clients_timestamp_is_moved_aside():
    inside, _ = gate({"x-timestamp": "5"})
    assert inside == {"x-backend-inbound-x-timestamp": "5"}
    inside, _ = gate({"x-timestamp": "5"}, shunt_inbound_x_timestamp="false")
    assert inside == {"x-timestamp": "5"}


def test_reserved_names_are_allowed_only_by_option():
    assert gate({"x-allow-reserved-names": "true"})[0] == {"x-allow-reserved-names": "true"}
    inside, _ = gate({"x-allow-reserved-names": "true"}, allow_reserved_names_header="true")
    assert inside == {"x-backend-allow-reserved-names": "true"}


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("temp_url_sig=0123456789abcdef0123&x=y", "temp_url_sig%3D0123456789abcdef...%26x%3Dy"),
        ("%74emp_url_sig=0123456789abcdef0123", "%2574emp_url_sig%3D0123456789abcdef..."),
        ("Signature=0123456789abcdefSECRET", "Signature%3D0123456789abcdef..."),
        ("x=1?&temp_url_sig=0123456789abcdefSECRET", "x%3D1%3F%26temp_url_sig%3D0123456789abcdef..."),
        ("temp_url_expires=0123456789abcdefx", "temp_url_expires%3D0123456789abcdefx"),
    ],
)
def test_signatures_are_secrets_in_paths_and_referers(query, shown):
    bench = Bench(lambda request: Response(200))
    bench.ask(query=query, headers={"referer": f"http://h/?{query}"})
    assert bench.fields()[4] == f"/v1/a/c/o%3F{shown}"
    assert bench.fields()[7] == f"http://h/%3F{shown}"
    assert "SECRET" not in bench.log.lines[-1]


#: A template with its line as OpenStack Swift wrote it for the request of ``test_a_template_…``.
TEMPLATES = {
    "{client_ip}|{remote_addr}|{method}|{path}|{protocol}|{status_int}|{wire_status_int}": (
        "1.2.3.4|127.0.0.1|GET|/v1/AUTH_test/c%2520o/o/x%3Fa%3Db%26temp_url_sig%3D0123456789012345...|"
        "HTTP/1.1|401|401"
    ),
    "{referer}|{user_agent}|{auth_token}|{bytes_recvd}|{bytes_sent}|{client_etag}|{source}|{log_info}": (
        "-|me/1%202|AUTH_ftkgAAAAABr...|-|35|abc|-|-"
    ),
    "{domain}|{account}|{container}|{object}|{policy_index}|{access_user_id}": (
        "c.example.com|AUTH_test|c%2520o|o/x|-|-"
    ),
    "{user_agent.anonymized}|{account.anonymized}|{container.anonymized}|{object.anonymized}": (
        "{SSHA1}9d8e9c4805546600026ba29a5fad4c3743145233|{SSHA1}b29ecff6905fe44c51a21a09121152de14b428f8|"
        "{SSHA1}015ed7b5a91ed97fada00be7a37854314e154ef8|{SSHA1}73b2afa416254333e1989702b726e6633a0a25ac"
    ),
    "{{{method}}} 100%": "{GET} 100%",
}


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_gives_the_line_that_the_peer_writes(template):
    bench = Bench(
        lambda request: Response(401),
        log_msg_template=template,
        log_anonymization_method="sha1",
        log_anonymization_salt="salty",
    )
    headers = {
        "x-forwarded-for": "1.2.3.4, 5.6.7.8",
        "etag": "abc",
        "x-auth-token": "AUTH_ftkgAAAAABrB1pGOXv7z",
        "user-agent": "me/1 2",
        "host": "c.example.com:80",
    }
    query = "a=b&temp_url_sig=0123456789012345678901"
    bench.ask("GET", "/v1/AUTH_test/c%20o/o/x", headers, sent=35, query=query)
    assert bench.log.lines == [TEMPLATES[template]]


def test_a_template_knows_when_the_client_went_away():
    bench = Bench(lambda request: Response(200), log_msg_template="{status_int} {wire_status_int} {ttfb:.1f}")
    bench.ask(complete=False)
    assert bench.log.lines == ["499 200 0.0"]


def test_a_line_without_the_transaction_gets_it_at_its_end():
    bench = Bench(lambda request: Response(200), log_msg_template="{method}")
    bench.ask(env={"swift.trans_id": "tx1"})
    assert bench.log.lines == ["GET (txn: tx1)"]


def test_labels_say_what_a_request_was_about():
    bench = Bench(lambda request: Response(200, {"x-backend-storage-policy-index": "1"}))
    bench.ask("PUT", "/v1/a/c%20o/o", sent=7)
    labels = {
        "account": "a",
        "api": "swift",
        "container": "c%20o",
        "method": "PUT",
        "policy": "1",
        "resource": "object",
        "status": "200",
    }
    assert bench.statsd.labelled == [
        ("swift_proxy_server_request_timing", labels),
        ("swift_proxy_server_request_body_bytes=0", labels),
        ("swift_proxy_server_response_body_bytes=7", labels),
    ]


def test_labels_of_what_is_no_entity_are_empty_and_of_an_account_few():
    bench = Bench(lambda request: Response(200, {"x-backend-storage-policy-index": "1"}))
    bench.ask("GET", "/auth/v1.0")
    bench.ask("FOO", "/v1/a")
    none, account = bench.statsd.labelled[0], bench.statsd.labelled[-1]
    assert none == (
        "swift_proxy_server_request_ttfb",
        {"account": "", "api": "swift", "method": "GET", "resource": "", "status": "200"},
    )
    assert account[1] == {
        "account": "a", "api": "swift", "method": "BAD_METHOD", "resource": "account", "status": "200"
    }  # fmt: skip


def test_the_metric_of_a_request_has_the_api_that_the_client_used():
    def answer(request):
        if request.raw_path.startswith("/bucket"):
            request.env[S3_CALL] = {}
        return Response(200)

    bench = Bench(answer)
    bench.ask()
    bench.ask(path="/bucket/key")
    page = bench.metrics.render()
    for labels in (
        'api="swift",method="GET",status="200",type="object"',
        'api="S3",method="GET",status="200"',
    ):
        assert f"swift_proxy_request_seconds_count{{{labels}" in page

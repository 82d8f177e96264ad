"""Lines of the audit log: which requests have one, and what it says."""

import json

import pytest

from swift.base.errors import ConfigError
from swift.gateway.subrequest import ReportedChange, report_change
from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.middleware.audit_log.filter import FILTER, AuditLog
from test.support.checks import every
from test.support.s3_fixtures import S3Fixture

START_S = 1795228430.25


class Bench:
    """The filter before an application."""

    def __init__(self, answer=lambda request: Response(201), **options):
        self.texts = []
        app = type("App", (), {"handle": staticmethod(answer)})()
        self.filter = AuditLog(app, self.texts.append, now=lambda: START_S, **options)

    def ask(self, method="PUT", path="/v1/AUTH_a/c/o", headers=None, *, sent=0, complete=True, **more):
        request = Request(method, path, headers or {}, remote_addr="10.0.0.9", **more)
        self.filter.handle(request).report_end(sent, complete)

    @property
    def lines(self):
        return [json.loads(text) for text in self.texts]


def test_a_change_is_logged_with_who_did_what_from_where():
    def answer(request):
        request.env[environkeys.ACCESS_LOGGING] = {"user_id": "test:tester"}
        request.body.read()
        return Response(201)

    bench = Bench(answer)
    bench.ask(
        path="/v1/AUTH_a/c/%C3%A9",
        headers={"x-forwarded-for": "192.0.2.1, 10.0.0.9", "x-auth-token": "AUTH_tksecret"},
        body=b"12345",
        sent=7,
        env={environkeys.TRANS_ID: "tx1"},
    )
    assert bench.lines == [
        {
            "time": "2026-11-21T02:33:50.250000Z",
            "txid": "tx1",
            "client": "192.0.2.1",
            "peer": "10.0.0.9",
            "user": "test:tester",
            "method": "PUT",
            "account": "AUTH_a",
            "container": "c",
            "object": "é",
            "status": 201,
            "bytes_in": 5,
            "bytes_out": 7,
        }
    ]


@every("method", ["PUT", "POST", "DELETE", "COPY", "ODD"])
@every("status", [200, 404, 409, 503])
def test_all_changes_are_logged_whatever_became_of_them(method, status):
    bench = Bench(lambda request: Response(status))
    bench.ask(method)
    assert [(line["method"], line["status"]) for line in bench.lines] == [(method, status)]


@every("method", ["GET", "HEAD", "OPTIONS"])
@every("status", [200, 401, 403, 404, 503])
def test_reads_are_logged_if_they_are_refused_or_on_request(method, status):
    quiet = Bench(lambda request: Response(status))
    quiet.ask(method)
    assert len(quiet.lines) == (status in (401, 403))
    full = Bench(lambda request: Response(status), log_reads=True)
    full.ask(method)
    assert len(full.lines) == 1


def test_a_refused_read_whose_client_goes_away_is_logged():
    bench = Bench(lambda request: Response(403))
    bench.ask("GET", complete=False)
    assert [line["status"] for line in bench.lines] == [499]


def test_a_refusal_has_its_reason():
    bench = Bench(lambda request: Response(401))
    bench.ask()

    def refuse(request):
        request.env[environkeys.LOG_INFO] = ["x-delete-at:1", "s3:err:AccessDenied.invalid_date"]
        raise HTTPError(403)

    bench.filter.forward = Bench(refuse).filter.forward
    bench.ask()
    assert [line["reason"] for line in bench.lines] == ["Unauthorized", "AccessDenied.invalid_date"]


def test_an_s3_request_is_logged_with_operation_key_and_account():
    def answer(request):
        request.env[environkeys.S3_CALL] = {
            "bucket": "b",
            "key": "k",
            "operation": "PutObject",
            "access_key": "AKID",
            "account": "AUTH_a",
            "user": "test:tester",
        }
        return Response(200)

    bench = Bench(answer)
    bench.ask(path="/b/k", query="X-Amz-Signature=secret&uploadId=u1&partNumber=2")
    (line,) = bench.lines
    assert {name: line[name] for name in ("account", "container", "object", "user", "access_key")} == {
        "account": "AUTH_a",
        "container": "b",
        "object": "k",
        "user": "test:tester",
        "access_key": "AKID",
    }
    assert (line["s3_operation"], line["query"]) == ("PutObject", "uploadId=u1&partNumber=2")
    assert "path" not in line


def test_the_line_of_an_s3_request_has_what_the_filters_found_out():
    texts, front = [], S3Fixture()
    front.filter = AuditLog(front.filter, texts.append)
    front("PUT", "/photos/key", body=b"x").report_end(0, True)
    front("DELETE", "/photos/key", secret="wrong").report_end(0, True)
    made, refused = map(json.loads, texts)
    assert {name: made[name] for name in ("account", "container", "object", "user", "s3_operation")} == {
        "account": "AUTH_test",
        "container": "photos",
        "object": "key",
        "user": "test:tester",
        "s3_operation": "PutObject",
    }
    assert (refused["access_key"], refused["status"]) == (made["access_key"], 403)
    assert refused["reason"].startswith("SignatureDoesNotMatch")
    assert refused["s3_operation"] == "DeleteObject" and "user" not in refused


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("multipart-manifest=delete", "multipart-manifest=delete"),
        ("bulk-delete", "bulk-delete"),
        ("extract-archive=tar.gz&format=json", "extract-archive=tar.gz"),
        ("temp_url_sig=secret&temp_url_expires=1", None),
        ("version-id=%C3%A9", "version-id=é"),
    ],
)
def test_operations_of_the_query_are_shown_and_nothing_else(query, shown):
    bench = Bench()
    bench.ask("POST", query=query)
    assert bench.lines[0].get("query") == shown


@pytest.mark.parametrize(
    ("method", "headers", "shown"),
    [
        ("COPY", {"destination": "/d/%C3%A9"}, "/d/é"),
        ("COPY", {"destination": "d/o", "destination-account": "AUTH_b"}, "AUTH_b/d/o"),
        ("PUT", {"x-copy-from": "/s/o"}, "/s/o"),
        ("PUT", {}, None),
    ],
)
def test_a_copy_names_the_other_object(method, headers, shown):
    bench = Bench()
    bench.ask(method, headers=headers)
    assert bench.lines[0].get("copy") == shown


def test_no_secret_of_a_request_is_in_its_line():
    secrets = {
        "x-auth-token": "s1-secret",
        "x-service-token": "s2-secret",
        "authorization": "AWS4 s3-secret",
        "x-auth-key": "s4-secret",
        "x-account-meta-temp-url-key": "s5-secret",
        "cookie": "s6-secret",
        "referer": "http://h/?temp_url_sig=s7-secret",
    }
    query = "signature=s8-secret&temp_url_sig=s9-secret&X-Amz-Credential=k&X-Amz-Signature=s10-secret"
    bench = Bench(log_reads=True)
    for path in ("/v1/AUTH_a", "/auth/v1.0", "/b/k"):
        bench.ask("POST", path, secrets, query=query)
    assert len(bench.texts) == 3 and "secret" not in "".join(bench.texts)


def test_a_client_cannot_forge_a_line():
    bench = Bench()
    bench.ask(path="/v1/AUTH_a/c/o%0A%7B%22user%22:%22x%22%7D", headers={"x-forwarded-for": '"\n{}'})
    (text,) = bench.texts
    assert "\n" not in text and "user" not in json.loads(text)


def test_a_path_that_names_nothing_is_logged_as_it_is():
    bench = Bench(lambda request: Response(401))
    bench.ask("GET", "/auth/v1.0")
    assert bench.lines[0]["path"] == "/auth/v1.0"
    bench.ask("GET", "/" + "x" * 9000)
    assert len(bench.lines[1]["path"]) == 1024


def test_the_entity_is_that_of_the_client_unless_a_filter_finds_it():
    def move(request):
        request.raw_path = "/v1/AUTH_b/d/p"
        return Response(201)

    bench = Bench(move)
    bench.ask(path="/v1/AUTH_a/c/o")
    bench.ask(path="/d/p")
    assert [line["account"] for line in bench.lines] == ["AUTH_a", "AUTH_b"]


def test_users_of_other_filters_are_shown():
    for value, shown in ((".wsgi.tempurl", ".wsgi.tempurl"), ("u,g", "u"), (("id", "name"), None)):
        bench = Bench()
        bench.ask(env={environkeys.REMOTE_USER: value})
        assert bench.lines[0].get("user") == shown


def test_a_failure_of_the_server_is_logged():
    def fail(request):
        raise RuntimeError("broken")

    bench = Bench(fail)
    with pytest.raises(RuntimeError):
        bench.ask()
    assert [line["status"] for line in bench.lines] == [500]


def test_a_request_has_one_line_where_the_filter_stands_twice():
    inner = Bench()
    outer = Bench(inner.filter.handle)
    outer.ask()
    assert (len(outer.texts), len(inner.texts)) == (1, 0)


def test_syslog_needs_a_level_that_has_the_lines(tmp_path):
    (tmp_path / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = s\n")
    conf = {"swift_dir": str(tmp_path), "log_to_console": "true", "syslog": "true", "log_level": "WARNING"}
    with pytest.raises(ConfigError, match="log_level"):
        FILTER.build(lambda environ, start: [], conf)


def test_lines_of_a_configured_filter_are_in_its_file_when_the_worker_ends(tmp_path):
    from swift.compose import PROCESS_KEY, Process

    process, path = Process(), tmp_path / "audit.log"
    conf = {"log_to_console": "true", "path": str(path), PROCESS_KEY: process}
    app = type("App", (), {"handle": staticmethod(lambda request: Response(204))})()
    FILTER.build(app, conf).handle(Request("DELETE", "/v1/AUTH_a/c")).report_end(0, True)
    for finish in process.at_exit:
        finish()
    assert [json.loads(line)["container"] for line in path.read_text().splitlines()] == ["c"]


def deletions(*paths, status=204, env=None, **more):
    """An application that deletes these for one request."""

    def answer(request):
        for path in paths:
            report_change(request, ReportedChange("DELETE", path, status, "bulk-delete", env or {}, **more))
        return Response(200)

    return answer


def test_a_change_among_others_is_a_line_with_the_origin_of_its_request():
    user = {environkeys.ACCESS_LOGGING: {"user_id": "test:tester"}}
    bench = Bench(deletions("/v1/AUTH_a/c/%C3%A9", status=403, env=user, bytes_in=7))
    bench.ask("POST", "/v1/AUTH_a", {"x-forwarded-for": "192.0.2.1"}, env={environkeys.TRANS_ID: "tx1"})
    change, request = bench.lines
    assert change == {
        "time": "2026-11-21T02:33:50.250000Z",
        "txid": "tx1",
        "client": "192.0.2.1",
        "peer": "10.0.0.9",
        "user": "test:tester",
        "method": "DELETE",
        "account": "AUTH_a",
        "container": "c",
        "object": "é",
        "part_of": "bulk-delete",
        "status": 403,
        "bytes_in": 7,
        "reason": "Forbidden",
    }
    assert (request["changes"], request["user"], request["method"]) == (1, "test:tester", "POST")


def test_a_failed_change_has_the_reason_that_is_known():
    bench = Bench(deletions("/v1/AUTH_a/c/o", status=412, reason="PreconditionFailed"))
    bench.ask("POST")
    assert bench.lines[0]["reason"] == "PreconditionFailed"


def test_a_request_with_too_many_changes_has_lines_for_the_first_and_the_number_of_all():
    bench = Bench(deletions(*(f"/v1/AUTH_a/c/{number}" for number in range(5))), changes_max=2)
    bench.ask("POST")
    assert [line.get("object") for line in bench.lines] == ["0", "1", "o"]
    assert bench.lines[-1]["changes"] == 5


def test_a_change_whose_name_is_not_utf8_has_its_path():
    bench = Bench(deletions("/v1/AUTH_a/c/%FF" + "x" * 2000))
    bench.ask("POST")
    assert len(bench.lines[0]["path"]) == 1024 and "object" not in bench.lines[0]


def test_a_change_after_the_client_has_gone_is_logged():
    requests = []

    def answer(request):
        requests.append(request)
        return Response(200)

    bench = Bench(answer)
    bench.ask("POST", complete=False)
    deletions("/v1/AUTH_a/c/late")(requests[0])
    assert [line["object"] for line in bench.lines] == ["o", "late"]


def test_requests_that_ended_are_not_kept_by_their_environment():
    bench = Bench()
    request = Request("PUT", "/v1/AUTH_a/c/o")
    bench.filter.handle(request).report_end(0, True)
    assert environkeys.AUDIT_CHANGE not in request.env


def test_without_an_audit_log_changes_are_reported_to_no_one():
    assert deletions("/v1/AUTH_a/c/o")(Request("POST", "/v1/AUTH_a")).status == 200

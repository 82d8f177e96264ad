"""A signed form stores its files and does nothing else (middleware.md §4)."""

import time

import pytest

from swift.base.clock import ManualClock
from swift.base.timestamp import Timestamp
from swift.compose import PROCESS_KEY, Process
from swift.http.body import BytesBody
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.formpost.filter import FILTER, FormPost, FormPostSettings
from test.functional.api_cases_signed import ONE, TWO, form_body, form_fields

A = "/v1/AUTH_test"


class App:
    """Keys of an account and a container, and the files that were stored."""

    def __init__(self):
        self.account = {"x-account-meta-temp-url-key": "mykey"}
        self.container = {"x-container-meta-temp-url-key": "ckey"}
        self.status = 201
        self.newest = "0"
        self.files = []
        self.passed = None

    def handle(self, request):
        if request.method == "HEAD" and request.entity.path.obj is not None:
            return Response(200, {"x-backend-timestamp": self.newest})
        if request.env.get("REMOTE_USER") == ".wsgi.pre_authed":
            return Response(204, dict(self.container if request.entity.path.container else self.account))
        if request.method != "PUT":
            self.passed = request
            return Response(299)
        denial = request.env["swift.authorize"](request)
        if denial is not None:
            return denial
        self.files.append((request, request.body.read()))
        return Response(self.status, {"etag": "e"})


class Bench:
    def __init__(self, **options):
        self.app = App()
        self.clock = ManualClock()
        self.filter = FormPost(self.app, FormPostSettings.parse(options), clock=self.clock)

    def post(self, path=A + "/c/pre", files=(ONE,), *, raw=None, headers=None, **terms):
        body = form_body(form_fields(path, **terms), files)
        sent = {"content-type": "multipart/form-data; boundary=B", **(headers or {})}
        return self.filter.handle(Request("POST", raw or path, sent, BytesBody(body)))


@pytest.fixture
def bench():
    return Bench()


def text(answer):
    return answer.status, answer.read_body().decode()


@pytest.mark.parametrize(("off_s", "status"), [(-1, 201), (30, 503)])
def test_a_file_that_meets_a_newer_object_is_stored_only_if_it_was_overtaken(bench, off_s, status):
    bench.app.status = 202
    bench.app.newest = Timestamp(time.time() + off_s).internal
    assert bench.post().status == status


def test_every_file_is_stored_below_the_forms_path(bench):
    assert text(bench.post(files=(ONE, TWO))) == (201, "201 Created")
    (first, hello), (second, hello2) = bench.app.files
    assert (first.raw_path, hello) == (A + "/c/prea.txt", b"hello")
    assert (second.raw_path, hello2) == (A + "/c/preb.txt", b"hello2")
    assert first.headers["content-type"] == "text/x"
    assert "content-type" not in second.headers
    assert first.env["swift.source"] == "FP"
    assert first.query == ""


@pytest.mark.parametrize("path", ["/c", "/c/"])
def test_files_of_a_container_are_named_as_they_are(bench, path):
    bench.post(A + path)
    assert bench.app.files[0][0].raw_path == A + "/c/a.txt"


def test_a_file_goes_where_its_bytes_say_and_nowhere_else(bench):
    for name in ("../../x", "%2e%2e/x", "a?b=c", "\xc3\xa9"):
        bench.app.files.clear()
        assert bench.post(files=((f'name="f"; filename="{name}"', b"", b"x"),)).status == 201
        path = bench.app.files[0][0].entity.path
        assert path == ("AUTH_test", "c", "pre" + name.encode("latin-1").decode())


def test_a_file_has_no_more_rights_than_the_key_that_signed_it(bench):
    bench.post(key="ckey")
    ours = bench.app.files[0][0]
    allowed = ours.env["swift.authorize"]
    assert allowed(Request("PUT", A + "/c/preother")) is None
    assert allowed(Request("PUT", A + "/c/other")).status == 401
    assert allowed(Request("PUT", A + "/d/other")).status == 401
    assert allowed(Request("PUT", "/v1/AUTH_else/c/other")).status == 401
    assert ours.env["swift_owner"] is False


def test_what_the_browser_sends_besides_is_not_stored(bench):
    bench.post(
        headers={
            "x-object-meta-a": "1",
            "x-object-manifest": "a/b",
            "x-copy-from": "a/b",
            "x-auth-token": "t",
        }
    )
    assert bench.app.files[0][0].headers == {
        "content-type": "text/x",
        "transfer-encoding": "chunked",
        "user-agent": "FormPost",
    }


UNSIGNED = (401, "FormPost: Invalid Signature")


def bad(reason):
    return 400, f"FormPost: {reason}"


@pytest.mark.parametrize(
    ("terms", "answer"),
    [
        ({"key": "other"}, UNSIGNED),
        ({"key": ""}, UNSIGNED),
        ({"digest": "md5"}, UNSIGNED),
        ({"drop": ("signature",)}, UNSIGNED),
        ({"drop": ("max_file_size",)}, UNSIGNED),
        ({"fields": [("redirect", "http://evil/")]}, UNSIGNED),
        ({"fields": [("max_file_size", "101")]}, UNSIGNED),
        ({"fields": [("MAX_FILE_COUNT", "3")]}, UNSIGNED),
        ({"path": A + "/c/other", "raw": A + "/c/pre"}, UNSIGNED),
        ({"path": A}, UNSIGNED),
        ({"path": "/v2/AUTH_test/c/pre"}, UNSIGNED),
        ({"path": A + "/c/\xff", "raw": A + "/c/%ff"}, UNSIGNED),
        ({"expires": "1"}, (401, "FormPost: Form Expired")),
        ({"expires": "x"}, bad("expired not an integer")),
        ({"expires": "9" * 5000}, bad("expired not an integer")),
        ({"max_file_size": "x"}, bad("max_file_size not an integer")),
        ({"max_file_size": "4"}, bad("max_file_size exceeded")),
        ({"max_file_count": "x"}, bad("max_file_count not an integer")),
        ({"fields": [("x_delete_at", "")]}, bad("x_delete_at not an integer: Unix timestamp required.")),
        ({"fields": [("x_delete_at", "x")]}, bad("x_delete_at not an integer: Unix timestamp required.")),
        (
            {"fields": [("x_delete_after", "x")]},
            bad("x_delete_after not an integer: Number of seconds required."),
        ),
        ({"redirect": "http://x/\r\nSet-Cookie: a=b"}, bad("redirect is not a URL")),
        *(
            ({"fields": [(name, value)]}, bad(f"{name} has characters that no header has"))
            for name in ("content-type", "content-encoding")
            for value in ("a/b\r\nX-Evil: 1", "a/b\nX-Evil: 1", "a\0b", "a\x01b", "a\x7fb")
        ),
        ({"fields": [(f"f{n}", "") for n in range(1001)]}, bad("too many fields")),
    ],
)
def test_a_form_that_is_not_good_stores_nothing(bench, terms, answer):
    assert text(bench.post(**terms)) == answer
    assert bench.app.files == []


def test_no_more_files_than_were_signed(bench):
    answer = bench.post(files=(ONE, TWO), max_file_count="1")
    assert text(answer) == (400, "400 Bad Request\r\nFormPost: Max File Count Exceeded")
    assert [data for _, data in bench.app.files] == [b"hello"]


def test_fields_after_the_first_file_say_nothing(bench):
    late = ('name="x_delete_at"', b"", b"5")
    assert bench.post(files=(ONE, late, TWO)).status == 201
    assert all("x-delete-at" not in request.headers for request, _ in bench.app.files)


def test_a_failing_put_ends_it_and_its_status_is_told(bench):
    bench.app.status = 413
    assert text(bench.post(files=(ONE, TWO))) == (413, "413 Request Entity Too Large")
    assert len(bench.app.files) == 1


@pytest.mark.parametrize(
    ("redirect", "location"),
    [
        ("http://x/y", "http://x/y?status=201&message="),
        ("http://x/y?z=1", "http://x/y?z=1&status=201&message="),
        ("http://x/\"><script>'", "http://x/\"><script>'?status=201&message="),
    ],
)
def test_the_browser_is_sent_where_the_signer_wants(bench, redirect, location):
    answer = bench.post(redirect=redirect)
    assert (answer.status, answer.headers["location"]) == (303, location)
    assert b"<script>" not in answer.body


def test_a_digest_that_was_taken_away_signs_nothing():
    assert Bench(allowed_digests="sha256").post(digest="sha1").status == 401
    assert Bench(allowed_digests="sha256").post(digest="sha256").status == 201


@pytest.mark.parametrize("kind", ["", "multipart/form-data; boundary=", "text/plain; boundary=B"])
def test_other_posts_go_on(bench, kind):
    assert bench.filter.handle(Request("POST", A + "/c", {"content-type": kind})).status == 299
    assert bench.app.passed.body.received == 0


def test_a_boundary_of_any_length_is_refused(bench):
    headers = {"content-type": "multipart/form-data; boundary=" + "B" * 5000}
    answer = bench.filter.handle(Request("POST", A + "/c", headers, BytesBody(b"--B\r\n")))
    assert text(answer) == (400, "FormPost: invalid starting boundary")


def test_info_tells_what_is_allowed():
    process = Process()
    FILTER.build(App(), {PROCESS_KEY: process, "allowed_digests": "sha512 sha256"})
    assert process.info.public()["formpost"] == {"allowed_digests": ["sha256", "sha512"]}


@pytest.mark.parametrize("path", ["/bucket", "/bucket/", "/"])
def test_a_form_for_no_account_is_somebody_elses(bench, path):
    """A browser's form for a bucket of S3 has fields of its own."""
    assert bench.post(A + "/c/pre", raw=path).status == 299
    assert bench.app.passed.raw_path == path

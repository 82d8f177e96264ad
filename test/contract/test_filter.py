"""Contract of filters (``Filter`` in swift/middleware/filter.py)."""

import base64
import io
from importlib import import_module

import pytest

from swift.config.declared import filters
from swift.gateway.subrequest import PRE_AUTHED_USER
from swift.http import environkeys
from swift.http.body import BodyTimeout, InMemoryBody
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.identity.clusterkeys import create_key_file
from swift.middleware.filter import Filter
from test.support.checks import every

#: Options that filters need.
OPTIONS = {
    "audit_log": {"syslog": "true"},
    "backend_ratelimit": {"backend_ratelimit_conf_path": "/nowhere/backend-ratelimit.conf"},
    "cname_lookup": {"storage_domain": "h"},
    "keymaster": {"encryption_root_secret": base64.b64encode(b"x" * 32).decode()},
    "vault_keymaster": {
        "vault_url": "http://127.0.0.1:9",
        "transit_key": "swift",
        "token_file": "/nowhere/token",
        "wrapped_root_secret": "vault:v1:AAAA",
    },
    "s3token": {"auth_uri": "http://127.0.0.1:9"},
}
#: Filters that fetch secrets when they are made, and ones that only answer their own paths.
ELSEWHERE = ("kms_keymaster", "kmip_keymaster", "recon", "list_endpoints")
NAMES = [name for name in filters() if name not in ELSEWHERE]


@pytest.fixture(scope="module")
def swift_dir(tmp_path_factory):
    """The configuration of a cluster."""
    folder = tmp_path_factory.mktemp("etc")
    (folder / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = s\n")
    create_key_file(str(folder / "swiftauth.key"))
    return str(folder)


def made(name, app, swift_dir):
    """Create a filter from its declaration."""
    declared = import_module(filters()[name].module).FILTER
    conf = {"swift_dir": swift_dir, "log_to_console": "true", **OPTIONS.get(name, {})}
    return declared.build(app, conf)


PATHS = ["/v1/AUTH_a", "/v1/AUTH_a/c", "/v1/AUTH_a/c/o", "/nothing", "/v1//", "/%FF"]


class App:
    """The rest of the pipeline."""

    def __init__(self, answer):
        self.answer = answer

    def handle(self, request):
        if request.env.get(environkeys.REMOTE_USER) == PRE_AUTHED_USER:
            # A filter looks up what is known of an account or container.
            return Response(204)
        return self.answer(request)


@pytest.fixture(params=NAMES)
def make(request, swift_dir):
    return lambda answer: made(request.param, App(answer), swift_dir)


@every("path", PATHS)
@every("method", ["GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "ODD"])
def test_unrelated_requests_pass_through(make, method, path):
    seen = []

    def answer(request):
        seen.append((request.method, request.raw_path))
        return Response(299, {"x-from": "app", "content-length": "4"}, InMemoryBody(b"body"))

    response = make(answer).handle(Request(method, path, {"host": "h"}))
    assert (response.status, response.headers["x-from"], response.read_body()) == (299, "app", b"body")
    assert seen == [(method, path)]


@every("error", [HTTPError(418, "short"), BodyTimeout("slow")])
def test_an_error_with_a_response_is_a_response_to_the_filter(make, error):
    def answer(_request):
        raise error

    response = make(answer).handle(Request("GET", "/v1/AUTH_a/c/o"))
    assert response.status == (418 if isinstance(error, HTTPError) else 408)


def test_a_rejection_passes_the_response_hooks_of_filters_to_its_left(swift_dir):
    class Refusing(Filter):
        def handle(self, request):
            raise HTTPError(400, "no", {"x-object-sysmeta-secret": "1", "x-shown": "2"})

    pipeline = Refusing(App(None))
    for name in ("tempauth", "gatekeeper", "catch_errors"):
        pipeline = made(name, pipeline, swift_dir)
    response = pipeline.handle(Request("GET", "/v1/AUTH_a"))
    assert (response.status, response.read_body()) == (400, b"no")
    assert "x-object-sysmeta-secret" not in response.headers
    assert response.headers["x-shown"] == "2"
    assert response.headers["x-trans-id"].startswith("tx")


def test_the_end_of_the_body_is_reported_through_it(make):
    ends = []

    def answer(_request):
        response = Response(200, {}, b"body")
        response.on_response_end(lambda sent, complete: ends.append((sent, complete)))
        return response

    make(answer).handle(Request("GET", "/v1/AUTH_a/c/o")).report_end(4, True)
    assert ends == [(4, True)]


def test_it_is_a_wsgi_application_for_other_servers(make):
    def answer(request):
        return Response(201, {"x-got": request.body.read().decode()}, b"made")

    environ = {
        "REQUEST_METHOD": "PUT",
        "PATH_INFO": "/v1/AUTH_a/c/o",
        "QUERY_STRING": "",
        "CONTENT_LENGTH": "4",
        "wsgi.input": io.BytesIO(b"body"),
    }
    heads = []
    chunks = make(answer)(environ, lambda status, headers: heads.append((status, dict(headers))))
    assert b"".join(chunks) == b"made"
    chunks.close()
    assert heads[0][0] == "201 Created"
    assert heads[0][1]["X-Got"] == "body"

"""Where the load goes."""

import http.server
import json
import threading

import pytest

from swift.load.endpoint import EndpointRefused, LoadEndpoint, log_in, request_once, validate_url


@pytest.fixture
def identity():
    """A server that gives what it is told to."""
    said = {"status": 200, "headers": {}, "body": b"", "asked": []}

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            said["asked"].append((self.command, self.path, dict(self.headers), body))
            self.send_response(said["status"])
            for name, value in said["headers"].items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(said["body"])))
            self.end_headers()
            self.wfile.write(said["body"])

        do_GET = do_POST = answer

        def log_message(self, *args):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    said["url"] = f"http://127.0.0.1:{server.server_port}"
    yield said
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("url", "host", "port", "root", "is_tls"),
    [
        ("http://h/v1/AUTH_a/", "h", 80, "/v1/AUTH_a", False),
        ("https://h/v1/AUTH_a", "h", 443, "/v1/AUTH_a", True),
        ("http://[::1]:8080", "::1", 8080, "", False),
    ],
)
def test_a_url_says_where_and_how(url, host, port, root, is_tls):
    found = LoadEndpoint(url)
    assert (found.host, found.port, found.root, found.is_tls) == (host, port, root, is_tls)


def test_a_pair_of_keys_means_s3():
    assert LoadEndpoint("http://h", access_key="a", secret_key="s").is_s3
    assert not LoadEndpoint("http://h", "token").is_s3
    assert LoadEndpoint(**LoadEndpoint("http://h", "token").to_json()) == LoadEndpoint("http://h", "token")


@pytest.mark.parametrize(
    "url", ["", "h:80", "ftp://h", "http://", "http://h:0", "http://h:99999", "http://[::1"]
)
def test_what_is_no_url_is_refused(url):
    with pytest.raises(EndpointRefused, match="not an http or https URL"):
        validate_url(url)


def test_v1_gives_a_storage_url_and_a_token(identity):
    identity["headers"] = {"X-Storage-Url": "http://h/v1/AUTH_a", "X-Auth-Token": "t"}
    assert log_in(f"{identity['url']}/auth/v1.0", "u", "k") == LoadEndpoint("http://h/v1/AUTH_a", "t")
    assert identity["asked"][0][2]["X-Auth-User"] == "u"


@pytest.mark.parametrize("status", [401, 503])
def test_who_is_refused_is_told_in_one_line(identity, status):
    identity["status"] = status
    with pytest.raises(EndpointRefused, match=f"answered {status} to u; are user and key right"):
        log_in(f"{identity['url']}/auth/v1.0", "u", "k")


def test_v3_gives_what_the_catalog_says(identity):
    point = {"interface": "public", "url": "http://h/v1/AUTH_p"}
    catalog = [{"type": "compute", "endpoints": []}, {"type": "object-store", "endpoints": [point]}]
    identity["body"] = json.dumps({"token": {"catalog": catalog}}).encode()
    identity["headers"] = {"X-Subject-Token": "t"}
    assert log_in(f"{identity['url']}/v3", "project:user", "k") == LoadEndpoint("http://h/v1/AUTH_p", "t")
    _method, path, _headers, body = identity["asked"][0]
    assert path == "/v3/auth/tokens"
    assert json.loads(body)["auth"]["scope"]["project"]["name"] == "project"


@pytest.mark.parametrize("body", [b"", b"[]", b'{"token": {"catalog": []}}', b"\xff"])
def test_a_catalog_without_a_store_is_refused(identity, body):
    identity["body"] = body
    with pytest.raises(EndpointRefused, match="no public object-store"):
        log_in(f"{identity['url']}/v3", "p:u", "k")


def test_nobody_there_is_one_line():
    with pytest.raises(EndpointRefused, match="127.0.0.1:9"):
        request_once("http://127.0.0.1:9/", "GET", {})

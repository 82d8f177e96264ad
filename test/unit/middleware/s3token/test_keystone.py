"""What an identity service is asked over HTTP, and what counts as an answer (middleware.md §18)."""

import json
from collections import deque
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from swift.middleware.s3token.keystone import RESPONSE_BYTES_MAX, HTTPKeystone, KeystoneUnavailable
from swift.middleware.s3token.settings import S3TokenSettings

CREDENTIALS = {"access": "key", "token": "t", "signature": "s"}
TOKEN = (201, {}, {"X-Subject-Token": "mine"})


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_args):
        pass

    def do_GET(self):
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append((self.command, self.path, headers, body))
        status, document, headers = self.server.answers.popleft()
        if status is None:
            self.wfile.write(document)
            return
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_POST = do_GET


@contextmanager
def service(*answers, **options):
    """A client of a service that answers so, (status, document, headers) in turn; and what it was asked."""
    with HTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.answers, server.asked = deque(answers), []
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/v3/"
        settings = {"auth_uri": url, "auth_url": url, "username": "swift", "password": "own", **options}
        try:
            yield HTTPKeystone(S3TokenSettings.parse(settings)), server.asked
        finally:
            server.shutdown()
            thread.join()


def test_a_good_signature_has_the_token_of_whoever_signed():
    with service((200, {"token": {"user": {}}}, {})) as (client, asked):
        assert client.validate_signature(CREDENTIALS) == {"token": {"user": {}}}
    [(method, path, headers, body)] = asked
    assert (method, path, json.loads(body)) == ("POST", "/v3/s3tokens", {"credentials": CREDENTIALS})
    assert headers["content-type"] == "application/json"


@pytest.mark.parametrize("status", [300, 400, 401, 403, 404, 429])
def test_a_signature_that_is_not_confirmed_is_nobodys(status):
    with service((status, {}, {})) as (client, _):
        assert client.validate_signature(CREDENTIALS) is None


@pytest.mark.parametrize(
    "answer",
    [
        (500, {}, {}),
        (503, b"away", {}),
        (200, b"", {}),
        (200, b"<html>", {}),
        (200, b"\xff", {}),
        (200, [], {}),
        (200, b'"text"', {}),
        (200, b"[" * 100_000, {}),
        (200, b" " * (RESPONSE_BYTES_MAX + 1), {}),
        (None, b"", {}),
        (None, b"SSH-2.0\r\n", {}),
        (None, b'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"tok', {}),
        (None, b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 200_000 + b"\r\n{}", {}),
    ],
    ids=range(13),
)
def test_what_is_no_answer_says_nothing_about_the_signature(answer):
    with service(answer) as (client, _), pytest.raises(KeystoneUnavailable):
        client.validate_signature(CREDENTIALS)


def test_a_service_that_is_not_there_is_told_without_what_was_sent():
    with service() as (client, _):
        pass
    with pytest.raises(KeystoneUnavailable) as caught:
        client.validate_signature({**CREDENTIALS, "signature": "secret"})
    assert "127.0.0.1" in str(caught.value) and "secret" not in str(caught.value)


SECRET = (200, {"credential": {"secret": "sesame"}}, {})


def test_a_secret_is_asked_for_with_a_token_of_our_own_that_is_used_again():
    with service(TOKEN, SECRET, SECRET) as (client, asked):
        assert [client.get_secret_key("u/1", "k?y") for _ in range(2)] == ["sesame"] * 2
    assert [(method, path) for method, path, *_ in asked] == [
        ("POST", "/v3/auth/tokens"),
        *[("GET", "/v3/users/u%2F1/credentials/OS-EC2/k%3Fy")] * 2,
    ]
    assert asked[1][2]["x-auth-token"] == "mine"
    user = json.loads(asked[0][3])["auth"]["identity"]["password"]["user"]
    assert (user["name"], user["password"]) == ("swift", "own")


def test_a_token_that_was_taken_back_is_asked_for_again_once():
    again = (201, {}, {"X-Subject-Token": "new"})
    with service(TOKEN, (401, {}, {}), again, SECRET) as (client, asked):
        assert client.get_secret_key("u", "k") == "sesame"
        assert asked[-1][2]["x-auth-token"] == "new"
    with service(TOKEN, (401, {}, {}), again, (401, {}, {})) as (client, asked):
        assert client.get_secret_key("u", "k") is None
        assert len(asked) == 4


@pytest.mark.parametrize(
    "document",
    [{}, {"credential": None}, {"credential": {}}, {"credential": {"secret": 5}}, {"credential": []}],
)
def test_a_secret_that_is_none_is_unknown(document):
    with service(TOKEN, (200, document, {})) as (client, _):
        assert client.get_secret_key("u", "k") is None


@pytest.mark.parametrize(
    "answer", [(401, {}, {}), (201, {}, {}), (500, {}, {}), (200, {}, {"X-Subject-Token": "x"})]
)
def test_a_user_of_ours_who_gets_no_token_is_told(answer):
    with (
        service(answer) as (client, asked),
        pytest.raises(KeystoneUnavailable, match="gives our user no token"),
    ):
        client.get_secret_key("u", "k")


def test_a_token_that_cannot_be_sent_is_no_fault():
    folded = b"HTTP/1.1 201 Created\r\nX-Subject-Token: a\r\n b\r\nContent-Length: 0\r\n\r\n"
    with service((None, folded, {})) as (client, _), pytest.raises(KeystoneUnavailable):
        client.get_secret_key("u", "k")

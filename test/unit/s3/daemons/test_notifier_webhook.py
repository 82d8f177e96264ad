"""One POST to a webhook: what it is sent, and what does not count as taken."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import urlsplit

import pytest

from swift.base.errors import ConfigError
from swift.s3.daemons.notifier import NotifierSettings, NotTaken, Webhooks


@pytest.fixture
def hook():
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen.append((self.path, self.headers["Content-Type"], body))
            self.send_response(int(self.path.rpartition("=")[2]))
            self.send_header("Location", "http://127.0.0.1:1/")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args):
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", seen
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_event_is_posted_as_json(hook):
    url, seen = hook
    Webhooks(5.0)(urlsplit(f"{url}/events?status=204"), b"{}")
    assert seen == [("/events?status=204", "application/json", b"{}")]


@pytest.mark.parametrize("status", [301, 307, 400, 500])
def test_other_answers_are_no_success_and_redirects_are_not_followed(hook, status):
    url, seen = hook
    with pytest.raises(NotTaken, match=str(status)):
        Webhooks(5.0)(urlsplit(f"{url}/?status={status}"), b"{}")
    assert len(seen) == 1


def test_who_cannot_be_reached_has_not_taken_it_and_secrets_are_not_told():
    with pytest.raises(NotTaken) as caught:
        Webhooks(0.5)(urlsplit("http://user:secret@127.0.0.1:1/"), b"{}")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("word", ["x", "=http://h/", "x=ftp://h/", "x=http://", "x=http://h:99999/"])
def test_targets_must_be_urls(word):
    with pytest.raises(ConfigError, match="targets"):
        NotifierSettings(targets=(word,)).urls()

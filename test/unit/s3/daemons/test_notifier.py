"""Events go from the queue to webhooks, at least once, over the simulated cluster."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import urlsplit

import pytest

from swift.base.entity import EntityPath
from swift.base.errors import ConfigError
from swift.gateway.internal_client import InternalClient
from swift.http import environkeys
from swift.http.response import Response
from swift.s3.config.notifications import EVENTS_ACCOUNT
from swift.s3.daemons.notifier import DeliveryFailed, Notifier, NotifierSettings, WebhookClient
from swift.telemetry.log import silent_log
from test.support.daemons import DaemonFixture
from test.support.filters import EncryptionFixture

NOW = 5_000_000_000


class Bench:
    def __init__(self, sim, root):
        root.mkdir()
        self.rig = DaemonFixture(root)

        #: What answers the daemon.
        self.pipeline = sim.app

        #: A container of the queue that cannot be listed.
        self.unreadable = None

        def forward(request):
            if request.method == "GET" and request.path == f"/v1/{EVENTS_ACCOUNT}/{self.unreadable}":
                return Response(503)
            request.env[environkeys.CACHE] = sim.cache
            return self.pipeline.handle(request)

        self.client = InternalClient(forward, "test", tries=1, must_decrypt=True)
        self.told, self.away = [], set()
        settings = NotifierSettings(targets=("a=http://a/x", "b=https://b:1/"), concurrency=1)
        self.task = Notifier(settings, settings.urls(), self.client, self.deliver_event, silent_log())

    def deliver_event(self, url, body):
        if url.hostname in self.away:
            raise DeliveryFailed("away")
        self.told.append((url.hostname, json.loads(body)))

    def put(self, name, document, hour=NOW - 100):
        self.client.create(EntityPath(EVENTS_ACCOUNT, str(hour)))
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.client.put(EntityPath(EVENTS_ACCOUNT, str(hour), name), body)

    def run_once(self):
        assert self.rig.runner(self.task, server_type="container").run_once()
        recon = json.loads((self.rig.root.parent / "recon" / "container.recon").read_text())
        return {name: n for name, n in recon["s3_notifier_stats"].items() if n}

    def left(self):
        return [
            row["name"]
            for container in self.client.containers(EVENTS_ACCOUNT)
            for row in self.client.objects(EVENTS_ACCOUNT, container["name"])
        ]


@pytest.fixture
def bench(sim, tmp_path):
    return Bench(sim, tmp_path / "rig")


def test_events_are_told_in_order_and_forgotten(bench):
    for n in range(3):
        bench.put(f"{n}", {"target": "a", "event": {"n": n}})
    assert bench.run_once() == {"delivered": 3}
    assert bench.told == [("a", {"n": n}) for n in range(3)]
    assert bench.left() == []
    assert bench.run_once() == {}


def test_a_webhook_that_is_away_hears_later_and_holds_up_nobody_else(bench):
    bench.away.add("a")
    for n, target in enumerate("aab"):
        bench.put(f"{n}", {"target": target, "event": {"n": n}})
    assert bench.run_once() == {"refused": 1, "waiting": 1, "delivered": 1}
    assert bench.left() == ["0", "1"]
    bench.away.clear()
    assert bench.run_once() == {"delivered": 2}


def test_a_container_of_the_queue_that_cannot_be_read_holds_up_no_other(bench):
    bench.put("0", {"target": "a", "event": {"n": 0}}, hour=NOW - 200)
    bench.put("1", {"target": "a", "event": {"n": 1}})
    bench.unreadable = NOW - 200
    assert bench.run_once() == {"delivered": 1, "errors": 1}
    assert bench.told == [("a", {"n": 1})]


def test_an_event_that_is_not_forgotten_is_told_again(bench):
    bench.put("0", {"target": "a", "event": {"n": 0}})
    delete = bench.client.delete
    bench.client.delete = lambda *args, **more: (_ for _ in ()).throw(OSError("gone"))
    bench.run_once()
    bench.client.delete = delete
    bench.run_once()
    assert len(bench.told) == 2


def test_an_unknown_target_waits_and_what_is_too_old_or_no_event_is_dropped(bench):
    bench.put("0", {"target": "nobody", "event": {}})
    bench.put("1", b"no event")
    bench.put("2", {"target": "a", "event": {}}, hour=NOW - 10**6)
    assert bench.run_once() == {"waiting": 1, "dropped": 2}
    assert bench.left() == ["0"]


def test_empty_containers_of_the_past_go(bench):
    bench.put("0", {"target": "a", "event": {}}, hour=NOW - 10_000)
    bench.run_once()
    assert list(bench.client.containers(EVENTS_ACCOUNT)) == []


def test_events_that_are_stored_encrypted_wait_for_a_pipeline_that_decrypts_them(bench, sim):
    plain, bench.pipeline = bench.pipeline, EncryptionFixture(sim).filter
    bench.put("0", {"target": "a", "event": {"n": 0}})
    bench.pipeline = plain
    assert bench.run_once() == {"errors": 1}
    assert (bench.told, bench.left()) == ([], ["0"])
    bench.pipeline = EncryptionFixture(sim).filter
    assert bench.run_once() == {"delivered": 1}
    assert (bench.told, bench.left()) == ([("a", {"n": 0})], [])


# --- one POST to a webhook: what it is sent, and what does not count as taken -------------------------


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
    WebhookClient(5.0)(urlsplit(f"{url}/events?status=204"), b"{}")
    assert seen == [("/events?status=204", "application/json", b"{}")]


@pytest.mark.parametrize("status", [301, 307, 400, 500])
def test_other_answers_are_no_success_and_redirects_are_not_followed(hook, status):
    url, seen = hook
    with pytest.raises(DeliveryFailed, match=str(status)):
        WebhookClient(5.0)(urlsplit(f"{url}/?status={status}"), b"{}")
    assert len(seen) == 1


def test_who_cannot_be_reached_has_not_taken_it_and_secrets_are_not_told():
    with pytest.raises(DeliveryFailed) as caught:
        WebhookClient(0.5)(urlsplit("http://user:secret@127.0.0.1:1/"), b"{}")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("word", ["x", "=http://h/", "x=ftp://h/", "x=http://", "x=http://h:99999/"])
def test_targets_must_be_urls(word):
    with pytest.raises(ConfigError, match="targets"):
        NotifierSettings(targets=(word,)).urls()

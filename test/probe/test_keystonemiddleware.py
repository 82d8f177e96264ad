"""The installed filter of keystonemiddleware: its blocking calls block no other request."""

import json
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from swift.aio.make import make_cluster
from swift.aio.plan import PORTS_PER_NODE, new_plan
from test.support.cluster import with_filters
from test.support.key_services import KMS_BIN, needs_key_services
from test.support.processes import free_ports, free_range
from tools.bench.contestants import Contestant

pytestmark = [
    pytest.mark.peer,
    needs_key_services,
    pytest.mark.skipif(
        not any(Path(KMS_BIN).parent.glob("lib/python*/site-packages/keystonemiddleware")),
        reason="the environment of SWIFT_KMS_BIN has no keystonemiddleware",
    ),
]


class Keystone(BaseHTTPRequestHandler):
    """A Keystone that accepts tokens ``good-...``, and ``slow-...`` once it is released."""

    def log_message(self, *_args):
        """Nothing."""

    def do_GET(self):
        token = self.headers.get("X-Subject-Token", "")
        if token:
            self.server.checked.append(token)
        if token.startswith("slow-"):
            self.server.stalled.set()
            self.server.released.wait(60)
        if not token:
            url = f"http://127.0.0.1:{self.server.server_port}/v3"
            self.reply(
                200, {"version": {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": url}]}}
            )
        elif token.startswith(("good-", "slow-")):
            self.reply(200, {"token": token_of("user", "project", "admin")})
        else:
            self.reply(404, {"error": {"code": 404, "message": "no such token"}})

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        token = token_of("swift", "service", "service")
        url = f"http://127.0.0.1:{self.server.server_port}/v3"
        endpoints = [
            {"interface": interface, "region_id": "r", "region": "r", "url": url, "id": interface}
            for interface in ("public", "internal", "admin")
        ]
        token["catalog"] = [{"type": "identity", "name": "keystone", "id": "k", "endpoints": endpoints}]
        self.reply(201, {"token": token}, {"X-Subject-Token": "own"})

    def reply(self, status, document, headers=None):
        data = json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


def token_of(user, project, role):
    domain = {"id": "default", "name": "Default"}
    return {
        "methods": ["password"],
        "user": {"id": user, "name": user, "domain": domain},
        "project": {"id": project, "name": project, "domain": domain},
        "roles": [{"id": role, "name": role}],
        "issued_at": "2020-01-01T00:00:00.000000Z",
        "expires_at": "2990-01-01T00:00:00.000000Z",
        "catalog": [],
    }


@contextmanager
def keystone():
    with ThreadingHTTPServer(("127.0.0.1", 0), Keystone) as server:
        server.checked, server.stalled, server.released = [], threading.Event(), threading.Event()
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.released.set()
            server.shutdown()
            thread.join()


def our_program(kind, conf):
    return [f"{KMS_BIN}/swift-{kind}-server", conf, "-v"]


class Cluster(Contestant):
    """A cluster that authenticates with Keystone tokens."""

    def _new_token(self):
        return "good-0"


SECTIONS = """
[filter:authtoken]
paste.filter_factory = keystonemiddleware.auth_token:filter_factory
www_authenticate_uri = http://127.0.0.1:{port}
auth_url = http://127.0.0.1:{port}
auth_type = password
username = swift
password = secret
project_name = service
user_domain_id = default
project_domain_id = default
delay_auth_decision = true
cache = swift.cache

[filter:keystoneauth]
use = egg:swift#keystoneauth
operator_roles = admin
"""


@pytest.fixture()
def proxy(tmp_path):
    with keystone() as service:
        proxy_port, cache_port = free_ports(2)
        plan = new_plan(
            tmp_path / "data",
            proxy_port=proxy_port,
            cache_port=cache_port,
            base_port=free_range(PORTS_PER_NODE * 5),
        )
        make_cluster(plan)
        conf = plan.etc / "proxy-server.conf"
        places = {"authtoken": "tempauth", "keystoneauth": "tempauth"}
        text = with_filters(conf.read_text(), places, SECTIONS.format(port=service.server_port))
        conf.write_text(text.replace(" tempauth ", " "))
        running = Cluster("ours", plan, our_program)
        try:
            running.start_servers()
            yield running.host, service
        finally:
            running.stop_servers()


def request(host, method, path, token, body=None):
    requests = urllib.request.Request(f"http://{host}{path}", body, {"X-Auth-Token": token}, method=method)
    try:
        with urllib.request.urlopen(requests, timeout=60) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, b""


def test_tokens_are_validated_and_cached_and_a_slow_validation_blocks_no_other_request(proxy):
    host, service = proxy
    body = b"x" * 200_000
    assert request(host, "PUT", "/v1/AUTH_project/c", "good-1")[0] == 201
    assert request(host, "PUT", "/v1/AUTH_project/c/o", "good-1", body)[0] == 201
    assert request(host, "GET", "/v1/AUTH_project/c/o", "good-1") == (200, body)
    assert request(host, "GET", "/v1/AUTH_project/c/o", "bad-1")[0] == 401
    assert request(host, "GET", "/v1/AUTH_other/c/o", "good-1")[0] == 403
    assert service.checked.count("good-1") == 1
    slow = []
    ask = threading.Thread(target=lambda: slow.append(request(host, "GET", "/v1/AUTH_project/c/o", "slow-1")))
    ask.start()
    assert service.stalled.wait(60)
    for number in range(3):
        assert request(host, "GET", "/v1/AUTH_project/c/o", f"good-{number}") == (200, body)
    assert not slow
    service.released.set()
    ask.join(60)
    assert slow == [(200, body)]

"""Invalid values for versions, hidden segments, manifests, reservations and digests are refused.

Nothing of it may end in a 5xx or a traceback, which would count against a node or tell of the inside.
"""

import http.client
import json
from urllib.parse import quote

import pytest

VALUES = [
    *("", "0", "null", "NULL", "-1", "1", "nan", "inf", "1e9", "%00", "%00versions%00", "%ff%fe", "%C3%A9"),
    *("9999999999.99999", "1234567890.12345", "99999999999999999999999.1", "1700000000.00000.00000"),
    *("1700000000.00000_0000000000000001", "../..", "..%2F..", "<x>", "'\"", ";", "[]", "{}", "%D9%A1"),
    "a" * 2000,
]
MANIFESTS = [
    *(b"", b"[]", b"{}", b"null", b"[null]", b"[{}]", b"[[[]]]", b"[" * 5000, b"\xff\xfe["),
    *(b'[{"path":"/plain/o"}]' * 3, b'[{"path":"/a/b","size_bytes":NaN}]'),
    b'[{"path":"/a/b","size_bytes":1e999}]',
    *(
        json.dumps([segment]).encode()
        for segment in (
            {"path": "/\0x/y", "size_bytes": 1},
            {"path": "/\0versions\0plain/o"},
            {"path": "plain/o?version-id=1"},
            {"data": "!!"},
            {"path": "/a/b", "range": "x" * 1000},
            {"path": "/a/b", "size_bytes": 10**400},
            {"path": "/a/b", "size_bytes": -1},
            {"path": ["a"], "etag": {}},
        )
    ),
]
DIGESTS = [
    *(
        b"",
        b"{}",
        b"[]",
        b"null",
        b'{"1":null}',
        b'{"01":1}',
        b'{"1":-1}',
        b'{"1":true}',
        b'{"x":1}',
        b"\xff",
    ),
    *(b'{"99999999999":1}', b'{"1":99999999999999999999}', b'{"1":"a"}', b"{" * 10000, b'{"1":1e999}'),
    *(b'{"1":{"a":1}}', b'{"-1":1}', b'{"\\u0661":1}'),
    json.dumps({str(part): None for part in range(2500)}).encode(),
]


class Attacker:
    """Sends requests over one connection, and records every unacceptable response."""

    def __init__(self, ip, port, headers):
        # Shorter than the servers' client timeout: no request may make a server wait for missing bytes.
        self._connection = http.client.HTTPConnection(ip, port, timeout=15)
        self._headers = headers
        self.asked = 0
        self.wrong = []

    def ask(self, method, path, headers=None, body=b""):
        sent = {**self._headers, **(headers or {}), "Content-Length": str(len(body))}
        self._connection.request(method, quote(path, safe="/?&=%'\"<>;[]{}"), body, sent)
        response = self._connection.getresponse()
        text = response.read()
        self.asked += 1
        if response.status >= 500 or b"Traceback" in text:
            self.wrong.append((response.status, method, path[:120], headers, text[:80]))
        return response

    def close(self):
        self._connection.close()


@pytest.fixture
def client(cluster):
    made = Attacker(cluster.plan.ip, cluster.plan.proxy_port, {"X-Auth-Token": cluster.token()})
    yield made
    made.close()


@pytest.fixture
def node(cluster):
    server = next(process for process in cluster.plan.servers() if process.name == "object-1")
    made = Attacker(cluster.plan.ip, server.port, {})
    yield made
    made.close()


def test_invalid_version_ids_are_refused_or_not_found(cluster, client):
    root = "/v1/AUTH_test/hostile-versions"
    assert client.ask("PUT", root, {"X-Versions-Enabled": "true"}).status in (201, 202)
    for body in (b"1", b"2"):
        assert client.ask("PUT", f"{root}/o", body=body).status == 201
    for value in VALUES:
        for method in ("GET", "HEAD", "PUT", "POST", "DELETE"):
            client.ask(method, f"{root}/o?version-id={value}", body=b"b" if method == "PUT" else b"")
        for name in ("marker", "version_marker", "end_marker", "prefix", "delimiter", "limit", "format"):
            client.ask("GET", f"{root}?versions&marker=o&{name}={value}")
        client.ask("GET", f"{root}?versions={value}&reverse={value}")
        client.ask("PUT", f"{root}/l?symlink", {"X-Symlink-Target": f"hostile-versions/o?version-id={value}"})
    assert client.wrong == []


def test_invalid_upload_ids_and_manifests_are_refused(cluster, client):
    root = "/v1/AUTH_test/hostile-uploads"
    assert client.ask("PUT", root).status in (201, 202)
    for value in VALUES:
        for query in (
            f"upload-id={value}&upload-part=1",
            f"upload-id=abc&upload-part={value}",
            f"upload-id={value}",
        ):
            for method in ("PUT", "GET", "HEAD", "POST", "DELETE"):
                client.ask(method, f"{root}/o?{query}", body=b"x" if method == "PUT" else b"")
    for body in MANIFESTS:
        for query in ("", "&heartbeat=on", "&upload-id=abc", "&upload-id=", "&upload-id=x&upload-part=0"):
            client.ask("PUT", f"{root}/m?multipart-manifest=put{query}", body=body)
    assert client.wrong == []


def test_invalid_requests_to_an_object_server_are_refused(cluster, node):
    for body in DIGESTS:
        for flag in ("yes", "x" * 5000):
            for partition in ("1", "x", "9" * 400, "%00"):
                node.ask("REPLICATE", f"/sdb1/{partition}", {"X-Backend-Partition-Digests": flag}, body)
    promise = {"X-Backend-Reserve": "yes", "X-Backend-Obj-Multiphase-Commit": "yes"}
    framed = {**promise, "X-Backend-Obj-Multipart-Mime-Boundary": "b" * 20}
    for method in ("HEAD", "POST", "DELETE", "GET", "PUT", "x" * 300, ""):
        for headers in ({}, promise, framed):
            asked = {**headers, "X-Backend-Reserved-Method": method, "X-Timestamp": "1700000000.00000"}
            node.ask("RESERVE", "/sdb1/1/a/c/o", asked)
    assert node.wrong == []

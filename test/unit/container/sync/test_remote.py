"""Requests to other clusters: signed, through proxies, with bodies of any kind."""

import http.client
import socket

import pytest

from swift.base.entity import EntityPath
from swift.cluster.outbound import Outbound, Trust
from swift.cluster.syncrealms import SyncTo
from swift.container.sync.remote import RemoteCluster, RemoteError, SyncTarget, sign
from swift.http.body import BytesBody

REALM = SyncTarget(SyncTo("http://far:8080/v1/AUTH_b/c2", "REALM1", "realm1key", Trust.OPERATOR), "userkey")
HOST = SyncTarget(SyncTo("https://far/v1/AUTH_b/c2"), "userkey")


def test_a_signature_is_the_peers():
    nonce = "00112233445566778899aabbccddeeff"
    stamp = "1402436408.91203"
    wanted = "b1ca6fb16c03c2ad2c576c72203f9545afe1d161"
    assert sign("PUT", "/v1/AUTH_b/c2/obj%20x", stamp, nonce, "realm1key", "userkey") == wanted
    assert REALM.credentials("PUT", "obj x", stamp, nonce) == {
        "x-timestamp": stamp,
        "x-container-sync-auth": f"REALM1 {nonce} {wanted}",
    }


def test_a_host_without_realm_gets_the_users_key():
    assert HOST.credentials("PUT", "o", "1.0") == {"x-timestamp": "1.0", "x-container-sync-key": "userkey"}


class Connection:
    """What would be sent."""

    def __init__(self, status=201, error=None):
        self.status, self.error = status, error
        self.sent, self.headers, self.tunnel, self.closed = b"", {}, None, False

    def set_tunnel(self, host, port):
        self.tunnel = (host, port)

    def putrequest(self, method, selector, **_options):
        if self.error:
            raise self.error
        self.line = (method, selector)

    def putheader(self, name, value):
        self.headers[name.decode("latin-1")] = value.decode("latin-1")

    def endheaders(self):
        return

    def send(self, data):
        self.sent += data

    def getresponse(self):
        return self

    def read(self):
        return b""

    def getheaders(self):
        return [("X-Timestamp", "1.00000")]

    def close(self):
        self.closed = True


def asked(target, connection, *, proxies=(), body=None):
    made = []

    def connect(scheme, host, port, timeout_s):
        made.append((scheme, host, port, timeout_s))
        return connection

    remote = RemoteCluster(5.0, proxies, connect, outbound=Directly(connect))
    answer = remote.ask("PUT", target, "o ä", "1.0", {"x-a": "b"}, body)
    assert connection.closed
    return made, answer


class Directly(Outbound):
    """Addresses as every host has them, and connections of a test."""

    def __init__(self, connect):
        super().__init__(resolve=lambda host, port: ["192.0.2.7"], own=frozenset)
        self.made = connect

    def connection(self, scheme, host, port, trust, *, timeout_s, tls=None):
        return self.made(scheme, host, port, trust)


def test_the_other_cluster_is_asked_directly():
    connection = Connection()
    made, answer = asked(REALM, connection, body=BytesBody(b"body"))
    assert made == [("http", "far", 8080, Trust.OPERATOR)]
    assert connection.line == ("PUT", "/v1/AUTH_b/c2/o%20%C3%A4")
    assert connection.headers["content-length"] == "4"
    assert connection.headers["x-a"] == "b"
    assert connection.sent == b"body"
    assert (answer.status, answer.headers) == (201, {"x-timestamp": "1.00000"})


def test_names_of_metadata_may_be_any_bytes():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
        outbound = Outbound(resolve=lambda *_: ["192.0.2.7"], own=frozenset, connect=lambda *_: ours)
        remote = RemoteCluster(5.0, outbound=outbound)
        sent = {"x-object-meta-\xc3\xa8": "v", "x-object-meta-a b": "w"}
        assert remote.ask("PUT", REALM, "o", "1.0", sent).status == 201
        lines = theirs.recv(65536).split(b"\r\n")
    assert {b"x-object-meta-\xc3\xa8: v", b"x-object-meta-a b: w"} <= set(lines)


def test_a_body_of_unknown_length_is_sent_in_chunks():
    connection = Connection()
    asked(REALM, connection, body=BytesBody(b"body", chunked=True))
    assert connection.headers["transfer-encoding"] == "chunked"
    assert connection.sent == b"4\r\nbody\r\n0\r\n\r\n"


@pytest.mark.parametrize("proxy", ["http://proxy:3128", "proxy:3128"])
def test_a_proxy_is_asked_for_the_whole_url_and_tunnels_tls(proxy):
    connection = Connection()
    made, _ = asked(REALM, connection, proxies=[proxy])
    assert made == [("http", "proxy", 3128, 5.0)]
    assert connection.line[1] == "http://far:8080/v1/AUTH_b/c2/o%20%C3%A4"
    tunnelled = Connection()
    made, _ = asked(HOST, tunnelled, proxies=[proxy])
    assert (made, tunnelled.tunnel) == ([("https", "proxy", 3128, 5.0)], ("far", 443))
    assert tunnelled.line[1] == "/v1/AUTH_b/c2/o%20%C3%A4"


@pytest.mark.parametrize("proxies", [(), ("proxy:3128",)])
@pytest.mark.parametrize("url", ["http://127.0.0.1:6379/v1/a/c", "http://rebound/v1/a/c"])
def test_nothing_is_sent_to_an_address_that_clients_may_not_name(url, proxies):
    outbound = Outbound(
        resolve=lambda host, port: ["127.0.0.1"], own=frozenset, connect=lambda *_: pytest.fail("connected")
    )
    remote = RemoteCluster(5.0, proxies, lambda *_: pytest.fail("connected"), outbound=outbound)
    with pytest.raises(RemoteError, match="is not sent: .*an address of this machine"):
        remote.ask("PUT", SyncTarget(SyncTo(url), "k"), "o", "1.0", {})


def test_a_proxy_resolves_names_that_are_unknown_here():
    def unknown(host, port):
        raise OSError("no such name")

    connection = Connection()
    remote = RemoteCluster(
        5.0, ("proxy:3128",), lambda *_: connection, outbound=Outbound(resolve=unknown, own=frozenset)
    )
    assert remote.ask("HEAD", HOST, "o", "1.0", {}).status == 201


@pytest.mark.parametrize("error", [OSError("refused"), http.client.BadStatusLine("no")])
def test_what_goes_wrong_is_one_error(error):
    with pytest.raises(RemoteError, match="PUT http://far:8080/v1/AUTH_b/c2/o%20%C3%A4"):
        asked(REALM, Connection(error=error))


def test_paths_are_those_of_the_target():
    assert REALM.url_of("a/b%") == "http://far:8080/v1/AUTH_b/c2/a/b%25"
    assert EntityPath("AUTH_b", "c2").quoted in REALM.url_of("o")

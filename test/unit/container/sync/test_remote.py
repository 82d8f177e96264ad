"""Requests to other clusters: signed, through proxies, with bodies of any kind."""

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


ANSWER = b"HTTP/1.1 201 Created\r\nX-Timestamp: 1.00000\r\nContent-Length: 0\r\n\r\n"


def asked(target, *, proxies=(), body=None, headers=None, answer=ANSWER):
    """Send a request; return where it went, its lines and its body, and what came of it."""
    ours, theirs = socket.socketpair()
    made = []

    def connect(endpoint, timeout_s):
        made.append((endpoint, timeout_s))
        return ours

    with theirs:
        theirs.sendall(answer)
        outbound = Outbound(resolve=lambda host, port: [f"<{host}>"], own=frozenset, connect=connect)
        outbound.addresses = lambda host, port, trust: [host]
        remote = RemoteCluster(5.0, proxies, outbound=outbound)
        found = remote.ask("PUT", target, "o ä", "1.0", headers or {"x-a": "b"}, body)
        head, _, sent = theirs.recv(65536).partition(b"\r\n\r\n")
    assert ours.fileno() == -1
    return made, head.split(b"\r\n"), sent, found


def test_the_other_cluster_is_asked_directly():
    made, lines, sent, answer = asked(REALM, body=BytesBody(b"body"))
    assert made == [(("far", 8080), 5.0)]
    assert lines[0] == b"PUT /v1/AUTH_b/c2/o%20%C3%A4 HTTP/1.1"
    names = {line.lower() for line in lines}
    assert {b"content-length: 4", b"x-a: b", b"host: far:8080", b"connection: close"} <= names
    assert sent == b"body"
    assert (answer.status, answer.headers["x-timestamp"]) == (201, "1.00000")


def test_names_of_metadata_may_be_any_bytes():
    headers = {"x-object-meta-\xc3\xa8": "v", "x-object-meta-a b": "w"}
    _made, lines, _sent, answer = asked(REALM, headers=headers)
    assert answer.status == 201
    assert {b"x-object-meta-\xc3\xa8: v", b"x-object-meta-a b: w"} <= {line.lower() for line in lines}


def test_a_body_of_unknown_length_is_sent_in_chunks():
    _made, lines, sent, _answer = asked(REALM, body=BytesBody(b"body", chunked=True))
    assert b"transfer-encoding: chunked" in {line.lower() for line in lines}
    assert sent == b"4\r\nbody\r\n0\r\n\r\n"


@pytest.mark.parametrize("proxy", ["http://proxy:3128", "proxy:3128"])
def test_a_proxy_is_asked_for_the_whole_url(proxy):
    made, lines, _sent, _answer = asked(REALM, proxies=[proxy])
    assert made == [(("proxy", 3128), 5.0)]
    assert lines[0] == b"PUT http://far:8080/v1/AUTH_b/c2/o%20%C3%A4 HTTP/1.1"
    assert b"host: far:8080" in {line.lower() for line in lines}


def test_a_proxy_that_refuses_a_tunnel_is_an_error():
    with pytest.raises(RemoteError, match="CONNECT far:443: the proxy responded 403 Forbidden"):
        asked(HOST, proxies=["proxy:3128"], answer=b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.parametrize("proxies", [(), ("proxy:3128",)])
@pytest.mark.parametrize("url", ["http://127.0.0.1:6379/v1/a/c", "http://rebound/v1/a/c"])
def test_nothing_is_sent_to_an_address_that_clients_may_not_name(url, proxies):
    outbound = Outbound(
        resolve=lambda host, port: ["127.0.0.1"], own=frozenset, connect=lambda *_: pytest.fail("connected")
    )
    remote = RemoteCluster(5.0, proxies, outbound=outbound)
    with pytest.raises(RemoteError, match="is not sent: .*an address of this machine"):
        remote.ask("PUT", SyncTarget(SyncTo(url), "k"), "o", "1.0", {})


def test_a_proxy_resolves_names_that_are_unknown_here():
    def resolve(host, port):
        if host != "proxy":
            raise OSError("no such name")
        return ["192.0.2.7"]

    ours, theirs = socket.socketpair()
    with theirs:
        theirs.sendall(ANSWER)
        outbound = Outbound(resolve=resolve, own=frozenset, connect=lambda *_: ours)
        remote = RemoteCluster(5.0, ("proxy:3128",), outbound=outbound)
        assert remote.ask("HEAD", REALM, "o", "1.0", {}).status == 201


def test_the_body_of_a_response_may_have_no_end():
    endless = ANSWER.replace(b"Content-Length: 0", b"Transfer-Encoding: chunked") + b"1\r\nx\r\n"
    assert asked(REALM, answer=endless)[3].status == 201


@pytest.mark.parametrize("answer", [b"SSH-2.0\r\n\r\n", b"HTTP/1.1 201 Created\r\n"])
def test_a_bad_response_is_one_error(answer):
    ours, theirs = socket.socketpair()
    with ours:
        theirs.sendall(answer)
        theirs.shutdown(socket.SHUT_WR)
        outbound = Outbound(resolve=lambda *_: ["192.0.2.7"], own=frozenset, connect=lambda *_: ours)
        with theirs, pytest.raises(RemoteError, match="PUT http://far:8080/v1/AUTH_b/c2/o"):
            RemoteCluster(5.0, outbound=outbound).ask("PUT", REALM, "o", "1.0", {})


def test_paths_are_those_of_the_target():
    assert REALM.url_of("a/b%") == "http://far:8080/v1/AUTH_b/c2/a/b%25"
    assert EntityPath("AUTH_b", "c2").quoted in REALM.url_of("o")

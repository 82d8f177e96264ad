"""Metadata with names and values that RFC 9110 forbids: stored, served and removed as the peer does."""

import pytest

from test.functional.test_malformed import converse, status_of

NAMES = [b"\xc3\xbc", b"\xfc", b"a b", b"a(b", b'a"b', b"a,b", b"a/b", b"a\x01b", b"a\x7fb", b"a ", b"a\xff"]
VALUES = [b"v\x01w", b"\x0bv", b"v\x1f", b"\x7f", b"v\x85w"]
LINES = [(name, b"value") for name in NAMES] + [(b"k", value) for value in VALUES]


def ask(cluster, method, path, *lines):
    head = [
        method + b" /v1/AUTH_test" + path + b" HTTP/1.1",
        b"Host: localhost",
        b"X-Auth-Token: " + cluster.token().encode(),
        b"Content-Length: 0",
        b"Connection: close",
        *lines,
    ]
    return converse(cluster, b"\r\n".join([*head, b"", b""]))


def told(answer, kind):
    """Return the metadata lines of a response's head."""
    lines = answer.partition(b"\r\n\r\n")[0].split(b"\r\n")
    return [line for line in lines if line.startswith(b"X-%s-Meta-" % kind)]


@pytest.mark.parametrize("policy", ["gold", "ec"])
@pytest.mark.parametrize(("name", "value"), LINES)
def test_objects_store_metadata_with_odd_names(cluster, policy, name, value):
    cluster.request("PUT", f"odd-{policy}", {"X-Storage-Policy": policy})
    path = f"/odd-{policy}/o".encode()
    line = b"X-Object-Meta-%s: %s" % (name.title(), value)
    assert status_of(ask(cluster, b"PUT", path, line)) == 201
    assert told(ask(cluster, b"HEAD", path), b"Object") == [line]
    assert told(ask(cluster, b"GET", path), b"Object") == [line]
    posted = b"X-Object-Meta-%s: %s2" % (name.title(), value)
    assert status_of(ask(cluster, b"POST", path, posted)) == 202
    assert told(ask(cluster, b"HEAD", path), b"Object") == [posted]
    assert status_of(ask(cluster, b"POST", path)) == 202
    assert told(ask(cluster, b"HEAD", path), b"Object") == []


@pytest.mark.parametrize("kind", [b"Container", b"Account"])
@pytest.mark.parametrize(("name", "value"), LINES)
def test_containers_and_accounts_store_odd_utf_8_metadata_until_it_is_removed(cluster, kind, name, value):
    path = b"/odd" if kind == b"Container" else b""
    cluster.request("PUT", "odd")
    line = b"X-%s-Meta-%s: %s" % (kind, name.title(), value)
    try:
        (name + value).decode()
    except UnicodeError:
        assert status_of(ask(cluster, b"POST", path, line)) == 400
        return
    assert status_of(ask(cluster, b"POST", path, line)) == 204
    assert line in told(ask(cluster, b"HEAD", path), kind)
    assert line in told(ask(cluster, b"GET", path), kind)
    for removal in (b"X-%s-Meta-%s:" % (kind, name), b"X-Remove-%s-Meta-%s: x" % (kind, name)):
        ask(cluster, b"POST", path, line)
        assert status_of(ask(cluster, b"POST", path, removal)) == 204
        left = told(ask(cluster, b"HEAD", path), kind)
        assert not [other for other in left if other.startswith(line.partition(b":")[0] + b":")]


def test_odd_header_lines_never_mark_a_node_as_failing(cluster):
    for name, value in LINES * 2:
        ask(cluster, b"PUT", b"/odd-gold/o", b"X-Object-Meta-%s: %s" % (name, value))
    assert "malformed answer" not in cluster.log_text()

"""The PROXY protocol, versions 1 and 2: what is read, what is refused, and how much is taken."""

import ipaddress
import struct

import pytest

from swift.wire.http1 import BadHead
from swift.wire.proxyprotocol import Forwarded, bytes_needed, parse

V2 = b"\r\n\r\n\x00\r\nQUIT\n"


def version2(command=0x21, family=0x11, body=None, *, port=80, options=b""):
    if body is None:
        addresses = ("1.2.3.4", "5.6.7.8") if family == 0x11 else ("2001:db8::1", "2001:db8::2")
        body = b"".join(ipaddress.ip_address(text).packed for text in addresses)
        body += struct.pack("!HH", 1111, port)
    body += options
    return V2 + struct.pack("!BBH", command, family, len(body)) + body


def option(kind, value):
    return struct.pack("!BH", kind, len(value)) + value


TLS = option(4, b"\x00" * 5) + option(0x20, b"\x01" + b"\x00" * 4)


@pytest.mark.parametrize(
    ("header", "forwarded"),
    [
        (b"PROXY TCP4 1.2.3.4 5.6.7.8 1111 80\r\n", Forwarded("1.2.3.4", 1111, False)),
        (b"PROXY TCP4 1.2.3.4 5.6.7.8 1111 443\r\n", Forwarded("1.2.3.4", 1111, True)),
        (b"PROXY TCP4 1.2.3.4 5.6.7.8 1111 80\n", Forwarded("1.2.3.4", 1111, False)),
        (b"PROXY TCP6 ::1 ::2 65535 80\r\n", Forwarded("::1", 65535, False)),
        (b"PROXY UNKNOWN\r\n", None),
        (b"PROXY UNKNOWN 1.2.3.4 5.6.7.8 1 2\r\n", None),
        (version2(), Forwarded("1.2.3.4", 1111, False)),
        (version2(port=443), Forwarded("1.2.3.4", 1111, True)),
        (version2(family=0x21), Forwarded("2001:db8::1", 1111, False)),
        (version2(options=TLS), Forwarded("1.2.3.4", 1111, True)),
        (version2(options=option(0x20, b"\x00")), Forwarded("1.2.3.4", 1111, False)),
        (version2(options=b"\x20\x00"), Forwarded("1.2.3.4", 1111, False)),
        (version2(command=0x20, family=0, body=b""), None),
        (version2(family=0x31, body=b"x" * 216), None),
    ],
)
def test_a_header_says_who_the_client_is_and_is_read_to_its_last_byte_only(header, forwarded):
    data, rest = b"", header + b"GET / HTTP/1.1\r\n"
    while missing := bytes_needed(data):
        data, rest = data + rest[:missing], rest[missing:]
    assert (data, rest) == (header, b"GET / HTTP/1.1\r\n")
    assert parse(data) == forwarded


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n",
        b"G",
        b"\r\n\r\nGET",
        b"proxy tcp4 1.2.3.4 5.6.7.8 1111 80\r\n",
        b"PROXY TCP4 1.2.3.4\r\n",
        b"PROXY TCP4 1.2.3.400 5.6.7.8 1111 80\r\n",
        b"PROXY TCP4 ::1 ::2 1111 80\r\n",
        b"PROXY TCP4 1.2.3.4 5.6.7.8 1111 99999\r\n",
        b"PROXY TCP4 1.2.3.4 5.6.7.8 -1 80\r\n",
        b"PROXY TCP4 1.2.3.4 5.6.7.8 1111 \xd9\xa3\r\n",
        b"PROXY UDP4 1.2.3.4 5.6.7.8 1111 80\r\n",
        b"PROXY " + b"x" * 200 + b"\r\n",
        version2(command=0x11),
        version2(command=0x22),
        version2(body=b"x" * 8),
        V2 + struct.pack("!BBH", 0x21, 0x11, 65535),
    ],
)
def test_what_is_no_header_is_refused(sent):
    def read():
        data, rest = b"", sent
        while missing := bytes_needed(data):
            assert rest, "the refusal does not wait for more"
            data, rest = data + rest[:missing], rest[missing:]
        parse(data)

    with pytest.raises(BadHead) as caught:
        read()
    assert caught.value.status == 400

"""Recording and comparing the answers of a proxy, with what legitimately varies taken out."""

import re
import socket

VOLATILE = {"date", "x-trans-id", "x-openstack-request-id", "last-modified", "x-timestamp", "x-put-timestamp"}
UNORDERED = {
    "allow",
    "access-control-allow-methods",
    "access-control-expose-headers",
    "access-control-allow-headers",
}
_BODY_RULES = (
    (re.compile(rb'"last_modified": "[^"]*"'), b'"last_modified": "*"'),
    (re.compile(rb"<last_modified>[^<]*<"), b"<last_modified>*<"),
    (re.compile(rb'(class="coldate">)\d[^<]*<'), rb"\1*<"),
    (re.compile(rb"Policy-0|gold"), b"POLICY"),
)


class Asker:
    """Sends cases to one proxy and keeps the normalised answers.

    The bytes go to a plain socket, because the clients of the standard library refuse odd names and values,
    and stop reading a head at the first one.
    """

    def __init__(self, host, token_of):
        self._host = host
        self._token_of = token_of
        self.answers = []

    def __call__(self, method, path, headers=None, body=None, *, user="test:tester", token=None):
        sent = dict(headers or {})
        token = token or (self._token_of(user) if user else None)
        if token:
            sent["X-Auth-Token"] = token
        status, reason, pairs, data = self._converse(method, path, sent, body)
        shown = sorted((_shown(name), _shown(value)) for name, value in (headers or {}).items())
        self.answers.append(
            {
                "request": f"{method} {path} {shown} as {user}"[:300],
                "status": status,
                "reason": reason,
                **normalised(pairs, data, self._host),
            }
        )

    def _converse(self, method, path, headers, body):
        names = {name.lower() for name in headers}
        if isinstance(body, list):
            headers = {**headers, "Transfer-Encoding": "chunked"}
            body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in [*body, b""])
        elif "content-length" not in names and (body is not None or method in ("PUT", "POST", "PATCH")):
            headers = {**headers, "Content-Length": str(len(body or b""))}
        lines = [f"{method} {path} HTTP/1.1".encode("latin-1")]
        if "host" not in names:
            lines.append(b"Host: " + self._host.encode())
        lines += [_bytes(name) + b": " + _bytes(value) for name, value in headers.items()]
        ip, _, port = self._host.partition(":")
        with socket.create_connection((ip, int(port)), timeout=30) as connection:
            connection.sendall(b"\r\n".join([*lines, b"", b""]) + (body or b""))
            with connection.makefile("rb") as stream:
                return read_answer(stream, method)


def read_answer(stream, method):
    """(status, reason, [(name, value)], body) of one response; raises ``ValueError`` when it is none."""
    _version, status, reason = stream.readline().decode("latin-1").rstrip("\r\n").split(" ", 2)
    pairs = []
    while line := stream.readline().decode("latin-1").rstrip("\r\n"):
        name, colon, value = line.partition(":")
        if not colon:
            raise ValueError(f"no header: {line!r}")
        pairs.append((name, value.strip(" ")))
    found = {name.lower(): value for name, value in pairs}
    if method == "HEAD" or int(status) in (204, 304):
        return int(status), reason, pairs, b""
    if found.get("transfer-encoding", "").lower() == "chunked":
        return int(status), reason, pairs, _dechunked(stream)
    length = found.get("content-length")
    return int(status), reason, pairs, stream.read(int(length) if length is not None else -1)


def _dechunked(stream):
    pieces = []
    while size := int(stream.readline(), 16):
        pieces.append(stream.read(size))
        stream.readline()
    stream.readline()
    return b"".join(pieces)


def _bytes(text):
    return text if isinstance(text, bytes) else text.encode("latin-1")


def _shown(text):
    return text.decode("latin-1") if isinstance(text, bytes) else text


def normalised(pairs, body, host):
    """Headers and body without times, ids, boundaries, host and policy name."""
    headers = {}
    for name, value in pairs:
        key = name.encode("latin-1").lower().decode("latin-1")
        if "storage-policy" in key:
            continue
        if "boundary=" in value:
            value, boundary = value.split("boundary=")
            body = body.replace(boundary.encode(), b"BOUNDARY")
        value = value.replace(host, "HOST")
        if key in UNORDERED:
            value = ", ".join(sorted(item.strip() for item in value.split(",") if item.strip()))
        value = "*" if key in VOLATILE else value
        headers[key] = f"{headers[key]} | {value}" if key in headers else value
    for pattern, replacement in _BODY_RULES:
        body, replaced = pattern.subn(replacement, body)
        if replaced and pattern.pattern.startswith(b"Policy"):
            headers["content-length"] = "*"
    return {"headers": headers, "body": body.decode("latin-1")}

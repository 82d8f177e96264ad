"""Recording and comparing responses of a proxy, without values that legitimately vary."""

import html
import json
import re
import socket
from typing import NamedTuple

from swift.http.headers import lower_name

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
#: What only our errors say besides.
_HINT = re.compile(rb"""(?:<|&lt;)p class=(?:\\?"|&quot;)hint.*?(?:<|&lt;)/p(?:>|&gt;)""")
#: The length of a page in a report that quotes it.
_QUOTED_LENGTH = re.compile(rb"(?i)(content.length\W+(?:[a-z]+\W+)?)(\d+)")


class Recorded(NamedTuple):
    """A response as received, for cases that depend on it; header names are lower-case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Asker:
    """Sends cases to one proxy and records the normalised responses.

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
        told = Recorded(status, {lower_name(name): value for name, value in pairs}, data)
        shown = sorted((_shown(name), _shown(value)) for name, value in (headers or {}).items())
        self.answers.append(
            {
                "request": f"{method} {path} {shown} as {user}"[:300],
                "status": status,
                "reason": reason,
                **normalised(pairs, data, self._host),
            }
        )
        return told

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


class NumberingAsker(Asker):
    """An ``Asker`` that replaces each timestamp by a number, the same wherever it occurs."""

    _TIME = re.compile(r"(?:(?<=\\u0000)|(?<=%00)|(?<![\d.]))\d{10}\.\d{5}(?!\d)")

    #: In reports.
    _MODIFIED = re.compile(r"(Last[- ]Modified:) .*")

    def __init__(self, host, token_of):
        super().__init__(host, token_of)
        self._numbers = {}
        #: ETags of manifests, in which there are times.
        self._manifests = {}

    def __call__(self, *words, **options):
        """Send a case; timestamps in request and response become numbers."""
        told = super().__call__(*words, **options)
        response = self.answers[-1]
        response["headers"].pop("x-copied-from-last-modified", None)
        response["body"] = self._MODIFIED.sub(r"\1 *", response["body"])
        etag = response["headers"].get("x-manifest-etag")
        if etag:
            self._manifests.setdefault(etag, f"<manifest {len(self._manifests)}>")
        response["request"] = self._numbered(response["request"])
        headers = response["headers"]
        for name in sorted(headers):
            headers[name] = self._numbered(headers[name])
        response["body"] = self._numbered(response["body"])
        return told

    def _numbered(self, text):
        for etag, name in self._manifests.items():
            text = text.replace(etag, name)
        return self._TIME.sub(lambda m: f"<time {self._numbers.setdefault(m[0], len(self._numbers))}>", text)


class Renaming:
    """A mapping between the numbers of two recordings."""

    _NUMBER = re.compile(r"<(?:time|manifest) \d+>")

    def __init__(self):
        self._there = {}
        self._here = {}

    def same(self, ours, theirs):
        """Return True if two responses are equal under the mapping, which new numbers extend."""
        ours, theirs = (json.dumps(response, sort_keys=True) for response in (ours, theirs))
        if self._NUMBER.split(ours) != self._NUMBER.split(theirs):
            return False
        pairs = list(zip(self._NUMBER.findall(ours), self._NUMBER.findall(theirs), strict=True))
        there, here = dict(self._there), dict(self._here)
        for our, their in pairs:
            if there.setdefault(our, their) != their or here.setdefault(their, our) != our:
                return False
        self._there, self._here = there, here
        return True


def read_answer(stream, method):
    """Return (status, reason, [(name, value)], body) of a response; ``ValueError`` if malformed."""
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
    """Return headers and body without times, ids, boundaries, host and policy name."""
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
    if hint := _HINT.search(body):
        page = html.unescape(hint[0].decode().replace('\\"', '"'))
        body = body.replace(hint[0], b"")
        body = _QUOTED_LENGTH.sub(lambda m: m[1] + b"%d" % (int(m[2]) - len(page)), body)
        if "content-length" in headers:
            headers["content-length"] = str(len(body))
    for pattern, replacement in _BODY_RULES:
        body, replaced = pattern.subn(replacement, body)
        if replaced and pattern.pattern.startswith(b"Policy"):
            headers["content-length"] = "*"
    return {"headers": headers, "body": body.decode("latin-1")}


def answers_of(live, send, asker_of=Asker):
    """Start a cluster, send the cases of ``send``, and return the responses."""
    live.start()
    try:
        asker = asker_of(live.host, live.token)
        send(asker)
        assert "Traceback" not in live.log_text()
        return asker.answers
    finally:
        live.stop()


def differences(ours, theirs):
    """Return the differences between a response of ours and the recorded one, one line each."""
    lines = []
    for part in sorted(ours.keys() | theirs.keys()):
        our, their = ours.get(part), theirs.get(part)
        if isinstance(our, dict) and isinstance(their, dict):
            names = sorted(name for name in our.keys() | their.keys() if our.get(name) != their.get(name))
            lines += [f"{name} is {our.get(name)!r}, recorded {their.get(name)!r}" for name in names]
        elif our != their:
            lines.append(f"{part} is {our!r}, recorded {their!r}")
    return "; ".join(lines)


def assert_same(ours, theirs):
    """Fail with the differences unless a response equals the recorded one."""
    if ours != theirs:
        raise AssertionError(differences(ours, theirs))

"""Signing requests as S3 clients do: botocore for heads, our own hands for the chunks of bodies."""

import hmac
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256

from botocore.auth import HmacV1Auth, S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from test.support.cluster import LiveCluster

EMPTY = sha256(b"").hexdigest()


class _Auth(S3SigV4Auth):
    """Signs the promise about the body that a request makes, if it makes one."""

    def __init__(self, credentials, promise):
        super().__init__(credentials, "s3", "us-east-1")
        self._promise = promise

    def payload(self, request):
        return self._promise or super().payload(request)


def signed_headers(method, url, headers=None, body=b"", *, user="test:tester", secret="testing", version=4):
    """The headers of a request with its signature, which promise something of the body."""
    request = AWSRequest(method, url, headers=dict(headers or {}), data=body)
    credentials = Credentials(user, secret)
    if version == 2:
        HmacV1Auth(credentials).add_auth(request)
    else:
        _Auth(credentials, request.headers.get("X-Amz-Content-SHA256")).add_auth(request)
    return {name: str(value) for name, value in request.headers.items()}


def chunked(pieces, head, *, secret="testing", signed=True, trailer=None):
    """A body in aws-chunked framing for the signed headers of its request."""
    stamp = head["X-Amz-Date"]
    scope = f"{stamp[:8]}/us-east-1/s3/aws4_request"
    key = ("AWS4" + secret).encode()
    for word in scope.split("/"):
        key = hmac.digest(key, word.encode(), sha256)
    previous = head["Authorization"].rpartition("Signature=")[2]
    out = b""
    for piece in [*pieces, b""]:
        line = b"%x" % len(piece)
        if signed:
            digest = sha256(piece).hexdigest()
            text = f"AWS4-HMAC-SHA256-PAYLOAD\n{stamp}\n{scope}\n{previous}\n{EMPTY}\n{digest}"
            previous = hmac.digest(key, text.encode(), sha256).hex()
            line += b";chunk-signature=" + previous.encode()
        out += line + b"\r\n"
        if piece:
            out += piece + b"\r\n"
    if trailer:
        name, value = trailer
        out += f"{name}:{value}\r\n".encode()
        if signed:
            digest = sha256(f"{name}:{value}\n".encode()).hexdigest()
            text = f"AWS4-HMAC-SHA256-TRAILER\n{stamp}\n{scope}\n{previous}\n{digest}"
            mark = hmac.digest(key, text.encode(), sha256).hex()
            out += f"x-amz-trailer-signature:{mark}\r\n".encode()
    return out + b"\r\n"


def stamp_of(seconds):
    """A moment as version 4 writes it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y%m%dT%H%M%SZ")


@contextmanager
def cluster_with(folder, options, **choices):
    """A cluster with these options of filters, which has no traceback in its logs at the end."""
    live = LiveCluster(folder / "data", options=options, **choices)
    live.start()
    try:
        yield live
        assert "Traceback" not in live.log_text()
    finally:
        live.stop()

"""Sign requests as S3 clients do: botocore signs headers, this module signs chunks of bodies."""

import hmac
from base64 import b64encode
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha1, sha256
from urllib.parse import quote

from botocore.auth import HmacV1Auth, S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from test.support.cluster import LiveCluster

EMPTY = sha256(b"").hexdigest()


class _Auth(S3SigV4Auth):
    """A signer with a given payload hash, if any."""

    def __init__(self, credentials, promise):
        super().__init__(credentials, "s3", "us-east-1")
        self._promise = promise

    def payload(self, request):
        return self._promise or super().payload(request)


def signed_headers(method, url, headers=None, body=b"", *, user="test:tester", secret="testing", version=4):
    """Return the headers of a request with its signature, including the payload hash."""
    request = AWSRequest(method, url, headers=dict(headers or {}), data=body)
    credentials = Credentials(user, secret)
    if version == 2:
        HmacV1Auth(credentials).add_auth(request)
    else:
        _Auth(credentials, request.headers.get("X-Amz-Content-SHA256")).add_auth(request)
    return {name: str(value) for name, value in request.headers.items()}


def chunked(pieces, head, *, secret="testing", signed=True, trailer=None):
    """Return a body in aws-chunked framing for the signed headers of its request."""
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
    """Return a time in the format of signature version 4."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y%m%dT%H%M%SZ")


@contextmanager
def cluster_with(folder, options, **choices):
    """Run a cluster with these filter options; fail on a traceback in its logs at the end."""
    live = LiveCluster(folder / "data", options=options, **choices)
    live.start()
    try:
        yield live
        assert "Traceback" not in live.log_text()
    finally:
        live.stop()


# --- signatures by hand: any part of them may be wrong ---------------------------------------------------


def _hand_signature(secret, stamp, scope, canonical):
    key = ("AWS4" + secret).encode()
    for word in scope.split("/"):
        key = hmac.digest(key, word.encode(), sha256)
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{sha256(canonical.encode()).hexdigest()}"
    return hmac.digest(key, text.encode(), sha256).hex()


def _hand_canonical(method, path, query, headers, signed, payload):
    pairs = sorted(pair if "=" in pair else f"{pair}=" for pair in query.split("&") if pair)
    lines = [method, path, "&".join(pairs)]
    lines += [f"{name}:{headers.get(name, '').strip()}" for name in signed]
    return "\n".join([*lines, "", ";".join(signed), payload])


def hand_signed(method, host, path, headers=None, *, words=None, leave=(), **how):
    """Return the headers of a request with a signature of version 4.

    ``words`` replaces components of it, ``leave`` are headers that are not signed.
    ``how``: stamp, scope, secret, user, payload.
    """
    stamp = how.get("stamp") or stamp_of(datetime.now(UTC).timestamp())
    scope = how.get("scope") or f"{stamp[:8]}/us-east-1/s3/aws4_request"
    payload = how.get("payload", EMPTY)
    sent = {"Host": host, "X-Amz-Date": stamp, "X-Amz-Content-SHA256": payload, **(headers or {})}
    sent = {name: value for name, value in sent.items() if value is not None}
    lower = {name.lower(): value for name, value in sent.items()}
    signed = sorted(name for name in lower if name not in leave)
    path, _, query = path.partition("?")
    canonical = _hand_canonical(method, path, query, lower, signed, payload)
    signature = _hand_signature(how.get("secret", "testing"), stamp, scope, canonical)
    parts = {
        "Credential": f"{how.get('user', 'test:tester')}/{scope}",
        "SignedHeaders": ";".join(signed),
        "Signature": signature,
        **(words or {}),
    }
    text = ", ".join(f"{name}={value}" for name, value in parts.items() if value is not None)
    return {**sent, "Authorization": f"AWS4-HMAC-SHA256 {text}"}


def hand_linked(method, host, path, params=None, headers=None, **how):
    """Return the path and query of a presigned URL of version 4; ``params`` replaces parameters."""
    stamp = how.get("stamp") or stamp_of(datetime.now(UTC).timestamp())
    scope = how.get("scope") or f"{stamp[:8]}/us-east-1/s3/aws4_request"
    lower = {"host": host, **{name.lower(): value for name, value in (headers or {}).items()}}
    signed = sorted(lower)
    path, _, query = path.partition("?")
    found = {
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"{how.get('user', 'test:tester')}/{scope}",
        "X-Amz-Date": stamp,
        "X-Amz-Expires": "600",
        "X-Amz-SignedHeaders": ";".join(signed),
        **{name: value for name, value in (params or {}).items() if name != "X-Amz-Signature"},
    }
    pairs = [f"{name}={quote(value, safe='-_.~')}" for name, value in found.items() if value is not None]
    query = "&".join([*([query] if query else []), *pairs])
    canonical = _hand_canonical(method, path, query, lower, signed, how.get("payload", "UNSIGNED-PAYLOAD"))
    signature = _hand_signature(how.get("secret", "testing"), stamp, scope, canonical)
    signature = (params or {}).get("X-Amz-Signature", signature)
    return f"{path}?{query}" + ("" if signature is None else f"&X-Amz-Signature={signature}")


def hand_linked_v2(method, path, params=None, *, secret="testing", expires=None):
    """Return the path and query of a presigned URL of version 2; ``params`` replaces parameters."""
    expires = str(int(datetime.now(UTC).timestamp()) + 600) if expires is None else expires
    text = f"{method}\n\n\n{(params or {}).get('Expires', expires)}\n{path}"
    signature = b64encode(hmac.digest(secret.encode(), text.encode(), sha1)).decode()
    found = {"AWSAccessKeyId": "test:tester", "Expires": expires, "Signature": signature, **(params or {})}
    pairs = [f"{name}={quote(value, safe='')}" for name, value in found.items() if value is not None]
    return f"{path}{'&' if '?' in path else '?'}{'&'.join(pairs)}"

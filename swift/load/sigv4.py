"""AWS Signature Version 4 in headers, the body unsigned (AWS general reference, "Signing requests")."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote

from swift.load.endpoint import LoadEndpoint

_PAYLOAD = "UNSIGNED-PAYLOAD"


@lru_cache(maxsize=4)
def _signing_key(secret: str, day: str, region: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def sign_headers(
    endpoint: LoadEndpoint,
    method: str,
    path: str,
    query: Mapping[str, str],
    now_s: float | None = None,
    *,
    more: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the headers of a request for the quoted ``path``; they hold for a few minutes.

    ``more`` headers (lower-case names) are signed too; the caller sends them.
    """
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() if now_s is None else now_s))
    day = moment[:8]
    address = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    host = f"{address}:{endpoint.port}"
    asked = "&".join(f"{quote(k, safe='-_.~')}={quote(v, safe='-_.~')}" for k, v in sorted(query.items()))
    sent = {"host": host, "x-amz-content-sha256": _PAYLOAD, "x-amz-date": moment, **(more or {})}
    lines = "".join(f"{name}:{sent[name]}\n" for name in sorted(sent))
    names = ";".join(sorted(sent))
    canonical = f"{method}\n{path}\n{asked}\n{lines}\n{names}\n{_PAYLOAD}"
    scope = f"{day}/{endpoint.region}/s3/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{digest}"
    key = _signing_key(endpoint.secret_key, day, endpoint.region)
    signature = hmac.new(key, text.encode(), "sha256").hexdigest()
    return {
        "host": host,
        "x-amz-date": moment,
        "x-amz-content-sha256": _PAYLOAD,
        "authorization": f"AWS4-HMAC-SHA256 Credential={endpoint.access_key}/{scope}, "
        f"SignedHeaders={names}, Signature={signature}",
    }

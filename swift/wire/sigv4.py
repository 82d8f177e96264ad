"""AWS Signature Version 4 of clients: in headers and in URLs (AWS general reference, "Signing requests")."""

from __future__ import annotations

import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from urllib.parse import quote

_PAYLOAD = "UNSIGNED-PAYLOAD"
_ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True)
class Signer:
    """An access key, and where it is used."""

    access_key: str
    secret_key: str = field(repr=False)
    region: str
    #: Of temporary access keys.
    session_token: str = field(repr=False, default="")

    def sign_headers(
        self,
        method: str,
        host: str,
        path: str,
        query: Mapping[str, str],
        now_s: float | None = None,
        *,
        more: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Return the headers of a request for the quoted ``path``; they hold for a few minutes.

        ``host`` has the port. The body is not signed. ``more`` headers (lower-case names) are signed too; the
        caller sends them.
        """
        moment = _moment(now_s)
        own = {"host": host, "x-amz-content-sha256": _PAYLOAD, "x-amz-date": moment}
        if self.session_token:
            own["x-amz-security-token"] = self.session_token
        signed = {**own, **(more or {})}
        signature, scope = self._signature(moment, method, path, quote_query(query), signed)
        own["authorization"] = (
            f"{_ALGORITHM} Credential={self.access_key}/{scope}, "
            f"SignedHeaders={';'.join(sorted(signed))}, Signature={signature}"
        )
        return own

    def presign(
        self,
        method: str,
        host: str,
        path: str,
        query: Mapping[str, str],
        life_s: int,
        now_s: float | None = None,
    ) -> str:
        """Return the quoted path and query of a presigned URL that ends after ``life_s`` seconds."""
        moment = _moment(now_s)
        whole = {
            **query,
            "X-Amz-Algorithm": _ALGORITHM,
            "X-Amz-Credential": f"{self.access_key}/{self._scope(moment)}",
            "X-Amz-Date": moment,
            "X-Amz-Expires": str(life_s),
            "X-Amz-SignedHeaders": "host",
        }
        if self.session_token:
            whole["X-Amz-Security-Token"] = self.session_token
        asked = quote_query(whole)
        signature, _scope = self._signature(moment, method, path, asked, {"host": host})
        return f"{path}?{asked}&X-Amz-Signature={signature}"

    def _scope(self, moment: str) -> str:
        return f"{moment[:8]}/{self.region}/s3/aws4_request"

    def _signature(
        self, moment: str, method: str, path: str, query: str, signed: Mapping[str, str]
    ) -> tuple[str, str]:
        lines = "".join(f"{name}:{signed[name].strip()}\n" for name in sorted(signed))
        canonical = f"{method}\n{path}\n{query}\n{lines}\n{';'.join(sorted(signed))}\n{_PAYLOAD}"
        scope = self._scope(moment)
        text = f"{_ALGORITHM}\n{moment}\n{scope}\n{sha256(canonical.encode()).hexdigest()}"
        key = _signing_key(self.secret_key, moment[:8], self.region)
        return hmac.new(key, text.encode(), "sha256").hexdigest(), scope


def quote_query(query: Mapping[str, str]) -> str:
    """Return a query in the order and quoting that is signed."""
    return "&".join(f"{quote(k, safe='-_.~')}={quote(v, safe='-_.~')}" for k, v in sorted(query.items()))


def _moment(now_s: float | None) -> str:
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() if now_s is None else now_s))


@lru_cache(maxsize=64)
def _signing_key(secret: str, day: str, region: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key

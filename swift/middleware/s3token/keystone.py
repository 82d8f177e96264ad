"""Questions to an identity service: whether a signature is good, and what secret key made it.

Answers are small; each question has a connection of its own. Nothing here logs what it sends.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import quote

from swift.base.errors import SwiftError
from swift.cluster.outbound import Outbound, OutboundRefused, Trust, default_port
from swift.cluster.transport import TransportError
from swift.middleware.s3token.settings import S3TokenSettings, address_of

ANSWER_BYTES_MAX = 1 << 20
#: A token of our own is not used in the last seconds of its life, and no longer than this.
_TOKEN_S = 600.0
Document = Mapping[str, object]


class Unreachable(SwiftError):
    """The identity service gave no answer that means anything."""


class Keystone(Protocol):
    """Requests to a Keystone service."""

    def check(self, credentials: Mapping[str, str]) -> Document | None:
        """Return the signer's token, or None if the signature is invalid; raises ``Unreachable``."""

    def secret(self, user_id: str, access: str) -> str | None:
        """Return the secret key of a user's access key; raises ``Unreachable``."""


class HTTPKeystone:
    """The real one, over HTTP."""

    def __init__(self, settings: S3TokenSettings, outbound: Outbound | None = None):
        self._settings = settings
        self._outbound = outbound or Outbound()
        self._tls = ssl.create_default_context()
        if settings.insecure:
            self._tls.check_hostname = False
            self._tls.verify_mode = ssl.CERT_NONE
        if settings.certfile:
            self._tls.load_cert_chain(settings.certfile, settings.keyfile or None)
        #: Our own token and until when it is used, monotonic seconds.
        self._token = "", 0.0

    def check(self, credentials: Mapping[str, str]) -> Document | None:
        """See ``Keystone``."""
        status, _, body = self._ask(
            "POST", self._settings.auth_uri, "/s3tokens", {"credentials": credentials}
        )
        if 200 <= status <= 299:
            return _document(body)
        if status >= 500:
            raise Unreachable(f"the identity service answered {status}")
        return None

    def secret(self, user_id: str, access: str) -> str | None:
        """See ``Keystone``."""
        path = f"/users/{quote(user_id, safe='')}/credentials/OS-EC2/{quote(access, safe='')}"
        for _ in range(2):
            headers = {"x-auth-token": self._own_token()}
            status, _, body = self._ask("GET", self._settings.auth_url, path, None, headers)
            if status != 401:
                break
            # It was taken back before its time.
            self._token = "", 0.0
        if status != 200:
            return None
        credential = _document(body).get("credential")
        secret = credential.get("secret") if isinstance(credential, dict) else None
        return secret if isinstance(secret, str) and secret else None

    def _own_token(self) -> str:
        token, until = self._token
        if token and time.monotonic() < until:
            return token
        mine = self._settings
        user = {"name": mine.username, "domain": {"id": mine.user_domain_id}, "password": mine.password}
        auth: dict[str, object] = {"identity": {"methods": ["password"], "password": {"user": user}}}
        if mine.project_name:
            domain = {"id": mine.project_domain_id}
            auth["scope"] = {"project": {"name": mine.project_name, "domain": domain}}
        status, headers, _ = self._ask("POST", mine.auth_url, "/auth/tokens", {"auth": auth})
        token = headers.get("x-subject-token", "")
        if status != 201 or not token:
            raise Unreachable(f"the identity service gives our user no token ({status})")
        self._token = token, time.monotonic() + _TOKEN_S
        return token

    def _ask(
        self,
        method: str,
        base: str,
        path: str,
        document: Document | None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body; raises ``Unreachable``."""
        parts = address_of(base, "auth_uri")
        host, port = str(parts.hostname), parts.port or default_port(parts.scheme)
        body = b"" if document is None else json.dumps(document).encode()
        sent = {"content-type": "application/json", **(headers or {})}
        try:
            with self._outbound.connection(
                parts.scheme, host, port, Trust.OPERATOR, timeout_s=self._settings.http_timeout, tls=self._tls
            ) as connection:
                target = parts.path.rstrip("/") + path
                reply = connection.request(method, target, sent, body, bytes_max=ANSWER_BYTES_MAX + 1)
        except (OutboundRefused, OSError, TransportError) as error:
            raise Unreachable(f"the identity service at {host}:{port}: {error or type(error).__name__}")
        if len(reply.body) > ANSWER_BYTES_MAX:
            raise Unreachable("the identity service answers too much")
        return reply.status, reply.headers, reply.body


def _document(body: bytes) -> Document:
    try:
        tree = json.loads(body)
    except (ValueError, RecursionError):
        raise Unreachable("the identity service does not answer JSON")
    if not isinstance(tree, dict):
        raise Unreachable("the identity service answers something else")
    return tree

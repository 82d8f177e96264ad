"""Places where ``swift-user`` carries out operations: on this node, or on a proxy for an operator."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator, Mapping
from typing import Protocol
from urllib.parse import urlsplit

from swift.base.documents import JsonObject
from swift.base.errors import SwiftError
from swift.cluster.outbound import Outbound, OutboundConnection, OutboundRefused, Trust
from swift.cluster.transport import BackendResponse, TransportError
from swift.http.headers import wire_value
from swift.middleware.swiftauth.local import given_params
from swift.middleware.tempauth.users import parse_access_keys, parse_users

TIMEOUT_S = 60.0
RESPONSE_BYTES_MAX = 16 << 20
#: Words of tempauth for groups that are rights.
_RIGHTS = (".admin", ".reseller_admin", ".reseller_reader")


class IdentityError(SwiftError):
    """An operation failed; the text says why."""


class Identities(Protocol):
    """Carries out operations."""

    def call(self, operation: str, **params: object) -> JsonObject:
        """Return the result of an operation; raise ``SwiftError``. Parameters that are None are left out."""


class RemoteIdentities:
    """Operations on a proxy, as an operator who logs in."""

    def __init__(self, auth_url: str, user: str, key: str, *, ca_file: str = ""):
        """``auth_url`` as of clients: ``https://swift.example/auth/v1.0``."""
        self._url = urlsplit(auth_url)
        if self._url.scheme not in ("http", "https") or not self._url.hostname:
            raise IdentityError(f"{auth_url} is no URL of a log-in, such as https://swift.example/auth/v1.0")
        self._ca_file = ca_file
        headers = {"x-auth-user": wire_value(user), "x-auth-key": wire_value(key)}
        response = self._request("GET", self._url.path, headers)
        self._token = response.headers.get("x-auth-token", "")
        if response.status != 200 or not self._token:
            raise IdentityError(f"cannot log in at {auth_url}: it answers {response.status}")

    def call(self, operation: str, **params: object) -> JsonObject:
        """Return the result of an operation."""
        path = self._url.path.rpartition("/")[0].removesuffix("/v1") + "/identity"
        body = json.dumps({"operation": operation, "parameters": given_params(params)}).encode()
        headers = {"x-auth-token": self._token, "content-type": "application/json"}
        response = self._request("POST", path, headers, body)
        try:
            tree = json.loads(response.body)
        except ValueError:
            tree = None
        if not isinstance(tree, dict):
            raise IdentityError(
                f"{self._url.netloc} answers {response.status}: it has no swiftauth, or is down"
            )
        if response.status != 200:
            raise IdentityError(str(tree.get("error") or f"it answers {response.status}"))
        return tree

    def _request(self, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> BackendResponse:
        try:
            with self._connect() as connection:
                return connection.request(method, path, headers, body, bytes_max=RESPONSE_BYTES_MAX)
        except (OSError, OutboundRefused, TransportError) as error:
            raise IdentityError(f"cannot reach {self._url.netloc}: {' '.join(str(error).split())}")

    def _connect(self) -> OutboundConnection:
        tls = None
        if self._url.scheme == "https":
            tls = ssl.create_default_context(cafile=self._ca_file or None)
        host = self._url.hostname or ""
        port = self._url.port or (443 if tls else 80)
        return Outbound().connection(
            self._url.scheme, host, port, Trust.OPERATOR, timeout_s=TIMEOUT_S, tls=tls
        )


def import_tempauth(identities: Identities, section: Mapping[str, str]) -> Iterator[str]:
    """Create the users of a tempauth section, their groups and S3 keys; yield a sentence for each.

    What exists already is left as it is, so that it may be called again. Raises ``SwiftError``.
    """
    users = parse_users(section)
    for name, user in users.items():
        qualified = ":".join(name)
        groups = [group for group in user.groups if not group.startswith(".")]
        for group in groups:
            yield from _create(identities, "CreateGroup", group=f"{user.account}:{group}", plain=True)
        chosen = [*(group for group in user.groups if group in _RIGHTS), *groups]
        yield from _create(
            identities, "CreateUser", user=qualified, password=user.key, groups=chosen, imported=True
        )
    for access_key, key in parse_access_keys(section, users).items():
        owner = f"{key.user.account}:{key.user.name}"
        yield from _create(
            identities,
            "CreateAccessKey",
            user=owner,
            access_key=access_key,
            secret_key=key.secret,
            imported=True,
        )


def _create(identities: Identities, operation: str, **params: object) -> Iterator[str]:
    kind = next(kind for kind in ("access_key", "group", "user") if kind in params)
    noun, name = kind.replace("_", " "), params[kind]
    try:
        identities.call(operation, **params)
    except SwiftError as error:
        if "already" not in str(error):
            raise
        yield f"{noun} {name} is there already"
        return
    yield f"{noun} {name} created"

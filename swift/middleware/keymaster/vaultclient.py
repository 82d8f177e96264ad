"""Client of the transit engine of HashiCorp Vault or OpenBao: log-in, its renewal, unwrapping.

Each request has a connection of its own. Requests and responses are never logged, because they contain
secrets. A response is one of three things: the requested data, a refusal for good (``VaultRefused``), or a
state that may end by itself (``VaultUnavailable``).
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import os
import re
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import SplitResult, urlsplit

from swift import green
from swift.base.errors import ConfigError, SwiftError
from swift.cluster.outbound import Outbound, OutboundRefused, Trust
from swift.cluster.transport import BackendResponse, TransportError
from swift.config.kinds import number
from swift.config.schema import option
from swift.middleware.keymaster.derivation import SECRET_BYTES_MIN
from swift.middleware.keymaster.filter import SecretSettings

RESPONSE_BYTES_MAX = 1 << 20
#: Bytes of a token or secret id file.
_FILE_BYTES_MAX = 65536
#: Part of a log-in's lifetime after which it is renewed.
_RENEWAL_SHARE = 2 / 3
#: Seconds until a renewal that failed is tried again.
RENEWAL_RETRY_S = 10.0
_ERROR_TEXT_MAX = 200
_MOUNT = re.compile(r"[\w.-]+(/[\w.-]+)*\Z", re.ASCII)
_KEY = re.compile(r"[\w.-]+\Z", re.ASCII)

JsonDocument = Mapping[str, object]
CallLater = Callable[[float, Callable[[], None]], object]


class VaultError(SwiftError):
    """A request to Vault failed; ``reason`` names no host and may be shown to clients."""

    def __init__(self, reason: str, detail: str = ""):
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


class VaultUnavailable(VaultError):
    """Vault does not respond, is sealed or is overloaded."""


class VaultRefused(VaultError):
    """Vault refused the request: it lacks the permission, the key or the version of the key."""


@dataclass(frozen=True)
class VaultKeymasterSettings(SecretSettings):
    """``[filter:vault_keymaster]``: wrapped root secrets, and the log-in of this proxy."""

    option_patterns: ClassVar[tuple[str, ...]] = ("wrapped_root_secret_*",)

    wrapped_root_secret: str = option("", "The root secret without an id, wrapped: vault:v1:...")
    vault_url: str = option("", "URL of Vault or OpenBao, such as https://vault:8200.")
    vault_ca_file: str = option("", "Certificates of the service's CAs; empty: those of the system.")
    vault_namespace: str = option("", "Namespace of the transit engine and of the log-in.")
    vault_mount: str = option("transit", "Path at which the transit engine is mounted.")
    vault_timeout: float = option(
        5.0, "Seconds to wait for a connection and for each response.", kind=number(0.1, 60)
    )
    transit_key: str = option("", "Name of the transit key that wraps the root secrets.")
    token_file: str = option("", "A file with a token; it is read again when it changes.")
    approle_mount: str = option("approle", "Path at which the AppRole log-in is mounted.")
    role_id: str = option("", "AppRole to log in with, instead of token_file.")
    secret_id_file: str = option("", "A file with the secret id of the AppRole; read at each log-in.")
    secret_seconds: float = option(
        300.0, "Seconds after which unwrapped root secrets are unwrapped again.", kind=number(1)
    )
    outage_seconds: float = option(
        3600.0,
        "Further seconds for which they serve while Vault does not respond or is sealed.",
        kind=number(0),
    )

    @property
    def url(self) -> SplitResult:
        """The parsed URL."""
        return urlsplit(self.vault_url)


def check_vault_settings(settings: VaultKeymasterSettings, source: str) -> None:
    """Raise ``ConfigError`` for options that do not name a service, a key and one way to log in."""

    def refuse(text: str) -> None:
        raise ConfigError(f"{source}: {text}")

    try:
        url = settings.url
        host, _ = url.hostname, url.port
    except ValueError:
        url, host = urlsplit(""), None
    if url.scheme not in ("http", "https") or not host or url.query or url.fragment or "@" in url.netloc:
        refuse("option vault_url must be a URL of http or https without user, query and fragment")
    for name in ("vault_mount", "approle_mount"):
        if not _MOUNT.match(getattr(settings, name)):
            refuse(f"option {name} must be the path of a mount")
    if not _KEY.match(settings.transit_key):
        refuse("option transit_key must be the name of a key")
    if bool(settings.token_file) == bool(settings.role_id):
        refuse("needs one of the options token_file and role_id")
    if settings.role_id and not settings.secret_id_file:
        refuse("option role_id needs secret_id_file")


def make_tls(settings: VaultKeymasterSettings, source: str) -> ssl.SSLContext | None:
    """Return the context that verifies the service, None for ``http``; raises ``ConfigError``."""
    if settings.url.scheme != "https":
        return None
    try:
        return ssl.create_default_context(cafile=settings.vault_ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"{source}: option vault_ca_file: {settings.vault_ca_file}: {error}")


class VaultClient:
    """Unwraps root secrets; green threads may share it."""

    def __init__(
        self,
        settings: VaultKeymasterSettings,
        tls: ssl.SSLContext | None = None,
        *,
        outbound: Outbound | None = None,
        clock: Callable[[], float] = time.monotonic,
        later: CallLater | None = None,
    ):
        """``later`` starts the renewal of the log-in while nothing is unwrapped; None: it is not renewed."""
        self._settings = settings
        self._tls = tls
        self._outbound = outbound or Outbound()
        self._clock = clock
        self._later = later
        self._lock = green.Semaphore()
        self._token = ""
        self._token_stat: tuple[int, ...] = ()
        #: The longest lifetime that the log-in had, 0 for one without end; and when it is to be renewed.
        self._lifetime_s = 0.0
        self._renew_at = math.inf

    # the transit engine

    def unwrap(self, wrapped: str) -> bytes:
        """Return the root secret; raises ``VaultError``."""
        data = self._call(
            f"{self._settings.vault_mount}/decrypt/{self._settings.transit_key}", {"ciphertext": wrapped}
        )
        try:
            secret = base64.b64decode(str(data.get("plaintext", "")), validate=True)
        except (binascii.Error, ValueError):
            secret = b""
        if len(secret) < SECRET_BYTES_MIN:
            raise VaultRefused(f"the unwrapped root secret has fewer than {SECRET_BYTES_MIN} bytes")
        return secret

    def make_wrapped_secret(self) -> str:
        """Return a new root secret that only Vault can unwrap; raises ``VaultError``."""
        data = self._call(
            f"{self._settings.vault_mount}/datakey/wrapped/{self._settings.transit_key}", {"bits": 256}
        )
        wrapped = data.get("ciphertext")
        if not isinstance(wrapped, str) or not is_wrapped(wrapped):
            raise VaultRefused("the key service returned no wrapped secret")
        return wrapped

    def _call(self, path: str, document: JsonDocument) -> JsonDocument:
        """Return the data of a response; logs in again once if the log-in is not valid any more."""
        for is_retry in (False, True):
            with self._lock:
                token = self._current_token(is_refused=is_retry)
            response = self._send(path, document, token)
            if response.status != 403:
                break
        data = _document_of(response).get("data")
        return data if isinstance(data, dict) else {}

    # the log-in

    def _current_token(self, *, is_refused: bool = False) -> str:
        """Return a token; raises ``VaultError``."""
        if self._settings.token_file:
            self._read_token(again=is_refused)
        elif is_refused or not self._token:
            self._log_in()
        if self._clock() >= self._renew_at:
            self._renew()
        return self._token

    def _read_token(self, *, again: bool) -> None:
        """Read the token's file if it changed."""
        path = self._settings.token_file
        try:
            found = os.stat(path)
        except OSError as error:
            raise VaultUnavailable("the token of the key service cannot be read", f"{path}: {error.strerror}")
        stat = (found.st_ino, found.st_mtime_ns, found.st_size)
        if again or stat != self._token_stat:
            self._token, self._token_stat = _read_word(path, "token"), stat
            # Its lifetime is known by its renewal only.
            self._renew_at = self._clock()

    def _log_in(self) -> None:
        settings = self._settings
        document = {
            "role_id": settings.role_id,
            "secret_id": _read_word(settings.secret_id_file, "secret id"),
        }
        self._lifetime_s = 0.0
        if not self._adopt(_document_of(self._send(f"auth/{settings.approle_mount}/login", document, ""))):
            raise VaultRefused("the key service returned no token")

    def _renew(self) -> None:
        """Renew the log-in, or log in again where it has a longest lifetime."""
        try:
            response = self._send("auth/token/renew-self", {}, self._token)
        except VaultUnavailable:
            # The token may still be good; its use shows that.
            self._renew_after(RENEWAL_RETRY_S)
            return
        self._renew_at = math.inf
        if response.status == 200:
            lifetime_s = self._lifetime_s
            self._adopt(_document_of(response))
            is_ending = 0 < self._lifetime_s < lifetime_s / 2
            self._lifetime_s = max(lifetime_s, self._lifetime_s)
        else:
            is_ending = True
        if is_ending and self._settings.role_id:
            try:
                self._log_in()
            except VaultError:
                self._renew_after(RENEWAL_RETRY_S)

    def _adopt(self, document: JsonDocument) -> bool:
        """Take the token of a response, and plan its renewal; return False if there is none."""
        auth = document.get("auth")
        token = auth.get("client_token") if isinstance(auth, dict) else None
        if not isinstance(auth, dict) or not isinstance(token, str) or not token:
            return False
        lease_s = auth.get("lease_duration")
        self._token = token
        self._lifetime_s = float(lease_s) if isinstance(lease_s, int) else 0.0
        if self._lifetime_s > 0:
            self._renew_after(self._lifetime_s * _RENEWAL_SHARE)
        else:
            self._renew_at = math.inf
        return True

    def _renew_after(self, seconds: float) -> None:
        self._renew_at = self._clock() + seconds
        if self._later is not None:
            self._later(seconds, self._renew_if_due)

    def _renew_if_due(self) -> None:
        """Renew the log-in of a proxy that has no requests; an error shows at the next request."""
        with self._lock:
            if self._token and self._clock() >= self._renew_at:
                try:
                    self._renew()
                except VaultError:
                    self._renew_after(RENEWAL_RETRY_S)

    # one request

    def _send(self, path: str, document: JsonDocument, token: str) -> BackendResponse:
        """Return the response to a POST; raises ``VaultUnavailable``."""
        settings, url = self._settings, self._settings.url
        headers = {"content-type": "application/json", "x-vault-request": "true"}
        if token:
            headers["x-vault-token"] = token
        if settings.vault_namespace:
            headers["x-vault-namespace"] = settings.vault_namespace
        target = f"{url.path.rstrip('/')}/v1/{path}"
        try:
            with self._outbound.connection(
                url.scheme,
                url.hostname or "",
                url.port,
                Trust.OPERATOR,
                timeout_s=settings.vault_timeout,
                tls=self._tls,
            ) as connection:
                body = json.dumps(document).encode()
                response = connection.request("POST", target, headers, body, bytes_max=RESPONSE_BYTES_MAX)
        except (OutboundRefused, OSError, TransportError, ValueError) as error:
            raise VaultUnavailable(
                "the key service does not respond", f"{url.netloc}: {error or type(error).__name__}"
            )
        if response.status == 429 or response.status >= 500 or response.status // 100 == 3:
            errors = _errors_of(response)
            is_sealed = response.status == 503 and "seal" in errors.lower()
            reason = "the key service is sealed" if is_sealed else "the key service is not available"
            raise VaultUnavailable(reason, f"{url.netloc} responded {response.status} {errors}".rstrip())
        return response

    def __repr__(self) -> str:
        return f"<VaultClient {self._settings.url.netloc} {self._settings.transit_key}>"


def is_wrapped(text: str) -> bool:
    """Return True if a text is a ciphertext of a transit engine."""
    return re.fullmatch(r"vault:v[0-9]+:[A-Za-z0-9+/=]+", text) is not None


def _document_of(response: BackendResponse) -> JsonDocument:
    """Return the document of a successful response; raises ``VaultError``."""
    if response.status // 100 != 2:
        text = f"{response.status} {_errors_of(response)}".rstrip()
        raise VaultRefused(f"the key service refuses the request with {response.status}", text)
    try:
        document = json.loads(response.body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise VaultUnavailable("the response of the key service cannot be read")
    return document


def _errors_of(response: BackendResponse) -> str:
    """Return the errors in a response as one line."""
    try:
        errors = json.loads(response.body)["errors"]
        text = "; ".join(str(error) for error in errors)
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""
    return "".join(c if c.isprintable() else " " for c in text)[:_ERROR_TEXT_MAX]


def _read_word(path: str, noun: str) -> str:
    """Return the content of a file without its line end; raises ``VaultUnavailable``."""
    reason = f"the {noun} of the key service cannot be read"
    try:
        with open(path, encoding="ascii") as file:
            word = file.read(_FILE_BYTES_MAX).strip()
    except (OSError, UnicodeError) as error:
        raise VaultUnavailable(reason, f"{path}: {error}")
    if not word or not word.isprintable():
        raise VaultUnavailable(reason, f"{path} has no single line of text")
    return word

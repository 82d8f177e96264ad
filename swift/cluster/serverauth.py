"""Requests between servers carry a signature, so that a storage server knows that a server sent them.

The header ``X-Backend-Server-Auth`` is ``1 <key id> <time> <nonce> <HMAC-SHA256>``
(doc/formats/server-authentication.md). ``ServerSecrets`` reads the keys, ``Signer`` makes the header for
``cluster.exchange``, ``Verifier`` checks it for ``runtime.serverguard``. The decision what happens to
a request without a valid one is there, and which requests need none.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import random
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256

from swift.base.clock import Clock, SystemClock
from swift.base.errors import SwiftError
from swift.cluster.transport import TransportError
from swift.http import fields
from swift.http.headers import title_case

VERSION = "1"
SECRET_BYTES_MIN = 32
#: Bytes of a secret that is made here.
NEW_SECRET_BYTES = 32
SECRETS_MAX = 16
FILE_BYTES_MAX = 64 << 10
#: The file is looked at for changes this often, seconds.
LOOK_EVERY_S = 1.0
#: A nonce is random so that no two servers choose the same, not because it is secret.
NONCE_BITS = 64
_BLOCK_BYTES = 64
#: Headers that the signature does not cover: its own, and the one that ends at each connection.
_UNSIGNED = frozenset((fields.BACKEND_SERVER_AUTH, "connection", "host"))
_KEY_ID = re.compile(r"[A-Za-z0-9._-]{1,32}\Z")
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2})+\Z")
#: Whitespace around values that does not belong to them.
_SPACE = " \t"
_FIELD = title_case(fields.BACKEND_SERVER_AUTH)


class SecretError(SwiftError):
    """A file of secrets that is not used, with the reason."""


def make_secret() -> str:
    """Return a new secret as a file has it."""
    return os.urandom(NEW_SECRET_BYTES).hex()


def parse_secrets(text: str, path: str) -> dict[str, bytes]:
    """Return the secrets of a file by their ids, the one that signs first; raises ``SecretError``.

    Errors name the line, never its content.
    """
    if not text.endswith("\n"):
        raise SecretError(f"{path}: the last line has no end, so the file may be cut off")
    found: dict[str, bytes] = {}
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        where = f"{path}, line {number}"
        if len(words) != 2:
            raise SecretError(f"{where}: it must be an id and a secret")
        key_id, secret = words[0], _parse_secret(words[1])
        if not _KEY_ID.match(key_id):
            raise SecretError(f"{where}: an id has 1 to 32 letters, digits, '.', '_' and '-'")
        if key_id in found:
            raise SecretError(f"{where}: the id {key_id} is there twice")
        if secret is None or len(secret) < SECRET_BYTES_MIN:
            raise SecretError(
                f"{where}: the secret must be at least {SECRET_BYTES_MIN} bytes, in hexadecimal or base64"
            )
        found[key_id] = secret
    if not found:
        raise SecretError(f"{path} has no secret")
    if len(found) > SECRETS_MAX:
        raise SecretError(f"{path} has more than {SECRETS_MAX} secrets")
    return found


def _parse_secret(word: str) -> bytes | None:
    if _HEX.match(word):
        return bytes.fromhex(word)
    try:
        return base64.b64decode(word, validate=True)
    except binascii.Error:
        return None


#: Inode, size, times of content and of the inode (owner and permissions).
_Identity = tuple[int, int, int, int]


def _identity_of(status: os.stat_result) -> _Identity:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def read_secrets(path: str) -> tuple[dict[str, bytes], _Identity]:
    """Return the secrets of a file and its identity; raises ``SecretError`` and ``FileNotFoundError``."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise SecretError(f"{path} is no regular file")
            if status.st_mode & stat.S_IRWXO:
                raise SecretError(
                    f"{path}: all users may read or write it; remove their rights: chmod o= {path}"
                )
            data = os.read(fd, FILE_BYTES_MAX + 1)
        finally:
            os.close(fd)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SecretError(f"cannot read {path}: {error.strerror}")
    if len(data) > FILE_BYTES_MAX:
        raise SecretError(f"{path} is larger than {FILE_BYTES_MAX} bytes")
    try:
        return parse_secrets(data.decode("ascii"), path), _identity_of(status)
    except UnicodeDecodeError:
        raise SecretError(f"{path} has bytes that are not ASCII")


class Key:
    """HMAC-SHA256 with one secret (RFC 2104), whose padding is hashed once."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, secret: bytes):
        block = (sha256(secret).digest() if len(secret) > _BLOCK_BYTES else secret).ljust(_BLOCK_BYTES, b"\0")
        self._inner = sha256(bytes(byte ^ 0x36 for byte in block))
        self._outer = sha256(bytes(byte ^ 0x5C for byte in block))

    def sign(self, text: bytes) -> str:
        """Return the code of a text in hexadecimal."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(text)
        outer.update(inner.digest())
        return outer.hexdigest()

    def __repr__(self) -> str:
        return "<Key>"


@dataclass(frozen=True)
class Keys:
    """The secrets in use: the one that signs, and all that are valid."""

    signing_id: str = ""
    by_id: Mapping[str, Key] = field(default_factory=dict, repr=False)


NO_KEYS = Keys()


class ServerSecrets:
    """The secrets of a file, read again after it changed.

    Without the file there are none; it may appear later. Secrets that were read stay in use while the file is
    missing or damaged; ``report`` gets a sentence about it once.
    """

    def __init__(self, path: str, *, clock: Clock | None = None, report: Callable[[str], None] | None = None):
        self.path = path
        #: Replaced as a whole; read it without a look at the file where ``current`` was called just before.
        self.keys = NO_KEYS
        self._monotonic = (clock or SystemClock()).monotonic
        self._report = report
        self._identity: _Identity | None = None
        self._look_at_s = float("-inf")
        self._reported = ""

    def current(self) -> Keys:
        """Return the secrets in use."""
        now_s = self._monotonic()
        if now_s >= self._look_at_s:
            self._look_at_s = now_s + LOOK_EVERY_S
            self._look()
        return self.keys

    def load(self) -> Keys:
        """Return the secrets of the file as it is now; raises ``SecretError``, also if it is missing."""
        try:
            self._read()
        except FileNotFoundError:
            raise SecretError(f"{self.path} is missing")
        return self.keys

    def _look(self) -> None:
        try:
            if _identity_of(os.stat(self.path)) != self._identity:
                self._read()
            self._reported = ""
        except FileNotFoundError:
            if self.keys is not NO_KEYS:
                self._report_once(f"{self.path} is missing; the secrets that were read before stay in use")
        except OSError as error:
            self._report_once(f"cannot read {self.path}: {error.strerror}")
        except SecretError as error:
            kept = "; the secrets that were read before stay in use" if self.keys is not NO_KEYS else ""
            self._report_once(f"{error}{kept}")

    def _read(self) -> None:
        secrets, self._identity = read_secrets(self.path)
        self.keys = Keys(next(iter(secrets)), {key_id: Key(secret) for key_id, secret in secrets.items()})

    def _report_once(self, sentence: str) -> None:
        if sentence != self._reported and self._report is not None:
            self._report(sentence)
        self._reported = sentence

    def __repr__(self) -> str:
        return f"ServerSecrets({self.path!r}, ids {list(self.keys.by_id)})"


def text_to_sign(method: str, path: str, query: str, host: str, headers: Mapping[str, str]) -> bytes:
    """Return the bytes that a signature covers, besides its own time and nonce.

    Names with an underscore are left out: servers drop such headers.
    """
    lines = [f"{name}:{value}" for name, value in headers.items() if name not in _UNSIGNED]
    lines.sort()
    text = "\n".join(lines)
    # Checks of the whole, because there is seldom such a line.
    if (
        "_" in "".join(headers)
        or (": " in text or ":\t" in text)
        or (" \n" in text or "\t\n" in text)
        or text.endswith((" ", "\t"))
    ):
        lines = [
            f"{name}:{value.strip(_SPACE)}"
            for name, value in headers.items()
            if name not in _UNSIGNED and "_" not in name
        ]
        text = "\n".join(sorted(lines))
    return f"{method}\n{path}\n{query}\n{host}\n{text}".encode("latin-1", "replace")


class Signer:
    """Signs requests to storage servers; without secrets it leaves them as they are."""

    def __init__(self, secrets: ServerSecrets, clock: Clock | None = None):
        self._secrets = secrets
        self._time = (clock or SystemClock()).time

    def text_of(self, method: str, target: str, host: str, headers: Mapping[str, str]) -> bytes:
        """Return the text that ``line`` signs; empty without secrets.

        ``target`` is the path with its query as sent, ``headers`` all others that are sent.
        """
        if self._secrets.current() is NO_KEYS:
            return b""
        path, _, query = target.partition("?")
        return text_to_sign(method, path, query, headers.get("host", host), headers)

    def line(self, text: bytes) -> bytes:
        """Return the header line for one sending of a request; each has a time and nonce of its own."""
        keys = self._secrets.keys
        begin = f"{VERSION} {keys.signing_id} {self._time():.3f} {random.getrandbits(NONCE_BITS):016x}"
        mac = keys.by_id[keys.signing_id].sign(b"%b\n%b" % (begin.encode("ascii"), text))
        return f"{_FIELD}: {begin} {mac}\r\n".encode("ascii")

    def __repr__(self) -> str:
        return f"Signer({self._secrets!r})"


class RefusedByServer(TransportError):
    """A storage server takes a request for one from outside its cluster: it tells nothing about its data."""


def check_refusal(status: int, headers: Mapping[str, str]) -> None:
    """Raise ``RefusedByServer`` for the response of a server that refused the request's signature."""
    if status == 403 and fields.BACKEND_SERVER_AUTH in headers:
        raise RefusedByServer(f"refused: {headers[fields.BACKEND_SERVER_AUTH]}")


class Refusal(Enum):
    """Reasons why a request is not known to be from a server of the cluster."""

    UNSIGNED = "unsigned"
    MALFORMED = "malformed"
    UNKNOWN_KEY = "unknown_key"
    WRONG_SIGNATURE = "wrong_signature"
    WRONG_TIME = "wrong_time"
    WRONG_HOST = "wrong_host"
    REPLAYED = "replayed"


#: Takes a nonce, its time and the time now; False if the nonce was taken before.
TakeNonce = Callable[[int, float, float], bool]


class Verifier:
    """Checks signatures of requests to this server."""

    def __init__(
        self,
        secrets: ServerSecrets,
        take_nonce: TakeNonce,
        is_own_host: Callable[[str], bool],
        *,
        window_s: float,
        clock: Clock | None = None,
    ):
        """``is_own_host`` tells if a ``Host`` header is an address of this server.

        A time may differ from the clock by ``window_s``.
        """
        self._secrets = secrets
        self._take_nonce = take_nonce
        self._is_own_host = is_own_host
        self._window_s = window_s
        self._time = (clock or SystemClock()).time

    def check(
        self, method: str, path: str, query: str, headers: Mapping[str, str]
    ) -> tuple[Refusal, str] | None:
        """Return None for a valid signature, else why it is none: a reason and a sentence."""
        value = headers.get(fields.BACKEND_SERVER_AUTH)
        if value is None:
            return Refusal.UNSIGNED, "the request has no signature of a server"
        parts = value.split(" ")
        if len(parts) != 5 or parts[0] != VERSION:
            return Refusal.MALFORMED, f"the header {_FIELD} has another form than that of version {VERSION}"
        key = self._secrets.current().by_id.get(parts[1])
        if key is None:
            return Refusal.UNKNOWN_KEY, "this server does not have the secret of that id"
        host = headers.get("host", "")
        begin, _, given = value.rpartition(" ")
        text = text_to_sign(method, path, query, host, headers)
        mac = key.sign(b"%b\n%b" % (begin.encode("latin-1", "replace"), text))
        if not given.isascii() or not hmac.compare_digest(mac, given):
            return Refusal.WRONG_SIGNATURE, "the signature is not that of the request"
        return self._check_signed(parts[2], parts[3], host)

    def _check_signed(self, time_text: str, nonce_text: str, host: str) -> tuple[Refusal, str] | None:
        """Check values that a server of the cluster has signed."""
        now_s = self._time()
        try:
            time_s, nonce = float(time_text), int(nonce_text, 16)
            ahead_s = time_s - now_s
        except ValueError:
            return Refusal.MALFORMED, "the time or nonce of the signature is no number"
        if not -self._window_s <= ahead_s <= self._window_s:
            return Refusal.WRONG_TIME, f"the signature's time is {ahead_s:+.1f} s from this server's clock"
        if not 0 <= nonce < 1 << NONCE_BITS:
            return Refusal.MALFORMED, "the nonce of the signature is no number of 64 bits"
        if not self._is_own_host(host):
            return Refusal.WRONG_HOST, "the request is signed for another address than this server's"
        if not self._take_nonce(nonce, time_s, now_s):
            return Refusal.REPLAYED, "a request with this signature was served before"
        return None

    def __repr__(self) -> str:
        return f"Verifier({self._secrets!r})"

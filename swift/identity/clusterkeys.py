"""The keys of a cluster: from a file on each proxy, everything else is derived from them.

A line of the file is ``<id> <base64 of 32 bytes>``; the first one is used for what is new, all of them for
what is there, so that keys can be rotated. Derived keys are HKDF-SHA-256 (RFC 5869) of a key and a purpose.
"""

from __future__ import annotations

import base64
import hmac
import os
import re
import secrets
import stat
from functools import cache
from hashlib import sha256
from typing import NamedTuple

from swift.base.errors import ConfigError, SwiftError

KEY_BYTES = 32
_NONCE_BYTES = 12
_FILE_BYTES_MAX = 1 << 16
_is_id = re.compile(r"[A-Za-z0-9-]{1,32}", re.ASCII).fullmatch
_SALT = b"swift.identity"


class Unreadable(SwiftError):
    """Something sealed that no key of the cluster opens."""


class ClusterKey(NamedTuple):
    """One key and its id."""

    id: str
    secret: bytes

    def __repr__(self) -> str:
        return f"<ClusterKey {self.id}>"


class ClusterKeys:
    """The keys of a cluster, the active one first."""

    def __init__(self, keys: tuple[ClusterKey, ...]):
        if not keys:
            raise ValueError("a cluster has one key at least")
        self._keys = {key.id: key for key in keys}
        self.active_id = keys[0].id
        self._derived = cache(self._derive)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids, the active one first."""
        return tuple(self._keys)

    def _derive(self, key_id: str, purpose: str) -> bytes:
        known = self._keys.get(key_id)
        if known is None:
            raise Unreadable(f"the cluster has no key {key_id[:32]!a}")
        extracted = hmac.digest(_SALT, known.secret, sha256)
        return hmac.digest(extracted, purpose.encode("ascii") + b"\x01", sha256)

    # signatures

    def sign(self, purpose: str, data: bytes, key_id: str = "") -> bytes:
        """Return the HMAC-SHA-256 of ``data`` with the active key, or another, for a purpose.

        Raises ``Unreadable`` for an unknown key.
        """
        return hmac.digest(self._derived(key_id or self.active_id, purpose), data, sha256)

    def is_signed(self, purpose: str, data: bytes, signature: bytes, key_id: str) -> bool:
        """Return True if a key of the cluster made the signature; compares in constant time."""
        if key_id not in self._keys:
            return False
        return hmac.compare_digest(self.sign(purpose, data, key_id), signature)

    # secrets

    def seal(self, secret: str, owner: str) -> str:
        """Return a secret encrypted by AES-256-GCM: ``<key id>:<base64>``; only its owner opens it."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = secrets.token_bytes(_NONCE_BYTES)
        cipher = AESGCM(self._derived(self.active_id, "seal"))
        sealed = cipher.encrypt(nonce, secret.encode("utf-8"), owner.encode("utf-8"))
        return f"{self.active_id}:{base64.b64encode(nonce + sealed).decode('ascii')}"

    def open(self, sealed: str, owner: str) -> str:
        """Return a secret; raise ``Unreadable`` if no key opens it or it is of another owner."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        key_id, _, text = sealed.partition(":")
        try:
            data = base64.b64decode(text, validate=True)
            cipher = AESGCM(self._derived(key_id, "seal"))
            opened = cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], owner.encode("utf-8"))
            return opened.decode("utf-8")
        except (InvalidTag, ValueError):
            raise Unreadable(f"the secret of {owner[:128]!a} is damaged or of another cluster")

    def __repr__(self) -> str:
        return f"<ClusterKeys {', '.join(self.ids)}>"


# --- the file -----------------------------------------------------------------------------------------


def new_key_line(key_id: str) -> str:
    """Return the line of a new key."""
    return f"{key_id} {base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode('ascii')}\n"


def create_key_file(path: str, owner: tuple[int, int] | None = None) -> None:
    """Create the file with one new key, readable by its owner only; raise OSError, if it exists as well."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "w", encoding="ascii") as file:
        if owner is not None:
            os.fchown(fd, *owner)
        file.write(new_key_line("1"))
        file.flush()
        os.fsync(fd)


def read_key_file(path: str) -> ClusterKeys:
    """Return the keys of a file; raise ``ConfigError``."""
    try:
        with open(path, encoding="ascii") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(_FILE_BYTES_MAX)
    except FileNotFoundError:
        raise ConfigError(f"{path} is missing; swift-user init makes it, and all proxies need the same one")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}")
    if mode & (stat.S_IRWXO | stat.S_IWGRP):
        raise ConfigError(f"{path}: others may read or change it; chmod 0600 {path}")
    keys = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        keys.append(_parse_line(f"{path}:{number}", words))
    if not keys:
        raise ConfigError(f"{path} has no key")
    if len({key.id for key in keys}) != len(keys):
        raise ConfigError(f"{path}: two keys have one id")
    return ClusterKeys(tuple(keys))


def _parse_line(place: str, words: list[str]) -> ClusterKey:
    if len(words) != 2 or not _is_id(words[0]):
        raise ConfigError(f"{place}: a line is <id> <base64 of {KEY_BYTES} bytes>")
    try:
        secret = base64.b64decode(words[1], validate=True)
    except ValueError:
        secret = b""
    if len(secret) != KEY_BYTES:
        raise ConfigError(f"{place}: the key must be {KEY_BYTES} bytes in base64")
    return ClusterKey(words[0], secret)

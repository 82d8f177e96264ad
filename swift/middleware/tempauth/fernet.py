"""Fernet tokens, which contain the user's groups and need no cache (spec: middleware.md §1.1).

A token is the user's groups, encrypted with a key that all proxies share (Fernet: AES-128-CBC, HMAC-SHA-256
and the time of issue). New tokens use the active key. Tokens of every configured key are accepted, so that
keys can be rotated while old tokens are valid. Keys require the ``cryptography`` package.
"""

from __future__ import annotations

import base64
import time
import zlib
from collections import OrderedDict
from collections.abc import Mapping

from swift.base.errors import ConfigError

PLAIN_MARK, COMPRESSED_MARK = "ftk", "zftk"
_OPTION_PREFIX = "fernet_key_"
#: Longest group string; bounds the decompression of tokens.
_GROUPS_BYTES_MAX = 1 << 16
#: Validated tokens that a process caches to avoid decryption.
_CACHED_TOKENS_MAX = 1000


class FernetTokens:
    """Creates and validates Fernet tokens, which expire ``life_s`` seconds after their issue."""

    def __init__(self, keys: Mapping[str, str], active_id: str, *, life_s: int):
        try:
            from cryptography.fernet import Fernet, InvalidToken, MultiFernet
        except ImportError:
            raise ConfigError(
                f"option {_OPTION_PREFIX}{next(iter(keys))} needs the Python package cryptography"
            )
        self._invalid_token = InvalidToken
        self._life_s = life_s
        ciphers = {}
        for key_id, key in keys.items():
            try:
                ciphers[key_id] = Fernet(key)
            except ValueError:
                raise ConfigError(f"option {_OPTION_PREFIX}{key_id} must be 32 bytes in URL-safe base64")
        self._active_cipher = ciphers.get(active_id)
        self._all_ciphers = MultiFernet(ciphers.values())
        #: Token → (Unix second of its expiry, groups), the oldest first.
        self._cached: OrderedDict[str, tuple[float, str]] = OrderedDict()

    @property
    def can_create_tokens(self) -> bool:
        """True if there is an active key."""
        return self._active_cipher is not None

    def create_token(self, groups: str) -> str:
        """Return a token for a group string, without the reseller prefix."""
        assert self._active_cipher is not None, "only an active key makes tokens"
        data = groups.encode("utf-8")
        compressed = zlib.compress(data)
        if len(compressed) < len(data):
            return COMPRESSED_MARK + str(self._active_cipher.encrypt(compressed), "ascii")
        return PLAIN_MARK + str(self._active_cipher.encrypt(data), "ascii")

    def read_token(self, token: str) -> str | None:
        """Return the groups of a token without its reseller prefix; None for an invalid or expired token."""
        cached = self._cached.get(token)
        if cached is not None:
            return cached[1] if time.time() <= cached[0] else None
        groups = self._decrypt(token)
        if groups is not None:
            if len(self._cached) >= _CACHED_TOKENS_MAX:
                self._cached.popitem(last=False)
            self._cached[token] = _issued_at(token) + self._life_s, groups
        return groups

    def _decrypt(self, token: str) -> str | None:
        compressed = token.startswith(COMPRESSED_MARK)
        if not compressed and not token.startswith(PLAIN_MARK):
            return None
        sealed = token[len(COMPRESSED_MARK if compressed else PLAIN_MARK) :]
        if not _is_canonical(sealed):
            return None
        try:
            data = self._all_ciphers.decrypt(sealed.encode("latin-1"), ttl=self._life_s)
            if compressed:
                data = zlib.decompressobj().decompress(data, _GROUPS_BYTES_MAX)
            return str(data, "utf-8")
        except (self._invalid_token, zlib.error, UnicodeError):
            return None


def _is_canonical(sealed: str) -> bool:
    """Return True if a text is the canonical base64 of its bytes: decoders accept other forms too."""
    try:
        data = base64.b64decode(sealed, altchars=b"-_", validate=True)
    except ValueError:
        return False
    return base64.urlsafe_b64encode(data).decode("ascii") == sealed


def _issued_at(token: str) -> int:
    """Return the Unix second of issue of a valid token: bytes 1 to 8 of the encrypted part."""
    sealed = token[len(COMPRESSED_MARK if token.startswith(COMPRESSED_MARK) else PLAIN_MARK) :]
    return int.from_bytes(base64.urlsafe_b64decode(sealed[:12])[1:9], "big")


def make_fernet_tokens(conf: Mapping[str, object], active_id: str, *, life_s: int) -> FernetTokens | None:
    """Return the tokens of the ``fernet_key_<id>`` options; None without any. Raises ``ConfigError``."""
    keys = {
        name[len(_OPTION_PREFIX) :]: str(value).strip()
        for name, value in conf.items()
        if name.startswith(_OPTION_PREFIX)
    }
    if active_id and active_id not in keys:
        raise ConfigError(
            f"option active_fernet_key_id names {active_id!r}, but there is no {_OPTION_PREFIX}{active_id}"
        )
    return FernetTokens(keys, active_id, life_s=life_s) if keys else None

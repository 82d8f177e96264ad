"""Tokens that carry their groups themselves, so that no cache remembers them (spec: middleware.md §1.1).

A token is the caller's groups, encrypted with a key that all proxies share (Fernet: AES-128-CBC, HMAC-SHA-256
and the time of issue). New tokens use the active key; tokens of every configured key are accepted, so that
keys can be exchanged while old tokens run out. Needs the ``cryptography`` package when a key is configured.
"""

from __future__ import annotations

import base64
import time
import zlib
from collections import OrderedDict
from collections.abc import Mapping

from swift.base.errors import ConfigError

PLAIN, COMPRESSED = "ftk", "zftk"
_OPTION = "fernet_key_"
#: No group string is longer; a compressed token must not unpack to more.
_GROUPS_BYTES_MAX = 1 << 16
#: Good tokens that a process remembers, so that their next use costs no decryption.
_REMEMBERED_MAX = 1000


class FernetTokens:
    """Makes and reads such tokens; ``life_s`` seconds after its issue a token is over."""

    def __init__(self, keys: Mapping[str, str], active_id: str, *, life_s: int):
        try:
            from cryptography.fernet import Fernet, InvalidToken, MultiFernet
        except ImportError:
            raise ConfigError(f"option {_OPTION}{next(iter(keys))} needs the Python package cryptography")
        self._invalid = InvalidToken
        self._life_s = life_s
        ciphers = {}
        for key_id, key in keys.items():
            try:
                ciphers[key_id] = Fernet(key)
            except ValueError:
                raise ConfigError(f"option {_OPTION}{key_id} must be 32 bytes in URL-safe base64")
        self._active = ciphers.get(active_id)
        self._all = MultiFernet(ciphers.values())
        #: Token → (Unix second of its end, groups), the longest remembered first.
        self._known: OrderedDict[str, tuple[float, str]] = OrderedDict()

    @property
    def makes_tokens(self) -> bool:
        """True if there is an active key."""
        return self._active is not None

    def seal(self, groups: str) -> str:
        """Return the token of a group string, without the reseller prefix."""
        assert self._active is not None, "only an active key makes tokens"
        data = groups.encode("utf-8")
        packed = zlib.compress(data)
        if len(packed) < len(data):
            return COMPRESSED + str(self._active.encrypt(packed), "ascii")
        return PLAIN + str(self._active.encrypt(data), "ascii")

    def open(self, token: str) -> str | None:
        """Return the groups of a token without its reseller prefix; None when it is none, forged or over."""
        known = self._known.get(token)
        if known is not None:
            return known[1] if time.time() <= known[0] else None
        groups = self._decrypted(token)
        if groups is not None:
            if len(self._known) >= _REMEMBERED_MAX:
                self._known.popitem(last=False)
            self._known[token] = _issued_at(token) + self._life_s, groups
        return groups

    def _decrypted(self, token: str) -> str | None:
        compressed = token.startswith(COMPRESSED)
        if not compressed and not token.startswith(PLAIN):
            return None
        sealed = token[len(COMPRESSED if compressed else PLAIN) :]
        if not _is_canonical(sealed):
            return None
        try:
            data = self._all.decrypt(sealed.encode("latin-1"), ttl=self._life_s)
            if compressed:
                data = zlib.decompressobj().decompress(data, _GROUPS_BYTES_MAX)
            return str(data, "utf-8")
        except (self._invalid, zlib.error, UnicodeError):
            return None


def _is_canonical(sealed: str) -> bool:
    """Return True if a text is the one base64 form of its bytes: decoders accept others too."""
    try:
        data = base64.b64decode(sealed, altchars=b"-_", validate=True)
    except ValueError:
        return False
    return base64.urlsafe_b64encode(data).decode("ascii") == sealed


def _issued_at(token: str) -> int:
    """Return the Unix second in which a genuine token was made: bytes 1 to 8 of the sealed part."""
    sealed = token[len(COMPRESSED if token.startswith(COMPRESSED) else PLAIN) :]
    return int.from_bytes(base64.urlsafe_b64decode(sealed[:12])[1:9], "big")


def fernet_tokens(conf: Mapping[str, object], active_id: str, *, life_s: int) -> FernetTokens | None:
    """From ``fernet_key_<id>`` options; None when there are none. Raises ``ConfigError``."""
    keys = {
        name[len(_OPTION) :]: str(value).strip() for name, value in conf.items() if name.startswith(_OPTION)
    }
    if active_id and active_id not in keys:
        raise ConfigError(
            f"option active_fernet_key_id names {active_id!r}, but there is no {_OPTION}{active_id}"
        )
    return FernetTokens(keys, active_id, life_s=life_s) if keys else None

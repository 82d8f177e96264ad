"""Signatures of temporary URLs and upload forms: texts, digests and keys (spec: middleware.md §3, §4).

A signature is the HMAC of a text that states the allowed request. Its format is lower-case hexadecimal, whose
length identifies the digest, or ``<digest>:<base64>``. Digests that are not allowed are treated like invalid
signatures.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from swift.base.entity import EntityPath
from swift.config.kinds import Kind
from swift.gateway.info import account_info, container_info
from swift.gateway.subrequest import Forward
from swift.http.request import Request

#: Digest → characters of its hexadecimal form.
HEX_LENGTHS = {"sha1": 40, "sha256": 64, "sha512": 128}
#: Deprecated digests, still allowed.
DEPRECATED_DIGESTS = frozenset(("sha1",))
#: Metadata of accounts and containers that contains the keys.
KEY_METADATA_NAMES = ("temp-url-key", "temp-url-key-2")

_is_hex = re.compile(r"[0-9a-f]+").fullmatch
#: Limits of expiry times: longer texts and later times are invalid, because their dates cannot be formatted.
_NUMBER_CHARS_MAX = 32
_EXPIRY_MAX = 10**13


def _parse_digests(text: str) -> tuple[str, ...]:
    names = {name.lower() for name in text.split()}
    digests = tuple(name for name in HEX_LENGTHS if name in names)
    if not digests:
        raise ValueError(f"must name one of {', '.join(HEX_LENGTHS)}, not {text!r}")
    return digests


DIGESTS_KIND = Kind("digests", _parse_digests, " ".join)


@dataclass(frozen=True, slots=True)
class Signature:
    """A parsed signature: the digest's name and the hexadecimal value."""

    digest: str
    value: str


@dataclass(frozen=True, slots=True)
class Key:
    """A secret of an account or container; its signatures are limited to ``scope``."""

    secret: bytes
    scope: EntityPath


def parse_signature(text: str, allowed: Iterable[str]) -> Signature | None:
    """Return a signature of an allowed digest; None for any other text."""
    name, colon, encoded = text.partition(":")
    if colon:
        value = _base64_to_hex(encoded)
    else:
        value = text if _is_hex(text) else ""
        name = next((name for name, length in HEX_LENGTHS.items() if length == len(value)), "")
    if name not in allowed or len(value) != HEX_LENGTHS.get(name):
        return None
    return Signature(name, value)


def _base64_to_hex(encoded: str) -> str:
    """Return base64 of either alphabet as hexadecimal; empty for any other text."""
    plain = encoded.replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True).hex()
    except (binascii.Error, ValueError):
        return ""


def parse_expiry(text: str) -> int | None:
    """Return the Unix second at which a link or form expires; None for an invalid text.

    The text is a number or a time such as ``2026-11-21T02:15:23Z``. Numbers may have signs and underscores,
    as OpenStack Swift accepts them.
    """
    if len(text) > _NUMBER_CHARS_MAX:
        return None
    try:
        second = int(text)
    except ValueError:
        try:
            second = int(datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp())
        except ValueError:
            return None
    return second if second <= _EXPIRY_MAX else None


def get_keys(request: Request, forward: Forward, path: EntityPath) -> list[Key]:
    """Return the keys of the account of ``path``, then those of its container, without empty ones."""
    account = EntityPath(path.account)
    metas = [(account, account_info(request, forward, path.account).meta)]
    if path.container is not None:
        container = EntityPath(path.account, path.container)
        metas.append((container, container_info(request, forward, path.account, path.container).meta))
    return [
        Key(meta[name].encode("utf-8", "surrogateescape"), scope)
        for scope, meta in metas
        for name in KEY_METADATA_NAMES
        if meta.get(name)
    ]


def find_signing_key(signature: Signature, messages: Iterable[bytes], keys: Iterable[Key]) -> Key | None:
    """Return the first key that signed one of ``messages``; None for no match.

    Every key is tried on every message, so that the duration does not reveal which one matched.
    """
    signature_value = signature.value.encode()
    texts = list(messages)
    find_signing_key = None
    for key in keys:
        for text in texts:
            expected = hmac.new(key.secret, text, signature.digest).hexdigest().encode()
            if hmac.compare_digest(expected, signature_value) and find_signing_key is None:
                find_signing_key = key
    return find_signing_key

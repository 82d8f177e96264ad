"""Which names buckets and keys may have (spec: middleware.md §20)."""

from __future__ import annotations

import re

from swift.http.headers import utf8_value

KEY_BYTES_MAX = 1024
#: What the container of a bucket's parts is called after it.
SEGMENTS = "+segments"
_dns = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?").fullmatch
_loose = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?").fullmatch
_address = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}").fullmatch
_NEVER = ("..", ".-", "-.")
DNS_MAX, LOOSE_MAX, NAME_MIN = 63, 255, 3


def is_bucket_name(name: str, *, dns: bool) -> bool:
    """Whether a container of this name is a bucket."""
    most = DNS_MAX if dns else LOOSE_MAX
    if not NAME_MIN <= len(name) <= most or (_dns if dns else _loose)(name) is None:
        return False
    return not any(word in name for word in _NEVER) and _address(name) is None


def is_text(value: str) -> bool:
    """Whether a Latin-1 view of bytes is UTF-8."""
    return value.isascii() or not any("\ud800" <= c <= "\udfff" for c in utf8_value(value))

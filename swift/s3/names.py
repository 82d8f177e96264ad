"""Which names buckets and keys may have (spec: middleware.md §20)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from swift.base.documents import JsonObject
from swift.http.headers import utf8_value

KEY_BYTES_MAX = 1024
#: What the container of a bucket's parts is called after it.
SEGMENTS = "+segments"
_parts_home = re.compile(r"([^+/]+)(?:\+[A-Z][A-Z0-9_]{0,63})?\+segments").fullmatch
_dns = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?").fullmatch
_loose = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?").fullmatch
_address = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}").fullmatch
_NEVER = ("..", ".-", "-.")
DNS_MAX, LOOSE_MAX, NAME_MIN = 63, 255, 3


def segments_of(bucket: str, kind: str = "") -> str:
    """The container of a bucket's parts; of a storage class that is not the bucket's there is another one."""
    return f"{bucket}+{kind}{SEGMENTS}" if kind else bucket + SEGMENTS


def bucket_of(container: str) -> str:
    """The bucket to which a container of parts belongs; the name itself of any other container."""
    found = _parts_home(container)
    return container if found is None else found[1]


def own_parts(bucket: str, manifest: Iterable[JsonObject]) -> list[tuple[str, str]]:
    """Of what a stored manifest names: container and name of what is in the bucket's containers of parts."""
    places = (str(entry.get("name", "")).lstrip("/").partition("/") for entry in manifest)
    return [(home, name) for home, _, name in places if home != bucket and bucket_of(home) == bucket]


def is_bucket_name(name: str, *, dns: bool) -> bool:
    """Whether a container of this name is a bucket."""
    most = DNS_MAX if dns else LOOSE_MAX
    if not NAME_MIN <= len(name) <= most or (_dns if dns else _loose)(name) is None:
        return False
    return not any(word in name for word in _NEVER) and _address(name) is None


def is_text(value: str) -> bool:
    """Whether a Latin-1 view of bytes is UTF-8."""
    return value.isascii() or not any("\ud800" <= c <= "\udfff" for c in utf8_value(value))

"""Functions of the quota filters: parsing of quotas and rejection of uploads (spec: middleware.md §12)."""

from __future__ import annotations

from swift.gateway.info import ContainerInfo
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.middleware.authorization import find_denial

#: Digits that a quota may have: the bytes of a metadata value.
_DIGITS_MAX = 256


def is_valid_quota(text: str) -> bool:
    """Return True if a header is a valid quota: ASCII digits, or empty for none."""
    return not text or (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX)


def parse_quota(text: str | None) -> int | None:
    """Return a stored quota, None without one."""
    return int(text) if text and is_valid_quota(text) else None


def exceeds_quota(quota: int | None, used: int, more: int) -> bool:
    """Return True if ``more`` on top of ``used`` would exceed the quota."""
    return quota is not None and used + more > quota


def quota_exceeded_response(request: Request, container: ContainerInfo, text: str) -> Response:
    """Return 413 to a caller who may write to the container; the denial to others."""
    return find_denial(request, container.write_acl) or error_response(413, text)

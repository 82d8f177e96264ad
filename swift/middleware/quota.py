"""Functions that the quota filters share: parsing of quotas, and the rejection of an upload (spec:
middleware.md §12).
"""

from __future__ import annotations

from swift.gateway.info import ContainerInfo
from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import Response, error_response

#: A quota has no more digits than a metadata value has bytes.
_DIGITS_MAX = 256


def is_quota(text: str) -> bool:
    """Return True if a header is a quota: ASCII digits, or empty for none."""
    return not text or (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX)


def quota_of(text: str | None) -> int | None:
    """Return a stored quota, None when there is none."""
    return int(text) if text and is_quota(text) else None


def exceeds(quota: int | None, used: int, more: int) -> bool:
    """Return True if ``more`` would be too much."""
    return quota is not None and used + more > quota


def too_large(request: Request, container: ContainerInfo, text: str) -> Response:
    """413 for those who may write at all; others are told only that they may not."""
    authorise = request.env.get(environkeys.AUTHORIZE)
    if authorise is not None:
        request.acl = container.write_acl
        denial = authorise(request)
        if denial is not None:
            return denial
    return error_response(413, text)

"""Headers that a presigner moved into the query of its link (spec: middleware.md §22.1).

Version 4 signs the whole query, so the headers are taken after the text that was signed is made. Version 2
signs headers wherever they are, so they are taken before.
"""

from __future__ import annotations

from collections.abc import Container

from swift.http.headers import has_controls, lower_name, utf8_value
from swift.http.request import Request
from swift.s3.errors import S3Error
from swift.s3.router import LINK_HEADERS

#: Version 2 signs these two of the standard headers, and those of S3.
SIGNED_BY_V2 = frozenset(("content-md5", "content-type"))
SIGNED_BY_V4 = LINK_HEADERS
_OF_SIGNATURE = frozenset(
    (
        *("x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-expires", "x-amz-signature"),
        *("x-amz-signedheaders", "x-amz-content-sha256"),
    )
)


def take_moved_headers(request: Request, standard: Container[str], *, is_signed: bool) -> None:
    """Add headers of S3, and ``standard`` ones, from the query; raise ``S3Error`` for invalid ones.

    With ``is_signed`` the signature covers the query: a standard header of it replaces one that was sent.
    """
    for name, value in request.params.items():
        lower = lower_name(name)
        is_standard = lower in standard
        if not is_standard and (not lower.startswith("x-amz-") or lower in _OF_SIGNATURE):
            continue
        if has_controls(name + value):
            raise S3Error("InvalidArgument", "A parameter has characters that no header has.")
        text = utf8_value(value).encode("utf-8", "surrogateescape").decode("latin-1")
        if is_standard and is_signed:
            request.headers[lower] = text
        else:
            request.headers.setdefault(lower, text)

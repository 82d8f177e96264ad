"""Requests of AWS's query protocol: a form posted to the root, as clients of STS and IAM send it."""

from __future__ import annotations

from swift.http.request import Request

FORM_TYPE = "application/x-www-form-urlencoded"
QUERY_BYTES_MAX = 192 << 10


def is_query_request(request: Request) -> bool:
    """Return True for a form that is posted to the root."""
    return (
        request.method == "POST"
        and request.raw_path in ("/", "")
        # A bucket's host name has the same path; its requests have parameters.
        and not request.query
        and request.headers.get("content-type", "").partition(";")[0].strip().lower() == FORM_TYPE
    )

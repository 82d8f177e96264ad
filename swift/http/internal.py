"""Headers that stay inside the cluster: those that ``http/fields.py`` declares."""

from __future__ import annotations

from collections.abc import Callable

from swift.base.memo import Memo
from swift.http.fields import HEADERS, INTERNAL_NAMES, INTERNAL_PREFIXES

#: Headers that nearly every request or answer has; no client can make this list longer.
_FREQUENT_HEADERS = (
    *("accept", "accept-encoding", "accept-ranges", "authorization", "cache-control", "connection"),
    *("content-length", "content-range", "content-type", "date", "etag", "expect", "host", "if-match"),
    *("if-modified-since", "if-none-match", "last-modified", "location", "origin", "range", "referer"),
    *("transfer-encoding", "user-agent", "vary", "www-authenticate", "x-account-bytes-used"),
    *("x-account-container-count", "x-account-object-count", "x-auth-key", "x-auth-token", "x-auth-user"),
    *("x-container-bytes-used", "x-container-object-count", "x-container-read", "x-container-write"),
    *("x-copy-from", "x-delete-after", "x-delete-at", "x-forwarded-for", "x-newest", "x-object-manifest"),
    *("x-openstack-request-id", "x-service-token", "x-storage-policy", "x-storage-token", "x-timestamp"),
    *("x-trans-id", "x-trans-id-extra", "x-versions-location"),
    # Of the S3 API and its SDKs.
    *("amz-sdk-invocation-id", "amz-sdk-request", "content-md5", "x-amz-checksum-crc32"),
    *("x-amz-checksum-crc64nvme", "x-amz-checksum-type", "x-amz-content-sha256", "x-amz-date"),
    *("x-amz-decoded-content-length", "x-amz-id-2", "x-amz-request-id", "x-amz-sdk-checksum-algorithm"),
    *("x-amz-server-side-encryption", "x-amz-storage-class", "x-amz-trailer", "x-amz-version-id"),
)


def _is_internal(name: str) -> bool:
    return name.startswith(INTERNAL_PREFIXES) or name in INTERNAL_NAMES


#: True if a header (lower-case name) stays inside the cluster; unusual names are looked at each time.
is_internal: Callable[[str], bool] = Memo(
    _is_internal, 0, {name: _is_internal(name) for name in (*_FREQUENT_HEADERS, *HEADERS)}
).__getitem__

"""Multipart uploads as they lie in Swift: the container of parts, markers, names (spec: middleware.md §20).

``<bucket>+segments`` holds a marker ``<key>/<upload id>`` for every upload that is going on and its parts
``<key>/<upload id>/<number>``; those of an object of another storage class than the bucket's are in
``<bucket>+<class>+segments``. The object itself is a static large object over the parts.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import unhexlify
from collections.abc import Mapping, Sequence
from hashlib import md5
from typing import NamedTuple
from urllib.parse import quote
from uuid import uuid4

from swift.base.digits import is_digits
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.s3.call import Call
from swift.s3.checksums import ALGORITHMS, Algorithm
from swift.s3.errors import S3Error, refusal
from swift.s3.names import KEY_BYTES_MAX

MARKER_TYPE = "application/directory"
#: System metadata of a marker in which our own clients' wishes for the checksum stand: ``CRC32 COMPOSITE``.
WISH = fields.SYSMETA_S3_CHECKSUM
_ID_MAX = 128
#: Digits of a part's number at the end of the name of an object that was uploaded again.
NUMBER_DIGITS = 9


class WantedChecksum(NamedTuple):
    """The checksum that the object of an upload is to have."""

    algorithm: Algorithm
    kind: str


def new_upload_id() -> str:
    """URL-safe base64 of a UUID's text."""
    return urlsafe_b64encode(str(uuid4()).encode()).decode("ascii")


def upload_id_of(call: Call) -> str:
    """The upload that a request names; raises ``S3Error``."""
    upload_id = call.text_param("uploadId")
    if not is_upload_id(upload_id):
        call.account.bucket_info(call.bucket)
        raise no_such_upload(upload_id)
    return upload_id


def is_upload_id(text: str) -> bool:
    """Whether an upload could be called so."""
    try:
        return (
            len(text) <= _ID_MAX
            and "/" not in text
            and bool(urlsafe_b64decode(text.encode("ascii")).decode("ascii"))
        )
    except ValueError:
        return False


def no_such_upload(upload_id: str) -> S3Error:
    """404 that names an upload."""
    return S3Error("NoSuchUpload", details={"UploadId": upload_id})


def part_number_of(call: Call) -> int:
    """The part that a request names; raises ``S3Error``."""
    text, most = call.params["partNumber"], call.settings.max_upload_part_num
    if not is_digits(text) or len(text) > 9 or not 1 <= int(text) <= most:
        raise S3Error(
            "InvalidArgument",
            f"Part number must be an integer between 1 and {most}, inclusive",
            details={"ArgumentName": "partNumber", "ArgumentValue": text},
        )
    return int(text)


def marker_of(key: str, upload_id: str) -> str:
    """The marker of an upload."""
    return f"{key}/{upload_id}"


def part_of(key: str, upload_id: str, number: int) -> str:
    """A part of an upload; raises ``S3Error`` when no object can be called so."""
    name = f"{key}/{upload_id}/{number}"
    if len(name.encode("utf-8", "surrogateescape")) > KEY_BYTES_MAX:
        raise S3Error("KeyTooLongError")
    return name


def number_of(name: str) -> int | None:
    """Return the part of which an object is, by its name behind the marker's; None if it is none."""
    if not (name.isascii() and name.isdigit()):
        return None
    return int(name[-NUMBER_DIGITS:])


def wish_of(headers: HeaderMap) -> WantedChecksum | None:
    """What the marker of an upload says of the object's checksum."""
    name, _, kind = headers.get(WISH, "").partition(" ")
    return WantedChecksum(ALGORITHMS[name], kind) if name in ALGORITHMS and kind else None


def rows_of(
    call: Call,
    container: str,
    *,
    prefix: str = "",
    marker: str = "",
    limit: int = 0,
    only_markers: bool = False,
) -> list[dict[str, object]]:
    """Return rows of a listing, none of a container that is not there; raises ``S3Error``.

    With ``only_markers`` the container servers leave out parts; those of OpenStack Swift do not.
    """
    query = "format=json"
    wanted = {"prefix": prefix, "marker": marker, "limit": str(limit or "")}
    headers = {fields.BACKEND_LISTING_DIRECTORIES: "true"} if only_markers else None
    for name, value in wanted.items():
        if value:
            query += f"&{name}={quote(value, safe='', errors='surrogateescape')}"
    with call.account.ask("GET", container, headers=headers, query=query) as response:
        if response.status == 404:
            return []
        if not response.is_success:
            raise refusal(response.status)
        return list(json.loads(response.read_body())) if response.status == 200 else []


def whole_etag(etags: Sequence[str]) -> str:
    """The ETag of an object of parts, unquoted; raises ValueError for what is no MD5."""
    digest = md5(b"".join(unhexlify(etag) for etag in etags), usedforsecurity=False).hexdigest()
    return f"{digest}-{len(etags)}"


def kept_metadata(marker: Mapping[str, str]) -> HeaderMap:
    """What the object of an upload gets of its marker."""
    kept = ("cache-control", "content-disposition", "content-encoding", "content-language", "expires")
    also = (fields.TRANSIENT_S3_TAGGING, fields.SYSMETA_S3_REDIRECT)
    found = {
        name: value
        for name, value in marker.items()
        if name.startswith("x-object-meta-") or name in kept or name in also
    }
    if marker.get(fields.SYSMETA_S3_HAS_CONTENT_TYPE) == "yes":
        found["content-type"] = marker.get(fields.SYSMETA_S3_CONTENT_TYPE, "")
    acl = marker.get(fields.SYSMETA_S3_UPLOAD_ACL)
    if acl:
        found[fields.SYSMETA_S3_OBJECT_ACL] = acl
    return found

"""What every write of an object has in common: wishes that cannot be met, what is stored beside the bytes."""

from __future__ import annotations

import time
from collections.abc import MutableMapping

from swift.http import environkeys, fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import Response
from swift.s3.account import Account
from swift.s3.call import Call, invalid_argument
from swift.s3.checksums import ALGORITHMS, FULL
from swift.s3.classes import STANDARD
from swift.s3.errors import S3Error, refusal
from swift.s3.metadata import REDIRECT, object_class, object_etag
from swift.s3.payload import S3Upload, content_md5
from swift.s3.tags import stored_tags, tags_of_header

#: Headers whose wish nobody here can meet; each would change what is stored or who may change it.
_UNMET = ("x-amz-mfa", "x-amz-write-offset-bytes")
_REDIRECT_MAX = 2048
#: The latest end of an object.
_END_MAX_S = 9999999999


def check_wishes(call: Call) -> str:
    """The wished storage class, empty when it is the bucket's; raises ``S3Error`` for what cannot be met."""
    headers = call.headers
    for name in headers:
        if name in _UNMET:
            raise S3Error("NotImplemented", details={"Header": name})
    expiry_headers(headers)
    kind = wished_class(call)
    if headers.get("x-amz-request-payer", "requester") != "requester":
        raise S3Error("InvalidArgument", details={"ArgumentName": "x-amz-request-payer"})
    return kind


def wished_class(call: Call) -> str:
    """The storage class that a write asks for; empty when it is the bucket's. Raises ``S3Error``."""
    wanted = call.headers.get("x-amz-storage-class")
    if wanted is None:
        return ""
    classes = call.features.classes
    if not classes.has(wanted):
        raise S3Error("InvalidStorageClass")
    own = call.storage_class
    if wanted == own:
        return ""
    if not call.features.multipart or classes.policy_of(wanted) is None:
        raise S3Error("InvalidStorageClass", f"The objects of this bucket have the storage class {own}.")
    return wanted


def class_headers(call: Call, below: HeaderMap) -> HeaderMap:
    """What answers about an object say of its storage class; nothing of the usual one, as AWS does."""
    name = object_class(below) or call.storage_class
    return {} if name == STANDARD else {"x-amz-storage-class": name}


def redirect_headers(headers: HeaderMap) -> HeaderMap:
    """Where a web site sends who asks for an object, as metadata of it; raises ``S3Error``."""
    place = headers.get(REDIRECT)
    if place is None:
        return {}
    if not place.startswith(("/", "http://", "https://")) or len(place) > _REDIRECT_MAX:
        raise S3Error("InvalidRedirectLocation")
    return {fields.SYSMETA_S3_REDIRECT: place}


def tagging_headers(headers: HeaderMap) -> HeaderMap:
    """The tags that a write brings, as metadata; raises ``S3Error``."""
    text = headers.get("x-amz-tagging")
    tags = tags_of_header(text) if text else {}
    return {fields.TRANSIENT_S3_TAGGING: stored_tags(tags)} if tags else {}


def expiry_headers(headers: HeaderMap) -> HeaderMap:
    """Return when the object of an upload ends, as Swift's X-Delete-At or X-Delete-After say it.

    Raises ``S3Error`` for what is no time in the future.
    """
    now_s = int(time.time())
    for name, start_s in (("X-Delete-After", now_s), ("X-Delete-At", 0)):
        text = headers.get(name.lower())
        if text is None:
            continue
        try:
            end_s = start_s + int(text)
        except ValueError:
            raise invalid_argument(name, text, f"Non-integer {name}")
        if end_s <= now_s:
            raise invalid_argument(name, text, f"{name} in past")
        return {"x-delete-at": str(min(end_s, _END_MAX_S))}
    return {}


def keep_checksum(sub: Request, upload: S3Upload) -> None:
    """Have the checksum of an upload stored with it: from its head, or once its trailer came."""
    promise = upload.promise
    if promise is None:
        return
    start = f"{promise.algorithm.name} {FULL} "
    if promise.text is not None:
        sub.headers[fields.SYSMETA_S3_CHECKSUM] = start + promise.text
        return

    def add(footers: MutableMapping[str, str]) -> None:
        footers[fields.SYSMETA_S3_CHECKSUM] = start + upload.checksum

    sub.env[environkeys.UPDATE_FOOTERS] = add


def stored_checksum(below: HeaderMap) -> HeaderMap:
    """The checksum that is stored with an object, as headers."""
    name, _, rest = below.get(fields.SYSMETA_S3_CHECKSUM, "").partition(" ")
    kind, _, text = rest.partition(" ")
    if name not in ALGORITHMS or not text:
        return {}
    return {ALGORITHMS[name].header: text, "x-amz-checksum-type": kind}


def checksum_headers(upload: S3Upload) -> HeaderMap:
    """What an answer says of the checksum of an upload."""
    if upload.promise is None:
        return {}
    return {upload.promise.algorithm.header: upload.checksum, "x-amz-checksum-type": FULL}


def written_headers(response: Response) -> HeaderMap:
    """What the answer to a write says of the object."""
    headers = {"etag": object_etag(response.headers)}
    version = response.headers.get("x-object-version-id")
    if version:
        headers["x-amz-version-id"] = version
    return headers


def refused_write(account: Account, bucket: str, status: int, headers: HeaderMap) -> S3Error:
    """What a refused write is, its conditions apart."""
    if status == 404:
        return S3Error("NoSuchBucket", details={"BucketName": bucket})
    if status == 422 and "content-md5" in headers:
        return S3Error("BadDigest", details={"ExpectedDigest": content_md5(headers)})
    if status == 400 and any(name.startswith("x-amz-meta-") for name in headers):
        return S3Error("MetadataTooLarge")
    return refusal(status, missing="NoSuchBucket", conflict="OperationAborted")

"""Writes of objects: versions, conditions, metadata beside the bytes, updates, checksums of parts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, MutableMapping, Sequence
from urllib.parse import quote

from swift import green
from swift.base.entity import EntityPath
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.http import environkeys, fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.versioned_writes.names import Version, unquote_container_name
from swift.s3.api.call import Call, invalid_argument
from swift.s3.api.checksums import ALGORITHMS, FULL
from swift.s3.api.metadata import (
    CONDITIONS,
    ETAG_PLACES,
    REDIRECT,
    STANDARD,
    WRITE_ETAG_PLACES,
    drop_dates,
    object_class,
    object_etag,
)
from swift.s3.api.payload import S3Upload, content_md5
from swift.s3.api.tags import stored_tags, tags_of_header
from swift.s3.auth.session import Session
from swift.s3.errors import S3Error, refusal
from swift.s3.xml import Value


def version_query(call: Call) -> str:
    """Return the query that asks for the requested version; raise ``S3Error``."""
    version = call.params.get("versionId")
    if version is None:
        return ""
    if not version:
        raise invalid_argument("versionId", "", "Version id cannot be the empty string")
    check_version_id(version)
    if not call.features.versioning:
        raise S3Error("NotImplemented", "There is no object versioning here.")
    return f"version-id={quote(version, safe='')}"


def check_version_id(version: str) -> None:
    """Raise ``S3Error`` for what no version is called; ``null`` is that from before versioning."""
    try:
        Timestamp("0" if version == "null" else version)
    except InvalidTimestamp:
        raise invalid_argument("versionId", version, "Invalid version id specified")


def version_place(call: Call, stamp: Timestamp) -> EntityPath:
    """Return the path of a version of the call's object, by its time; raise ``S3Error``."""
    head = call.session.head(call.bucket).headers
    versions = unquote_container_name(head.get(fields.SYSMETA_VERSIONS_CONTAINER, ""))
    return EntityPath(call.session.account, versions, Version(call.key, stamp).name)


def missing_key(call: Call, key: str, bucket: str = "") -> S3Error:
    """Return a 404 of an object: which of the two is not there."""
    name = bucket or call.bucket
    if not call.session.has_bucket(name):
        return S3Error("NoSuchBucket", details={"BucketName": name})
    return S3Error("NoSuchKey", details={"Key": key})


def refused_version(call: Call, response: Response, version: str) -> S3Error:
    """Return the error for a 404 or 400 of a version."""
    if response.headers.get("content-type", "").startswith("application/x-deleted;"):
        headers = {"x-amz-delete-marker": "true", "x-amz-version-id": version}
        details = {"Method": call.request.method, "ResourceType": "DeleteMarker"}
        return S3Error("MethodNotAllowed", details=details, headers=headers)
    info = call.session.bucket_info(call.bucket)
    if response.status == 400 and "versions-container" in info.sysmeta:
        return invalid_argument("versionId", version, "Invalid version id specified")
    return S3Error("NoSuchVersion", details={"Key": call.key, "VersionId": version})


def read_error(call: Call, response: Response) -> S3Error:
    """Return the error for a GET or HEAD of the call's object, or of its version, that was refused."""
    version = call.params.get("versionId")
    if version is not None and response.status in (400, 404):
        return refused_version(call, response, version)
    return missing_key(call, call.key) if response.status == 404 else refusal(response.status)


def head_version(call: Call, headers: HeaderMap | None = None) -> HeaderMap:
    """Return the headers of the call's object, or of its version; raise ``S3Error``."""
    head = call.session.head(call.bucket, call.key, headers=headers, query=version_query(call))
    if not head.is_success:
        raise read_error(call, head)
    return head.headers


# --- conditions ---------------------------------------------------------------------------------------

_SOURCE = "x-amz-copy-source-"
#: Conditions of writes that are not evaluated, those of AWS's directory buckets among them.
_UNJUDGED = (
    *("if-modified-since", "if-unmodified-since", "x-amz-if-match-size"),
    *("x-amz-if-match-last-modified-time", "x-amz-if-match-initiated-time"),
)


def writing_conditions(headers: HeaderMap) -> HeaderMap:
    """Return If-Match and If-None-Match of a write; raise ``S3Error`` for others."""
    found: HeaderMap = {n: headers[n] for n in ("if-match", "if-none-match") if n in headers}
    if len(found) > 1 or found.get("if-none-match", "*").strip() != "*":
        # Nothing must not be there: the store judges no other ETag of a write.
        raise S3Error("NotImplemented", details={"Header": "If-None-Match"})
    for name in _UNJUDGED:
        if name in headers:
            raise S3Error("NotImplemented", details={"Header": name})
    if found:
        found[fields.BACKEND_ETAG_IS_AT] = WRITE_ETAG_PLACES
    return found


def source_conditions(headers: HeaderMap) -> HeaderMap:
    """Return the conditions that a copy has on its source, as those of a GET."""
    found = {name: headers[_SOURCE + name] for name in CONDITIONS if _SOURCE + name in headers}
    drop_dates(found)
    found[fields.BACKEND_ETAG_IS_AT] = ETAG_PLACES
    return found


def unmet(session: Session, bucket: str, key: str, conditions: HeaderMap) -> S3Error:
    """Return the error for an unmet condition of a write: If-Match of nothing is a missing key."""
    if "if-match" in conditions and session.head(bucket, key).status == 404:
        return S3Error("NoSuchKey", details={"Key": key})
    name = "If-Match" if "if-match" in conditions else "If-None-Match"
    return S3Error("PreconditionFailed", details={"Condition": name})


# --- what is stored beside the bytes ------------------------------------------------------------------

#: Unsupported headers; each would change the stored object or its permissions.
_UNMET = ("x-amz-mfa", "x-amz-write-offset-bytes")
_REDIRECT_MAX = 2048
#: The latest end of an object.
_END_MAX_S = 9999999999


def validate_write(call: Call) -> str:
    """Return the wished storage class, empty when it is the bucket's.

    Raise ``S3Error`` for what cannot be met.
    """
    headers = call.headers
    for name in headers:
        if name in _UNMET:
            raise S3Error("NotImplemented", details={"Header": name})
    expiry_headers(headers)
    kind = requested_class(call)
    if headers.get("x-amz-request-payer", "requester") != "requester":
        raise S3Error("InvalidArgument", details={"ArgumentName": "x-amz-request-payer"})
    return kind


def requested_class(call: Call) -> str:
    """Return the storage class that a write asks for; empty when it is the bucket's. Raise ``S3Error``."""
    requested = call.headers.get("x-amz-storage-class")
    if requested is None:
        return ""
    classes = call.features.classes
    if not classes.has(requested):
        raise S3Error("InvalidStorageClass")
    own = call.storage_class
    if requested == own:
        return ""
    if not call.features.multipart or classes.policy_of(requested) is None:
        raise S3Error("InvalidStorageClass", f"The objects of this bucket have the storage class {own}.")
    return requested


def class_headers(call: Call, below: HeaderMap) -> HeaderMap:
    """Return the header of an object's storage class; none for STANDARD, as AWS does."""
    name = object_class(below) or call.storage_class
    return {} if name == STANDARD else {"x-amz-storage-class": name}


def redirect_headers(headers: HeaderMap) -> HeaderMap:
    """Return the redirect of a web site as metadata of the object; raise ``S3Error``."""
    place = headers.get(REDIRECT)
    if place is None:
        return {}
    if not place.startswith(("/", "http://", "https://")) or len(place) > _REDIRECT_MAX:
        raise S3Error("InvalidRedirectLocation")
    return {fields.SYSMETA_S3_REDIRECT: place}


def tagging_headers(headers: HeaderMap) -> HeaderMap:
    """Return the tags that a write brings, as metadata; raise ``S3Error``."""
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


def store_checksum(sub: Request, upload: S3Upload) -> None:
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
    """Return the checksum that is stored with an object, as headers."""
    name, _, rest = below.get(fields.SYSMETA_S3_CHECKSUM, "").partition(" ")
    kind, _, text = rest.partition(" ")
    if name not in ALGORITHMS or not text:
        return {}
    return {ALGORITHMS[name].header: text, "x-amz-checksum-type": kind}


def checksum_headers(upload: S3Upload) -> HeaderMap:
    """Return the headers of an answer about an upload's checksum."""
    if upload.promise is None:
        return {}
    return {upload.promise.algorithm.header: upload.checksum, "x-amz-checksum-type": FULL}


def written_headers(response: Response) -> HeaderMap:
    """Return the headers of a write's answer about the object."""
    headers = {"etag": object_etag(response.headers)}
    version = response.headers.get("x-object-version-id")
    if version:
        headers["x-amz-version-id"] = version
    return headers


def write_error(session: Session, bucket: str, status: int, headers: HeaderMap) -> S3Error:
    """Return the error for a refused write, its conditions apart."""
    if status == 404:
        return S3Error("NoSuchBucket", details={"BucketName": bucket})
    if status == 422 and "content-md5" in headers:
        return S3Error("BadDigest", details={"ExpectedDigest": content_md5(headers)})
    if status == 400 and any(name.startswith("x-amz-meta-") for name in headers):
        return S3Error("MetadataTooLarge")
    return refusal(status, missing="NoSuchBucket", conflict="OperationAborted")


# --- updates of metadata ------------------------------------------------------------------------------

#: Conditions → the status of the write, which reads what it says again.
Write = Callable[[HeaderMap], int]


def update_if_unchanged(call: Call, write: Write) -> int:
    """Return the status of a write that is only made while the call's object is the one that ``write`` reads.

    Raises ``S3Error``, ``OperationAborted`` when it no longer is. Nodes of the peer's keep no conditions, and
    are asked without (decision 0011).
    """
    status = write(_unchanged(call))
    if status == 501:
        return write({})
    if status in (409, 412):
        raise S3Error("OperationAborted")
    return status


def just_above(found: HeaderMap) -> HeaderMap:
    """Return the time of a POST: right above what was read, so that an upload that began meanwhile is newer.

    With a later one its metadata would be that of the upload too, had this begun a moment before.
    """
    return {"x-timestamp": Timestamp(found[fields.BACKEND_TIMESTAMP]).above(1).internal}


def _unchanged(call: Call) -> HeaderMap:
    """Return the condition that the object stays unchanged from now on.

    Where it is a link to a version, the link.
    """
    found = call.session.head(call.bucket, call.key, headers={"x-newest": "true"}, query="symlink=get")
    if not found.is_success:
        raise missing_key(call, call.key) if found.status == 404 else refusal(found.status)
    return {fields.BACKEND_IF_PREDECESSOR: found.headers[fields.BACKEND_DATA_TIMESTAMP]}


# --- checksums of parts -------------------------------------------------------------------------------

#: Parts that are looked at beside each other.
_LOOKERS = 8


def checksum_elements(headers: HeaderMap) -> dict[str, Value]:
    """Return the checksum that is stored with an object, as elements of documents."""
    found = stored_checksum(headers)
    value: dict[str, Value] = {
        algorithm.element: found[algorithm.header]
        for algorithm in ALGORITHMS.values()
        if algorithm.header in found
    }
    if value:
        value["ChecksumType"] = found["x-amz-checksum-type"]
    return value


def part_checksums(call: Call, places: Sequence[tuple[str, str]]) -> list[dict[str, Value]]:
    """Return the checksums of parts, each (container, name); nothing for one that has none."""
    found: dict[int, dict[str, Value]] = {}
    left = iter(enumerate(places))

    def look() -> None:
        for at, (container, name) in left:
            sums = checksum_elements(call.session.head(container, name).headers)
            found[at] = {element: text for element, text in sums.items() if element != "ChecksumType"}

    green.gather([look] * min(_LOOKERS, len(places)))
    return [found[at] for at in range(len(places))]


def part_checksum(call: Call, number: int, kind: str) -> HeaderMap:
    """Return the checksum that is stored with a part, as headers.

    ``kind`` is the object's. None may be there.
    """
    version = version_query(call)
    query = f"{version}{'&' if version else ''}multipart-manifest=get"
    with call.session.ask("GET", call.bucket, call.key, query=query) as response:
        entries = json.loads(response.read_body()) if response.status == 200 else []
    if not 1 <= number <= len(entries):
        return {}
    container, _, name = str(entries[number - 1].get("name", "")).lstrip("/").partition("/")
    sums = stored_checksum(call.session.head(container, name).headers)
    return {**sums, "x-amz-checksum-type": kind} if sums else {}

"""Writes of objects: versions, conditions, metadata, updates of metadata, checksums of parts."""

from __future__ import annotations

import time
from collections.abc import Callable, MutableMapping, Sequence

from swift import green
from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.base.truth import is_true
from swift.gateway.info import ContainerInfo
from swift.http import environkeys, fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import Response
from swift.http.storedtags import encode_tags
from swift.middleware.versioned_writes.names import Version, unquote_container_name, version_name_bytes
from swift.s3.core.call import Call, invalid_argument, version_query
from swift.s3.core.checksums import ALGORITHMS, FULL_OBJECT
from swift.s3.core.errors import S3Error, error_for_status
from swift.s3.core.metadata import (
    CONDITION_HEADERS,
    ETAG_IS_AT,
    REDIRECT_HEADER,
    STANDARD,
    WRITE_ETAG_IS_AT,
    drop_date_conditions,
    object_etag,
    object_storage_class,
)
from swift.s3.core.names import KEY_BYTES_MAX
from swift.s3.core.payload import S3Upload, parse_content_md5
from swift.s3.core.session import Session
from swift.s3.core.tags import parse_tags_header
from swift.s3.core.xml import Value


def has_versioning(info: ContainerInfo) -> bool:
    """Return True if new objects of a bucket become versions."""
    return "versions-container" in info.sysmeta and is_true(info.sysmeta.get("versions-enabled"))


def version_path(call: Call, stamp: Timestamp) -> EntityPath:
    """Return the path of the version of the call's object with this timestamp; raise ``S3Error``."""
    head = call.session.head(call.bucket).headers
    versions = unquote_container_name(head.get(fields.SYSMETA_VERSIONS_CONTAINER, ""))
    return EntityPath(call.session.account, versions, Version(call.key, stamp).name)


def missing_object_error(call: Call, key: str, bucket: str = "") -> S3Error:
    """Return the 404 error for a missing object, or for its missing bucket."""
    name = bucket or call.bucket
    if not call.session.has_bucket(name):
        return S3Error("NoSuchBucket", details={"BucketName": name})
    return S3Error("NoSuchKey", details={"Key": key})


def object_error(call: Call, status: int) -> S3Error:
    """Return the error for a failed request for the call's object."""
    return missing_object_error(call, call.key) if status == 404 else error_for_status(status)


def version_error(call: Call, response: Response, version: str) -> S3Error:
    """Return the error for a version whose request was answered 404 or 400."""
    if response.headers.get("content-type", "").startswith("application/x-deleted;"):
        headers = {"x-amz-delete-marker": "true", "x-amz-version-id": version}
        details = {"Method": call.request.method, "ResourceType": "DeleteMarker"}
        return S3Error("MethodNotAllowed", details=details, headers=headers)
    info = call.session.bucket_info(call.bucket)
    if response.status == 400 and "versions-container" in info.sysmeta:
        return invalid_argument("versionId", version, "Invalid version id specified")
    return S3Error("NoSuchVersion", details={"Key": call.key, "VersionId": version})


def read_error(call: Call, response: Response) -> S3Error:
    """Return the error for a failed GET or HEAD of the call's object or version."""
    version = call.params.get("versionId")
    if version is not None and response.status in (400, 404):
        return version_error(call, response, version)
    return object_error(call, response.status)


def head_version(call: Call, headers: HeaderMap | None = None) -> HeaderMap:
    """Return the headers of the call's object or version; raise ``S3Error``."""
    head = call.session.head(call.bucket, call.key, headers=headers, query=version_query(call))
    if not head.is_success:
        raise read_error(call, head)
    return head.headers


# --- conditions ---------------------------------------------------------------------------------------

_COPY_SOURCE_PREFIX = "x-amz-copy-source-"
#: Conditions of writes that are not evaluated, those of AWS's directory buckets among them.
_UNSUPPORTED_CONDITIONS = (
    *("if-modified-since", "if-unmodified-since", "x-amz-if-match-size"),
    *("x-amz-if-match-last-modified-time", "x-amz-if-match-initiated-time"),
)


#: Changes that evaluate conditions, or refuse those that they do not support.
CONDITIONAL_OPERATIONS = frozenset(("PutObject", "CopyObject", "CompleteMultipartUpload", "DeleteObject"))


def refuse_conditions(request: Request) -> None:
    """Raise ``S3Error`` for a condition of a change that does not evaluate any."""
    if request.method not in ("GET", "HEAD", "OPTIONS"):
        for name in ("if-match", "if-none-match", *_UNSUPPORTED_CONDITIONS):
            if name in request.headers:
                raise S3Error("NotImplemented", details={"Header": name})


def parse_write_conditions(headers: HeaderMap) -> HeaderMap:
    """Return If-Match and If-None-Match of a write; raise ``S3Error`` for other conditions."""
    found: HeaderMap = {n: headers[n] for n in ("if-match", "if-none-match") if n in headers}
    if len(found) > 1 or found.get("if-none-match", "*").strip() != "*":
        # Nothing must not be there: the store judges no other ETag of a write.
        raise S3Error("NotImplemented", details={"Header": "If-None-Match"})
    for name in _UNSUPPORTED_CONDITIONS:
        if name in headers:
            raise S3Error("NotImplemented", details={"Header": name})
    if found:
        found[fields.BACKEND_ETAG_IS_AT] = WRITE_ETAG_IS_AT
    return found


def parse_source_conditions(headers: HeaderMap) -> HeaderMap:
    """Return the conditions on the source of a copy as those of a GET."""
    found = {
        name: headers[_COPY_SOURCE_PREFIX + name]
        for name in CONDITION_HEADERS
        if _COPY_SOURCE_PREFIX + name in headers
    }
    drop_date_conditions(found)
    found[fields.BACKEND_ETAG_IS_AT] = ETAG_IS_AT
    return found


def precondition_error(session: Session, bucket: str, key: str, conditions: HeaderMap) -> S3Error:
    """Return the error for a failed condition of a write; NoSuchKey for If-Match of a missing object."""
    if "if-match" in conditions and session.head(bucket, key).status == 404:
        return S3Error("NoSuchKey", details={"Key": key})
    name = "If-Match" if "if-match" in conditions else "If-None-Match"
    return S3Error("PreconditionFailed", details={"Condition": name})


# --- metadata -----------------------------------------------------------------------------------------

#: Unsupported headers; each would change the stored object or its permissions.
_UNSUPPORTED_HEADERS = ("x-amz-mfa", "x-amz-write-offset-bytes")
_REDIRECT_MAX = 2048
#: The latest possible expiry of an object, as Unix second.
_EXPIRY_MAX_S = 9999999999


def validate_write(call: Call) -> str:
    """Return the requested storage class, empty if it is the bucket's.

    Raise ``S3Error`` for unsupported headers.
    """
    headers = call.headers
    for name in headers:
        if name in _UNSUPPORTED_HEADERS:
            raise S3Error("NotImplemented", details={"Header": name})
    # With four bytes a character and a timestamp, names of versions of shorter keys are within the limit.
    if (
        len(call.key) > KEY_BYTES_MAX // 8
        and version_name_bytes(call.key) > KEY_BYTES_MAX
        and has_versioning(call.session.bucket_info(call.bucket))
    ):
        raise S3Error("KeyTooLongError")
    expiry_headers(headers)
    storage_class = parse_storage_class(call)
    if headers.get("x-amz-request-payer", "requester") != "requester":
        raise S3Error("InvalidArgument", details={"ArgumentName": "x-amz-request-payer"})
    return storage_class


def parse_storage_class(call: Call) -> str:
    """Return the storage class in the headers of a write; empty if it is the bucket's; raise ``S3Error``."""
    requested = call.headers.get("x-amz-storage-class")
    if requested is None:
        return ""
    classes = call.features.storage_classes
    if not classes.has_class(requested):
        raise S3Error("InvalidStorageClass")
    own = call.bucket_storage_class
    if requested == own:
        return ""
    if not call.features.multipart or classes.policy_of_class(requested) is None:
        raise S3Error("InvalidStorageClass", f"The objects of this bucket have the storage class {own}.")
    return requested


def storage_class_headers(call: Call, swift_headers: HeaderMap) -> HeaderMap:
    """Return the header of an object's storage class; none for STANDARD, as in AWS."""
    name = object_storage_class(swift_headers) or call.bucket_storage_class
    return {} if name == STANDARD else {"x-amz-storage-class": name}


def redirect_headers(headers: HeaderMap) -> HeaderMap:
    """Return the metadata for an object's web site redirect; raise ``S3Error``."""
    location = headers.get(REDIRECT_HEADER)
    if location is None:
        return {}
    if not location.startswith(("/", "http://", "https://")) or len(location) > _REDIRECT_MAX:
        raise S3Error("InvalidRedirectLocation")
    return {fields.SYSMETA_S3_REDIRECT: location}


def tagging_headers(headers: HeaderMap) -> HeaderMap:
    """Return the metadata for the tags of a write; raise ``S3Error``."""
    text = headers.get("x-amz-tagging")
    tags = parse_tags_header(text) if text else {}
    return {fields.TRANSIENT_S3_TAGGING: encode_tags(tags)} if tags else {}


def expiry_headers(headers: HeaderMap) -> HeaderMap:
    """Return X-Delete-At for the expiry in Swift's headers X-Delete-At and X-Delete-After.

    Raise ``S3Error`` for times that are invalid or past.
    """
    if "x-delete-after" not in headers and "x-delete-at" not in headers:
        return {}
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
        return {"x-delete-at": str(min(end_s, _EXPIRY_MAX_S))}
    return {}


def add_checksum_metadata(sub: Request, upload: S3Upload) -> None:
    """Store the checksum of an upload with it, from its headers or from its trailer."""
    promise = upload.declared_checksum
    if promise is None:
        return
    start = f"{promise.algorithm.name} {FULL_OBJECT} "
    if promise.text is not None:
        sub.headers[fields.SYSMETA_S3_CHECKSUM] = start + promise.text
        return

    def add(footers: MutableMapping[str, str]) -> None:
        footers[fields.SYSMETA_S3_CHECKSUM] = start + upload.checksum

    sub.env[environkeys.UPDATE_FOOTERS] = add


def stored_checksum_headers(swift_headers: HeaderMap) -> HeaderMap:
    """Return the response headers for the checksum stored with an object."""
    name, _, rest = swift_headers.get(fields.SYSMETA_S3_CHECKSUM, "").partition(" ")
    kind, _, text = rest.partition(" ")
    if name not in ALGORITHMS or not text:
        return {}
    return {ALGORITHMS[name].header: text, "x-amz-checksum-type": kind}


def upload_checksum_headers(upload: S3Upload) -> HeaderMap:
    """Return the response headers for an upload's checksum."""
    if upload.declared_checksum is None:
        return {}
    return {upload.declared_checksum.algorithm.header: upload.checksum, "x-amz-checksum-type": FULL_OBJECT}


def write_response_headers(response: Response) -> HeaderMap:
    """Return the response headers of a write about the object."""
    headers = {"etag": object_etag(response.headers)}
    version = response.headers.get("x-object-version-id")
    if version:
        headers["x-amz-version-id"] = version
    return headers


def archive_error() -> S3Error:
    """Return the error for a change whose former object cannot be archived (``X-Versions-Location``)."""
    return S3Error("InvalidBucketState", "The container for former objects of this bucket does not exist.")


def write_error(call: Call, status: int, conditions: HeaderMap | None = None) -> S3Error:
    """Return the error for a failed write."""
    headers = call.headers
    if conditions and status == 412:
        return precondition_error(call.session, call.bucket, call.key, conditions)
    if conditions and status == 409:
        return S3Error("ConditionalRequestConflict")
    if status == 404:
        return S3Error("NoSuchBucket", details={"BucketName": call.bucket})
    if status == 422 and "content-md5" in headers:
        return S3Error("BadDigest", details={"ExpectedDigest": parse_content_md5(headers)})
    if status == 412:
        return archive_error()
    if status == 400 and any(name.startswith("x-amz-meta-") for name in headers):
        return S3Error("MetadataTooLarge")
    return error_for_status(status, missing="NoSuchBucket", conflict="OperationAborted")


# --- updates of metadata ------------------------------------------------------------------------------

#: Sends the write under these conditions and returns its status; reads the object's metadata first.
ConditionalWrite = Callable[[HeaderMap], int]


def update_if_unchanged(call: Call, write: ConditionalWrite) -> int:
    """Return the status of ``write``, sent under the condition that the object is unchanged since it was
    read.

    Raise ``S3Error``, ``OperationAborted`` if the object has changed. Nodes of OpenStack Swift support no
    conditions, so they get the request without (decision 0011).
    """
    status = write(_unchanged_condition(call))
    if status == 501:
        return write({})
    if status in (409, 412):
        raise S3Error("OperationAborted")
    return status


def timestamp_just_above(found: HeaderMap) -> HeaderMap:
    """Return the timestamp header of a POST: just above the object's, below that of any new upload.

    With a later timestamp the POST's metadata would also apply to an upload that began shortly before it.
    """
    return {"x-timestamp": Timestamp(found[fields.BACKEND_TIMESTAMP]).above(1).internal}


def _unchanged_condition(call: Call) -> HeaderMap:
    """Return the condition that the object, or its link to a version, stays unchanged."""
    found = call.session.head(call.bucket, call.key, headers={"x-newest": "true"}, query="symlink=get")
    if not found.is_success:
        raise object_error(call, found.status)
    return {fields.BACKEND_IF_PREDECESSOR: found.headers[fields.BACKEND_DATA_TIMESTAMP]}


# --- checksums of parts -------------------------------------------------------------------------------

#: Concurrent HEAD requests for parts.
_CONCURRENT_HEADS = 8


def checksum_elements(headers: HeaderMap) -> dict[str, Value]:
    """Return the XML elements for the checksum stored with an object."""
    found = stored_checksum_headers(headers)
    value: dict[str, Value] = {
        algorithm.element: found[algorithm.header]
        for algorithm in ALGORITHMS.values()
        if algorithm.header in found
    }
    if value:
        value["ChecksumType"] = found["x-amz-checksum-type"]
    return value


def part_checksum_elements(call: Call, places: Sequence[tuple[str, str]]) -> list[dict[str, Value]]:
    """Return the checksum elements of parts, each (container, name); empty for parts without."""
    found: dict[int, dict[str, Value]] = {}
    left = iter(enumerate(places))

    def head_parts() -> None:
        for at, (container, name) in left:
            sums = checksum_elements(call.session.head(container, name).headers)
            found[at] = {element: text for element, text in sums.items() if element != "ChecksumType"}

    green.gather([head_parts] * min(_CONCURRENT_HEADS, len(places)))
    return [found[at] for at in range(len(places))]


def part_checksum_headers(call: Call, number: int, checksum_type: str) -> HeaderMap:
    """Return the response headers for the checksum stored with a part, if any.

    ``checksum_type`` is the type of the object's checksum.
    """
    _, entries = call.session.read_manifest(call.bucket, call.key, version_query(call))
    if not 1 <= number <= len(entries):
        return {}
    container, _, name = str(entries[number - 1].get("name", "")).lstrip("/").partition("/")
    sums = stored_checksum_headers(call.session.head(container, name).headers)
    return {**sums, "x-amz-checksum-type": checksum_type} if sums else {}

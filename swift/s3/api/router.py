"""From a request to what it asks for: one table of all operations (spec: middleware.md §21).

An operation is chosen by method, by what the path names, by the query parameters that mark it and for copies
by a header. A parameter that marks another operation makes the request NotImplemented: a sub-resource must
never become the plain operation on the bucket. Other unknown parameters are ignored, but for writes with one
that has no value: it may name a sub-resource of a later AWS release, whose document would become an object.
Pure. ``doc/reference/s3-operations.md`` is made from this table and from which operations have a handler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from swift.s3.errors import S3Error


class PathLevel(Enum):
    """The level of a path."""

    SERVICE = "service"
    BUCKET = "bucket"
    OBJECT = "object"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the API, by AWS's name."""

    name: str
    method: str
    level: PathLevel
    #: Query parameters that choose it.
    marks: frozenset[str]
    #: Others that it understands.
    params: frozenset[str]
    #: A header that chooses it.
    header: str
    #: What it does not do, for the reference page.
    note: str


#: Every operation by name.
OPERATIONS: dict[str, Operation] = {}

_SERVICE, _BUCKET, _OBJECT = PathLevel


def _op(
    level: PathLevel,
    method: str,
    names: str,
    marks: str = "",
    params: str = "",
    *,
    header: str = "",
    note: str = "",
) -> None:
    for name in names.split():
        OPERATIONS[name] = Operation(
            name, method, level, frozenset(marks.split()), frozenset(params.split()), header, note
        )


def _configuration(
    noun: str, mark: str, methods: str = "GET PUT DELETE", *, params: str = "", note: str = ""
) -> None:
    """Declare the operations of a bucket configuration."""
    for method in methods.split():
        _op(_BUCKET, method, f"{method.capitalize()}{noun}", mark, params, note=note)


#: Headers that presigners move into the query, beside those of S3.
LINK_HEADERS = frozenset(
    (
        *("content-type", "content-md5", "cache-control"),
        *("content-disposition", "content-encoding", "content-language"),
    )
)
_RESPONSE = (
    "response-cache-control response-content-disposition response-content-encoding "
    "response-content-language response-content-type response-expires"
)
_LISTING = "delimiter encoding-type max-keys prefix"

_op(_SERVICE, "GET", "ListBuckets", "", "max-buckets continuation-token prefix bucket-region")
_op(_SERVICE, "GET", "ListDirectoryBuckets", "max-directory-buckets", "continuation-token")

_op(_BUCKET, "PUT", "CreateBucket")
_op(_BUCKET, "HEAD", "HeadBucket", "", "list-type")
_op(_BUCKET, "DELETE", "DeleteBucket")
_op(_BUCKET, "GET", "ListObjects", "", f"{_LISTING} marker")
_op(
    _BUCKET,
    "GET",
    "ListObjectsV2",
    "list-type",
    f"{_LISTING} continuation-token fetch-owner start-after marker",
)
_op(_BUCKET, "GET", "ListObjectVersions", "versions", f"{_LISTING} key-marker version-id-marker")
_op(
    _BUCKET,
    "GET",
    "ListMultipartUploads",
    "uploads",
    "delimiter encoding-type key-marker max-uploads prefix upload-id-marker",
)
_op(_BUCKET, "POST", "DeleteObjects", "delete")
_op(_BUCKET, "POST", "PostObject", note="Uploads by a form of a browser.")
_op(_BUCKET, "GET", "GetBucketLocation", "location")
_op(_BUCKET, "GET", "CreateSession", "session")

_configuration("BucketAcl", "acl", "GET PUT")
_configuration("BucketVersioning", "versioning", "GET PUT", note="Needs object versioning; no MFA delete.")
_configuration("BucketTagging", "tagging")
_configuration("BucketCors", "cors")
_configuration("BucketPolicy", "policy")
_configuration("BucketPolicyStatus", "policyStatus", "GET")
_configuration("BucketLogging", "logging", "GET PUT", note="No grants, no partitioned prefixes.")
_configuration("BucketWebsite", "website", note="Served below `website_domain`.")
_configuration("BucketEncryption", "encryption")
_configuration("BucketReplication", "replication")
_configuration("BucketOwnershipControls", "ownershipControls")
_configuration("PublicAccessBlock", "publicAccessBlock")
_configuration("BucketAccelerateConfiguration", "accelerate", "GET PUT", note="There is none to be had.")
_configuration("BucketRequestPayment", "requestPayment", "GET PUT", note="No requester is charged.")
_configuration("BucketAbac", "abac", "GET PUT")
_configuration("ObjectLockConfiguration", "object-lock", "GET PUT")
for _noun, _mark in (("Lifecycle", "lifecycle"), ("Notification", "notification")):
    for _method in ("GET", "PUT"):
        _verb = f"{_method.capitalize()}Bucket{_noun}"
        _op(_BUCKET, _method, f"{_verb} {_verb}Configuration", _mark)
_op(_BUCKET, "DELETE", "DeleteBucketLifecycle", "lifecycle")
for _noun, _mark in (
    ("Analytics", "analytics"),
    ("IntelligentTiering", "intelligent-tiering"),
    ("Inventory", "inventory"),
    ("Metrics", "metrics"),
):
    _configuration(f"Bucket{_noun}Configuration", _mark, params="id continuation-token")
    _op(_BUCKET, "GET", f"ListBucket{_noun}Configurations", _mark, "continuation-token id")
for _mark, _noun in (("metadataConfiguration", "Metadata"), ("metadataTable", "MetadataTable")):
    _op(_BUCKET, "POST", f"CreateBucket{_noun}Configuration", _mark)
    _configuration(f"Bucket{_noun}Configuration", _mark, "GET DELETE")
for _noun in ("Annotation", "Inventory", "Journal"):
    _op(_BUCKET, "PUT", f"UpdateBucketMetadata{_noun}TableConfiguration", f"metadata{_noun}Table")

_op(_OBJECT, "PUT", "PutObject")
_op(_OBJECT, "PUT", "CopyObject", header="x-amz-copy-source")
_op(_OBJECT, "GET", "GetObject", "", f"{_RESPONSE} versionId partNumber")
_op(_OBJECT, "HEAD", "HeadObject", "", f"{_RESPONSE} versionId partNumber")
_op(_OBJECT, "DELETE", "DeleteObject", "", "versionId")
_op(_OBJECT, "GET", "GetObjectAttributes", "attributes", "versionId")
_op(_OBJECT, "GET", "GetObjectAcl", "acl", "versionId")
_op(_OBJECT, "PUT", "PutObjectAcl", "acl", "versionId", note="With s3_acl only.")
for _method in ("GET", "PUT", "DELETE"):
    _op(_OBJECT, _method, f"{_method.capitalize()}ObjectTagging", "tagging", "versionId")
    _op(
        _OBJECT,
        _method,
        f"{_method.capitalize()}ObjectAnnotation",
        "annotation annotationName",
        "versionId",
    )
_op(
    _OBJECT,
    "GET",
    "ListObjectAnnotations",
    "annotation",
    "versionId max-annotation-results annotation-prefix continuation-token",
)
for _method in ("GET", "PUT"):
    _op(_OBJECT, _method, f"{_method.capitalize()}ObjectLegalHold", "legal-hold", "versionId")
    _op(_OBJECT, _method, f"{_method.capitalize()}ObjectRetention", "retention", "versionId")
_op(_OBJECT, "PUT", "UpdateObjectEncryption", "encryption", "versionId")
_op(_OBJECT, "PUT", "RenameObject", "renameObject")
_op(_OBJECT, "GET", "GetObjectTorrent", "torrent")
_op(_OBJECT, "GET", "GetObjectLogging", "logging", note="Always an error: a key has no logging status.")
_op(_OBJECT, "POST", "RestoreObject", "restore", "versionId")
_op(_OBJECT, "POST", "SelectObjectContent", "select select-type")

_op(_OBJECT, "POST", "CreateMultipartUpload", "uploads")
_op(_OBJECT, "PUT", "UploadPart", "partNumber uploadId")
_op(_OBJECT, "PUT", "UploadPartCopy", "partNumber uploadId", header="x-amz-copy-source")
_op(_OBJECT, "GET", "ListParts", "uploadId", "max-parts part-number-marker encoding-type")
_op(_OBJECT, "POST", "CompleteMultipartUpload", "uploadId")
_op(_OBJECT, "DELETE", "AbortMultipartUpload", "uploadId")
_op(_BUCKET, "POST", "WriteGetObjectResponse", header="x-amz-request-route")

#: Names that choose an operation somewhere, also where they are no part of what is asked for.
MARKS = frozenset(mark for operation in OPERATIONS.values() for mark in operation.marks)
#: Marks that say how to list; they name no sub-resource.
_OF_LISTINGS = frozenset(("list-type", "max-directory-buckets"))
#: Parameters that choose the version or part of an object, or headers of the response.
_CHOOSING = frozenset(("versionId", "partNumber", *_RESPONSE.split()))
#: Parameters that signatures of version 2 cover: what they name must not be changed by the holder of a link.
SUB_RESOURCES = MARKS - _OF_LISTINGS | _CHOOSING
#: Parameters of every request: signatures, and what SDKs add for logs.
_EVERYWHERE = frozenset(("x-id", "AWSAccessKeyId", "Expires", "Signature", *LINK_HEADERS))

_candidates: dict[tuple[str, PathLevel], list[Operation]] = {}
for _operation in OPERATIONS.values():
    _candidates.setdefault((_operation.method, _operation.level), []).append(_operation)
for _found in _candidates.values():
    # The one that asks for most comes first.
    _found.sort(key=lambda o: (-len(o.marks), not o.header))


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An operation on a bucket or on a key in it (both as text)."""

    operation: Operation
    bucket: str = ""
    key: str = ""


def level_of(bucket: str, key: str) -> PathLevel:
    """Return the level of a bucket's name and a key."""
    return _OBJECT if key else _BUCKET if bucket else _SERVICE


def route(
    method: str, bucket: str, key: str, params: Mapping[str, str], headers: Mapping[str, str]
) -> Endpoint:
    """Return the endpoint of a request; raise ``S3Error`` NotImplemented or MethodNotAllowed."""
    level = level_of(bucket, key)
    if not params and method in ("GET", "HEAD", "DELETE"):
        # What is asked for most.
        plain = _PLAIN.get((method, level))
        if plain is not None:
            return Endpoint(plain, bucket, key)
    operation = _find(method, level, params, headers)
    for name, value in params.items():
        if not value and method not in ("GET", "HEAD") and not _is_known(name, operation):
            raise _not_implemented(name)
    return Endpoint(operation, bucket, key)


_PLAIN = {
    (method, level): next(o for o in found if not o.marks and not o.header)
    for (method, level), found in _candidates.items()
    if method in ("GET", "HEAD", "DELETE")
}


def _find(method: str, level: PathLevel, params: Mapping[str, str], headers: Mapping[str, str]) -> Operation:
    marks = MARKS & params.keys()
    allowed = _candidates.get((method, level), ())
    for operation in allowed:
        fits = operation.marks <= marks and marks - operation.marks <= operation.params
        if fits and (not operation.header or operation.header in headers):
            return operation
    if marks == {"partNumber"} and level is _OBJECT and method == "PUT":
        details = {"ArgumentName": "ResourceType", "ArgumentValue": "partNumber"}
        raise S3Error("InvalidArgument", "Unexpected query string parameter", details=details)
    if level is _OBJECT and method == "GET" and marks == {"uploads"}:
        text = "Key is not expected for the GET method ?uploads subresource"
        raise S3Error("InvalidRequest", text)
    if marks:
        # It may be one that exists with another method; a client is told the safe thing either way.
        others = {o.method for o in OPERATIONS.values() if o.level is level and o.marks == marks}
        if others and method not in others and method in ("GET", "HEAD", "PUT", "POST", "DELETE"):
            name = ",".join(sorted(marks))
            raise _method_not_allowed(method, _RESOURCES.get(name, name.upper()))
        raise _not_implemented(min(marks))
    raise _method_not_allowed(method, level.name)


#: Sub-resources that errors call otherwise.
_RESOURCES = {"delete": "MULTI_OBJECT_DELETE", "uploadId": "UPLOAD"}


def _method_not_allowed(method: str, resource: str) -> S3Error:
    return S3Error("MethodNotAllowed", details={"Method": method, "ResourceType": resource})


def _not_implemented(name: str) -> S3Error:
    return S3Error("NotImplemented", details={"Parameter": name})


def _is_known(name: str, operation: Operation) -> bool:
    return (
        name in operation.marks
        or name in operation.params
        or name in _EVERYWHERE
        or name.lower() in LINK_HEADERS
        or name.lower().startswith("x-amz-")
    )

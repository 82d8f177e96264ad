"""Routing of requests: one table of all operations (spec: middleware.md §21).

Method, path level, query parameters and for copies a header select the operation. A parameter that selects
another operation makes the request NotImplemented: a sub-resource must never become the plain operation on
the bucket. Other unknown parameters are ignored, except in writes if they have no value: they may name a
sub-resource of a later AWS release, whose document would become an object. Pure.
``doc/reference/s3-operations.md`` is generated from this table and the handlers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from swift.s3.core.errors import S3Error, argument_error, invalid_request


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
    #: Query parameters that select it.
    selectors: frozenset[str]
    #: Other query parameters of the operation.
    params: frozenset[str]
    #: A header that selects it.
    header: str
    #: Limitations, for the reference page.
    note: str


#: Every operation by name.
OPERATIONS: dict[str, Operation] = {}

_SERVICE, _BUCKET, _OBJECT = PathLevel


def _declare(
    level: PathLevel,
    method: str,
    names: str,
    selectors: str = "",
    params: str = "",
    *,
    header: str = "",
    note: str = "",
) -> None:
    for name in names.split():
        OPERATIONS[name] = Operation(
            name, method, level, frozenset(selectors.split()), frozenset(params.split()), header, note
        )


def _declare_configuration(
    noun: str, selector: str, methods: str = "GET PUT DELETE", *, params: str = "", note: str = ""
) -> None:
    """Declare the operations of a bucket configuration."""
    for method in methods.split():
        _declare(_BUCKET, method, f"{method.capitalize()}{noun}", selector, params, note=note)


#: Headers that presigners move into the query, beside those of S3.
PRESIGNED_HEADERS = frozenset(
    (
        *("content-type", "content-md5", "cache-control"),
        *("content-disposition", "content-encoding", "content-language"),
    )
)
_RESPONSE_PARAMS = (
    "response-cache-control response-content-disposition response-content-encoding "
    "response-content-language response-content-type response-expires"
)
_LISTING_PARAMS = "delimiter encoding-type max-keys prefix"

_declare(_SERVICE, "GET", "ListBuckets", "", "max-buckets continuation-token prefix bucket-region")
_declare(_SERVICE, "GET", "ListDirectoryBuckets", "max-directory-buckets", "continuation-token")

_declare(_BUCKET, "PUT", "CreateBucket")
_declare(_BUCKET, "HEAD", "HeadBucket", "", "list-type")
_declare(_BUCKET, "DELETE", "DeleteBucket")
_declare(_BUCKET, "GET", "ListObjects", "", f"{_LISTING_PARAMS} marker")
_declare(
    _BUCKET,
    "GET",
    "ListObjectsV2",
    "list-type",
    f"{_LISTING_PARAMS} continuation-token fetch-owner start-after marker",
)
_declare(_BUCKET, "GET", "ListObjectVersions", "versions", f"{_LISTING_PARAMS} key-marker version-id-marker")
_declare(
    _BUCKET,
    "GET",
    "ListMultipartUploads",
    "uploads",
    "delimiter encoding-type key-marker max-uploads prefix upload-id-marker",
)
_declare(_BUCKET, "POST", "DeleteObjects", "delete")
_declare(_BUCKET, "POST", "PostObject", note="Uploads by a form of a browser.")
_declare(_BUCKET, "GET", "GetBucketLocation", "location")
_declare(_BUCKET, "GET", "CreateSession", "session")

_declare_configuration("BucketAcl", "acl", "GET PUT")
_declare_configuration(
    "BucketVersioning", "versioning", "GET PUT", note="Needs object versioning; no MFA delete."
)
_declare_configuration("BucketTagging", "tagging")
_declare_configuration("BucketCors", "cors")
_declare_configuration("BucketPolicy", "policy")
_declare_configuration("BucketPolicyStatus", "policyStatus", "GET")
_declare_configuration("BucketLogging", "logging", "GET PUT", note="No grants, no partitioned prefixes.")
_declare_configuration("BucketWebsite", "website", note="Served below `website_domain`.")
_declare_configuration("BucketEncryption", "encryption")
_declare_configuration("BucketReplication", "replication")
_declare_configuration("BucketOwnershipControls", "ownershipControls")
_declare_configuration("PublicAccessBlock", "publicAccessBlock")
_declare_configuration(
    "BucketAccelerateConfiguration", "accelerate", "GET PUT", note="There is none to be had."
)
_declare_configuration("BucketRequestPayment", "requestPayment", "GET PUT", note="No requester is charged.")
_declare_configuration("BucketAbac", "abac", "GET PUT")
_declare_configuration("ObjectLockConfiguration", "object-lock", "GET PUT")
for _noun, _selector in (("Lifecycle", "lifecycle"), ("Notification", "notification")):
    for _method in ("GET", "PUT"):
        _verb = f"{_method.capitalize()}Bucket{_noun}"
        _declare(_BUCKET, _method, f"{_verb} {_verb}Configuration", _selector)
_declare(_BUCKET, "DELETE", "DeleteBucketLifecycle", "lifecycle")
for _noun, _selector in (
    ("Analytics", "analytics"),
    ("IntelligentTiering", "intelligent-tiering"),
    ("Inventory", "inventory"),
    ("Metrics", "metrics"),
):
    _declare_configuration(f"Bucket{_noun}Configuration", _selector, params="id continuation-token")
    _declare(_BUCKET, "GET", f"ListBucket{_noun}Configurations", _selector, "continuation-token id")
for _selector, _noun in (("metadataConfiguration", "Metadata"), ("metadataTable", "MetadataTable")):
    _declare(_BUCKET, "POST", f"CreateBucket{_noun}Configuration", _selector)
    _declare_configuration(f"Bucket{_noun}Configuration", _selector, "GET DELETE")
for _noun in ("Annotation", "Inventory", "Journal"):
    _declare(_BUCKET, "PUT", f"UpdateBucketMetadata{_noun}TableConfiguration", f"metadata{_noun}Table")

_declare(_OBJECT, "PUT", "PutObject")
_declare(_OBJECT, "PUT", "CopyObject", header="x-amz-copy-source")
_declare(_OBJECT, "GET", "GetObject", "", f"{_RESPONSE_PARAMS} versionId partNumber")
_declare(_OBJECT, "HEAD", "HeadObject", "", f"{_RESPONSE_PARAMS} versionId partNumber")
_declare(_OBJECT, "DELETE", "DeleteObject", "", "versionId")
_declare(_OBJECT, "GET", "GetObjectAttributes", "attributes", "versionId")
_declare(_OBJECT, "GET", "GetObjectAcl", "acl", "versionId")
_declare(_OBJECT, "PUT", "PutObjectAcl", "acl", "versionId", note="With s3_acl only.")
for _method in ("GET", "PUT", "DELETE"):
    _declare(_OBJECT, _method, f"{_method.capitalize()}ObjectTagging", "tagging", "versionId")
    _declare(
        _OBJECT, _method, f"{_method.capitalize()}ObjectAnnotation", "annotation annotationName", "versionId"
    )
_declare(
    _OBJECT,
    "GET",
    "ListObjectAnnotations",
    "annotation",
    "versionId max-annotation-results annotation-prefix continuation-token",
)
for _method in ("GET", "PUT"):
    _declare(_OBJECT, _method, f"{_method.capitalize()}ObjectLegalHold", "legal-hold", "versionId")
    _declare(_OBJECT, _method, f"{_method.capitalize()}ObjectRetention", "retention", "versionId")
_declare(_OBJECT, "PUT", "UpdateObjectEncryption", "encryption", "versionId")
_declare(_OBJECT, "PUT", "RenameObject", "renameObject")
_declare(_OBJECT, "GET", "GetObjectTorrent", "torrent")
_declare(_OBJECT, "GET", "GetObjectLogging", "logging", note="Always an error: a key has no logging status.")
_declare(_OBJECT, "POST", "RestoreObject", "restore", "versionId")
_declare(_OBJECT, "POST", "SelectObjectContent", "select select-type")

_declare(_OBJECT, "POST", "CreateMultipartUpload", "uploads")
_declare(_OBJECT, "PUT", "UploadPart", "partNumber uploadId")
_declare(_OBJECT, "PUT", "UploadPartCopy", "partNumber uploadId", header="x-amz-copy-source")
_declare(_OBJECT, "GET", "ListParts", "uploadId", "max-parts part-number-marker encoding-type")
_declare(_OBJECT, "POST", "CompleteMultipartUpload", "uploadId")
_declare(_OBJECT, "DELETE", "AbortMultipartUpload", "uploadId")
_declare(_BUCKET, "POST", "WriteGetObjectResponse", header="x-amz-request-route")

#: Parameters that select any operation.
SELECTORS = frozenset(selector for operation in OPERATIONS.values() for selector in operation.selectors)
#: Selectors of a kind of listing; they name no sub-resource.
_LISTING_SELECTORS = frozenset(("list-type", "max-directory-buckets"))
#: Parameters that select the version or part of an object, or override headers of the response.
_READ_PARAMS = frozenset(("versionId", "partNumber", *_RESPONSE_PARAMS.split()))
#: Parameters that version 2 signatures cover: the holder of a link must not change them.
SUB_RESOURCES = SELECTORS - _LISTING_SELECTORS | _READ_PARAMS
#: Parameters of every request: signatures, and what SDKs add for logging.
_COMMON_PARAMS = frozenset(("x-id", "AWSAccessKeyId", "Expires", "Signature", *PRESIGNED_HEADERS))

_operations_of_path: dict[tuple[str, PathLevel], list[Operation]] = {}
for _operation in OPERATIONS.values():
    _operations_of_path.setdefault((_operation.method, _operation.level), []).append(_operation)
for _found in _operations_of_path.values():
    # The operation with most selectors comes first.
    _found.sort(key=lambda o: (-len(o.selectors), not o.header))


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An operation on a bucket or on a key in it (both as text)."""

    operation: Operation
    bucket: str = ""
    key: str = ""


def path_level(bucket: str, key: str) -> PathLevel:
    """Return the path level of a bucket and key."""
    return _OBJECT if key else _BUCKET if bucket else _SERVICE


def route(
    method: str, bucket: str, key: str, params: Mapping[str, str], headers: Mapping[str, str]
) -> Endpoint:
    """Return the endpoint of a request; raise ``S3Error`` NotImplemented or MethodNotAllowed."""
    if not params and method in ("GET", "HEAD", "DELETE"):
        # The most frequent requests.
        plain = _PLAIN_OPERATIONS.get((method, bool(bucket), bool(key)))
        if plain is not None:
            return Endpoint(plain, bucket, key)
    operation = _find_operation(method, path_level(bucket, key), params, headers)
    for name, value in params.items():
        if not value and method not in ("GET", "HEAD") and not _is_known_param(name, operation):
            raise _not_implemented(name)
    return Endpoint(operation, bucket, key)


_PLAIN_OPERATIONS = {
    (method, level is not _SERVICE, level is _OBJECT): next(
        o for o in found if not o.selectors and not o.header
    )
    for (method, level), found in _operations_of_path.items()
    if method in ("GET", "HEAD", "DELETE")
}


def _find_operation(
    method: str, level: PathLevel, params: Mapping[str, str], headers: Mapping[str, str]
) -> Operation:
    selectors = SELECTORS & params.keys()
    allowed = _operations_of_path.get((method, level), ())
    for operation in allowed:
        is_selected = operation.selectors <= selectors and selectors - operation.selectors <= operation.params
        if is_selected and (not operation.header or operation.header in headers):
            return operation
    if selectors == {"partNumber"} and level is _OBJECT and method == "PUT":
        raise argument_error("ResourceType", "partNumber", "Unexpected query string parameter")
    if level is _OBJECT and method == "GET" and selectors == {"uploads"}:
        text = "Key is not expected for the GET method ?uploads subresource"
        raise invalid_request(text)
    if selectors:
        # The sub-resource may exist with another method; both errors are safe.
        others = {o.method for o in OPERATIONS.values() if o.level is level and o.selectors == selectors}
        if others and method not in others and method in ("GET", "HEAD", "PUT", "POST", "DELETE"):
            name = ",".join(sorted(selectors))
            raise _method_not_allowed(method, _RESOURCE_NAMES.get(name, name.upper()))
        raise _not_implemented(min(selectors))
    raise _method_not_allowed(method, level.name)


#: Names of sub-resources in errors, where they differ.
_RESOURCE_NAMES = {"delete": "MULTI_OBJECT_DELETE", "uploadId": "UPLOAD"}


def _method_not_allowed(method: str, resource: str) -> S3Error:
    return S3Error("MethodNotAllowed", details={"Method": method, "ResourceType": resource})


def _not_implemented(name: str) -> S3Error:
    return S3Error("NotImplemented", details={"Parameter": name})


def _is_known_param(name: str, operation: Operation) -> bool:
    return (
        name in operation.selectors
        or name in operation.params
        or name in _COMMON_PARAMS
        or name.lower() in PRESIGNED_HEADERS
        or name.lower().startswith("x-amz-")
    )

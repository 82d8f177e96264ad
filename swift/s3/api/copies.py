"""CopyObject, and the source that it shares with UploadPartCopy (spec: middleware.md §21)."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import quote

from swift.base.entity import RESERVED, NotUTF8, decode_path
from swift.base.timestamp import Timestamp
from swift.gateway.subrequest import drained
from swift.http import fields
from swift.http.body import length_header
from swift.http.headers import HeaderMap
from swift.http.response import Response
from swift.http.transform import as_request_body
from swift.s3.api.encryption import SOURCE_CUSTOMER_PREFIX as CUSTOMER_SOURCE
from swift.s3.api.encryption import (
    EncryptedObject,
    decrypt_response,
    encrypt_upload,
    encryption_response_headers,
)
from swift.s3.api.objectlock import lock_metadata
from swift.s3.api.placement import store_object
from swift.s3.api.writes import (
    expiry_headers,
    missing_object_error,
    parse_source_conditions,
    parse_write_conditions,
    redirect_headers,
    tagging_headers,
    validate_write,
    write_error,
    write_response_headers,
)
from swift.s3.config.lifecycle import expiration_headers
from swift.s3.config.notifications import enqueue_event, etag_and_version
from swift.s3.core.call import (
    Call,
    Handler,
    invalid_argument,
    iso_time,
    respond_with_keep_alive,
    validate_version_id,
    xml_response,
)
from swift.s3.core.checksums import CHECKSUM_ELEMENTS, FULL_OBJECT, DeclaredChecksum, find_algorithm
from swift.s3.core.errors import S3Error, error_for_status, invalid_request
from swift.s3.core.metadata import (
    CONTENT_HEADERS,
    REDIRECT_HEADER,
    fails_if_modified_since,
    fails_if_unmodified_since,
    modified_second,
    pop_date_conditions,
    s3_version_id,
    to_swift_headers,
)
from swift.s3.core.names import S3Target, is_bucket_name
from swift.s3.core.payload import S3Upload, VerifiedBody
from swift.s3.core.session import with_trusted_bucket
from swift.s3.core.xml import Group, Text, Value
from swift.s3.policy.authorize import (
    authorize_source,
    new_object_acl_headers,
    read_object_acl,
    require_permission,
)

#: CopyObject copies at most this much; larger objects are copied in parts.
COPY_BYTES_MAX = 5 << 30


class CopySource(NamedTuple):
    """The object, or the version of it, to copy."""

    bucket: str
    key: str
    version: str = ""
    #: The account that the source names; empty for that of the request.
    account: str = ""

    def is_target(self, call: Call) -> bool:
        """Return True if the object is copied onto itself."""
        is_same = (self.bucket, self.key) == (call.bucket, call.key) and not self.version
        return is_same and self.account in ("", call.session.account)

    def call_of(self, call: Call) -> Call:
        """Return the call for requests to the source: rights in buckets of another account do not count."""
        if self.account in ("", call.session.account):
            return call
        session = call.session._replace(path_account=self.account, trusted_bucket="", silent_bucket="")
        return replace(call, session=session)

    @property
    def query(self) -> str:
        """The query that selects the version."""
        return f"version-id={quote(self.version, safe='')}" if self.version else ""


def parse_copy_source(call: Call) -> CopySource:
    """Return the source that ``x-amz-copy-source`` names; raise ``S3Error``."""
    value = call.headers["x-amz-copy-source"]
    raw_path, _, query = value.partition("?")
    version = ""
    if query:
        name, _, version = query.partition("=")
        if name != "versionId" or not version or "&" in version:
            raise invalid_argument("X-Amz-Copy-Source", value, "Unsupported copy source parameter.")
    try:
        path, decoded = decode_path(raw_path), decode_path(raw_path.replace("+", "%20"))
    except NotUTF8:
        raise _invalid_source(value)
    bucket, _, key = path.removeprefix("/").partition("/")
    if not bucket or not key or RESERVED in path:
        raise _invalid_source(value)
    bucket, _key, account = S3Target.of(bucket, key)
    if not is_bucket_name(bucket, dns=call.settings.dns_compliant_bucket_names):
        raise S3Error("NoSuchBucket", details={"BucketName": bucket})
    if version:
        validate_version_id(version)
    if version and not call.features.versioning:
        raise S3Error("NotImplemented", "There is no object versioning here.")
    source = CopySource(bucket, key, version, account)
    if decoded == path:
        return source
    # Some clients send "+" for a blank.
    other = source._replace(key=decoded.removeprefix("/").partition("/")[2])
    return other if not _has_source(call, source) and _has_source(call, other) else source


def _has_source(call: Call, source: CopySource) -> bool:
    """Return True if a source exists and may be read."""
    try:
        session = authorize_source(source.call_of(call), source.bucket, source.key, source.version)
        return session.head(source.bucket, source.key, query=source.query).is_success
    except S3Error:
        return False


def _invalid_source(value: str) -> S3Error:
    text = "Copy Source must mention the source bucket and key: sourcebucket/sourcekey"
    return invalid_argument("x-amz-copy-source", value, text)


def open_source(call: Call, source: CopySource, byte_range: str | None = None) -> Response:
    """Return the response with the source's content, which the caller releases; raise ``S3Error``."""
    call = source.call_of(call)
    session = authorize_source(call, source.bucket, source.key, source.version)
    if call.settings.s3_acl and not session.is_trusted_in(source.bucket):
        acl = read_object_acl(
            replace(call, session=with_trusted_bucket(session, source.bucket)), source.bucket, source.key
        )
        require_permission(replace(call, session=session), acl, "READ")
        session = with_trusted_bucket(session, source.bucket)
    headers = {**parse_source_conditions(call.headers), "x-newest": "true"}
    dates = pop_date_conditions(headers)
    if byte_range:
        headers["range"] = byte_range
    sub = session.subrequest("GET", source.bucket, source.key, headers=headers, query=source.query)
    response = session.send(sub)
    if response.is_success and (
        fails_if_unmodified_since(dates, response.headers) or fails_if_modified_since(dates, response.headers)
    ):
        drained(response)
        raise S3Error("PreconditionFailed")
    if response.status in (200, 206):
        encrypted = EncryptedObject(session, source.bucket, source.key, source.query)
        decrypt_response(call, response, encrypted, CUSTOMER_SOURCE)
        return response
    drained(response)
    if response.status in (304, 412):
        raise S3Error("PreconditionFailed")
    if source.version and response.status in (400, 404):
        raise S3Error("NoSuchVersion", details={"Key": source.key, "VersionId": source.version})
    if response.status == 404:
        raise missing_object_error(call, source.key, source.bucket)
    raise error_for_status(response.status, conflict="BrokenMPU")


# --- CopyObject ---------------------------------------------------------------------------------------

COPY_RESULT = Group(
    "CopyObjectResult", Text("LastModified"), Text("ETag"), *CHECKSUM_ELEMENTS, Text("ChecksumType")
)
_COPIED_HEADERS = (*CONTENT_HEADERS, "content-type")


def copy_object(call: Call) -> Response:
    """CopyObject; the response begins with spaces if it takes long."""
    headers = call.headers
    storage_class = validate_write(call)
    call.require_no_body()
    if "range" in headers:
        raise invalid_request("RANGE is not supported in Copy!")
    if "x-amz-copy-source-range" in headers:
        raise invalid_argument(
            "x-amz-copy-source-range", headers["x-amz-copy-source-range"], "Illegal copy header"
        )
    response_headers = encryption_response_headers(call)
    source = parse_copy_source(call)
    replaces = _is_replace_directive(headers, "metadata")
    changes = replaces or _is_replace_directive(headers, "tagging") or REDIRECT_HEADER in headers
    changes = changes or "x-amz-storage-class" in headers
    if source.is_target(call) and not changes:
        raise invalid_request(
            "This copy request is illegal because it is trying to copy an object to "
            "itself without changing the object's metadata, storage class, website redirect location or "
            "encryption attributes."
        )
    return respond_with_keep_alive(
        call, lambda: _copy_object(call, source, storage_class, response_headers, replaces=replaces)
    )


def _is_replace_directive(headers: HeaderMap, kind: str) -> bool:
    name = f"x-amz-{kind}-directive"
    value = headers.get(name, "COPY")
    if value not in ("COPY", "REPLACE"):
        raise invalid_argument(name, headers[name], f"Unknown {kind} directive.")
    return value == "REPLACE"


def _copy_object(
    call: Call, source: CopySource, storage_class: str, response_headers: HeaderMap, *, replaces: bool
) -> Response:
    headers = call.headers
    conditions = parse_write_conditions(headers)
    found = open_source(call, source)
    with as_request_body(found) as body:
        if (body.length or 0) > COPY_BYTES_MAX:
            text = (
                "The specified copy source is larger than the maximum allowable size for a copy "
                f"source: {COPY_BYTES_MAX}"
            )
            raise invalid_request(text)
        promise = _requested_checksum(headers, found.headers)
        upload = S3Upload(
            body,
            VerifiedBody(body, None, promise),
            {},
            None if promise is None else DeclaredChecksum(promise.algorithm, None),
        )
        stored = to_swift_headers(headers) if replaces else _source_metadata(found.headers)
        stored.update(_tag_headers(headers, found.headers), **conditions, **new_object_acl_headers(call))
        stored.update(redirect_headers(headers), **expiry_headers(headers))
        stored.update(lock_metadata(call), **encrypt_upload(call, upload))
        stored.update(length_header(body))
        response = store_object(call, storage_class, upload, stored)
    if not response.is_success:
        raise write_error(call, response.status, conditions)
    written = write_response_headers(response)
    answer = {**response_headers, **{name: value for name, value in written.items() if name != "etag"}}
    size = upload.body.received
    answer.update(expiration_headers(call, stored, size=size, modified_s=time.time()))
    enqueue_event(call, "s3:ObjectCreated:Copy", call.key, size=size, **etag_and_version(written))
    if "x-object-version-id" in found.headers:
        answer["x-amz-copy-source-version-id"] = s3_version_id(found.headers)
    return xml_response(COPY_RESULT, _render_result(response, upload), headers=answer)


def _render_result(response: Response, upload: S3Upload) -> Value:
    value: dict[str, Value] = {
        "LastModified": modified_time_of(response),
        "ETag": write_response_headers(response)["etag"],
    }
    if upload.declared_checksum is not None:
        value[upload.declared_checksum.algorithm.element] = upload.checksum
        value["ChecksumType"] = FULL_OBJECT
    return value


def modified_time_of(response: Response) -> str:
    """Return the modification time of a response's object, in the format of documents."""
    seconds = modified_second(response.headers)
    return iso_time(float(seconds) if seconds is not None else Timestamp.now().seconds)


def _requested_checksum(headers: HeaderMap, source: HeaderMap) -> DeclaredChecksum | None:
    """Return the checksum to compute for a copy: the requested one, or the source's kind."""
    name = (
        headers.get("x-amz-checksum-algorithm")
        or source.get(fields.SYSMETA_S3_CHECKSUM, "").partition(" ")[0]
    )
    return DeclaredChecksum(find_algorithm(name), "") if name else None


def _source_metadata(source: HeaderMap) -> HeaderMap:
    """Return the metadata that a copy takes from its source."""
    found = {
        name: value
        for name, value in source.items()
        if name in _COPIED_HEADERS or name.startswith("x-object-meta-")
    }
    if float(source.get("x-delete-at") or 0) > time.time():
        found["x-delete-at"] = source["x-delete-at"]
    return found


def _tag_headers(headers: HeaderMap, source: HeaderMap) -> HeaderMap:
    if _is_replace_directive(headers, "tagging"):
        return tagging_headers(headers)
    text = source.get(fields.TRANSIENT_S3_TAGGING)
    return {fields.TRANSIENT_S3_TAGGING: text} if text else {}


HANDLERS: dict[str, Handler] = {"CopyObject": copy_object}

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
from swift.http.conditional import parse_http_date
from swift.http.headers import HeaderMap
from swift.http.response import Response
from swift.http.transform import as_request_body
from swift.s3.api.call import Call, Handler, invalid_argument, iso_time, keep_alive, xml_response
from swift.s3.api.checksums import ALGORITHMS, FULL, StatedChecksum, algorithm_named
from swift.s3.api.encryption import SOURCE as CUSTOMER_SOURCE
from swift.s3.api.encryption import Encrypted, decrypt, encrypt, write_headers
from swift.s3.api.metadata import REDIRECT, stored_headers
from swift.s3.api.objectlock import locking_headers
from swift.s3.api.payload import CheckedBody, S3Upload
from swift.s3.api.placement import store_object
from swift.s3.api.put import (
    check_version_id,
    expiry_headers,
    missing_key,
    redirect_headers,
    source_conditions,
    tagging_headers,
    unmet,
    validate_write,
    write_error,
    writing_conditions,
    written_headers,
)
from swift.s3.auth.session import trusted
from swift.s3.config.lifecycle import expiration_headers
from swift.s3.config.notifications import announce, written_facts
from swift.s3.errors import S3Error, refusal
from swift.s3.names import is_bucket_name
from swift.s3.policy.authorize import authorize_source, new_object_acl, object_acl, require_permission
from swift.s3.xml import Group, Text, Value

#: CopyObject takes no more at once; larger objects are copied in parts.
COPY_BYTES_MAX = 5 << 30


class CopySource(NamedTuple):
    """The object, or version of it, to copy."""

    bucket: str
    key: str
    version: str = ""

    @property
    def query(self) -> str:
        """The query that asks for the version."""
        return f"version-id={quote(self.version, safe='')}" if self.version else ""


def source_of(call: Call) -> CopySource:
    """Return the source that ``x-amz-copy-source`` names; raise ``S3Error``."""
    value = call.headers["x-amz-copy-source"]
    path, _, query = value.partition("?")
    version = ""
    if query:
        name, _, version = query.partition("=")
        if name != "versionId" or not version or "&" in version:
            raise invalid_argument("X-Amz-Copy-Source", value, "Unsupported copy source parameter.")
    try:
        path = decode_path(path)
    except NotUTF8:
        raise _bad(value)
    bucket, _, key = path.removeprefix("/").partition("/")
    if not bucket or not key or RESERVED in path:
        raise _bad(value)
    if not is_bucket_name(bucket, dns=call.settings.dns_compliant_bucket_names):
        raise S3Error("NoSuchBucket", details={"BucketName": bucket})
    if version:
        check_version_id(version)
    if version and not call.features.versioning:
        raise S3Error("NotImplemented", "There is no object versioning here.")
    return CopySource(bucket, key, version)


def _bad(value: str) -> S3Error:
    text = "Copy Source must mention the source bucket and key: sourcebucket/sourcekey"
    return invalid_argument("x-amz-copy-source", value, text)


def open_source(call: Call, source: CopySource, byte_range: str | None = None) -> Response:
    """Return the source's bytes and headers; raise ``S3Error``. The caller releases them."""
    session = authorize_source(call, source.bucket, source.key, source.version)
    if call.settings.s3_acl and not session.is_trusted_in(source.bucket):
        session.identify()
        acl = object_acl(replace(call, session=trusted(session, source.bucket)), source.bucket, source.key)
        require_permission(replace(call, session=session), acl, "READ")
        session = trusted(session, source.bucket)
    headers = {**source_conditions(call.headers), "x-newest": "true"}
    if byte_range:
        headers["range"] = byte_range
    sub = session.subrequest("GET", source.bucket, source.key, headers=headers, query=source.query)
    response = session.open(sub)
    if response.status in (200, 206):
        encrypted = Encrypted(session, source.bucket, source.key, source.query)
        decrypt(call, response, encrypted, CUSTOMER_SOURCE)
        return response
    drained(response)
    if response.status in (304, 412):
        raise S3Error("PreconditionFailed")
    if source.version and response.status in (400, 404):
        raise S3Error("NoSuchVersion", details={"Key": source.key, "VersionId": source.version})
    if response.status == 404:
        raise missing_key(call, source.key, source.bucket)
    raise refusal(response.status, conflict="BrokenMPU")


# --- CopyObject ---------------------------------------------------------------------------------------

RESULT = Group(
    "CopyObjectResult",
    Text("LastModified"),
    Text("ETag"),
    *(Text(algorithm.element) for algorithm in ALGORITHMS.values()),
    Text("ChecksumType"),
)
_KEPT = (
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "expires",
    "content-type",
)


def copy_object(call: Call) -> Response:
    """CopyObject; the answer begins with spaces when it takes long."""
    headers = call.headers
    kind = validate_write(call)
    call.take_no_body()
    if "range" in headers:
        raise S3Error("InvalidRequest", "RANGE is not supported in Copy!")
    if "x-amz-copy-source-range" in headers:
        raise invalid_argument(
            "x-amz-copy-source-range", headers["x-amz-copy-source-range"], "Illegal copy header"
        )
    answer_headers = write_headers(call)
    source = source_of(call)
    replaces = _directive(headers, "metadata")
    changes = replaces or _directive(headers, "tagging") or REDIRECT in headers
    changes = changes or "x-amz-storage-class" in headers
    if source[:2] == (call.bucket, call.key) and not source.version and not changes:
        raise S3Error(
            "InvalidRequest",
            "This copy request is illegal because it is trying to copy an object to itself without "
            "changing the "
            "object's metadata, storage class, website redirect location or encryption attributes.",
        )
    return keep_alive(call, lambda: _copy(call, source, kind, answer_headers, replaces=replaces))


def _directive(headers: HeaderMap, kind: str) -> bool:
    name = f"x-amz-{kind}-directive"
    value = headers.get(name, "COPY")
    if value not in ("COPY", "REPLACE"):
        raise invalid_argument(name, headers[name], f"Unknown {kind} directive.")
    return value == "REPLACE"


def _copy(
    call: Call, source: CopySource, kind: str, answer_headers: HeaderMap, *, replaces: bool
) -> Response:
    headers = call.headers
    conditions = writing_conditions(headers)
    found = open_source(call, source)
    with as_request_body(found) as body:
        if (body.length or 0) > COPY_BYTES_MAX:
            text = (
                "The specified copy source is larger than the maximum allowable size for a copy "
                f"source: {COPY_BYTES_MAX}"
            )
            raise S3Error("InvalidRequest", text)
        promise = _requested_checksum(headers, found.headers)
        upload = S3Upload(
            body,
            CheckedBody(body, None, promise),
            {},
            None if promise is None else StatedChecksum(promise.algorithm, None),
        )
        stored = stored_headers(headers) if replaces else _kept(found.headers)
        stored.update(_tags(headers, found.headers), **conditions, **new_object_acl(call))
        stored.update(redirect_headers(headers), **expiry_headers(headers))
        stored.update(locking_headers(call), **encrypt(call, upload))
        if body.length is None:
            stored["transfer-encoding"] = "chunked"
        else:
            stored["content-length"] = str(body.length)
        response = store_object(call, kind, upload, stored)
        status = response.status
    if status == 412:
        raise unmet(call.session, call.bucket, call.key, conditions)
    if status == 409 and conditions:
        raise S3Error("ConditionalRequestConflict")
    if not response.is_success:
        raise write_error(call.session, call.bucket, status, headers)
    written = written_headers(response)
    answer = {**answer_headers, **{name: value for name, value in written.items() if name != "etag"}}
    size = upload.body.received
    answer.update(expiration_headers(call, size, stored, modified_s=time.time()))
    announce(call, "s3:ObjectCreated:Copy", call.key, size=size, **written_facts(written))
    if "x-object-version-id" in found.headers:
        answer["x-amz-copy-source-version-id"] = found.headers["x-object-version-id"]
    return xml_response(RESULT, _result(response, upload), headers=answer)


def _result(response: Response, upload: S3Upload) -> Value:
    value: dict[str, Value] = {
        "LastModified": modified_of(response),
        "ETag": written_headers(response)["etag"],
    }
    if upload.promise is not None:
        value[upload.promise.algorithm.element] = upload.checksum
        value["ChecksumType"] = FULL
    return value


def modified_of(response: Response) -> str:
    """Return the time of the object of an answer, in the form of documents."""
    seconds = parse_http_date(response.headers.get("last-modified", ""))
    return iso_time(float(seconds) if seconds is not None else Timestamp.now().seconds)


def _requested_checksum(headers: HeaderMap, source: HeaderMap) -> StatedChecksum | None:
    """Return the checksum that a copy gets: the one asked for, or of the kind that its source has."""
    name = (
        headers.get("x-amz-checksum-algorithm")
        or source.get(fields.SYSMETA_S3_CHECKSUM, "").partition(" ")[0]
    )
    return StatedChecksum(algorithm_named(name), "") if name else None


def _kept(source: HeaderMap) -> HeaderMap:
    """Return the metadata that a copy takes from its source."""
    found = {
        name: value for name, value in source.items() if name in _KEPT or name.startswith("x-object-meta-")
    }
    if float(source.get("x-delete-at") or 0) > time.time():
        found["x-delete-at"] = source["x-delete-at"]
    return found


def _tags(headers: HeaderMap, source: HeaderMap) -> HeaderMap:
    if _directive(headers, "tagging"):
        return tagging_headers(headers)
    text = source.get(fields.TRANSIENT_S3_TAGGING)
    return {fields.TRANSIENT_S3_TAGGING: text} if text else {}


HANDLERS: dict[str, Handler] = {
    "CopyObject": copy_object,
}

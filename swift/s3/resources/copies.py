"""CopyObject."""

from __future__ import annotations

import time

from swift.base.timestamp import Timestamp
from swift.http import fields
from swift.http.conditional import parse_http_date
from swift.http.headers import HeaderMap
from swift.http.response import Response
from swift.http.transform import as_request_body
from swift.s3.access import new_object_acl
from swift.s3.call import Call, Handler, invalid_argument, iso_time, xml_response
from swift.s3.checksums import ALGORITHMS, FULL, PromisedChecksum, algorithm_named
from swift.s3.conditions import unmet, writing_conditions
from swift.s3.copying import COPY_BYTES_MAX, CopySource, open_source, source_of
from swift.s3.errors import S3Error
from swift.s3.keepalive import patiently
from swift.s3.lifecycle.shown import expiration_headers
from swift.s3.metadata import REDIRECT, stored_headers
from swift.s3.notifications.events import announce, facts_of
from swift.s3.objectlocks import locking_headers
from swift.s3.payload import CheckedBody, S3Upload
from swift.s3.placing import place
from swift.s3.reports import explain
from swift.s3.sse import encrypt, write_headers
from swift.s3.storing import (
    check_wishes,
    expiry_headers,
    redirect_headers,
    refused_write,
    tagging_headers,
    written_headers,
)
from swift.s3.xml import Group, Text, Value

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
    kind = check_wishes(call)
    call.take_no_body()
    if "range" in headers:
        raise S3Error("InvalidRequest", "RANGE is not supported in Copy!")
    if "x-amz-copy-source-range" in headers:
        raise invalid_argument(
            "x-amz-copy-source-range", headers["x-amz-copy-source-range"], "Illegal copy header"
        )
    told = write_headers(call)
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
    return patiently(
        lambda: _copy(call, source, kind, told, replaces=replaces),
        lambda error: explain(call, error),
        interval_s=call.settings.keep_alive_seconds,
    )


def _directive(headers: HeaderMap, kind: str) -> bool:
    name = f"x-amz-{kind}-directive"
    value = headers.get(name, "COPY")
    if value not in ("COPY", "REPLACE"):
        raise invalid_argument(name, headers[name], f"Unknown {kind} directive.")
    return value == "REPLACE"


def _copy(call: Call, source: CopySource, kind: str, told: HeaderMap, *, replaces: bool) -> Response:
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
        promise = _wanted_checksum(headers, found.headers)
        upload = S3Upload(
            body,
            CheckedBody(body, None, promise),
            {},
            None if promise is None else PromisedChecksum(promise.algorithm, None),
        )
        stored = stored_headers(headers) if replaces else _kept(found.headers)
        stored.update(_tags(headers, found.headers), **conditions, **new_object_acl(call))
        stored.update(redirect_headers(headers), **expiry_headers(headers))
        stored.update(locking_headers(call), **encrypt(call, upload))
        if body.length is None:
            stored["transfer-encoding"] = "chunked"
        else:
            stored["content-length"] = str(body.length)
        response = place(call, kind, upload, stored)
        status = response.status
    if status == 412:
        raise unmet(call.account, call.bucket, call.key, conditions)
    if status == 409 and conditions:
        raise S3Error("ConditionalRequestConflict")
    if not response.is_success:
        raise refused_write(call.account, call.bucket, status, headers)
    written = written_headers(response)
    answer = {**told, **{name: value for name, value in written.items() if name != "etag"}}
    size = upload.body.received
    answer.update(expiration_headers(call, size, stored, modified_s=time.time()))
    announce(call, "s3:ObjectCreated:Copy", call.key, size=size, **facts_of(written))
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
    """When an answer says that its object was written, as documents say it."""
    seconds = parse_http_date(response.headers.get("last-modified", ""))
    return iso_time(float(seconds) if seconds is not None else Timestamp.now().seconds)


def _wanted_checksum(headers: HeaderMap, source: HeaderMap) -> PromisedChecksum | None:
    """The checksum that a copy gets: the one asked for, or of the kind that its source has."""
    name = (
        headers.get("x-amz-checksum-algorithm")
        or source.get(fields.SYSMETA_S3_CHECKSUM, "").partition(" ")[0]
    )
    return PromisedChecksum(algorithm_named(name), "") if name else None


def _kept(source: HeaderMap) -> HeaderMap:
    """What a copy keeps of its source."""
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


HANDLERS: dict[str, Handler] = {"CopyObject": copy_object}

"""Objects: PutObject, GetObject, HeadObject, DeleteObject."""

from __future__ import annotations

import time

from swift.base.digits import is_digits
from swift.base.ranges import ByteRanges
from swift.gateway.subrequest import drained
from swift.http.conditional import keeps_range, known_etag, parse_http_date
from swift.http.headers import HeaderMap
from swift.http.response import Response
from swift.s3.access import new_object_acl
from swift.s3.call import Call, Handler, invalid_argument, no_content
from swift.s3.conditions import unmet, writing_conditions
from swift.s3.errors import S3Error, refusal
from swift.s3.lifecycle.shown import expiration_headers
from swift.s3.metadata import (
    is_changed_since,
    is_other_etag,
    reading_headers,
    shown_headers,
    stored_headers,
    wanted_range,
    with_overrides,
)
from swift.s3.notifications.events import announce, facts_of
from swift.s3.notifications.removals import announce_removal
from swift.s3.objectlocks import lock_headers, locking_headers
from swift.s3.partsums import part_checksum
from swift.s3.placing import place
from swift.s3.removal import remove_object
from swift.s3.sse import AES, CUSTOMER, decrypt, encrypt, write_headers
from swift.s3.sse import HEADER as SSE
from swift.s3.storing import (
    check_wishes,
    checksum_headers,
    class_headers,
    expiry_headers,
    redirect_headers,
    refused_write,
    stored_checksum,
    tagging_headers,
    written_headers,
)
from swift.s3.versions import missing_key, refused_version, version_query

_FOUND = (200, 206, 304)


def put_object(call: Call) -> Response:
    """PutObject."""
    headers = call.headers
    kind = check_wishes(call)
    conditions = writing_conditions(headers)
    told = write_headers(call)
    upload = call.upload()
    size = upload.body.length
    sealed = encrypt(call, upload)
    stored = {**stored_headers(headers), **upload.headers, **conditions, **tagging_headers(headers)}
    stored.update(redirect_headers(headers), **expiry_headers(headers))
    stored.update(new_object_acl(call), **locking_headers(call), **sealed)
    response = place(call, kind, upload, stored)
    status = response.status
    if response.is_success:
        told.update(written_headers(response), **checksum_headers(upload))
        size = upload.body.received if size is None else size
        told.update(expiration_headers(call, size, stored, modified_s=time.time()))
        announce(call, "s3:ObjectCreated:Put", call.key, size=size, **facts_of(told))
        return Response(200, told)
    upload.raise_problem()
    if status == 412:
        raise unmet(call.account, call.bucket, call.key, conditions)
    if status == 409 and conditions:
        raise S3Error("ConditionalRequestConflict")
    raise refused_write(call.account, call.bucket, status, headers)


def read_object(call: Call) -> Response:
    """GetObject and HeadObject."""
    params = call.params
    if call.account.is_anonymous and any(name.startswith("response-") for name in params):
        text = "Request specific response headers cannot be used for anonymous GET requests."
        raise S3Error("InvalidRequest", text)
    query = _query(call)
    wanted = reading_headers(call.headers)
    sub = call.account.subrequest(call.request.method, call.bucket, call.key, headers=wanted, query=query)
    response = call.account.open(sub)
    unmet_first = _unmet_first(wanted, response)
    if unmet_first:
        drained(response)
        raise S3Error("PreconditionFailed", details={"Condition": unmet_first})
    if response.status not in _FOUND:
        drained(response)
        raise _refused_read(call, response)
    below = response.headers
    headers = shown_headers(below)
    headers.update(lock_headers(below), **decrypt(call, response), **class_headers(call, below))
    if call.settings.accept_aes256 and f"{CUSTOMER}algorithm" not in headers:
        headers[SSE] = AES
    if call.headers.get("x-amz-checksum-mode", "").upper() == "ENABLED":
        headers.update(_checksum(call, response))
    for name, value in expiration_headers(call, _whole_size(below), below).items():
        headers.setdefault(name, value)
    if params:
        with_overrides(headers, params)
        if "partNumber" in params:
            _as_part(call, response, headers)
    response.headers = headers
    if call.request.method == "HEAD" and wanted_range(call.headers) and response.status == 200:
        modified_s = parse_http_date(headers.get("last-modified", ""))
        if keeps_range(wanted, etag=known_etag(wanted, below), last_modified_s=modified_s):
            _cut_head(call, response)
    return response


def _unmet_first(wanted: HeaderMap, response: Response) -> str:
    """The condition for which an answer is none, though the storage nodes were asked for a change first."""
    if response.status != 304:
        return ""
    if is_other_etag(wanted, response.headers):
        return "If-Match"
    return "If-Unmodified-Since" if is_changed_since(wanted, response.headers) else ""


def _checksum(call: Call, response: Response) -> HeaderMap:
    """The checksum of what an answer gives: the whole object, or one of its parts."""
    sums = stored_checksum(response.headers)
    if response.status == 200:
        return sums
    number = call.params.get("partNumber")
    if not sums or number is None or response.status != 206 or "x-parts-count" not in response.headers:
        return {}
    return part_checksum(call, int(number), sums["x-amz-checksum-type"])


def _whole_size(headers: HeaderMap) -> int:
    """The size of an object of which an answer may have a part."""
    text = headers.get("content-range", "").rpartition("/")[2] or headers.get("content-length", "")
    return int(text) if is_digits(text) else 0


def _cut_head(call: Call, response: Response) -> None:
    """Answer a HEAD with Range as its GET would be; raises ``S3Error``."""
    headers = response.headers
    size = int(headers.get("content-length") or 0)
    ranges = ByteRanges.parse(call.headers["range"])
    spans = ranges.resolve(size) if ranges else None
    if spans is None:
        return
    if not spans:
        drained(response)
        raise S3Error("InvalidRange", details={"RangeRequested": call.headers["range"]})
    if not size:
        # The last bytes of nothing are all of it.
        return
    response.status, response.reason = 206, "Partial Content"
    for name in [name for name in headers if name.startswith("x-amz-checksum-")]:
        # They are those of all its bytes.
        del headers[name]
    headers["content-range"] = spans[0].content_range(size)
    headers["content-length"] = str(spans[0].length)


def _query(call: Call) -> str:
    """Which version and part is wanted, for the rest of the pipeline; raises ``S3Error``."""
    params = call.params
    if not params:
        return ""
    found = version_query(call)
    number = params.get("partNumber")
    if number is not None:
        if not is_digits(number) or not 1 <= int(number[:6]) <= 10000:
            raise invalid_argument(
                "partNumber", number, "Part number must be an integer between 1 and 10000, inclusive"
            )
        if "range" in call.headers:
            raise S3Error("InvalidRequest", "Cannot specify both Range header and partNumber query parameter")
        found += f"{'&' if found else ''}part-number={number}"
    return found


def _as_part(call: Call, response: Response, headers: HeaderMap) -> None:
    """A whole object is its only part."""
    if "x-amz-mp-parts-count" in headers or response.status != 200:
        return
    if int(call.params["partNumber"]) != 1:
        drained(response)
        raise S3Error("InvalidPartNumber", details={"PartNumberRequested": call.params["partNumber"]})
    size = int(headers.get("content-length") or 0)
    if size:
        response.status, response.reason = 206, "Partial Content"
        headers["content-range"] = f"bytes 0-{size - 1}/{size}"


def _refused_read(call: Call, response: Response) -> S3Error:
    """What a GET or HEAD that found nothing is."""
    status = response.status
    version = call.params.get("versionId")
    if status in (400, 404) and version is not None:
        return refused_version(call, response, version)
    if status == 404:
        return missing_key(call, call.key)
    if status == 416 and "partNumber" in call.params:
        return S3Error("InvalidPartNumber", details={"PartNumberRequested": call.params["partNumber"]})
    if status == 416:
        return S3Error("InvalidRange", details={"RangeRequested": call.headers.get("range", "")})
    return refusal(status, missing="NoSuchKey", conflict="BrokenMPU")


def delete_object(call: Call) -> Response:
    """DeleteObject."""
    if "x-amz-mfa" in call.headers:
        raise S3Error("NotImplemented", details={"Header": "x-amz-mfa"})
    version_query(call)
    removed = remove_object(
        call, call.key, call.params.get("versionId"), conditions=writing_conditions(call.headers)
    )
    announce_removal(call, call.key, removed, by_version="versionId" in call.params)
    headers = {}
    if removed.version:
        headers["x-amz-version-id"] = removed.version
    if removed.is_marker:
        headers["x-amz-delete-marker"] = "true"
    return no_content(headers)


HANDLERS: dict[str, Handler] = {
    "PutObject": put_object,
    "GetObject": read_object,
    "HeadObject": read_object,
    "DeleteObject": delete_object,
}

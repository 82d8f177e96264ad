"""Placement of objects: in the bucket, or in a container of another storage class (decision 0018).

A storage class other than the bucket's is a storage policy other than the bucket's. The object's bytes are
then in the segments container for that class, and the bucket has a manifest of them, as for a multipart
object. The bytes are stored first, so no client finds a manifest without them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from swift.base.etag import unquote_etag
from swift.gateway.subrequest import open_response
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import Response
from swift.s3.api.objectlock import completed_lock_metadata, lock_parts
from swift.s3.api.writes import add_checksum_metadata
from swift.s3.core.call import Call
from swift.s3.core.checksums import FULL_OBJECT
from swift.s3.core.errors import S3Error
from swift.s3.core.metadata import manifest_headers
from swift.s3.core.payload import S3Upload
from swift.s3.core.segments import make_segments_container
from swift.s3.core.uploadstate import new_upload_id, part_name

#: Headers of a write that are about its body.
_BODY_HEADERS = ("content-length", "transfer-encoding", "etag")


def store_object(call: Call, storage_class: str, upload: S3Upload, stored: HeaderMap) -> Response:
    """Store an object and return the response; raise ``S3Error``.

    ``storage_class`` is empty for the bucket's class.
    """
    if storage_class:
        return _store_with_manifest(call, storage_class, upload, stored)
    sub = call.session.subrequest("PUT", call.bucket, call.key, headers=stored, body=upload.body)
    add_checksum_metadata(sub, upload)
    with open_response(call.session.send, sub) as response:
        return response


def _store_with_manifest(call: Call, storage_class: str, upload: S3Upload, stored: HeaderMap) -> Response:
    segments, upload_id = make_segments_container(call, storage_class), new_upload_id()
    part = part_name(call.key, upload_id, 1)
    about = {name: stored[name] for name in _BODY_HEADERS if name in stored}
    about["content-type"] = "application/octet-stream"
    sub = call.session.subrequest("PUT", segments, part, headers=about, body=upload.body)
    add_checksum_metadata(sub, upload)
    with open_response(call.session.send, sub) as response:
        etag = unquote_etag(response.headers.get("etag", ""))
    if not response.is_success:
        return response
    headers = {name: text for name, text in stored.items() if name not in _BODY_HEADERS}
    headers.update(manifest_headers(storage_class, upload_id, etag))
    if upload.declared_checksum is not None:
        headers[fields.SYSMETA_S3_CHECKSUM] = (
            f"{upload.declared_checksum.algorithm.name} {FULL_OBJECT} {upload.checksum}"
        )
    if fields.TRANSIENT_S3_LOCK not in headers:
        headers.update(completed_lock_metadata(call, {}))
    try:
        with open_response(
            call.session.send, manifest_request(call, [(segments, part, etag)], headers)
        ) as response:
            pass
    except S3Error:
        call.delete_unreferenced_part(segments, part)
        raise
    if not response.is_success:
        if response.status < 500:
            # No object refers to it. After a 5xx one may, so the lifecycle daemon checks it later.
            call.delete_unreferenced_part(segments, part)
        return response
    response.headers["etag"] = f'"{etag}"'
    if fields.TRANSIENT_S3_LOCK in headers:
        lock_parts(call, [(segments, part)], {fields.TRANSIENT_S3_LOCK: headers[fields.TRANSIENT_S3_LOCK]})
    return response


def manifest_request(call: Call, parts: Sequence[tuple[str, str, str]], headers: HeaderMap) -> Request:
    """Return the request to slo that stores an object of parts, each (container, name, ETag)."""
    manifest = [{"path": f"/{segments}/{name}", "etag": etag} for segments, name, etag in parts]
    body = json.dumps(manifest).encode()
    query = "multipart-manifest=put"
    return call.session.subrequest("PUT", call.bucket, call.key, headers=headers, body=body, query=query)

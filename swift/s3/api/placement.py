"""Placement of objects: in the bucket, or apart for another storage class (decision 0018).

The class of an object that is not its bucket's is a storage policy that the bucket has not. Then its bytes
are in the container of parts that the bucket has for that class, and in the bucket there is a manifest of
them, as of a multipart object. The bytes come first, so no client finds a manifest without them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from swift.base.entity import EntityPath
from swift.base.etag import unquote_etag
from swift.gateway.subrequest import open_response
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import Response
from swift.s3.api.call import Call
from swift.s3.api.checksums import FULL
from swift.s3.api.metadata import manifest_headers
from swift.s3.api.objectlock import completed_lock, lock_parts
from swift.s3.api.payload import S3Upload
from swift.s3.api.put import store_checksum
from swift.s3.api.uploads import new_upload_id, part_of
from swift.s3.errors import S3Error, refusal
from swift.s3.names import REGISTRY, registry_path, segments_of

#: Headers of a write that are about its body.
_OF_BODY = ("content-length", "transfer-encoding", "etag")


def store_object(call: Call, kind: str, upload: S3Upload, stored: HeaderMap) -> Response:
    """Store an object with these headers; the head of the answer. ``kind`` is empty for the bucket's class.

    Raises ``S3Error``.
    """
    if kind:
        return _store_apart(call, kind, upload, stored)
    sub = call.session.subrequest("PUT", call.bucket, call.key, headers=stored, body=upload.body)
    store_checksum(sub, upload)
    with open_response(call.session.open, sub) as response:
        return response


def _store_apart(call: Call, kind: str, upload: S3Upload, stored: HeaderMap) -> Response:
    segments, upload_id = make_segments_container(call, kind), new_upload_id()
    part = part_of(call.key, upload_id, 1)
    about = {name: stored[name] for name in _OF_BODY if name in stored}
    about["content-type"] = "application/octet-stream"
    sub = call.session.subrequest("PUT", segments, part, headers=about, body=upload.body)
    store_checksum(sub, upload)
    with open_response(call.session.open, sub) as response:
        etag = unquote_etag(response.headers.get("etag", ""))
    if not response.is_success:
        return response
    headers = {name: text for name, text in stored.items() if name not in _OF_BODY}
    headers.update(manifest_headers(kind, upload_id, etag))
    if upload.promise is not None:
        headers[fields.SYSMETA_S3_CHECKSUM] = f"{upload.promise.algorithm.name} {FULL} {upload.checksum}"
    if fields.TRANSIENT_S3_LOCK not in headers:
        headers.update(completed_lock(call, {}))
    try:
        with open_response(
            call.session.open, manifest_request(call, [(segments, part, etag)], headers)
        ) as response:
            pass
    except S3Error:
        call.remove_unneeded(segments, part)
        raise
    if not response.is_success:
        if response.status < 500:
            # No request can reach it; after a 5xx it may be the object, and the daemon looks.
            call.remove_unneeded(segments, part)
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


# --- the containers of parts --------------------------------------------------------------------------


def segments_containers(call: Call) -> list[str]:
    """Return all containers that may have parts of the bucket's objects."""
    classes = call.features.classes
    kinds = () if classes.is_alone else classes
    return [segments_of(call.bucket), *(segments_of(call.bucket, kind) for kind in kinds)]


def make_segments_container(call: Call, kind: str = "") -> str:
    """Return the container of parts, with the bucket's ACLs, and its policy unless it is for another class.

    Its name. Raises ``S3Error``. The lifecycle daemon removes what overwritten objects and uploads leave in
    it, so that one has to know of the bucket.
    """
    session, name = call.session, segments_of(call.bucket, kind)
    if kind and session.has_bucket(name):
        if not call.features.classes.is_in(kind, session.bucket_info(name).policy_index):
            raise S3Error("InvalidStorageClass", f"{kind} was another policy when the bucket used it.")
        return name
    bucket = session.head(call.bucket)
    if not bucket.is_success:
        error = refusal(bucket.status, missing="NoSuchBucket")
        error.details.setdefault("BucketName", call.bucket)
        raise error
    found = session.head(name)
    if found.is_success and fields.SYSMETA_S3_REGISTERED in found.headers:
        return name
    # The lifecycle daemon removes what uploads leave behind.
    session.hidden.note("PUT", REGISTRY)
    session.hidden.note("PUT", registry_path(session.account, call.bucket))
    registered = {fields.SYSMETA_S3_REGISTERED: "true"}
    if found.is_success:
        session.hidden.note("POST", EntityPath(session.account, name), registered)
        return name
    copied = ("x-container-read", "x-container-write", "x-storage-policy")
    headers = {key: bucket.headers[key] for key in copied if key in bucket.headers} | registered
    if kind:
        headers["x-storage-policy"] = call.features.classes.policy_of(kind) or ""
    if bucket.headers.get(fields.SYSMETA_S3_LOCK_RULE):
        # Parts are locked with what they are parts of.
        headers[fields.SYSMETA_S3_OBJECT_LOCK] = "true"
    session.done("PUT", name, headers=headers)
    return name


def allow_locks(call: Call) -> None:
    """Let parts of the bucket's objects be locked, those there are and those to come; raises ``S3Error``."""
    make_segments_container(call)
    flag = {fields.SYSMETA_S3_OBJECT_LOCK: "true"}
    for name in segments_containers(call):
        if call.session.has_bucket(name):
            call.session.hidden.note("POST", EntityPath(call.session.account, name), flag)

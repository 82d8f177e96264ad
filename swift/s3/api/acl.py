"""ACLs of buckets and objects: GetBucketAcl, PutBucketAcl, GetObjectAcl, PutObjectAcl (spec: middleware.md
§22.3).
"""

from __future__ import annotations

from swift.gateway.subrequest import drained
from swift.http import fields
from swift.http.headers import HeaderMap, wire_value
from swift.http.response import Response
from swift.http.transform import as_request_body
from swift.s3.api.writes import object_error, update_if_unchanged
from swift.s3.core.call import Call, Handler, version_query, xml_response
from swift.s3.core.errors import S3Error, error_for_status
from swift.s3.core.metadata import CONTENT_HEADERS, is_large, object_storage_class, row_parameters
from swift.s3.core.names import segments_container
from swift.s3.core.session import owner_sysmeta
from swift.s3.core.xml import parse
from swift.s3.policy.acls import (
    ACL_SCHEMA,
    Acl,
    acl_from_swift,
    has_acl_headers,
    parse_acl_document,
    parse_acl_headers,
    private_acl,
    swift_acl_of_canned,
    swift_acl_of_document,
)
from swift.s3.policy.authorize import read_bucket_acl, read_bucket_rules, read_object_acl, validate_acl


def get_bucket_acl(call: Call) -> Response:
    """GetBucketAcl."""
    owner = call.session.user_id
    if call.settings.s3_acl:
        found = read_bucket_acl(call, call.bucket) or private_acl(owner)
        return xml_response(ACL_SCHEMA, found.to_document())
    return xml_response(
        ACL_SCHEMA, acl_from_swift(owner, call.session.bucket_headers(call.bucket)).to_document()
    )


def put_bucket_acl(call: Call) -> Response:
    """PutBucketAcl; the segments containers get the same ACL."""
    acl = _parse_requested_acl(call, read_bucket_acl(call, call.bucket) if call.settings.s3_acl else None)
    if call.settings.s3_acl:
        headers = {fields.SYSMETA_S3_BUCKET_ACL: wire_value(acl.to_json())}
    elif "x-amz-acl" in call.headers:
        headers = swift_acl_of_canned(call.headers["x-amz-acl"])
    else:
        headers = swift_acl_of_document(acl)
    if not call.settings.s3_acl:
        # The proxy silently ignores ACLs from callers that are not owners.
        owner_sysmeta(call.session, call.bucket)
    call.session.require_success("POST", call.bucket, headers=headers)
    for storage_class in ("", *call.features.storage_classes):
        with call.session.open_response(
            "POST", segments_container(call.bucket, storage_class), headers=headers
        ) as response:
            if not response.is_success and response.status != 404:
                raise error_for_status(response.status)
    return Response(200)


def _parse_requested_acl(call: Call, before: Acl | None) -> Acl:
    """Return the ACL in the headers or the body of a request; raise ``S3Error``.

    Its owner is that of the existing ACL, also for callers that only may write the ACL.
    """
    body, in_headers = call.read_body(error="MalformedACLError"), has_acl_headers(call.headers)
    if body and in_headers:
        raise S3Error("UnexpectedContent")
    owner = before.owner if before is not None else call.session.user_id
    if in_headers:
        found = parse_acl_headers(call.headers, owner, owner)
        assert found is not None, "there is one in the headers"
        # The access check has validated the headers against the bucket's rules.
        return found
    if not body:
        text = "Your request was missing a required header."
        raise S3Error("MissingSecurityHeader", text, details={"MissingHeaderName": "x-amz-acl"})
    acl = parse_acl_document(parse(ACL_SCHEMA, body, error="MalformedACLError"))
    if before is not None and acl.owner != owner:
        raise S3Error("AccessDenied")
    validate_acl(acl, read_bucket_rules(call))
    return acl


def get_object_acl(call: Call) -> Response:
    """GetObjectAcl."""
    owner = call.session.user_id
    head = call.session.head(call.bucket, call.key, query=version_query(call))
    if not head.is_success:
        raise object_error(call, 404 if head.status == 400 else head.status)
    if call.settings.s3_acl:
        found = read_object_acl(call, call.bucket, call.key)
        return xml_response(ACL_SCHEMA, (found or private_acl(owner)).to_document())
    return xml_response(ACL_SCHEMA, private_acl(owner).to_document())


def put_object_acl(call: Call) -> Response:
    """PutObjectAcl; rewrites the object, because only the metadata of a PUT stores the ACL."""
    if not call.settings.s3_acl:
        raise S3Error("NotImplemented", "Objects have ACLs of their own with the option s3_acl only.")
    if "versionId" in call.params:
        raise S3Error("NotImplemented", "The ACL of a version is not changed.")
    acl = _parse_requested_acl(call, read_object_acl(call, call.bucket, call.key))
    changed = {fields.SYSMETA_S3_OBJECT_ACL: wire_value(acl.to_json())}
    status = update_if_unchanged(call, lambda conditions: _copy_onto_itself(call, {**changed, **conditions}))
    if not 200 <= status <= 299:
        raise error_for_status(status)
    return Response(200)


def _copy_onto_itself(call: Call, changed: HeaderMap) -> int:
    """Copy an object or manifest onto itself with changed headers; return the status of the PUT."""
    session = call.session
    query = "multipart-manifest=get&format=raw"
    sub = session.subrequest("GET", call.bucket, call.key, headers={"x-newest": "true"}, query=query)
    found = session.send(sub)
    if found.status != 200:
        drained(found, is_complete=False)
        raise object_error(call, found.status)
    headers = {name: value for name, value in found.headers.items() if _is_kept(name)}
    headers.update(changed)
    large = is_large(found.headers)
    if large and fields.SYSMETA_S3_ETAG in headers:
        headers[fields.SYSMETA_UPDATE_OVERRIDE_ETAG] = row_parameters(
            headers[fields.SYSMETA_S3_ETAG], object_storage_class(found.headers)
        )
    with as_request_body(found) as body:
        headers["content-length"] = str(body.length)
        query = "multipart-manifest=put" if large else ""
        with session.open_response(
            "PUT", call.bucket, call.key, headers=headers, body=body, query=query
        ) as response:
            return response.status


_KEPT_HEADERS = ("content-type", *CONTENT_HEADERS)
_KEPT_PREFIXES = ("x-object-meta-", fields.SYSMETA_S3_OBJECT, fields.OBJECT_TRANSIENT_SYSMETA)


def _is_kept(name: str) -> bool:
    return name in _KEPT_HEADERS or name == "x-delete-at" or name.startswith(_KEPT_PREFIXES)


HANDLERS: dict[str, Handler] = {
    "GetBucketAcl": get_bucket_acl,
    "PutBucketAcl": put_bucket_acl,
    "GetObjectAcl": get_object_acl,
    "PutObjectAcl": put_object_acl,
}

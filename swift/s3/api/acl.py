"""ACLs of buckets and objects: GetBucketAcl, PutBucketAcl, GetObjectAcl, PutObjectAcl (spec: middleware.md
§22.3).
"""

from __future__ import annotations

from swift.http import fields
from swift.http.headers import HeaderMap, wire_value
from swift.http.response import Response
from swift.http.transform import as_request_body
from swift.s3.api.call import Call, Handler, xml_response
from swift.s3.api.metadata import is_large, object_class, row_override
from swift.s3.api.put import missing_key, update_if_unchanged, version_query
from swift.s3.auth.session import owned_sysmeta
from swift.s3.errors import S3Error, refusal
from swift.s3.names import segments_of
from swift.s3.policy.acls import (
    POLICY,
    Acl,
    acl_of_document,
    acl_of_headers,
    acl_of_swift,
    has_acl_headers,
    private_acl,
    swift_acl,
    swift_acl_of_document,
)
from swift.s3.policy.authorize import bucket_acl, check_acl, object_acl, rules_of_bucket
from swift.s3.xml import parse


def get_bucket_acl(call: Call) -> Response:
    """GetBucketAcl."""
    owner = call.session.owner
    if call.settings.s3_acl:
        found = bucket_acl(call, call.bucket) or private_acl(owner)
        return xml_response(POLICY, found.document())
    return xml_response(POLICY, acl_of_swift(owner, call.session.bucket_headers(call.bucket)).document())


def put_bucket_acl(call: Call) -> Response:
    """PutBucketAcl; the containers of the parts get the same."""
    acl = _requested_acl(call, bucket_acl(call, call.bucket) if call.settings.s3_acl else None)
    if call.settings.s3_acl:
        headers = {fields.SYSMETA_S3_BUCKET_ACL: wire_value(acl.stored())}
    elif "x-amz-acl" in call.headers:
        headers = swift_acl(call.headers["x-amz-acl"])
    else:
        headers = swift_acl_of_document(acl)
    if not call.settings.s3_acl:
        # Of others than owners the proxy takes no ACL, and says nothing.
        owned_sysmeta(call.session, call.bucket)
    call.session.done("POST", call.bucket, headers=headers)
    for kind in ("", *call.features.classes):
        with call.session.ask("POST", segments_of(call.bucket, kind), headers=headers) as response:
            if not response.is_success and response.status != 404:
                raise refusal(response.status)
    return Response(200)


def _requested_acl(call: Call, before: Acl | None) -> Acl:
    """Return the ACL that a request brings, in headers or in its body; raise ``S3Error``.

    Its owner is that of the ACL before, also if the caller was only granted the right to write the ACL.
    """
    body, in_headers = call.read_body(error="MalformedACLError"), has_acl_headers(call.headers)
    if body and in_headers:
        raise S3Error("UnexpectedContent")
    owner = before.owner if before is not None else call.session.owner
    if in_headers:
        found = acl_of_headers(call.headers, owner, owner)
        assert found is not None, "there is one in the headers"
        # The rules of the bucket were asked with the headers.
        return found
    if not body:
        text = "Your request was missing a required header."
        raise S3Error("MissingSecurityHeader", text, details={"MissingHeaderName": "x-amz-acl"})
    acl = acl_of_document(parse(POLICY, body, error="MalformedACLError"))
    if before is not None and acl.owner != owner:
        raise S3Error("AccessDenied")
    check_acl(acl, rules_of_bucket(call))
    return acl


def get_object_acl(call: Call) -> Response:
    """GetObjectAcl."""
    owner = call.session.owner
    head = call.session.head(call.bucket, call.key, query=version_query(call))
    if not head.is_success:
        raise missing_key(call, call.key) if head.status in (400, 404) else refusal(head.status)
    if call.settings.s3_acl:
        found = object_acl(call, call.bucket, call.key)
        return xml_response(POLICY, (found or private_acl(owner)).document())
    return xml_response(POLICY, private_acl(owner).document())


def put_object_acl(call: Call) -> Response:
    """PutObjectAcl; the object is written again with another ACL, as only its data's metadata keeps one."""
    if not call.settings.s3_acl:
        raise S3Error("NotImplemented", "Objects have ACLs of their own with the option s3_acl only.")
    if "versionId" in call.params:
        raise S3Error("NotImplemented", "The ACL of a version is not changed.")
    acl = _requested_acl(call, object_acl(call, call.bucket, call.key))
    changed = {fields.SYSMETA_S3_OBJECT_ACL: wire_value(acl.stored())}
    status = update_if_unchanged(call, lambda conditions: _copied(call, {**changed, **conditions}))
    if not 200 <= status <= 299:
        raise refusal(status)
    return Response(200)


def _copied(call: Call, changed: HeaderMap) -> int:
    """Copy an object onto itself with other headers, a manifest as such; the status of the PUT."""
    session = call.session
    query = "multipart-manifest=get&format=raw"
    sub = session.subrequest("GET", call.bucket, call.key, headers={"x-newest": "true"}, query=query)
    found = session.open(sub)
    if found.status != 200:
        found.discard()
        found.report_end(0, False)
        raise missing_key(call, call.key) if found.status == 404 else refusal(found.status)
    headers = {name: value for name, value in found.headers.items() if _is_kept(name)}
    headers.update(changed)
    large = is_large(found.headers)
    if large and fields.SYSMETA_S3_ETAG in headers:
        headers[fields.SYSMETA_UPDATE_OVERRIDE_ETAG] = row_override(
            headers[fields.SYSMETA_S3_ETAG], object_class(found.headers)
        )
    with as_request_body(found) as body:
        headers["content-length"] = str(body.length)
        query = "multipart-manifest=put" if large else ""
        with session.ask("PUT", call.bucket, call.key, headers=headers, body=body, query=query) as response:
            return response.status


_PLAIN = (
    "content-type",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "expires",
)
_KEPT_PREFIXES = ("x-object-meta-", fields.SYSMETA_S3_OBJECT, fields.OBJECT_TRANSIENT_SYSMETA)


def _is_kept(name: str) -> bool:
    return name in _PLAIN or name == "x-delete-at" or name.startswith(_KEPT_PREFIXES)


HANDLERS: dict[str, Handler] = {
    "GetBucketAcl": get_bucket_acl,
    "PutBucketAcl": put_bucket_acl,
    "GetObjectAcl": get_object_acl,
    "PutObjectAcl": put_object_acl,
}

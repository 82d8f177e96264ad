"""Bucket policies: GetBucketPolicy, PutBucketPolicy, DeleteBucketPolicy, GetBucketPolicyStatus."""

from __future__ import annotations

from swift.http import fields
from swift.http.response import Response
from swift.s3.account import owners_settings
from swift.s3.call import Call, Handler, no_content, xml_response
from swift.s3.errors import S3Error
from swift.s3.guard import rules_of_bucket
from swift.s3.policy.conditions import BadPolicy
from swift.s3.policy.decide import is_public
from swift.s3.policy.document import POLICY_BYTES_MAX, parse_policy
from swift.s3.resources.documents import keep_document, owners_document
from swift.s3.xml import Group, Text

STATUS = Group("PolicyStatus", Text("IsPublic"))
_TOO_LARGE = "Policy exceeds the maximum allowed document size."


def _stored(call: Call) -> bytes:
    return owners_document(call, fields.SYSMETA_S3_BUCKET_POLICY, "NoSuchBucketPolicy")


def get_policy(call: Call) -> Response:
    """GetBucketPolicy."""
    return Response(200, {"content-type": "application/json"}, _stored(call))


def get_policy_status(call: Call) -> Response:
    """GetBucketPolicyStatus."""
    try:
        public = is_public(parse_policy(_stored(call), call.bucket))
    except BadPolicy:
        raise S3Error("InternalError")
    return xml_response(STATUS, {"IsPublic": "true" if public else "false"})


def put_policy(call: Call) -> Response:
    """PutBucketPolicy."""
    length = call.request.body.length
    if length is not None and length > 2 * POLICY_BYTES_MAX:
        call.account.identify()
        raise S3Error("MalformedPolicy", _TOO_LARGE)
    body = call.read_body()
    if not body:
        raise S3Error("MissingRequestBodyError")
    owners_settings(call.account, call.bucket)
    try:
        policy = parse_policy(body, call.bucket)
    except BadPolicy as error:
        raise S3Error("MalformedPolicy", _TOO_LARGE if len(body) > POLICY_BYTES_MAX else str(error))
    if is_public(policy) and "BlockPublicPolicy" in rules_of_bucket(call).blocks:
        raise S3Error("AccessDenied")
    keep_document(call, fields.SYSMETA_S3_BUCKET_POLICY, body)
    return no_content()


def delete_policy(call: Call) -> Response:
    """DeleteBucketPolicy; a bucket without one is as it should be."""
    keep_document(call, fields.SYSMETA_S3_BUCKET_POLICY, b"")
    return no_content()


HANDLERS: dict[str, Handler] = {
    "GetBucketPolicy": get_policy,
    "GetBucketPolicyStatus": get_policy_status,
    "PutBucketPolicy": put_policy,
    "DeleteBucketPolicy": delete_policy,
}

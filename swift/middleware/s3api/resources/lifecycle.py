"""The lifecycle of a bucket: what it is set to."""

from __future__ import annotations

from swift.http.response import Response
from swift.middleware.s3api.call import Call, Handler, no_content, xml_response
from swift.middleware.s3api.errors import S3Error, refusal
from swift.middleware.s3api.lifecycle.document import (
    DOCUMENT_BYTES_MAX,
    LIFECYCLE,
    document_of,
    rules_of_document,
)
from swift.middleware.s3api.lifecycle.registry import HOME, place_of
from swift.middleware.s3api.lifecycle.stored import rules_of_headers, stored_rules


def get_lifecycle(call: Call) -> Response:
    """GetBucketLifecycle and GetBucketLifecycleConfiguration."""
    head = call.account.head(call.bucket)
    if not head.is_success:
        raise refusal(head.status, missing="NoSuchBucket")
    rules = rules_of_headers(head.headers)
    if not rules:
        raise S3Error("NoSuchLifecycleConfiguration", details={"BucketName": call.bucket})
    return xml_response(LIFECYCLE, document_of(rules))


def put_lifecycle(call: Call) -> Response:
    """PutBucketLifecycle and PutBucketLifecycleConfiguration."""
    rules = rules_of_document(call.document(LIFECYCLE, limit=DOCUMENT_BYTES_MAX))
    call.account.done("POST", call.bucket, headers=stored_rules(rules))
    call.account.hidden.note("PUT", HOME)
    call.account.hidden.note("PUT", place_of(call.account.name, call.bucket))
    return Response(200)


def delete_lifecycle(call: Call) -> Response:
    """DeleteBucketLifecycle; the daemon finds nothing there and forgets the bucket."""
    call.account.done("POST", call.bucket, headers=stored_rules(()))
    return no_content()


HANDLERS: dict[str, Handler] = {
    "GetBucketLifecycle": get_lifecycle,
    "GetBucketLifecycleConfiguration": get_lifecycle,
    "PutBucketLifecycle": put_lifecycle,
    "PutBucketLifecycleConfiguration": put_lifecycle,
    "DeleteBucketLifecycle": delete_lifecycle,
}

"""The lifecycle of a bucket: what it is set to."""

from __future__ import annotations

from collections.abc import Sequence

from swift.http.response import Response
from swift.s3.call import Call, Handler, invalid_argument, no_content, xml_response
from swift.s3.errors import S3Error, refusal
from swift.s3.lifecycle.document import (
    DOCUMENT_BYTES_MAX,
    LIFECYCLE,
    document_of,
    rules_of_document,
)
from swift.s3.lifecycle.registry import HOME, place_of
from swift.s3.lifecycle.rules import LifecycleRule
from swift.s3.lifecycle.stored import rules_of_headers, stored_rules
from swift.s3.placing import make_home

#: From which size on objects get another class, and the only answer to that.
_LEAST, _LEAST_SIZE = "x-amz-transition-default-minimum-object-size", "all_storage_classes_128K"


def get_lifecycle(call: Call) -> Response:
    """GetBucketLifecycle and GetBucketLifecycleConfiguration."""
    head = call.account.head(call.bucket)
    if not head.is_success:
        raise refusal(head.status, missing="NoSuchBucket")
    rules = rules_of_headers(head.headers)
    if not rules:
        raise S3Error("NoSuchLifecycleConfiguration", details={"BucketName": call.bucket})
    return xml_response(LIFECYCLE, document_of(rules), headers={_LEAST: _LEAST_SIZE})


def put_lifecycle(call: Call) -> Response:
    """PutBucketLifecycle and PutBucketLifecycleConfiguration."""
    rules = rules_of_document(call.document(LIFECYCLE, limit=DOCUMENT_BYTES_MAX))
    wanted = call.headers.get(_LEAST, _LEAST_SIZE)
    if wanted != _LEAST_SIZE:
        raise invalid_argument(_LEAST, wanted, f"Transitions are of {_LEAST_SIZE} here.")
    _make_homes(call, rules)
    call.account.done("POST", call.bucket, headers=stored_rules(rules))
    call.account.hidden.note("PUT", HOME)
    call.account.hidden.note("PUT", place_of(call.account.name, call.bucket))
    return Response(200)


def _make_homes(call: Call, rules: Sequence[LifecycleRule]) -> None:
    """The containers into which transitions will lead; raises ``S3Error`` for classes that cannot be had."""
    kinds = {move.kind for rule in rules for move in (*rule.transitions, *rule.noncurrent_transitions)}
    if not kinds:
        return
    own, classes = call.storage_class, call.features.classes
    for kind in kinds:
        if kind == own or not call.features.multipart or classes.policy_of(kind) is None:
            text = f"'StorageClass' must be one that the bucket has not and the cluster has, not {kind}."
            raise S3Error("InvalidStorageClass", text)
    for kind in sorted(kinds):
        make_home(call, kind)


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

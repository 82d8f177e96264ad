"""Which webhooks a bucket tells of what happens to its objects."""

from __future__ import annotations

from swift.http.response import Response
from swift.s3.call import Call, Handler, xml_response
from swift.s3.errors import refusal
from swift.s3.notifications.rules import (
    DOCUMENT_BYTES_MAX,
    NOTIFICATION,
    rules_of_document,
    rules_of_headers,
    shown,
    stored_rules,
)
from swift.s3.objectlocks import require_owner


def get_notification(call: Call) -> Response:
    """GetBucketNotification and GetBucketNotificationConfiguration."""
    require_owner(call)
    head = call.account.head(call.bucket)
    if not head.is_success:
        raise refusal(head.status, missing="NoSuchBucket")
    return xml_response(NOTIFICATION, shown(rules_of_headers(head.headers)))


def put_notification(call: Call) -> Response:
    """PutBucketNotification and PutBucketNotificationConfiguration; an empty one ends them."""
    tree = call.document(NOTIFICATION, limit=DOCUMENT_BYTES_MAX)
    rules = rules_of_document(tree, call.settings.notification_targets)
    call.account.done("POST", call.bucket, headers=stored_rules(rules))
    return Response(200)


HANDLERS: dict[str, Handler] = {
    "GetBucketNotification": get_notification,
    "GetBucketNotificationConfiguration": get_notification,
    "PutBucketNotification": put_notification,
    "PutBucketNotificationConfiguration": put_notification,
}

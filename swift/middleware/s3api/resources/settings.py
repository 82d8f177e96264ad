"""What a bucket is set to: versioning, and the fixed answers of what it cannot be set to."""

from __future__ import annotations

from swift.base.truth import is_true
from swift.http import fields
from swift.http.response import Response
from swift.middleware.s3api.account import owners_settings
from swift.middleware.s3api.call import Call, Handler, xml_response
from swift.middleware.s3api.errors import S3Error, refusal
from swift.middleware.s3api.xml import Group, Kind, Many, Node, Text, Value, parse, text_of

VERSIONING = Group("VersioningConfiguration", Text("Status"), Text("MfaDelete"))
LOGGING = Group("BucketLoggingStatus")
_GRANT = Many(
    "Grant",
    Group("Grantee", Kind(), *map(Text, ("ID", "DisplayName", "EmailAddress", "URI"))),
    Text("Permission"),
)
_WANTED_LOGGING = Group(
    "BucketLoggingStatus",
    Group(
        "LoggingEnabled",
        Text("TargetBucket"),
        Text("TargetPrefix"),
        Group("TargetGrants", _GRANT),
        Group(
            "TargetObjectKeyFormat",
            Group("SimplePrefix"),
            Group("PartitionedPrefix", Text("PartitionDateSource")),
        ),
    ),
)
ACCELERATION = Group("AccelerateConfiguration")


def get_versioning(call: Call) -> Response:
    """GetBucketVersioning."""
    head = call.account.head(call.bucket)
    if not head.is_success:
        raise refusal(head.status, missing="NoSuchBucket")
    state = head.headers.get("x-versions-enabled")
    value: dict[str, Value] = {}
    if state is not None:
        value["Status"] = "Enabled" if is_true(state) else "Suspended"
    return xml_response(VERSIONING, value)


def put_versioning(call: Call) -> Response:
    """PutBucketVersioning, through object versioning."""
    if not call.features.versioning:
        raise S3Error("NotImplemented", "There is no object versioning here.")
    tree = call.document(VERSIONING)
    if "MfaDelete" in tree and text_of(tree["MfaDelete"]) != "Disabled":
        raise S3Error("NotImplemented", "MFA delete is not implemented.")
    status = text_of(tree.get("Status"))
    if status not in ("Enabled", "Suspended"):
        raise S3Error("MalformedXML")
    if status == "Suspended" and call.account.head(call.bucket).headers.get(fields.SYSMETA_S3_LOCK_RULE):
        text = "An Object Lock configuration is present on this bucket, so versioning cannot be suspended."
        raise S3Error("InvalidBucketState", text)
    headers = {"x-versions-enabled": "true" if status == "Enabled" else "false"}
    call.account.done("POST", call.bucket, headers=headers)
    return Response(200)


def _fixed(schema: Node, value: dict[str, Value]) -> Handler:
    def answer(call: Call) -> Response:
        call.account.identify()
        call.account.bucket_info(call.bucket)
        return xml_response(schema, value)

    return answer


def put_logging(call: Call) -> Response:
    """PutBucketLogging: that there is none may be said; nobody here would write one."""
    body = call.read_body()
    if not body:
        raise S3Error("MissingRequestBodyError")
    if parse(_WANTED_LOGGING, body):
        raise S3Error("NotImplemented", "Logs are not delivered to buckets.")
    owners_settings(call.account, call.bucket)
    return Response(200)


def no_logging_of_key(call: Call) -> Response:
    """A key has no logging status."""
    call.account.identify()
    raise S3Error("NoLoggingStatusForKey")


HANDLERS: dict[str, Handler] = {
    "GetBucketVersioning": get_versioning,
    "PutBucketVersioning": put_versioning,
    "GetBucketLogging": _fixed(LOGGING, {}),
    "PutBucketLogging": put_logging,
    "GetBucketAccelerateConfiguration": _fixed(ACCELERATION, {}),
    "GetObjectLogging": no_logging_of_key,
}

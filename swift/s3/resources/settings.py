"""What a bucket is set to: versioning, and the fixed answers of what it cannot be set to."""

from __future__ import annotations

from swift.base.truth import is_true
from swift.http import fields
from swift.http.response import Response
from swift.s3.account import owners_settings
from swift.s3.call import Call, Handler, invalid_argument, xml_response
from swift.s3.errors import S3Error, refusal
from swift.s3.names import is_bucket_name
from swift.s3.objectlocks import require_target
from swift.s3.serverlog import LOGGING, PREFIX_MAX, LogTarget, target_of
from swift.s3.xml import Element, Group, Text, Value, text_of, tree_of

VERSIONING = Group("VersioningConfiguration", Text("Status"), Text("MfaDelete"))
LOGGING_KEY = fields.SYSMETA_S3_BUCKET_LOGGING.removeprefix(fields.CONTAINER_SYSMETA)
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
        raise S3Error("NotImplemented", "MFA Delete is not supported.")
    status = text_of(tree.get("Status"))
    if status not in ("Enabled", "Suspended"):
        raise S3Error("MalformedXML")
    if status == "Suspended" and call.account.head(call.bucket).headers.get(fields.SYSMETA_S3_LOCK_RULE):
        text = (
            "An Object Lock configuration is present on this bucket, so the versioning state cannot be "
            "changed."
        )
        raise S3Error("InvalidBucketState", text)
    headers = {"x-versions-enabled": "true" if status == "Enabled" else "false"}
    call.account.done("POST", call.bucket, headers=headers)
    return Response(200)


def _fixed(schema: Element, value: dict[str, Value]) -> Handler:
    def answer(call: Call) -> Response:
        call.account.identify()
        call.account.bucket_info(call.bucket)
        return xml_response(schema, value)

    return answer


def get_logging(call: Call) -> Response:
    """GetBucketLogging."""
    target = target_of(owners_settings(call.account, call.bucket).get(LOGGING_KEY))
    if target is None:
        return xml_response(LOGGING, {})
    value = {"TargetBucket": target.bucket, "TargetPrefix": target.prefix}
    return xml_response(LOGGING, {"LoggingEnabled": value})


def put_logging(call: Call) -> Response:
    """PutBucketLogging; nobody but the owner gets rights in the log, as in the rest of its bucket."""
    wanted = tree_of(call.document(LOGGING).get("LoggingEnabled"))
    owners_settings(call.account, call.bucket)
    stored = ""
    if wanted:
        if "TargetGrants" in wanted or "PartitionedPrefix" in tree_of(wanted.get("TargetObjectKeyFormat")):
            raise S3Error("NotImplemented")
        target = LogTarget(text_of(wanted["TargetBucket"]), text_of(wanted["TargetPrefix"]))
        _check_target(call, target)
        stored = target.stored
    call.account.done("POST", call.bucket, headers={fields.SYSMETA_S3_BUCKET_LOGGING: stored})
    return Response(200)


def _check_target(call: Call, target: LogTarget) -> None:
    """Raise ``S3Error`` for a bucket that is not the caller's, and for what cannot begin a key."""
    if len(target.prefix.encode()) > PREFIX_MAX or "\x00" in target.prefix:
        raise invalid_argument("TargetPrefix", target.prefix[:100], "The prefix is too long.")
    if not is_bucket_name(target.bucket, dns=call.settings.dns_compliant_bucket_names):
        raise S3Error("InvalidTargetBucketForLogging")
    require_target(call, target.bucket, "InvalidTargetBucketForLogging")


def no_logging_of_key(call: Call) -> Response:
    """A key has no logging status."""
    call.account.identify()
    raise S3Error("NoLoggingStatusForKey")


HANDLERS: dict[str, Handler] = {
    "GetBucketVersioning": get_versioning,
    "PutBucketVersioning": put_versioning,
    "GetBucketLogging": get_logging,
    "PutBucketLogging": put_logging,
    "GetBucketAccelerateConfiguration": _fixed(ACCELERATION, {}),
    "GetObjectLogging": no_logging_of_key,
}

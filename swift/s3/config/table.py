"""What handlers share of documents that a bucket keeps: its owner reads, keeps and forgets them."""

from __future__ import annotations

from swift.base.truth import is_true
from swift.http import fields
from swift.http.response import Response
from swift.s3.api.call import Call, Handler, invalid_argument, no_content, xml_response
from swift.s3.api.encryption import AES, check_algorithm
from swift.s3.api.objectlock import require_owner, require_target
from swift.s3.auth.session import owned_sysmeta
from swift.s3.config.access_log import LOGGING, PREFIX_MAX, LogTarget, log_target_of
from swift.s3.config.codec import kept_document, kept_headers
from swift.s3.errors import S3Error, refusal
from swift.s3.names import is_bucket_name
from swift.s3.policy.acls import acl_of_swift, stored_acl
from swift.s3.policy.authorize import (
    BLOCK_KEY,
    BLOCKS,
    ENFORCED,
    OWNER_PAYS,
    OWNERSHIP_KEY,
    OWNERSHIPS,
    PAYER_KEY,
    REQUESTER_PAYS,
    rules_of_bucket,
)
from swift.s3.policy.conditions import BadPolicy
from swift.s3.policy.document import POLICY_BYTES_MAX, is_public, parse_policy
from swift.s3.xml import Element, Group, Many, Text, Value, text_of, tree_of, trees_of


def owned_document(call: Call, name: str, missing: str) -> bytes:
    """The document under a header's name; raises ``S3Error``, ``missing`` when there is none."""
    document = kept_document(owned_sysmeta(call.session, call.bucket), name)
    if not document:
        raise S3Error(missing, details={"BucketName": call.bucket})
    return document


def store_document(call: Call, name: str, document: bytes) -> None:
    """Keep a document of the caller's bucket, or forget it when it is empty; raises ``S3Error``."""
    owned_sysmeta(call.session, call.bucket)
    call.session.done("POST", call.bucket, headers=kept_headers(name, document))


# --- settings ------------------------------------------------------------
# What a bucket is set to: versioning, and the fixed answers of what it cannot be set to.


VERSIONING = Group("VersioningConfiguration", Text("Status"), Text("MfaDelete"))
LOGGING_KEY = fields.SYSMETA_S3_BUCKET_LOGGING.removeprefix(fields.CONTAINER_SYSMETA)
ACCELERATION = Group("AccelerateConfiguration")


def get_versioning(call: Call) -> Response:
    """GetBucketVersioning."""
    head = call.session.head(call.bucket)
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
    if status == "Suspended" and call.session.head(call.bucket).headers.get(fields.SYSMETA_S3_LOCK_RULE):
        text = (
            "An Object Lock configuration is present on this bucket, so the versioning state cannot be "
            "changed."
        )
        raise S3Error("InvalidBucketState", text)
    headers = {"x-versions-enabled": "true" if status == "Enabled" else "false"}
    call.session.done("POST", call.bucket, headers=headers)
    return Response(200)


def _fixed(schema: Element, value: dict[str, Value]) -> Handler:
    def answer(call: Call) -> Response:
        call.session.identify()
        call.session.bucket_info(call.bucket)
        return xml_response(schema, value)

    return answer


def get_logging(call: Call) -> Response:
    """GetBucketLogging."""
    target = log_target_of(owned_sysmeta(call.session, call.bucket).get(LOGGING_KEY))
    if target is None:
        return xml_response(LOGGING, {})
    value = {"TargetBucket": target.bucket, "TargetPrefix": target.prefix}
    return xml_response(LOGGING, {"LoggingEnabled": value})


def put_logging(call: Call) -> Response:
    """PutBucketLogging; nobody but the owner gets rights in the log, as in the rest of its bucket."""
    wanted = tree_of(call.document(LOGGING).get("LoggingEnabled"))
    owned_sysmeta(call.session, call.bucket)
    stored = ""
    if wanted:
        if "TargetGrants" in wanted or "PartitionedPrefix" in tree_of(wanted.get("TargetObjectKeyFormat")):
            raise S3Error("NotImplemented")
        target = LogTarget(text_of(wanted["TargetBucket"]), text_of(wanted["TargetPrefix"]))
        _check_target(call, target)
        stored = target.stored
    call.session.done("POST", call.bucket, headers={fields.SYSMETA_S3_BUCKET_LOGGING: stored})
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
    call.session.identify()
    raise S3Error("NoLoggingStatusForKey")


# --- ownership ------------------------------------------------------------
# Public access blocks and ownership controls of buckets: which ACLs and policies may be, and which count.


BLOCK = Group("PublicAccessBlockConfiguration", *map(Text, BLOCKS))
CONTROLS = Group("OwnershipControls", Many("Rule", Text("ObjectOwnership", required=True), required=True))
_TRUTHS = {"true": True, "false": False}


def _keep(call: Call, header: str, text: str) -> None:
    owned_sysmeta(call.session, call.bucket)
    call.session.done("POST", call.bucket, headers={header: text})


def get_block(call: Call) -> Response:
    """GetPublicAccessBlock."""
    stored = owned_sysmeta(call.session, call.bucket).get(BLOCK_KEY)
    if not stored:
        raise S3Error("NoSuchPublicAccessBlockConfiguration", details={"BucketName": call.bucket})
    on = stored.split(",")
    value: dict[str, Value] = {name: "true" if name in on else "false" for name in BLOCKS}
    return xml_response(BLOCK, value)


def put_block(call: Call) -> Response:
    """PutPublicAccessBlock."""
    tree = call.document(BLOCK)
    if any(text_of(value).lower() not in _TRUTHS for value in tree.values()):
        raise S3Error("MalformedXML")
    on = [name for name in BLOCKS if text_of(tree.get(name)).lower() == "true"]
    # With all of them off there still is a configuration.
    _keep(call, fields.SYSMETA_S3_BUCKET_BLOCK, ",".join(on) or "none")
    return Response(200)


def delete_block(call: Call) -> Response:
    """DeletePublicAccessBlock."""
    _keep(call, fields.SYSMETA_S3_BUCKET_BLOCK, "")
    return no_content()


def get_controls(call: Call) -> Response:
    """GetBucketOwnershipControls."""
    stored = owned_sysmeta(call.session, call.bucket).get(OWNERSHIP_KEY)
    if not stored:
        raise S3Error("OwnershipControlsNotFoundError", details={"BucketName": call.bucket})
    return xml_response(CONTROLS, {"Rule": [{"ObjectOwnership": stored}]})


def put_controls(call: Call) -> Response:
    """PutBucketOwnershipControls."""
    rules = trees_of(call.document(CONTROLS).get("Rule"))
    wanted = text_of(rules[0].get("ObjectOwnership"))
    if len(rules) != 1 or wanted not in OWNERSHIPS:
        raise S3Error("MalformedXML")
    if wanted == ENFORCED:
        _check_private(call)
    _keep(call, fields.SYSMETA_S3_BUCKET_OWNERSHIP, wanted)
    return Response(200)


def _check_private(call: Call) -> None:
    """Raise ``S3Error`` when the bucket's ACL grants others something that would count no more."""
    head = call.session.head(call.bucket)
    owner = call.session.owner
    if call.settings.s3_acl:
        acl = stored_acl(head.headers.get(fields.SYSMETA_S3_BUCKET_ACL))
    else:
        acl = acl_of_swift(owner, head.headers)
    if acl is not None and not acl.is_private:
        raise S3Error("InvalidBucketAclWithObjectOwnership")


def delete_controls(call: Call) -> Response:
    """DeleteBucketOwnershipControls."""
    _keep(call, fields.SYSMETA_S3_BUCKET_OWNERSHIP, "")
    return no_content()


# --- payment ------------------------------------------------------------
# Who pays for requests. Nobody is charged; where it is the requester, others must say that they know it.


PAYMENT = Group("RequestPaymentConfiguration", Text("Payer", required=True))


def get_payment(call: Call) -> Response:
    """GetBucketRequestPayment."""
    payer = owned_sysmeta(call.session, call.bucket).get(PAYER_KEY) or OWNER_PAYS
    return xml_response(PAYMENT, {"Payer": payer})


def put_payment(call: Call) -> Response:
    """PutBucketRequestPayment."""
    payer = text_of(call.document(PAYMENT).get("Payer"))
    if payer not in (OWNER_PAYS, REQUESTER_PAYS):
        raise S3Error("MalformedXML")
    owned_sysmeta(call.session, call.bucket)
    stored = payer if payer == REQUESTER_PAYS else ""
    call.session.done("POST", call.bucket, headers={fields.SYSMETA_S3_BUCKET_PAYER: stored})
    return Response(200)


# --- policies ------------------------------------------------------------
# Bucket policies: GetBucketPolicy, PutBucketPolicy, DeleteBucketPolicy, GetBucketPolicyStatus.


STATUS = Group("PolicyStatus", Text("IsPublic"))
_TOO_LARGE = "Policy exceeds the maximum allowed document size."


def _stored(call: Call) -> bytes:
    return owned_document(call, fields.SYSMETA_S3_BUCKET_POLICY, "NoSuchBucketPolicy")


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
        call.session.identify()
        raise S3Error("MalformedPolicy", _TOO_LARGE)
    body = call.read_body()
    if not body:
        raise S3Error("MissingRequestBodyError")
    owned_sysmeta(call.session, call.bucket)
    try:
        policy = parse_policy(body, call.bucket)
    except BadPolicy as error:
        raise S3Error("MalformedPolicy", _TOO_LARGE if len(body) > POLICY_BYTES_MAX else str(error))
    if is_public(policy) and "BlockPublicPolicy" in rules_of_bucket(call).blocks:
        raise S3Error("AccessDenied")
    store_document(call, fields.SYSMETA_S3_BUCKET_POLICY, body)
    return no_content()


def delete_policy(call: Call) -> Response:
    """DeleteBucketPolicy; a bucket without one is as it should be."""
    store_document(call, fields.SYSMETA_S3_BUCKET_POLICY, b"")
    return no_content()


# --- encryption ------------------------------------------------------------
# The default encryption of a bucket: what the cluster does with everything, so nothing is kept of it.


CONFIGURATION = Group(
    "ServerSideEncryptionConfiguration",
    Many(
        "Rule",
        Group("ApplyServerSideEncryptionByDefault", Text("SSEAlgorithm"), Text("KMSMasterKeyID")),
        Text("BucketKeyEnabled"),
        required=True,
    ),
)


def get_encryption(call: Call) -> Response:
    """GetBucketEncryption."""
    call.session.bucket_info(call.bucket)
    if not call.features.encryption:
        raise S3Error("ServerSideEncryptionConfigurationNotFoundError", details={"BucketName": call.bucket})
    rule: Value = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": AES}, "BucketKeyEnabled": "false"}
    return xml_response(CONFIGURATION, {"Rule": [rule]})


def put_encryption(call: Call) -> Response:
    """PutBucketEncryption: what the cluster does anyway is taken, everything else refused."""
    rules = trees_of(call.document(CONFIGURATION).get("Rule"))
    if len(rules) != 1 or "ApplyServerSideEncryptionByDefault" not in rules[0]:
        raise S3Error("MalformedXML")
    require_owner(call)
    default = tree_of(rules[0]["ApplyServerSideEncryptionByDefault"])
    algorithm = text_of(default.get("SSEAlgorithm"))
    if algorithm == AES and "KMSMasterKeyID" in default:
        text = "a KMSMasterKeyID is not applicable if the default sse algorithm is not aws:kms"
        raise S3Error("InvalidArgument", text)
    check_algorithm(call, algorithm)
    return Response(200)


def delete_encryption(call: Call) -> Response:
    """DeleteBucketEncryption: back to what the cluster does."""
    require_owner(call)
    return no_content()


HANDLERS: dict[str, Handler] = {
    "GetBucketVersioning": get_versioning,
    "PutBucketVersioning": put_versioning,
    "GetBucketLogging": get_logging,
    "PutBucketLogging": put_logging,
    "GetBucketAccelerateConfiguration": _fixed(ACCELERATION, {}),
    "GetObjectLogging": no_logging_of_key,
    "GetPublicAccessBlock": get_block,
    "PutPublicAccessBlock": put_block,
    "DeletePublicAccessBlock": delete_block,
    "GetBucketOwnershipControls": get_controls,
    "PutBucketOwnershipControls": put_controls,
    "DeleteBucketOwnershipControls": delete_controls,
    "GetBucketRequestPayment": get_payment,
    "PutBucketRequestPayment": put_payment,
    "GetBucketPolicy": get_policy,
    "GetBucketPolicyStatus": get_policy_status,
    "PutBucketPolicy": put_policy,
    "DeleteBucketPolicy": delete_policy,
    "GetBucketEncryption": get_encryption,
    "PutBucketEncryption": put_encryption,
    "DeleteBucketEncryption": delete_encryption,
}

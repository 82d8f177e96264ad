"""Bucket configurations: a table of those that are stored as they are put, and the handlers of the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from swift.base.truth import is_true
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.response import Response
from swift.s3.api.call import DOCUMENT_MAX, Call, Handler, invalid_argument, no_content, xml_response
from swift.s3.api.encryption import AES, check_algorithm
from swift.s3.api.objectlock import require_owner, require_target
from swift.s3.api.router import OPERATIONS
from swift.s3.api.tags import (
    BUCKET_TAGS_MAX,
    TAGGING,
    parsed_tags,
    stored_tags,
    tags_document,
    tags_of_document,
)
from swift.s3.auth.session import owned_sysmeta, sysmeta_of
from swift.s3.config import codec, cors, lifecycle, notifications, website
from swift.s3.config.access_log import LOGGING, PREFIX_MAX, LogTarget, log_target_of
from swift.s3.errors import S3Error
from swift.s3.names import REGISTRY, is_bucket_name, registry_path
from swift.s3.policy.acls import acl_of_swift, stored_acl
from swift.s3.policy.authorize import rules_of_bucket
from swift.s3.policy.conditions import BadPolicy
from swift.s3.policy.context import (
    BLOCK_KEY,
    BLOCKS,
    ENFORCED,
    OWNER_PAYS,
    OWNERSHIP_KEY,
    OWNERSHIPS,
    PAYER_KEY,
    REQUESTER_PAYS,
)
from swift.s3.policy.document import POLICY_BYTES_MAX, is_public, parse_policy
from swift.s3.xml import Element, Group, Many, Text, Tree, Value, text_of, tree_of, trees_of


class AllowedCaller(Enum):
    """The caller that may read a configuration, or change it."""

    #: Every caller that the access check allows.
    AUTHORIZED = "authorized"
    #: The owner of the bucket, or a caller to whom its policy allows the operation.
    OWNER = "owner"
    #: The owner of the bucket, whatever its policy says.
    ONLY_OWNER = "only owner"


def _nothing(_call: Call) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A row of the table: one kind of configuration of a bucket, in XML."""

    #: The ends of the operations' names, behind Get, Put and Delete.
    nouns: tuple[str, ...]
    schema: Element
    #: The headers that store a document that was put; raises ``S3Error``.
    parse: Callable[[Call, Tree], HeaderMap]
    #: The document of a bucket's system metadata; None if the bucket has none.
    render: Callable[[Mapping[str, str]], Value | None]
    #: The headers that store it, which a deletion empties.
    headers: tuple[str, ...]
    #: The error if there is none.
    missing: str = ""
    readers: AllowedCaller = AllowedCaller.OWNER
    writers: AllowedCaller = AllowedCaller.OWNER
    limit: int = DOCUMENT_MAX
    put_status: int = 200
    #: Headers of the answer to a Get.
    answer_headers: Mapping[str, str] = field(default_factory=dict)
    #: Called after the owner is checked and before the configuration is stored; raises ``S3Error``.
    check: Callable[[Call, HeaderMap], None] | None = None
    stored: Callable[[Call], None] = _nothing
    removed: Callable[[Call], None] = _nothing

    def get(self, call: Call) -> Response:
        """Answer with the document; raise ``S3Error``."""
        value = self.render(_sysmeta(call, self.readers))
        if value is None:
            raise S3Error(self.missing, details={"BucketName": call.bucket})
        return xml_response(self.schema, value, headers=dict(self.answer_headers))

    def put(self, call: Call) -> Response:
        """Store a document; raise ``S3Error``."""
        headers = self.parse(call, call.document(self.schema, limit=self.limit))
        if self.writers is AllowedCaller.OWNER:
            owned_sysmeta(call.session, call.bucket)
        if self.check is not None:
            self.check(call, headers)
        call.session.done("POST", call.bucket, headers=headers)
        self.stored(call)
        return Response(self.put_status)

    def delete(self, call: Call) -> Response:
        """Remove the configuration; raise ``S3Error``."""
        if self.writers is AllowedCaller.OWNER:
            owned_sysmeta(call.session, call.bucket)
        call.session.done("POST", call.bucket, headers=dict.fromkeys(self.headers, ""))
        self.removed(call)
        return no_content()

    def handlers(self) -> dict[str, Handler]:
        """Return the handlers of its operations."""
        verbs: dict[str, Handler] = {"Get": self.get, "Put": self.put, "Delete": self.delete}
        pairs = ((verb + noun, handler) for noun in self.nouns for verb, handler in verbs.items())
        return {name: handler for name, handler in pairs if name in OPERATIONS}


def _sysmeta(call: Call, reader: AllowedCaller) -> Mapping[str, str]:
    """Return the system metadata of the bucket; raise ``S3Error`` if the caller may not read it."""
    if reader is AllowedCaller.OWNER:
        return owned_sysmeta(call.session, call.bucket)
    if reader is AllowedCaller.ONLY_OWNER:
        require_owner(call)
    return sysmeta_of(call.session.bucket_headers(call.bucket))


def _key(header: str) -> str:
    return header.removeprefix(fields.CONTAINER_SYSMETA)


# --- versioning, logging, fixed answers ---------------------------------------------------------------

VERSIONING = Group("VersioningConfiguration", Text("Status"), Text("MfaDelete"))
LOGGING_KEY = fields.SYSMETA_S3_BUCKET_LOGGING.removeprefix(fields.CONTAINER_SYSMETA)
ACCELERATION = Group("AccelerateConfiguration")


def get_versioning(call: Call) -> Response:
    """GetBucketVersioning."""
    state = call.session.bucket_headers(call.bucket).get("x-versions-enabled")
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


def _headers_of_logging(call: Call, tree: Tree) -> HeaderMap:
    requested = tree_of(tree.get("LoggingEnabled"))
    if not requested:
        return {fields.SYSMETA_S3_BUCKET_LOGGING: ""}
    if "TargetGrants" in requested or "PartitionedPrefix" in tree_of(requested.get("TargetObjectKeyFormat")):
        # Only the owner gets rights in the log, as in the rest of its bucket.
        owned_sysmeta(call.session, call.bucket)
        raise S3Error("NotImplemented")
    target = LogTarget(text_of(requested["TargetBucket"]), text_of(requested["TargetPrefix"]))
    return {fields.SYSMETA_S3_BUCKET_LOGGING: target.stored}


def _render_logging(sysmeta: Mapping[str, str]) -> Value:
    target = log_target_of(sysmeta.get(LOGGING_KEY))
    if target is None:
        return {}
    return {"LoggingEnabled": {"TargetBucket": target.bucket, "TargetPrefix": target.prefix}}


def _check_logging(call: Call, headers: HeaderMap) -> None:
    """Raise ``S3Error`` for a target that is not the caller's, and for a prefix that cannot begin a key."""
    target = log_target_of(headers[fields.SYSMETA_S3_BUCKET_LOGGING])
    if target is None:
        return
    if len(target.prefix.encode()) > PREFIX_MAX or "\x00" in target.prefix:
        raise invalid_argument("TargetPrefix", target.prefix[:100], "The prefix is too long.")
    if not is_bucket_name(target.bucket, dns=call.settings.dns_compliant_bucket_names):
        raise S3Error("InvalidTargetBucketForLogging")
    require_target(call, target.bucket, "InvalidTargetBucketForLogging")


def no_logging_of_key(call: Call) -> Response:
    """Return a key has no logging status."""
    call.session.identify()
    raise S3Error("NoLoggingStatusForKey")


# --- public access block, ownership controls ----------------------------------------------------------

BLOCK = Group("PublicAccessBlockConfiguration", *map(Text, BLOCKS))
CONTROLS = Group("OwnershipControls", Many("Rule", Text("ObjectOwnership", required=True), required=True))
_TRUTHS = {"true": True, "false": False}


def _headers_of_block(_call: Call, tree: Tree) -> HeaderMap:
    if any(text_of(value).lower() not in _TRUTHS for value in tree.values()):
        raise S3Error("MalformedXML")
    on = [name for name in BLOCKS if text_of(tree.get(name)).lower() == "true"]
    # With all of them off there still is a configuration.
    return {fields.SYSMETA_S3_BUCKET_BLOCK: ",".join(on) or "none"}


def _render_block(sysmeta: Mapping[str, str]) -> Value | None:
    on = sysmeta.get(BLOCK_KEY, "").split(",")
    return {name: "true" if name in on else "false" for name in BLOCKS} if on != [""] else None


def _headers_of_controls(call: Call, tree: Tree) -> HeaderMap:
    rules = trees_of(tree.get("Rule"))
    requested = text_of(rules[0].get("ObjectOwnership"))
    if len(rules) != 1 or requested not in OWNERSHIPS:
        raise S3Error("MalformedXML")
    if requested == ENFORCED:
        _check_private(call)
    return {fields.SYSMETA_S3_BUCKET_OWNERSHIP: requested}


def _render_controls(sysmeta: Mapping[str, str]) -> Value | None:
    stored = sysmeta.get(OWNERSHIP_KEY)
    return {"Rule": [{"ObjectOwnership": stored}]} if stored else None


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


# --- requester pays -----------------------------------------------------------------------------------

PAYMENT = Group("RequestPaymentConfiguration", Text("Payer", required=True))


def _headers_of_payment(_call: Call, tree: Tree) -> HeaderMap:
    payer = text_of(tree.get("Payer"))
    if payer not in (OWNER_PAYS, REQUESTER_PAYS):
        raise S3Error("MalformedXML")
    return {fields.SYSMETA_S3_BUCKET_PAYER: payer if payer == REQUESTER_PAYS else ""}


def _render_payment(sysmeta: Mapping[str, str]) -> Value:
    return {"Payer": sysmeta.get(PAYER_KEY) or OWNER_PAYS}


# --- bucket policies ----------------------------------------------------------------------------------

STATUS = Group("PolicyStatus", Text("IsPublic"))
_TOO_LARGE = "Policy exceeds the maximum allowed document size."


def _stored(call: Call) -> bytes:
    document = codec.POLICY.decode(owned_sysmeta(call.session, call.bucket))
    if not document:
        raise S3Error("NoSuchBucketPolicy", details={"BucketName": call.bucket})
    return document


def get_policy(call: Call) -> Response:
    """GetBucketPolicy."""
    return Response(200, {"content-type": "application/json"}, _stored(call))


def get_policy_status(call: Call) -> Response:
    """GetBucketPolicyStatus."""
    try:
        public = is_public(parse_policy(_stored(call), call.bucket))
    except BadPolicy:
        raise codec.POLICY.damaged()
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
    call.session.done("POST", call.bucket, headers=codec.POLICY.encode(body))
    return no_content()


def delete_policy(call: Call) -> Response:
    """DeleteBucketPolicy; a bucket without one is as it should be."""
    owned_sysmeta(call.session, call.bucket)
    call.session.done("POST", call.bucket, headers=codec.POLICY.encode(b""))
    return no_content()


# --- default encryption -------------------------------------------------------------------------------

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


# --- tags of buckets ----------------------------------------------------------------------------------


def _headers_of_tags(_call: Call, tree: Tree) -> HeaderMap:
    return {fields.SYSMETA_S3_BUCKET_TAGGING: stored_tags(tags_of_document(tree, BUCKET_TAGS_MAX))}


def _render_tags(sysmeta: Mapping[str, str]) -> Value | None:
    text = sysmeta.get(_key(fields.SYSMETA_S3_BUCKET_TAGGING))
    return tags_document(parsed_tags(text)) if text else None


# --- configurations that are files of their own -------------------------------------------------------


def _headers_of_website(_call: Call, tree: Tree) -> HeaderMap:
    website.site_of_document(tree)
    return codec.WEBSITE.encode(website.stored_tree(tree))


def _render_website(sysmeta: Mapping[str, str]) -> Value | None:
    document = codec.WEBSITE.decode(sysmeta)
    return website.parsed_tree(document) if document else None


def _headers_of_cors(_call: Call, tree: Tree) -> HeaderMap:
    return codec.CORS.encode(cors.stored_rules(cors.rules_of_document(tree)))


def _render_cors(sysmeta: Mapping[str, str]) -> Value | None:
    document = codec.CORS.decode(sysmeta)
    return cors.document_of_rules(cors.parsed_rules(document)) if document else None


def _render_lifecycle(sysmeta: Mapping[str, str]) -> Value | None:
    rules = lifecycle.rules_of(sysmeta)
    return lifecycle.document_of_lifecycle(rules) if rules else None


def _register_lifecycle(call: Call) -> None:
    call.session.hidden.note("PUT", REGISTRY)
    call.session.hidden.note("PUT", registry_path(call.session.account, call.bucket))


def _headers_of_notification(call: Call, tree: Tree) -> HeaderMap:
    rules = notifications.rules_of_document(tree, call.settings.notification_targets)
    return notifications.stored_rules(rules)


#: The configurations that a client puts and gets in XML. Policies, versioning and default encryption are not
#: stored as XML, and of inventories a bucket has several.
TABLE = (
    Configuration(
        ("BucketTagging",),
        TAGGING,
        _headers_of_tags,
        _render_tags,
        (fields.SYSMETA_S3_BUCKET_TAGGING,),
        missing="NoSuchTagSet",
        readers=AllowedCaller.AUTHORIZED,
        writers=AllowedCaller.AUTHORIZED,
        put_status=204,
    ),
    Configuration(
        ("BucketCors",),
        cors.CORS,
        _headers_of_cors,
        _render_cors,
        codec.CORS.headers,
        missing="NoSuchCORSConfiguration",
        stored=lambda call: cors.register(call.session, call.request, call.bucket),
        removed=lambda call: cors.unregister(call.session, call.request, call.bucket),
    ),
    Configuration(
        ("BucketWebsite",),
        website.WEBSITE,
        _headers_of_website,
        _render_website,
        codec.WEBSITE.headers,
        missing="NoSuchWebsiteConfiguration",
    ),
    Configuration(
        ("PublicAccessBlock",),
        BLOCK,
        _headers_of_block,
        _render_block,
        (fields.SYSMETA_S3_BUCKET_BLOCK,),
        missing="NoSuchPublicAccessBlockConfiguration",
    ),
    Configuration(
        ("BucketOwnershipControls",),
        CONTROLS,
        _headers_of_controls,
        _render_controls,
        (fields.SYSMETA_S3_BUCKET_OWNERSHIP,),
        missing="OwnershipControlsNotFoundError",
    ),
    Configuration(
        ("BucketRequestPayment",),
        PAYMENT,
        _headers_of_payment,
        _render_payment,
        (fields.SYSMETA_S3_BUCKET_PAYER,),
    ),
    Configuration(
        ("BucketLogging",),
        LOGGING,
        _headers_of_logging,
        _render_logging,
        (fields.SYSMETA_S3_BUCKET_LOGGING,),
        check=_check_logging,
    ),
    Configuration(
        ("BucketLifecycle", "BucketLifecycleConfiguration"),
        lifecycle.LIFECYCLE,
        lifecycle.headers_of_lifecycle,
        _render_lifecycle,
        codec.LIFECYCLE.headers,
        missing="NoSuchLifecycleConfiguration",
        readers=AllowedCaller.AUTHORIZED,
        writers=AllowedCaller.AUTHORIZED,
        limit=lifecycle.DOCUMENT_BYTES_MAX,
        answer_headers={lifecycle.LEAST: lifecycle.LEAST_SIZE},
        stored=_register_lifecycle,
    ),
    Configuration(
        ("BucketNotification", "BucketNotificationConfiguration"),
        notifications.NOTIFICATION,
        _headers_of_notification,
        lambda sysmeta: notifications.document_of_rules(notifications.rules_of(sysmeta)),
        codec.NOTIFICATION.headers,
        readers=AllowedCaller.ONLY_OWNER,
        writers=AllowedCaller.AUTHORIZED,
        limit=notifications.DOCUMENT_BYTES_MAX,
    ),
)

HANDLERS: dict[str, Handler] = {
    **{name: handler for row in TABLE for name, handler in row.handlers().items()},
    "GetBucketVersioning": get_versioning,
    "PutBucketVersioning": put_versioning,
    "GetBucketAccelerateConfiguration": _fixed(ACCELERATION, {}),
    "GetObjectLogging": no_logging_of_key,
    "GetBucketPolicy": get_policy,
    "GetBucketPolicyStatus": get_policy_status,
    "PutBucketPolicy": put_policy,
    "DeleteBucketPolicy": delete_policy,
    "GetBucketEncryption": get_encryption,
    "PutBucketEncryption": put_encryption,
    "DeleteBucketEncryption": delete_encryption,
}

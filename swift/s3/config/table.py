"""Bucket configurations: a table of those stored as XML documents, and the handlers of the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from swift.base.truth import is_true
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.packedconfig import sysmeta_key
from swift.http.response import Response
from swift.http.storedtags import decode_tags, encode_tags
from swift.identity.bucketrules import BLOCK_KEY
from swift.identity.policy.conditions import InvalidPolicy
from swift.identity.policy.document import POLICY_BYTES_MAX, parse_policy
from swift.identity.policy.evaluate import is_public
from swift.s3.config import cors, lifecycle, notifications, website
from swift.s3.config.access_log import LOGGING, LOGGING_KEY, PREFIX_MAX, LogTarget, parse_log_target
from swift.s3.core import codec
from swift.s3.core.call import DOCUMENT_MAX, Call, Handler, invalid_argument, no_content, xml_response
from swift.s3.core.errors import S3Error
from swift.s3.core.names import is_bucket_name
from swift.s3.core.router import OPERATIONS
from swift.s3.core.session import owner_sysmeta, sysmeta_of
from swift.s3.core.tags import BUCKET_TAGS_MAX, TAGGING, parse_tags_document, render_tags
from swift.s3.core.xml import (
    Element,
    Group,
    RepeatedGroup,
    Text,
    Tree,
    Value,
    text_of,
    tree_of,
    trees_of,
    word_of,
)
from swift.s3.policy.acls import acl_from_swift, parse_stored_acl
from swift.s3.policy.authorize import read_bucket_rules, require_owned_target, require_owner
from swift.s3.policy.context import (
    OWNER_ENFORCED,
    OWNER_PAYS,
    OWNERSHIP_KEY,
    OWNERSHIPS,
    PAYER_KEY,
    PUBLIC_ACCESS_BLOCKS,
    REQUESTER_PAYS,
)


class AllowedCaller(Enum):
    """The callers that may read or change a configuration."""

    #: Every caller that the access check allows.
    AUTHORIZED = "authorized"
    #: The owner of the bucket, or a caller that its policy allows the operation.
    OWNER = "owner"
    #: The owner of the bucket, regardless of its policy.
    ONLY_OWNER = "only owner"


def _do_nothing(_call: Call) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A row of the table: one kind of bucket configuration in XML."""

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
    missing_code: str = ""
    readers: AllowedCaller = AllowedCaller.OWNER
    writers: AllowedCaller = AllowedCaller.OWNER
    bytes_max: int = DOCUMENT_MAX
    put_status: int = 200
    #: Additional headers of the response to a Get.
    response_headers: Mapping[str, str] = field(default_factory=dict)
    #: Called after the owner is checked and before the configuration is stored; raises ``S3Error``.
    validate: Callable[[Call, HeaderMap], None] | None = None
    on_stored: Callable[[Call], None] = _do_nothing
    on_removed: Callable[[Call], None] = _do_nothing

    def get(self, call: Call) -> Response:
        """Return the document; raise ``S3Error``."""
        value = self.render(_read_sysmeta(call, self.readers))
        if value is None:
            raise S3Error(self.missing_code, details={"BucketName": call.bucket})
        return xml_response(self.schema, value, headers=dict(self.response_headers))

    def put(self, call: Call) -> Response:
        """Store a document; raise ``S3Error``."""
        headers = self.parse(call, call.parse_body(self.schema, limit=self.bytes_max))
        if self.writers is AllowedCaller.OWNER:
            owner_sysmeta(call.session, call.bucket)
        if self.validate is not None:
            self.validate(call, headers)
        call.session.require_success("POST", call.bucket, headers=headers)
        self.on_stored(call)
        return Response(self.put_status)

    def delete(self, call: Call) -> Response:
        """Remove the configuration; raise ``S3Error``."""
        if self.writers is AllowedCaller.OWNER:
            owner_sysmeta(call.session, call.bucket)
        call.session.require_success("POST", call.bucket, headers=dict.fromkeys(self.headers, ""))
        self.on_removed(call)
        return no_content()

    def handlers(self) -> dict[str, Handler]:
        """Return the handlers of the configuration's operations."""
        verbs: dict[str, Handler] = {"Get": self.get, "Put": self.put, "Delete": self.delete}
        pairs = ((verb + noun, handler) for noun in self.nouns for verb, handler in verbs.items())
        return {name: handler for name, handler in pairs if name in OPERATIONS}


def _read_sysmeta(call: Call, reader: AllowedCaller) -> Mapping[str, str]:
    """Return the system metadata of the bucket; raise ``S3Error`` if the caller may not read it."""
    if reader is AllowedCaller.OWNER:
        return owner_sysmeta(call.session, call.bucket)
    if reader is AllowedCaller.ONLY_OWNER:
        require_owner(call)
    return sysmeta_of(call.session.bucket_headers(call.bucket))


# --- versioning, logging, fixed responses -------------------------------------------------------------

VERSIONING = Group("VersioningConfiguration", Text("Status"), Text("MfaDelete"))
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
    tree = call.parse_body(VERSIONING)
    if "MfaDelete" in tree and text_of(tree["MfaDelete"]) != "Disabled":
        raise S3Error("NotImplemented", "MFA Delete is not supported.")
    status = word_of(tree, "Status", ("Enabled", "Suspended"))
    if status == "Suspended" and call.session.head(call.bucket).headers.get(fields.SYSMETA_S3_LOCK_RULE):
        text = (
            "An Object Lock configuration is present on this bucket, so the versioning state cannot be "
            "changed."
        )
        raise S3Error("InvalidBucketState", text)
    headers = {"x-versions-enabled": "true" if status == "Enabled" else "false"}
    call.session.require_success("POST", call.bucket, headers=headers)
    return Response(200)


def _fixed_response(schema: Element, value: dict[str, Value]) -> Handler:
    def answer(call: Call) -> Response:
        call.session.bucket_info(call.bucket)
        return xml_response(schema, value)

    return answer


# Settings that this server does not have were never set: clients that read all settings go on.

_NEVER_SET_LISTS = {
    "Analytics": "ListBucketAnalyticsConfigurationResult",
    "IntelligentTiering": "ListBucketIntelligentTieringConfigurationsOutput",
    "Metrics": "ListMetricsConfigurationsResult",
}
ABAC = Group("AbacStatus", Text("Status"))


def get_replication(call: Call) -> Response:
    """GetBucketReplication."""
    owner_sysmeta(call.session, call.bucket)
    raise S3Error("ReplicationConfigurationNotFoundError", details={"BucketName": call.bucket})


def delete_replication(call: Call) -> Response:
    """DeleteBucketReplication."""
    owner_sysmeta(call.session, call.bucket)
    return no_content()


def get_abac(call: Call) -> Response:
    """GetBucketAbac."""
    owner_sysmeta(call.session, call.bucket)
    return xml_response(ABAC, {"Status": "Disabled"})


def _never_set(noun: str) -> dict[str, Handler]:
    """Return the handlers of a list of configurations, which is empty."""
    result = Group(_NEVER_SET_LISTS[noun], Text("IsTruncated"))

    def get(call: Call) -> Response:
        owner_sysmeta(call.session, call.bucket)
        if "id" in call.params:
            raise S3Error("NoSuchConfiguration", details={"Id": call.text_param("id")})
        return xml_response(result, {"IsTruncated": "false"})

    def delete(call: Call) -> Response:
        owner_sysmeta(call.session, call.bucket)
        raise S3Error("NoSuchConfiguration", details={"Id": call.text_param("id")})

    return {
        f"GetBucket{noun}Configuration": get,
        f"ListBucket{noun}Configurations": get,
        f"DeleteBucket{noun}Configuration": delete,
    }


def _encode_logging(call: Call, tree: Tree) -> HeaderMap:
    requested = tree_of(tree.get("LoggingEnabled"))
    if not requested:
        return {fields.SYSMETA_S3_BUCKET_LOGGING: ""}
    if "TargetGrants" in requested or "PartitionedPrefix" in tree_of(requested.get("TargetObjectKeyFormat")):
        # Only the owner gets rights in the log, as in the rest of its bucket.
        owner_sysmeta(call.session, call.bucket)
        raise S3Error("NotImplemented")
    target = LogTarget(text_of(requested["TargetBucket"]), text_of(requested["TargetPrefix"]))
    return {fields.SYSMETA_S3_BUCKET_LOGGING: target.encoded}


def _render_logging(sysmeta: Mapping[str, str]) -> Value:
    target = parse_log_target(sysmeta.get(LOGGING_KEY))
    if target is None:
        return {}
    return {"LoggingEnabled": {"TargetBucket": target.bucket, "TargetPrefix": target.prefix}}


def _validate_logging(call: Call, headers: HeaderMap) -> None:
    """Raise ``S3Error`` for a target bucket that is not the caller's, and for an invalid prefix."""
    target = parse_log_target(headers[fields.SYSMETA_S3_BUCKET_LOGGING])
    if target is None:
        return
    if len(target.prefix.encode()) > PREFIX_MAX or "\x00" in target.prefix:
        raise invalid_argument("TargetPrefix", target.prefix[:100], "The prefix is too long.")
    if not is_bucket_name(target.bucket, dns=call.settings.dns_compliant_bucket_names):
        raise S3Error("InvalidTargetBucketForLogging")
    require_owned_target(call, target.bucket, "InvalidTargetBucketForLogging")


def get_object_logging(call: Call) -> Response:
    """GetObjectLogging: always an error, as keys have no logging status."""
    raise S3Error("NoLoggingStatusForKey")


# --- public access block, ownership controls ----------------------------------------------------------

PUBLIC_ACCESS_BLOCK = Group("PublicAccessBlockConfiguration", *map(Text, PUBLIC_ACCESS_BLOCKS))
OWNERSHIP_CONTROLS = Group(
    "OwnershipControls", RepeatedGroup("Rule", Text("ObjectOwnership", required=True), required=True)
)
_BOOLEANS = {"true": True, "false": False}


def _encode_block(_call: Call, tree: Tree) -> HeaderMap:
    if any(text_of(value).lower() not in _BOOLEANS for value in tree.values()):
        raise S3Error("MalformedXML")
    on = [name for name in PUBLIC_ACCESS_BLOCKS if text_of(tree.get(name)).lower() == "true"]
    # With all of them off there still is a configuration.
    return {fields.SYSMETA_S3_BUCKET_BLOCK: ",".join(on) or "none"}


def _render_block(sysmeta: Mapping[str, str]) -> Value | None:
    on = sysmeta.get(BLOCK_KEY, "").split(",")
    return {name: "true" if name in on else "false" for name in PUBLIC_ACCESS_BLOCKS} if on != [""] else None


def _encode_controls(call: Call, tree: Tree) -> HeaderMap:
    rules = trees_of(tree.get("Rule"))
    requested = text_of(rules[0].get("ObjectOwnership"))
    if len(rules) != 1 or requested not in OWNERSHIPS:
        raise S3Error("MalformedXML")
    if requested == OWNER_ENFORCED:
        _require_private_acl(call)
    return {fields.SYSMETA_S3_BUCKET_OWNERSHIP: requested}


def _render_controls(sysmeta: Mapping[str, str]) -> Value | None:
    stored = sysmeta.get(OWNERSHIP_KEY)
    return {"Rule": [{"ObjectOwnership": stored}]} if stored else None


def _require_private_acl(call: Call) -> None:
    """Raise ``S3Error`` if the bucket's ACL has grants that would not count any more."""
    head = call.session.head(call.bucket)
    owner = call.session.user_id
    if call.settings.s3_acl:
        acl = parse_stored_acl(head.headers.get(fields.SYSMETA_S3_BUCKET_ACL))
    else:
        acl = acl_from_swift(owner, head.headers)
    if acl is not None and not acl.is_private:
        raise S3Error("InvalidBucketAclWithObjectOwnership")


# --- requester pays -----------------------------------------------------------------------------------

REQUEST_PAYMENT = Group("RequestPaymentConfiguration", Text("Payer", required=True))


def _encode_payment(_call: Call, tree: Tree) -> HeaderMap:
    payer = word_of(tree, "Payer", (OWNER_PAYS, REQUESTER_PAYS))
    return {fields.SYSMETA_S3_BUCKET_PAYER: payer if payer == REQUESTER_PAYS else ""}


# --- bucket policies ----------------------------------------------------------------------------------

POLICY_STATUS = Group("PolicyStatus", Text("IsPublic"))
_POLICY_TOO_LARGE_TEXT = "Policy exceeds the maximum allowed document size."


def _read_policy(call: Call) -> bytes:
    document = codec.POLICY.decode(owner_sysmeta(call.session, call.bucket))
    if not document:
        raise S3Error("NoSuchBucketPolicy", details={"BucketName": call.bucket})
    return document


def get_policy(call: Call) -> Response:
    """GetBucketPolicy."""
    return Response(200, {"content-type": "application/json"}, _read_policy(call))


def get_policy_status(call: Call) -> Response:
    """GetBucketPolicyStatus."""
    try:
        public = is_public(parse_policy(_read_policy(call), call.bucket))
    except InvalidPolicy:
        raise codec.POLICY.damaged_error()
    return xml_response(POLICY_STATUS, {"IsPublic": "true" if public else "false"})


def put_policy(call: Call) -> Response:
    """PutBucketPolicy."""
    length = call.request.body.length
    if length is not None and length > 2 * POLICY_BYTES_MAX:
        raise S3Error("MalformedPolicy", _POLICY_TOO_LARGE_TEXT)
    body = call.read_body()
    if not body:
        raise S3Error("MissingRequestBodyError")
    owner_sysmeta(call.session, call.bucket)
    try:
        policy = parse_policy(body, call.bucket)
    except InvalidPolicy as error:
        raise S3Error(
            "MalformedPolicy", _POLICY_TOO_LARGE_TEXT if len(body) > POLICY_BYTES_MAX else str(error)
        )
    if is_public(policy) and "BlockPublicPolicy" in read_bucket_rules(call).blocks:
        raise S3Error("AccessDenied")
    call.session.require_success("POST", call.bucket, headers=codec.POLICY.encode(body))
    return no_content()


def delete_policy(call: Call) -> Response:
    """DeleteBucketPolicy; succeeds also without a policy."""
    owner_sysmeta(call.session, call.bucket)
    call.session.require_success("POST", call.bucket, headers=codec.POLICY.encode(b""))
    return no_content()


# --- tags of buckets ----------------------------------------------------------------------------------


_TAGS = fields.SYSMETA_S3_BUCKET_TAGGING


def _render_tags(sysmeta: Mapping[str, str]) -> Value | None:
    text = sysmeta.get(sysmeta_key(_TAGS))
    return render_tags(decode_tags(text)) if text else None


# --- configurations with modules of their own ---------------------------------------------------------


def _encode_website(_call: Call, tree: Tree) -> HeaderMap:
    website.parse_site_document(tree)
    return codec.WEBSITE.encode(website.encode_document(tree))


def _render_website(sysmeta: Mapping[str, str]) -> Value | None:
    document = codec.WEBSITE.decode(sysmeta)
    return website.decode_document(document) if document else None


def _render_cors(sysmeta: Mapping[str, str]) -> Value | None:
    document = codec.CORS.decode(sysmeta)
    return cors.render_rules(cors.decode_rules(document)) if document else None


def _render_lifecycle(sysmeta: Mapping[str, str]) -> Value | None:
    rules = lifecycle.decode_rules(sysmeta)
    return lifecycle.render_rules(rules) if rules else None


#: The configurations that clients put and get in XML. Policies, versioning and default encryption are not
#: stored as XML, and of inventories a bucket has several.
TABLE = (
    Configuration(
        ("BucketTagging",),
        TAGGING,
        lambda _call, tree: {_TAGS: encode_tags(parse_tags_document(tree, BUCKET_TAGS_MAX))},
        _render_tags,
        (_TAGS,),
        missing_code="NoSuchTagSet",
        readers=AllowedCaller.AUTHORIZED,
        writers=AllowedCaller.AUTHORIZED,
        put_status=204,
    ),
    Configuration(
        ("BucketCors",),
        cors.CORS,
        lambda _call, tree: codec.CORS.encode(cors.encode_rules(cors.parse_rules_document(tree))),
        _render_cors,
        codec.CORS.headers,
        missing_code="NoSuchCORSConfiguration",
        on_stored=lambda call: cors.register_bucket(call.session, call.request, call.bucket),
        on_removed=lambda call: cors.unregister_bucket(call.session, call.request, call.bucket),
    ),
    Configuration(
        ("BucketWebsite",),
        website.WEBSITE,
        _encode_website,
        _render_website,
        codec.WEBSITE.headers,
        missing_code="NoSuchWebsiteConfiguration",
    ),
    Configuration(
        ("PublicAccessBlock",),
        PUBLIC_ACCESS_BLOCK,
        _encode_block,
        _render_block,
        (fields.SYSMETA_S3_BUCKET_BLOCK,),
        missing_code="NoSuchPublicAccessBlockConfiguration",
    ),
    Configuration(
        ("BucketOwnershipControls",),
        OWNERSHIP_CONTROLS,
        _encode_controls,
        _render_controls,
        (fields.SYSMETA_S3_BUCKET_OWNERSHIP,),
        missing_code="OwnershipControlsNotFoundError",
    ),
    Configuration(
        ("BucketRequestPayment",),
        REQUEST_PAYMENT,
        _encode_payment,
        lambda sysmeta: {"Payer": sysmeta.get(PAYER_KEY) or OWNER_PAYS},
        (fields.SYSMETA_S3_BUCKET_PAYER,),
    ),
    Configuration(
        ("BucketLogging",),
        LOGGING,
        _encode_logging,
        _render_logging,
        (fields.SYSMETA_S3_BUCKET_LOGGING,),
        validate=_validate_logging,
    ),
    Configuration(
        ("BucketLifecycle", "BucketLifecycleConfiguration"),
        lifecycle.LIFECYCLE,
        lifecycle.encode_lifecycle,
        _render_lifecycle,
        codec.LIFECYCLE.headers,
        missing_code="NoSuchLifecycleConfiguration",
        readers=AllowedCaller.AUTHORIZED,
        writers=AllowedCaller.AUTHORIZED,
        bytes_max=lifecycle.DOCUMENT_BYTES_MAX,
        response_headers={lifecycle.MINIMUM_SIZE_HEADER: lifecycle.MINIMUM_SIZE},
        on_stored=lambda call: call.session.privileged.register_bucket(call.session.account, call.bucket),
    ),
    Configuration(
        ("BucketNotification", "BucketNotificationConfiguration"),
        notifications.NOTIFICATION,
        lambda call, tree: notifications.encode_rules(
            notifications.parse_rules_document(tree, call.settings.notification_targets)
        ),
        lambda sysmeta: notifications.render_rules(notifications.decode_rules(sysmeta)),
        codec.NOTIFICATION.headers,
        readers=AllowedCaller.ONLY_OWNER,
        writers=AllowedCaller.AUTHORIZED,
        bytes_max=notifications.DOCUMENT_BYTES_MAX,
    ),
)

HANDLERS: dict[str, Handler] = {
    **{name: handler for row in TABLE for name, handler in row.handlers().items()},
    "GetBucketVersioning": get_versioning,
    "PutBucketVersioning": put_versioning,
    "GetBucketAccelerateConfiguration": _fixed_response(ACCELERATION, {}),
    "GetObjectLogging": get_object_logging,
    "GetBucketReplication": get_replication,
    "DeleteBucketReplication": delete_replication,
    "GetBucketAbac": get_abac,
    **{name: handler for noun in _NEVER_SET_LISTS for name, handler in _never_set(noun).items()},
    "GetBucketPolicy": get_policy,
    "GetBucketPolicyStatus": get_policy_status,
    "PutBucketPolicy": put_policy,
    "DeleteBucketPolicy": delete_policy,
}

"""Public access blocks and ownership controls of buckets: which ACLs and policies may be, and which count."""

from __future__ import annotations

from swift.http import fields
from swift.http.response import Response
from swift.s3.account import owners_settings
from swift.s3.acls import acl_of_swift, stored_acl
from swift.s3.call import Call, Handler, no_content, xml_response
from swift.s3.errors import S3Error
from swift.s3.rules import BLOCK_KEY, BLOCKS, ENFORCED, OWNERSHIP_KEY, OWNERSHIPS
from swift.s3.xml import Group, Many, Text, Value, text_of, trees_of

BLOCK = Group("PublicAccessBlockConfiguration", *map(Text, BLOCKS))
CONTROLS = Group("OwnershipControls", Many("Rule", Text("ObjectOwnership", required=True), required=True))
_TRUTHS = {"true": True, "false": False}


def _keep(call: Call, header: str, text: str) -> None:
    owners_settings(call.account, call.bucket)
    call.account.done("POST", call.bucket, headers={header: text})


def get_block(call: Call) -> Response:
    """GetPublicAccessBlock."""
    stored = owners_settings(call.account, call.bucket).get(BLOCK_KEY)
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
    stored = owners_settings(call.account, call.bucket).get(OWNERSHIP_KEY)
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
    head = call.account.head(call.bucket)
    owner = call.account.owner
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


HANDLERS: dict[str, Handler] = {
    "GetPublicAccessBlock": get_block,
    "PutPublicAccessBlock": put_block,
    "DeletePublicAccessBlock": delete_block,
    "GetBucketOwnershipControls": get_controls,
    "PutBucketOwnershipControls": put_controls,
    "DeleteBucketOwnershipControls": delete_controls,
}

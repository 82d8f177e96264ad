"""The policy context: the rules of a bucket, and the values of a request for conditions of policies.

Parsed policies are cached. Tags of an object are read only if a condition needs them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from swift.http import fields
from swift.http.headers import HeaderMap, utf8_value
from swift.http.packedconfig import sysmeta_key
from swift.http.storedtags import Tags, decode_tags
from swift.identity.bucketrules import BLOCK_KEY, POLICY_KEY, DamagedPolicy, read_bucket_policy
from swift.identity.policy.document import BucketPolicy
from swift.identity.policy.principals import Principal
from swift.identity.policy.requestvalues import request_value
from swift.s3.core import codec
from swift.s3.core.call import Call
from swift.s3.core.errors import S3Error
from swift.s3.core.tags import parse_tags_header

#: The switches of a public access block, in the order of its document.
PUBLIC_ACCESS_BLOCKS = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
OWNER_ENFORCED, OWNER_PREFERRED, OBJECT_WRITER = "BucketOwnerEnforced", "BucketOwnerPreferred", "ObjectWriter"
OWNERSHIPS = (OWNER_PREFERRED, OBJECT_WRITER, OWNER_ENFORCED)


OWNERSHIP_KEY = sysmeta_key(fields.SYSMETA_S3_BUCKET_OWNERSHIP)
PAYER_KEY = sysmeta_key(fields.SYSMETA_S3_BUCKET_PAYER)
OWNER_PAYS, REQUESTER_PAYS = "BucketOwner", "Requester"
_RULE_KEYS = (POLICY_KEY, BLOCK_KEY, OWNERSHIP_KEY, PAYER_KEY)


@dataclass(frozen=True, slots=True)
class BucketRules:
    """The rules of a bucket for the access check."""

    policy: BucketPolicy | None = None
    is_public: bool = False
    blocks: frozenset[str] = frozenset()
    ownership: str = OBJECT_WRITER
    #: Callers of other accounts must accept to pay.
    requester_pays: bool = False


def parse_bucket_rules(sysmeta: Mapping[str, str], bucket: str) -> BucketRules | None:
    """Return the rules in a bucket's system metadata, None without any; raise ``S3Error``."""
    if not any(map(sysmeta.get, _RULE_KEYS)):
        return None
    try:
        found = read_bucket_policy(sysmeta, bucket)
    except DamagedPolicy:
        raise codec.POLICY.damaged_error()
    policy, public = (None, False) if found is None else found
    blocks = frozenset(sysmeta.get(BLOCK_KEY, "").split(",")) & frozenset(PUBLIC_ACCESS_BLOCKS)
    pays = sysmeta.get(PAYER_KEY) == REQUESTER_PAYS
    return BucketRules(policy, public, blocks, sysmeta.get(OWNERSHIP_KEY) or OBJECT_WRITER, pays)


# --- policy context -----------------------------------------------------------------------------------

#: Reads the tags of the object.
ReadTags = Callable[[], Tags]
_HEADER_KEY_PREFIX = "s3:x-amz-"
_LISTING_KEYS = frozenset(("s3:prefix", "s3:delimiter", "s3:max-keys"))
_CONDITION_HEADERS = {"s3:if-match": "if-match", "s3:if-none-match": "if-none-match"}
_PARAMETER_KEYS = {"s3:versionid": "versionId"}
#: Operations that write an object → ``s3:ObjectCreationOperation``, which AWS has for conditional writes.
_CREATES_OBJECT = {
    **dict.fromkeys(("PutObject", "PostObject", "CopyObject", "CompleteMultipartUpload"), "true"),
    **dict.fromkeys(("CreateMultipartUpload", "UploadPart", "UploadPartCopy"), "false"),
}

# --- headers of uploads -------------------------------------------------------------------------------
# Clients send these headers with CreateMultipartUpload only. So UploadPart, UploadPartCopy and
# CompleteMultipartUpload are judged by what their upload was created with.

UPLOAD_OPERATIONS = frozenset(("UploadPart", "UploadPartCopy", "CompleteMultipartUpload"))
_UPLOAD_HEADERS = frozenset(
    (
        *("x-amz-acl", "x-amz-grant-read", "x-amz-grant-write", "x-amz-grant-read-acp"),
        *("x-amz-grant-write-acp", "x-amz-grant-full-control", "x-amz-storage-class"),
        *("x-amz-server-side-encryption", "x-amz-server-side-encryption-customer-algorithm"),
    )
)


@dataclass(frozen=True, slots=True)
class CreatedUpload:
    """The headers and tags with which an upload was created."""

    headers: Mapping[str, str]
    tags: Tags


def upload_headers_metadata(headers: HeaderMap) -> HeaderMap:
    """Return the metadata that keeps the headers of an upload for its policy."""
    found = {name: headers[name] for name in sorted(_UPLOAD_HEADERS) if name in headers}
    return {fields.SYSMETA_S3_UPLOAD_HEADERS: json.dumps(found)} if found else {}


def parse_created_upload(stored: Mapping[str, str]) -> CreatedUpload:
    """Return what the headers of an upload's marker, or of its object, keep."""
    text = stored.get(fields.SYSMETA_S3_UPLOAD_HEADERS)
    tags = decode_tags(stored.get(fields.TRANSIENT_S3_TAGGING))
    return CreatedUpload(json.loads(text) if text else {}, tags)


def principal_of(call: Call) -> Principal:
    """Return the principal of a call."""
    session = call.session
    user = session.user_id
    tenant, colon, _ = user.partition(":")
    return Principal(user, frozenset(filter(None, (session.own_account, tenant if colon else ""))))


class RequestContext:
    """The values of one request for one object; see ``PolicyContext``."""

    def __init__(
        self,
        call: Call,
        tags: ReadTags,
        *,
        version: str | None = None,
        upload: Callable[[], CreatedUpload] | None = None,
    ):
        """``upload`` reads the multipart upload that the request is a part of."""
        self._call = call
        self._read_tags = tags
        self._version = version
        self._upload = upload
        self._existing_tags: Tags | None = None
        self._created_upload: CreatedUpload | None = None

    def values(self, key: str) -> Sequence[str] | None:
        """Return the values of a condition key; None if the request does not have it."""
        start, slash, name = key.partition("/")
        if slash:
            value = self._tag_value(start, name)
        elif start == "s3:requestobjecttagkeys":
            return tuple(self._request_tags()) or None
        elif start.startswith("aws:"):
            value = self._caller_value(start)
        else:
            value = self._request_value(start)
        return None if value is None else (value,)

    def _caller_value(self, key: str) -> str | None:
        request, session = self._call.request, self._call.session
        tenant, colon, name = session.user_id.partition(":")
        value = request_value(request, key)
        if value is not None:
            return value
        if key == "aws:principaltype":
            return "Anonymous" if session.is_anonymous else "User"
        if session.is_anonymous:
            return "anonymous" if key == "aws:userid" else None
        owner = tenant if colon else session.own_account
        return {
            "aws:username": name if colon else session.user_id,
            "aws:userid": session.user_id,
            "aws:principalaccount": session.own_account,
            "aws:principalarn": f"arn:aws:iam::{owner}:user/{name or session.user_id}",
        }.get(key)

    def _request_value(self, key: str) -> str | None:
        call = self._call
        if key.startswith(_HEADER_KEY_PREFIX):
            value = self._header(key[len("s3:") :])
        elif key == "s3:objectcreationoperation":
            value = _CREATES_OBJECT.get(call.endpoint.operation.name)
        elif key in _CONDITION_HEADERS:
            value = call.headers.get(_CONDITION_HEADERS[key])
        elif key in _LISTING_KEYS:
            value = call.params.get(key[len("s3:") :])
        elif key in _PARAMETER_KEYS:
            value = call.params.get("versionId") if self._version is None else self._version or None
        elif key == "s3:locationconstraint":
            value = call.settings.location
        elif key == "s3:resourceaccount":
            value = call.session.account
        else:
            return call.session.claim.condition_values(time.time()).get(key)
        return None if value is None else utf8_value(value)

    def _tag_value(self, key: str, name: str) -> str | None:
        if key == "s3:requestobjecttag":
            return self._request_tags().get(name)
        if self._existing_tags is None:
            self._existing_tags = self._read_tags()
        return self._existing_tags.get(name)

    def _header(self, name: str) -> str | None:
        created = self._created() if name in _UPLOAD_HEADERS else None
        return (self._call.headers if created is None else created.headers).get(name)

    def _created(self) -> CreatedUpload | None:
        if self._created_upload is None and self._upload is not None:
            self._created_upload = self._upload()
        return self._created_upload

    def _request_tags(self) -> Tags:
        created = self._created()
        if created is not None:
            return created.tags
        text = self._call.headers.get("x-amz-tagging")
        try:
            return parse_tags_header(text) if text else {}
        except S3Error:
            # The operation itself refuses them.
            return {}

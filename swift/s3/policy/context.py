"""The policy context: the rules of a bucket, and the values of a request for conditions of policies.

Parsed policies are cached. Tags of an object are read only if a condition needs them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from swift.http import fields
from swift.http.headers import utf8_value
from swift.s3.api.call import Call
from swift.s3.api.tags import Tags, parse_tags_header
from swift.s3.config import codec
from swift.s3.errors import S3Error
from swift.s3.policy.conditions import InvalidPolicy
from swift.s3.policy.document import BucketPolicy, Principal, is_public, parse_policy

#: The switches of a public access block, in the order of its document.
PUBLIC_ACCESS_BLOCKS = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
OWNER_ENFORCED, OWNER_PREFERRED, OBJECT_WRITER = "BucketOwnerEnforced", "BucketOwnerPreferred", "ObjectWriter"
OWNERSHIPS = (OWNER_PREFERRED, OBJECT_WRITER, OWNER_ENFORCED)


def _sysmeta_key(header: str) -> str:
    return header.removeprefix(fields.CONTAINER_SYSMETA)


POLICY_KEY = _sysmeta_key(fields.SYSMETA_S3_BUCKET_POLICY)
BLOCK_KEY = _sysmeta_key(fields.SYSMETA_S3_BUCKET_BLOCK)
OWNERSHIP_KEY = _sysmeta_key(fields.SYSMETA_S3_BUCKET_OWNERSHIP)
PAYER_KEY = _sysmeta_key(fields.SYSMETA_S3_BUCKET_PAYER)
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
    document = codec.POLICY.decode(sysmeta)
    policy, public = _parse_policy(document, bucket) if document else (None, False)
    blocks = frozenset(sysmeta.get(BLOCK_KEY, "").split(",")) & frozenset(PUBLIC_ACCESS_BLOCKS)
    pays = sysmeta.get(PAYER_KEY) == REQUESTER_PAYS
    return BucketRules(policy, public, blocks, sysmeta.get(OWNERSHIP_KEY) or OBJECT_WRITER, pays)


@lru_cache(maxsize=256)
def _parse_policy(document: bytes, bucket: str) -> tuple[BucketPolicy, bool]:
    try:
        policy = parse_policy(document, bucket)
    except InvalidPolicy:
        raise codec.POLICY.damaged_error()
    return policy, is_public(policy)


# --- policy context -----------------------------------------------------------------------------------

#: Reads the tags of the object.
ReadTags = Callable[[], Tags]
_HEADER_KEY_PREFIX = "s3:x-amz-"
_LISTING_KEYS = frozenset(("s3:prefix", "s3:delimiter", "s3:max-keys"))
_CONDITION_HEADERS = {"s3:if-match": "if-match", "s3:if-none-match": "if-none-match"}
_PARAMETER_KEYS = {"s3:versionid": "versionId"}


def principal_of(call: Call) -> Principal:
    """Return the principal of a call."""
    session = call.session
    user = session.user_id
    tenant, colon, _ = user.partition(":")
    return Principal(user, frozenset(filter(None, (session.own_account, tenant if colon else ""))))


class RequestContext:
    """The values of one request for one object; see ``PolicyContext``."""

    def __init__(self, call: Call, tags: ReadTags, *, version: str | None = None):
        self._call = call
        self._read_tags = tags
        self._version = version
        self._existing_tags: Tags | None = None

    def values(self, key: str) -> Sequence[str] | None:
        """See ``PolicyContext``."""
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
        if key == "aws:sourceip":
            return request.remote_addr or None
        if key == "aws:securetransport":
            return "true" if request.scheme == "https" else "false"
        if key in ("aws:useragent", "aws:referer"):
            value = request.headers.get("user-agent" if key == "aws:useragent" else "referer")
            return None if value is None else utf8_value(value)
        if key == "aws:currenttime":
            return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        if key == "aws:epochtime":
            return str(int(time.time()))
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
            value = call.headers.get(key[len("s3:") :])
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

    def _request_tags(self) -> Tags:
        text = self._call.headers.get("x-amz-tagging")
        try:
            return parse_tags_header(text) if text else {}
        except S3Error:
            # The operation itself refuses them.
            return {}

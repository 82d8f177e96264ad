"""What conditions of policies may ask of a request; the tags of an object are read only if one does."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from swift.http.headers import utf8_value
from swift.s3.call import Call
from swift.s3.errors import S3Error
from swift.s3.policy.decide import Caller
from swift.s3.tags import Tags, tags_of_header

ReadTags = Callable[[], Tags]
_HEADERS = "s3:x-amz-"
_LISTED = frozenset(("s3:prefix", "s3:delimiter", "s3:max-keys"))
_CONDITIONS = {"s3:if-match": "if-match", "s3:if-none-match": "if-none-match"}
_PARAMETERS = {"s3:versionid": "versionId"}


def caller_of(call: Call) -> Caller:
    """Who asks."""
    account = call.account
    user = account.owner
    tenant, colon, _ = user.partition(":")
    return Caller(user, frozenset(filter(None, (account.home, tenant if colon else ""))))


class RequestFacts:
    """The facts of one request about one object; see ``policy.conditions.Facts``."""

    def __init__(self, call: Call, tags: ReadTags, *, version: str | None = None):
        self._call = call
        self._tags = tags
        self._version = version
        self._found: Tags | None = None

    def values(self, key: str) -> Sequence[str] | None:
        """See ``Facts``."""
        start, slash, name = key.partition("/")
        if slash:
            value = self._tag(start, name)
        elif start == "s3:requestobjecttagkeys":
            return tuple(self._sent_tags()) or None
        elif start.startswith("aws:"):
            value = self._of_caller(start)
        else:
            value = self._of_request(start)
        return None if value is None else (value,)

    def _of_caller(self, key: str) -> str | None:
        request, account = self._call.request, self._call.account
        tenant, colon, name = account.owner.partition(":")
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
            return "Anonymous" if account.is_anonymous else "User"
        if account.is_anonymous:
            return "anonymous" if key == "aws:userid" else None
        owner = tenant if colon else account.home
        return {
            "aws:username": name if colon else account.owner,
            "aws:userid": account.owner,
            "aws:principalaccount": account.home,
            "aws:principalarn": f"arn:aws:iam::{owner}:user/{name or account.owner}",
        }.get(key)

    def _of_request(self, key: str) -> str | None:
        call = self._call
        if key.startswith(_HEADERS):
            value = call.headers.get(key[len("s3:") :])
        elif key in _CONDITIONS:
            value = call.headers.get(_CONDITIONS[key])
        elif key in _LISTED:
            value = call.params.get(key[len("s3:") :])
        elif key in _PARAMETERS:
            value = call.params.get("versionId") if self._version is None else self._version or None
        elif key == "s3:locationconstraint":
            value = call.settings.location
        elif key == "s3:resourceaccount":
            value = call.account.name
        else:
            return call.account.claim.facts(time.time()).get(key)
        return None if value is None else utf8_value(value)

    def _tag(self, key: str, name: str) -> str | None:
        if key == "s3:requestobjecttag":
            return self._sent_tags().get(name)
        if self._found is None:
            self._found = self._tags()
        return self._found.get(name)

    def _sent_tags(self) -> Tags:
        text = self._call.headers.get("x-amz-tagging")
        try:
            return tags_of_header(text) if text else {}
        except S3Error:
            # The operation itself refuses them.
            return {}

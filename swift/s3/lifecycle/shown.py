"""What answers about an object say of its end: ``x-amz-expiration``."""

from __future__ import annotations

from urllib.parse import quote

from swift.base.timestamp import InvalidTimestamp, Timestamp, http_date
from swift.http import fields
from swift.http.headers import HeaderMap, wire_value
from swift.s3.call import Call
from swift.s3.lifecycle.rules import expiry_of
from swift.s3.lifecycle.stored import PLACE, rules_of
from swift.s3.tags import parsed_tags


def expiration_headers(
    call: Call, size: int, stored: HeaderMap, *, modified_s: float | None = None
) -> HeaderMap:
    """The header for a current version that was found or written, none when no rule is about it.

    ``stored`` has its tags, and its time unless ``modified_s`` is it. The bucket was asked for it a moment
    ago, so this costs no request.
    """
    sysmeta = call.account.bucket_info(call.bucket).sysmeta
    if PLACE.first not in sysmeta or "versionId" in call.params:
        return {}
    if modified_s is None:
        try:
            modified_s = Timestamp(stored.get("x-timestamp", "")).seconds
        except InvalidTimestamp:
            return {}
    tags = parsed_tags(stored.get(fields.TRANSIENT_S3_TAGGING))
    found = expiry_of(rules_of(sysmeta), call.key, size, modified_s, tags)
    if found is None:
        return {}
    rule = wire_value(quote(found.rule, safe=""))
    return {"x-amz-expiration": f'expiry-date="{http_date(found.at_s)}", rule-id="{rule}"'}

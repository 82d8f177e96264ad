"""The checksum of one part of a multipart object, for who reads it by its number."""

from __future__ import annotations

import json

from swift.http.headers import HeaderMap
from swift.middleware.s3api.call import Call
from swift.middleware.s3api.storing import stored_checksum
from swift.middleware.s3api.versions import version_query


def part_checksum(call: Call, number: int, kind: str) -> HeaderMap:
    """The checksum that is stored with a part, as headers; ``kind`` is the object's. None may be there."""
    version = version_query(call)
    query = f"{version}{'&' if version else ''}multipart-manifest=get"
    with call.account.ask("GET", call.bucket, call.key, query=query) as response:
        entries = json.loads(response.read_body()) if response.status == 200 else []
    if not 1 <= number <= len(entries):
        return {}
    container, _, name = str(entries[number - 1].get("name", "")).lstrip("/").partition("/")
    sums = stored_checksum(call.account.head(container, name).headers)
    return {**sums, "x-amz-checksum-type": kind} if sums else {}

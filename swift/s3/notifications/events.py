"""What happened to an object, kept in a queue before the client hears that it did.

The queue is a hidden account, as the expirer's: a container for each hour, in it an object for each event and
webhook. Nobody asks a webhook while a client waits. An event is told at least once: a client that hears 503,
because the event could not be kept after its change was done, asks again, and so the event comes again.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from urllib.parse import quote_plus
from uuid import uuid4

from swift.base.documents import JsonObject
from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.http import environkeys
from swift.http.headers import HeaderMap
from swift.s3.call import Call
from swift.s3.notifications.rules import PLACE, NotificationRule, rules_of

ACCOUNT = ".s3_events"
HOUR_S = 3600
EVENT_VERSION = "2.1"


def announce(
    call: Call, event: str, key: str, *, size: int | None = None, etag: str = "", version: str = ""
) -> None:
    """Keep an event for those who want it; raises ``S3Error`` when that fails."""
    sysmeta = call.account.bucket_info(call.bucket).sysmeta
    if PLACE.first not in sysmeta:
        return
    for rule in rules_of(sysmeta):
        if not rule.wants(event, key):
            continue
        record = record_of(call, rule, event, key, size=size, etag=etag, version=version)
        document = json.dumps({"target": rule.target, "event": {"Records": [record]}})
        name = f"{Timestamp.now().internal}-{uuid4().hex}"
        call.account.hidden.keep(EntityPath(ACCOUNT, container_of(time.time()), name), document.encode())


def facts_of(told: HeaderMap) -> dict[str, str]:
    """ETag and version as the answer to a write says them."""
    return {"etag": told.get("etag", ""), "version": told.get("x-amz-version-id", "")}


def container_of(now_s: float) -> str:
    """The container of the queue for a moment."""
    return str(int(now_s) // HOUR_S * HOUR_S)


def record_of(
    call: Call, rule: NotificationRule, event: str, key: str, *, size: int | None, etag: str, version: str
) -> JsonObject:
    """The record of an event as AWS writes it."""
    now = datetime.now(UTC)
    told: JsonObject = {"key": _quoted(key), "sequencer": f"{Timestamp.now().raw:016X}"}
    if size is not None:
        told["size"] = size
    if etag:
        told["eTag"] = etag.strip('"')
    if version:
        told["versionId"] = version
    owner = {"principalId": call.account.owner}
    return {
        "eventVersion": EVENT_VERSION,
        "eventSource": "aws:s3",
        "awsRegion": call.settings.location,
        "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03d}Z",
        "eventName": event.removeprefix("s3:"),
        "userIdentity": owner,
        "requestParameters": {"sourceIPAddress": call.request.remote_addr},
        "responseElements": {"x-amz-request-id": str(call.request.env.get(environkeys.TRANS_ID, ""))},
        "s3": {
            "s3SchemaVersion": "1.0",
            "configurationId": rule.id,
            "bucket": {"name": call.bucket, "ownerIdentity": owner, "arn": f"arn:aws:s3:::{call.bucket}"},
            "object": told,
        },
    }


def _quoted(key: str) -> str:
    return quote_plus(key, safe="/", errors="surrogateescape")

"""Notifications: the rules of buckets, and the queue of events."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote_plus, unquote_plus
from uuid import uuid4

from swift.base.documents import JsonObject
from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.http import environkeys
from swift.http.headers import HeaderMap
from swift.s3.api.call import Call
from swift.s3.config import codec
from swift.s3.errors import S3Error
from swift.s3.xml import Group, Many, Text, Texts, Tree, Value, text_of, tree_of, trees_of

RULES_MAX, ID_MAX, VALUE_MAX = 100, 255, 1024
#: What a document of that many rules may take.
DOCUMENT_BYTES_MAX = 1 << 20
EVENTS = (
    *(f"s3:ObjectCreated:{how}" for how in ("Put", "Copy", "CompleteMultipartUpload")),
    *(f"s3:ObjectRemoved:{how}" for how in ("Delete", "DeleteMarkerCreated")),
    *(f"s3:ObjectTagging:{how}" for how in ("Put", "Delete")),
)
_ALL = frozenset(EVENTS) | {f"{event.rpartition(':')[0]}:*" for event in EVENTS}
#: Element of a rule → the element of its destination.
KINDS = {
    "TopicConfiguration": "Topic",
    "QueueConfiguration": "Queue",
    "CloudFunctionConfiguration": "CloudFunction",
}
_FILTER = Group("Filter", Group("S3Key", Many("FilterRule", Text("Name"), Text("Value"))))
NOTIFICATION = Group(
    "NotificationConfiguration",
    *(
        Many(kind, Text("Id"), Text(target, required=True), Texts("Event"), _FILTER)
        for kind, target in KINDS.items()
    ),
    Group("EventBridgeConfiguration"),
)


class NotificationRule(NamedTuple):
    """One rule."""

    id: str
    kind: str
    #: The destination as the client wrote it; its name is among the targets of the configuration.
    arn: str
    events: tuple[str, ...]
    prefix: str = ""
    suffix: str = ""

    @property
    def target(self) -> str:
        """The name of the destination."""
        return target_of(self.arn)

    def wants(self, event: str, key: str) -> bool:
        """Return True if an event of an object is delivered."""
        if not (key.startswith(self.prefix) and key.endswith(self.suffix)):
            return False
        return event in self.events or f"{event.rpartition(':')[0]}:*" in self.events


def target_of(arn: str) -> str:
    """Return the name in ``arn:aws:sqs:region:account:name`` or ``arn:minio:sqs:region:name:webhook``."""
    words = arn.split(":")
    if len(words) != 6 or words[0] != "arn":
        return ""
    return words[4] if words[5] == "webhook" else words[5]


# --- documents ----------------------------------------------------------------------------------------


def rules_of_document(tree: Tree, targets: Collection[str]) -> list[NotificationRule]:
    """Return the rules of a ``NotificationConfiguration``; raise ``S3Error``."""
    if "EventBridgeConfiguration" in tree:
        raise S3Error("NotImplemented", "There is no EventBridge here.")
    rules = [_rule(kind, item, targets) for kind in KINDS for item in trees_of(tree.get(kind))]
    if len(rules) > RULES_MAX:
        raise S3Error("InvalidArgument", f"A bucket has no more than {RULES_MAX} notifications.")
    if len({rule.id for rule in rules}) < len(rules):
        raise S3Error("InvalidArgument", "Same ID used for multiple configurations. IDs must be unique")
    return rules


def _rule(kind: str, item: Tree, targets: Collection[str]) -> NotificationRule:
    arn, name = text_of(item.get(KINDS[kind])), text_of(item.get("Id")) or str(uuid4())
    if len(name) > ID_MAX:
        raise S3Error("InvalidArgument", f"ID length should not exceed allowed limit of {ID_MAX}")
    if not target_of(arn) or target_of(arn) not in targets:
        raise S3Error(
            "InvalidArgument",
            "Unable to validate the following destination configurations",
            details={"ArgumentName": arn, "ArgumentValue": "The destination is none of this cluster's."},
        )
    items = item.get("Event")
    events = tuple(text_of(event) for event in items) if isinstance(items, list) else ()
    if not events:
        raise S3Error("MalformedXML")
    for event in events:
        if event not in _ALL:
            raise S3Error("InvalidArgument", f"The event {event[:100]!r} is not supported for notifications")
    prefix, suffix = _filter(item)
    return NotificationRule(name, kind, arn, events, prefix, suffix)


def _filter(item: Tree) -> tuple[str, str]:
    found: dict[str, str] = {}
    for rule in trees_of(tree_of(tree_of(item.get("Filter")).get("S3Key")).get("FilterRule")):
        name, value = text_of(rule.get("Name")).lower(), rule.get("Value")
        text = value if isinstance(value, str) else ""
        if name not in ("prefix", "suffix") or name in found or len(text) > VALUE_MAX:
            raise S3Error("InvalidArgument", "filter rule name must be either prefix or suffix, each once")
        found[name] = unquote_plus(text) if "%" in text else text
    return found.get("prefix", ""), found.get("suffix", "")


def document_of_rules(rules: Collection[NotificationRule]) -> Value:
    """Return the value of a ``NotificationConfiguration``."""
    value: dict[str, list[Value]] = {}
    for rule in rules:
        item: dict[str, Value] = {"Id": rule.id, KINDS[rule.kind]: rule.arn, "Event": list(rule.events)}
        names = {"Prefix": rule.prefix, "Suffix": rule.suffix}
        filters: list[Value] = [{"Name": name, "Value": text} for name, text in names.items() if text]
        if filters:
            item["Filter"] = {"S3Key": {"FilterRule": filters}}
        value.setdefault(rule.kind, []).append(item)
    return dict(value)


# --- the stored form ----------------------------------------------------------------------------------


def stored_rules(rules: Collection[NotificationRule]) -> HeaderMap:
    """Return the headers that keep rules, and let go of others; raise ``S3Error``."""
    return codec.NOTIFICATION.encode_json([list(rule) for rule in rules] or None)


def rules_of(sysmeta: Mapping[str, str]) -> tuple[NotificationRule, ...]:
    """Return the rules in a container's system metadata (names without their prefix)."""
    return _parsed(codec.NOTIFICATION.packed(sysmeta))


@lru_cache(maxsize=256)
def _parsed(text: str) -> tuple[NotificationRule, ...]:
    items = codec.NOTIFICATION.unpack_list(text)
    try:
        return tuple(
            NotificationRule(
                str(name), str(kind), str(arn), tuple(map(str, events)), str(prefix), str(suffix)
            )
            for name, kind, arn, events, prefix, suffix in items
        )
    except (ValueError, TypeError):
        raise codec.NOTIFICATION.damaged()


# --- events -------------------------------------------------------------------------------------------
# The queue is a hidden account, as the expirer's: a container for each hour, in it an object for each
# event and webhook. No webhook is called while a client waits. An event is delivered at least once: a
# client that hears 503, because the event could not be kept after its change was done, asks again,
# and so the event comes again.

EVENTS_ACCOUNT = ".s3_events"
HOUR_S = 3600
EVENT_VERSION = "2.1"


def announce(
    call: Call, event: str, key: str, *, size: int | None = None, etag: str = "", version: str = ""
) -> None:
    """Keep an event for those who want it; raises ``S3Error`` when that fails."""
    sysmeta = call.session.bucket_info(call.bucket).sysmeta
    for rule in rules_of(sysmeta):
        if not rule.wants(event, key):
            continue
        record = record_of(call, rule, event, key, size=size, etag=etag, version=version)
        document = json.dumps({"target": rule.target, "event": {"Records": [record]}})
        name = f"{Timestamp.now().internal}-{uuid4().hex}"
        call.session.hidden.keep(
            EntityPath(EVENTS_ACCOUNT, container_of(time.time()), name), document.encode()
        )


def written_facts(headers: HeaderMap) -> dict[str, str]:
    """ETag and version as the answer to a write says them."""
    return {"etag": headers.get("etag", ""), "version": headers.get("x-amz-version-id", "")}


def container_of(now_s: float) -> str:
    """Return the container of the queue for a moment."""
    return str(int(now_s) // HOUR_S * HOUR_S)


def record_of(
    call: Call, rule: NotificationRule, event: str, key: str, *, size: int | None, etag: str, version: str
) -> JsonObject:
    """Return the record of an event as AWS writes it."""
    now = datetime.now(UTC)
    stated: JsonObject = {"key": _quoted(key), "sequencer": f"{Timestamp.now().raw:016X}"}
    if size is not None:
        stated["size"] = size
    if etag:
        stated["eTag"] = etag.strip('"')
    if version:
        stated["versionId"] = version
    owner = {"principalId": call.session.owner}
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
            "object": stated,
        },
    }


def _quoted(key: str) -> str:
    return quote_plus(key, safe="/", errors="surrogateescape")

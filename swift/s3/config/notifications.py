"""Notifications: the rules of buckets, and the queue of events."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import quote_plus, unquote_plus
from uuid import uuid4

from swift.base.documents import JsonObject
from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.http import environkeys
from swift.http.headers import HeaderMap
from swift.s3.core import codec
from swift.s3.core.call import Call
from swift.s3.core.errors import S3Error, argument_error
from swift.s3.core.schema import Kind, Leaf, Record, Texts
from swift.s3.core.xml import Group, RepeatedGroup, Text, Tree, Value, text_of, tree_of, trees_of

RULES_MAX, ID_MAX, VALUE_MAX = 100, 255, 1024
#: The largest document, for the greatest number of rules.
DOCUMENT_BYTES_MAX = 1 << 20
EVENTS = (
    *(f"s3:ObjectCreated:{how}" for how in ("Put", "Copy", "CompleteMultipartUpload")),
    *(f"s3:ObjectRemoved:{how}" for how in ("Delete", "DeleteMarkerCreated")),
    *(f"s3:ObjectTagging:{how}" for how in ("Put", "Delete")),
)
_ALL_EVENTS = frozenset(EVENTS) | {f"{event.rpartition(':')[0]}:*" for event in EVENTS}
#: Element of a rule → the element of its destination.
TARGET_ELEMENTS = {
    "TopicConfiguration": "Topic",
    "QueueConfiguration": "Queue",
    "CloudFunctionConfiguration": "CloudFunction",
}


class NotificationRule(NamedTuple):
    """Events of a bucket that are delivered to one target."""

    id: str
    kind: str
    #: The destination as in the document; its name is one of the option ``notification_targets``.
    arn: str
    events: tuple[str, ...]
    prefix: str = ""
    suffix: str = ""

    @property
    def target(self) -> str:
        """The name of the destination."""
        return parse_target_name(self.arn)

    def matches(self, event: str, key: str) -> bool:
        """Return True if the rule delivers an event of a key."""
        if not (key.startswith(self.prefix) and key.endswith(self.suffix)):
            return False
        return event in self.events or f"{event.rpartition(':')[0]}:*" in self.events


def parse_target_name(arn: str) -> str:
    """Return the name in ``arn:aws:sqs:region:account:name`` or ``arn:minio:sqs:region:name:webhook``."""
    words = arn.split(":")
    if len(words) != 6 or words[0] != "arn":
        return ""
    return words[4] if words[5] == "webhook" else words[5]


# --- documents ----------------------------------------------------------------------------------------


def _parse_event(text: str) -> str:
    event = text.strip()
    if event not in _ALL_EVENTS:
        raise S3Error("InvalidArgument", f"The event {event[:100]!r} is not supported for notifications")
    return event


class _KeyFilter:
    """The prefix and suffix of keys, each as a ``FilterRule``."""

    elements = (Group("Filter", Group("S3Key", RepeatedGroup("FilterRule", Text("Name"), Text("Value")))),)

    def read(self, tree: Tree, found: dict[str, object]) -> None:
        """Add prefix and suffix."""
        for rule in trees_of(tree_of(tree_of(tree.get("Filter")).get("S3Key")).get("FilterRule")):
            name, value = text_of(rule.get("Name")).lower(), rule.get("Value")
            text = value if isinstance(value, str) else ""
            if name not in ("prefix", "suffix") or name in found or len(text) > VALUE_MAX:
                text = "filter rule name must be either prefix or suffix, each once"
                raise S3Error("InvalidArgument", text)
            found[name] = unquote_plus(text) if "%" in text else text

    def write(self, value: object, defaults: Mapping[str, object], tree: dict[str, Value]) -> None:
        """Add the element."""
        names = {name.capitalize(): getattr(value, name) for name in ("prefix", "suffix")}
        filters: list[Value] = [{"Name": name, "Value": text} for name, text in names.items() if text]
        if filters:
            tree["Filter"] = {"S3Key": {"FilterRule": filters}}


_RULES = {
    kind: Record(
        NotificationRule,
        Leaf("Id", "id"),
        Leaf(target, "arn", required=True),
        Texts("Event", "events", Kind(_parse_event), required=True),
        _KeyFilter(),
        constants={"kind": kind},
    )
    for kind, target in TARGET_ELEMENTS.items()
}
NOTIFICATION = Group(
    "NotificationConfiguration",
    *(RepeatedGroup(kind, *rule.elements) for kind, rule in _RULES.items()),
    Group("EventBridgeConfiguration"),
)


def parse_rules_document(tree: Tree, targets: Collection[str]) -> list[NotificationRule]:
    """Return the rules in a ``NotificationConfiguration`` document; raise ``S3Error``."""
    if "EventBridgeConfiguration" in tree:
        raise S3Error("NotImplemented", "There is no EventBridge here.")
    rules = [
        record.read({**item, "Id": text_of(item.get("Id")) or str(uuid4())})
        for kind, record in _RULES.items()
        for item in trees_of(tree.get(kind))
    ]
    for rule in rules:
        _validate_rule(rule, targets)
    if len(rules) > RULES_MAX:
        raise S3Error("InvalidArgument", f"A bucket has no more than {RULES_MAX} notifications.")
    if len({rule.id for rule in rules}) < len(rules):
        raise S3Error("InvalidArgument", "Same ID used for multiple configurations. IDs must be unique")
    return rules


def _validate_rule(rule: NotificationRule, targets: Collection[str]) -> None:
    if len(rule.id) > ID_MAX:
        raise S3Error("InvalidArgument", f"ID length should not exceed allowed limit of {ID_MAX}")
    if not rule.target or rule.target not in targets:
        text = "Unable to validate the following destination configurations"
        raise argument_error(rule.arn, "The destination is none of this cluster's.", text)


def render_rules(rules: Collection[NotificationRule]) -> Value:
    """Return the value of a ``NotificationConfiguration`` document."""
    value: dict[str, list[Value]] = {}
    for rule in rules:
        value.setdefault(rule.kind, []).append(_RULES[rule.kind].write(rule))
    return dict(value)


# --- the stored form ----------------------------------------------------------------------------------


def encode_rules(rules: Collection[NotificationRule]) -> HeaderMap:
    """Return the headers that store the rules of a bucket; raise ``S3Error`` if they are too large."""
    return codec.NOTIFICATION.encode_json([list(rule) for rule in rules] or None)


def decode_rules(sysmeta: Mapping[str, str]) -> tuple[NotificationRule, ...]:
    """Return the rules in a container's system metadata (names without prefix)."""
    return codec.NOTIFICATION.decode_items(sysmeta, _decode_rule)


def _decode_rule(item: tuple[str, str, str, Sequence[str], str, str]) -> NotificationRule:
    name, kind, arn, events, prefix, suffix = item
    return NotificationRule(str(name), str(kind), str(arn), tuple(map(str, events)), str(prefix), str(suffix))


# --- events -------------------------------------------------------------------------------------------
# The queue is a hidden account, as the expirer's: a container for each hour, in it an object for each
# event and webhook. No webhook is called while a client waits. An event is delivered at least once: a
# client that gets a 503, because the event could not be stored after its change, repeats the request,
# and the event is delivered again.

EVENTS_ACCOUNT = ".s3_events"
HOUR_S = 3600
EVENT_VERSION = "2.1"


def enqueue_event(
    call: Call, event: str, key: str, *, size: int | None = None, etag: str = "", version: str = ""
) -> None:
    """Store an event in the queue for each matching rule; raise ``S3Error`` if that fails."""
    sysmeta = call.session.bucket_info(call.bucket).sysmeta
    for rule in decode_rules(sysmeta):
        if not rule.matches(event, key):
            continue
        record = make_event_record(call, rule, event, key, size=size, etag=etag, version=version)
        document = json.dumps({"target": rule.target, "event": {"Records": [record]}})
        name = f"{Timestamp.now().internal}-{uuid4().hex}"
        call.session.privileged.store(
            EntityPath(EVENTS_ACCOUNT, queue_container(time.time()), name), document.encode()
        )


def etag_and_version(headers: HeaderMap) -> dict[str, str]:
    """Return ETag and version in the response headers of a write."""
    return {"etag": headers.get("etag", ""), "version": headers.get("x-amz-version-id", "")}


def queue_container(now_s: float) -> str:
    """Return the container of the queue for a time."""
    return str(int(now_s) // HOUR_S * HOUR_S)


def make_event_record(
    call: Call, rule: NotificationRule, event: str, key: str, *, size: int | None, etag: str, version: str
) -> JsonObject:
    """Return the record of an event in AWS's format."""
    now = datetime.now(UTC)
    stated: JsonObject = {"key": _quote_key(key), "sequencer": f"{Timestamp.now().raw:016X}"}
    if size is not None:
        stated["size"] = size
    if etag:
        stated["eTag"] = etag.strip('"')
    if version:
        stated["versionId"] = version
    owner = {"principalId": call.session.user_id}
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


def _quote_key(key: str) -> str:
    return quote_plus(key, safe="/", errors="surrogateescape")

"""The lifecycle configuration of a bucket: document, stored form, and the expiration header of responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import quote
from uuid import uuid4

from swift.base.digits import is_digits
from swift.base.documents import JsonObject
from swift.base.timestamp import InvalidTimestamp, Timestamp, http_date
from swift.http import fields
from swift.http.headers import HeaderMap, wire_value
from swift.s3.config.lifecyclerules import DAY_S, LifecycleRule, Transition, find_expiry
from swift.s3.core import codec
from swift.s3.core.call import Call, invalid_argument
from swift.s3.core.errors import S3Error
from swift.s3.core.segments import make_segments_container
from swift.s3.core.tags import OBJECT_TAGS_MAX, Tags, add_tag, decode_tags
from swift.s3.core.xml import Group, Parsed, RepeatedGroup, Text, Tree, Value, text_of, tree_of, trees_of

RULES_MAX, ID_MAX, NEWER_VERSIONS_MAX = 1000, 255, 100
PREFIX_MAX = 1024
#: The largest document, for the greatest number of rules.
DOCUMENT_BYTES_MAX = 4 << 20
_NUMBER_MAX = 2**31 - 1
_SIZE_MAX = 1 << 50

_TAG = (Text("Key", required=True), Text("Value", required=True))
_SIZES = (Text("ObjectSizeGreaterThan"), Text("ObjectSizeLessThan"))
LIFECYCLE = Group(
    "LifecycleConfiguration",
    RepeatedGroup(
        "Rule",
        Text("ID"),
        Text("Prefix"),
        Group(
            "Filter",
            Text("Prefix"),
            Group("Tag", *_TAG),
            *_SIZES,
            Group("And", Text("Prefix"), RepeatedGroup("Tag", *_TAG), *_SIZES),
        ),
        Text("Status", required=True),
        Group("Expiration", Text("Days"), Text("Date"), Text("ExpiredObjectDeleteMarker")),
        RepeatedGroup("Transition", Text("Days"), Text("Date"), Text("StorageClass")),
        Group("NoncurrentVersionExpiration", Text("NoncurrentDays"), Text("NewerNoncurrentVersions")),
        RepeatedGroup(
            "NoncurrentVersionTransition",
            Text("NoncurrentDays"),
            Text("NewerNoncurrentVersions"),
            Text("StorageClass"),
        ),
        Group("AbortIncompleteMultipartUpload", Text("DaysAfterInitiation")),
        required=True,
    ),
)


# --- reading ------------------------------------------------------------------------------------------


def parse_rules_document(tree: Tree) -> list[LifecycleRule]:
    """Return the rules in a ``LifecycleConfiguration`` document; raise ``S3Error``."""
    items = trees_of(tree.get("Rule"))
    if len(items) > RULES_MAX:
        raise S3Error("MalformedXML")
    rules = [_parse_rule(item) for item in items]
    if len({rule.id for rule in rules}) < len(rules):
        raise _invalid_argument("Rule ID must be unique. Found same ID for more than one rule")
    if len({rule.filter_form == "prefix" for rule in rules}) > 1:
        raise S3Error(
            "InvalidRequest",
            "Base level prefix cannot be used in Lifecycle V2, prefixes are only supported in the Filter.",
        )
    return rules


def _invalid_argument(text: str) -> S3Error:
    return S3Error("InvalidArgument", text)


def _parse_rule(item: Tree) -> LifecycleRule:
    name = _raw_text(item.get("ID")) or str(uuid4())
    if len(name) > ID_MAX:
        raise _invalid_argument(f"ID length should not exceed allowed limit of {ID_MAX}")
    status = text_of(item.get("Status"))
    if status not in ("Enabled", "Disabled"):
        raise S3Error("MalformedXML")
    prefix, form, tags, greater, less = _parse_filter(item)
    days, date, markers = _parse_expiration(item)
    noncurrent, newer = _parse_noncurrent_expiration(item)
    abort = _parse_abort_days(item)
    moves, noncurrent_moves = _parse_transitions(item), _parse_noncurrent_transitions(item)
    actions = (days, date, noncurrent, abort)
    if not (markers or moves or noncurrent_moves) and all(action is None for action in actions):
        raise S3Error("InvalidRequest", "At least one action needs to be specified in a rule")
    if markers and tags:
        raise S3Error("InvalidRequest", "ExpiredObjectDeleteMarker cannot be specified with Tags.")
    if abort is not None and (tags or greater is not None or less is not None):
        raise S3Error(
            "InvalidRequest", "AbortIncompleteMultipartUpload cannot be specified with Tags or object sizes."
        )
    if (newer or any(move.newer_versions for move in noncurrent_moves)) and form == "prefix":
        raise S3Error("InvalidRequest", "NewerNoncurrentVersions needs a rule with a Filter.")
    return LifecycleRule(
        name,
        status == "Enabled",
        prefix,
        tuple(tags.items()),
        greater,
        less,
        form,
        days,
        date,
        markers,
        noncurrent,
        newer,
        abort,
        moves,
        noncurrent_moves,
    )


def _raw_text(value: Parsed | None) -> str:
    """Return text with its blanks, which are part of names."""
    return value if isinstance(value, str) else ""


def _parse_number(
    tree: Tree, name: str, error: S3Error, *, least: int = 1, most: int = _NUMBER_MAX
) -> int | None:
    if name not in tree:
        return None
    text = text_of(tree[name])
    if not is_digits(text) or not least <= int(text) <= most:
        raise error
    return int(text)


def _parse_filter(item: Tree) -> tuple[str, str, Tags, int | None, int | None]:
    """Return prefix, form, tags and the two size limits."""
    if ("Filter" in item) == ("Prefix" in item):
        raise S3Error("MalformedXML")
    if "Prefix" in item:
        return _parse_prefix(item), "prefix", {}, None, None
    found, form = tree_of(item.get("Filter")), "filter"
    if len(found) > 1:
        raise S3Error("MalformedXML")
    if not found:
        return "", "none", {}, None, None
    named: list[Tree] = []
    if "And" in found:
        found, form = tree_of(found["And"]), "and"
        named = trees_of(found.get("Tag"))
        if len(found) - ("Tag" in found) + len(named) < 2:
            raise S3Error("MalformedXML")
    elif "Tag" in found:
        named = [tree_of(found["Tag"])]
    tags: Tags = {}
    for tag in named:
        add_tag(tags, _raw_text(tag.get("Key")), _raw_text(tag.get("Value")))
    if len(tags) > OBJECT_TAGS_MAX:
        raise S3Error("InvalidRequest", f"A rule has no more than {OBJECT_TAGS_MAX} tags.")
    return _parse_prefix(found), form, tags, *_parse_sizes(found)


def _parse_prefix(tree: Tree) -> str:
    prefix = _raw_text(tree.get("Prefix"))
    if len(prefix.encode("utf-8", "surrogateescape")) > PREFIX_MAX:
        raise S3Error("InvalidRequest", f"The maximum size of a prefix is {PREFIX_MAX}.")
    return prefix


def _parse_sizes(tree: Tree) -> tuple[int | None, int | None]:
    refused = _invalid_argument("Sizes of objects are whole numbers from 0 to 1125899906842624.")
    greater = _parse_number(tree, "ObjectSizeGreaterThan", refused, least=0, most=_SIZE_MAX)
    less = _parse_number(tree, "ObjectSizeLessThan", refused, most=_SIZE_MAX)
    if greater is not None and less is not None and less <= greater + 1:
        raise S3Error(
            "InvalidRequest", "ObjectSizeLessThan has to be a value greater than ObjectSizeGreaterThan."
        )
    return greater, less


def _parse_expiration(item: Tree) -> tuple[int | None, int | None, bool]:
    """Return days, date, and True if the rule expires delete markers."""
    if "Expiration" not in item:
        return None, None, False
    tree = tree_of(item["Expiration"])
    if len(tree) != 1:
        raise S3Error("MalformedXML")
    days = _parse_number(
        tree, "Days", _invalid_argument("'Days' for Expiration action must be a positive integer")
    )
    marker = text_of(tree.get("ExpiredObjectDeleteMarker")).lower()
    if marker not in ("", "true", "false") or (not marker and "ExpiredObjectDeleteMarker" in tree):
        raise S3Error("MalformedXML")
    date = _parse_midnight(text_of(tree["Date"])) if "Date" in tree else None
    return days, date, marker == "true"


def _parse_midnight(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise S3Error("MalformedXML")
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    try:
        seconds = moment.timestamp()
    except (OverflowError, ValueError):
        raise S3Error("MalformedXML")
    if seconds % DAY_S or seconds < 0:
        raise _invalid_argument("'Date' must be at midnight GMT")
    return int(seconds)


def _parse_noncurrent_expiration(item: Tree) -> tuple[int | None, int]:
    """Return days, and the number of versions that are kept."""
    if "NoncurrentVersionExpiration" not in item:
        return None, 0
    tree = tree_of(item["NoncurrentVersionExpiration"])
    days = _parse_number(
        tree,
        "NoncurrentDays",
        _invalid_argument(
            "'NoncurrentDays' for NoncurrentVersionExpiration action must be a positive integer"
        ),
    )
    newer = _parse_newer_versions(tree)
    if days is None:
        raise S3Error("MalformedXML")
    return days, newer


def _parse_newer_versions(tree: Tree) -> int:
    """Return the number of versions that are kept at any age; 0 for none."""
    error = _invalid_argument(
        f"'NewerNoncurrentVersions' must be a whole number from 1 to {NEWER_VERSIONS_MAX}"
    )
    return _parse_number(tree, "NewerNoncurrentVersions", error, most=NEWER_VERSIONS_MAX) or 0


def _parse_transitions(item: Tree) -> tuple[Transition, ...]:
    found = []
    for tree in trees_of(item.get("Transition")):
        if ("Days" in tree) == ("Date" in tree):
            raise S3Error("MalformedXML")
        error = _invalid_argument("'Days' for Transition action must be nonnegative")
        date = _parse_midnight(text_of(tree["Date"])) if "Date" in tree else None
        found.append(
            Transition(_parse_storage_class(tree), _parse_number(tree, "Days", error, least=0), date)
        )
    if len({move.date is None for move in found}) > 1:
        raise S3Error("InvalidRequest", "Found mixed 'Date' and 'Days' based Transition actions in a rule.")
    return _sort_transitions(found)


def _parse_noncurrent_transitions(item: Tree) -> tuple[Transition, ...]:
    found = []
    for tree in trees_of(item.get("NoncurrentVersionTransition")):
        error = _invalid_argument(
            "'NoncurrentDays' for NoncurrentVersionTransition action must be nonnegative"
        )
        days = _parse_number(tree, "NoncurrentDays", error, least=0)
        newer = _parse_newer_versions(tree)
        if days is None:
            raise S3Error("MalformedXML")
        found.append(Transition(_parse_storage_class(tree), days, newer_versions=newer))
    return _sort_transitions(found)


def _parse_storage_class(tree: Tree) -> str:
    kind = text_of(tree.get("StorageClass"))
    if not kind:
        raise S3Error("MalformedXML")
    return kind


def _sort_transitions(moves: Sequence[Transition]) -> tuple[Transition, ...]:
    """Return the transitions of a rule in order of time; raise ``S3Error`` if they conflict."""
    if len({move.storage_class for move in moves}) < len(moves) or len({move[1:3] for move in moves}) < len(
        moves
    ):
        raise S3Error("InvalidRequest", "'StorageClass' and time must differ between transitions of a rule.")
    return tuple(sorted(moves, key=lambda move: move.due_s(0)))


def _parse_abort_days(item: Tree) -> int | None:
    if "AbortIncompleteMultipartUpload" not in item:
        return None
    days = _parse_number(
        tree_of(item["AbortIncompleteMultipartUpload"]),
        "DaysAfterInitiation",
        _invalid_argument(
            "'DaysAfterInitiation' for AbortIncompleteMultipartUpload must be a positive integer"
        ),
    )
    if days is None:
        raise S3Error("MalformedXML")
    return days


# --- writing ------------------------------------------------------------------------------------------


def render_rules(rules: Sequence[LifecycleRule]) -> Value:
    """Return the value of a ``LifecycleConfiguration`` document."""
    return {"Rule": [_render_rule(rule) for rule in rules]}


def _render_rule(rule: LifecycleRule) -> Value:
    value: dict[str, Value] = {"ID": rule.id, "Status": "Enabled" if rule.is_enabled else "Disabled"}
    value.update(
        {"Prefix": rule.prefix} if rule.filter_form == "prefix" else {"Filter": _render_filter(rule)}
    )
    if rule.days is not None:
        value["Expiration"] = {"Days": rule.days}
    elif rule.date is not None:
        value["Expiration"] = {"Date": _render_date(rule.date)}
    elif rule.expires_delete_markers:
        value["Expiration"] = {"ExpiredObjectDeleteMarker": "true"}
    if rule.transitions:
        value["Transition"] = [_render_transition(move, "Days") for move in rule.transitions]
    if rule.noncurrent_transitions:
        moves = [_render_transition(move, "NoncurrentDays") for move in rule.noncurrent_transitions]
        value["NoncurrentVersionTransition"] = moves
    if rule.noncurrent_days is not None:
        ending: dict[str, Value] = {"NoncurrentDays": rule.noncurrent_days}
        if rule.newer_versions:
            ending["NewerNoncurrentVersions"] = rule.newer_versions
        value["NoncurrentVersionExpiration"] = ending
    if rule.abort_days is not None:
        value["AbortIncompleteMultipartUpload"] = {"DaysAfterInitiation": rule.abort_days}
    return value


def _render_date(midnight_s: int) -> str:
    return datetime.fromtimestamp(midnight_s, UTC).strftime("%Y-%m-%dT00:00:00.000Z")


def _render_transition(move: Transition, unit: str) -> Value:
    value: dict[str, Value] = {"StorageClass": move.storage_class}
    if move.date is not None:
        value["Date"] = _render_date(move.date)
    else:
        value[unit] = move.days or 0
    if move.newer_versions:
        value["NewerNoncurrentVersions"] = move.newer_versions
    return value


def _render_filter(rule: LifecycleRule) -> Value:
    tags: list[Value] = [{"Key": key, "Value": value} for key, value in rule.tags]
    found: dict[str, Value] = {}
    if rule.size_greater_than is not None:
        found["ObjectSizeGreaterThan"] = rule.size_greater_than
    if rule.size_less_than is not None:
        found["ObjectSizeLessThan"] = rule.size_less_than
    if rule.filter_form == "and":
        if rule.prefix:
            found["Prefix"] = rule.prefix
        return {"And": {**found, "Tag": tags}}
    if rule.filter_form == "none":
        return {}
    if tags:
        return {"Tag": tags[0]}
    return found or {"Prefix": rule.prefix}


# --- the stored form ----------------------------------------------------------------------------------

#: Configurations that the cache of decoded rules holds.
_CACHED_CONFIGURATIONS = 256

_SHORT_NAMES = {
    "id": "i",
    "is_enabled": "e",
    "prefix": "p",
    "tags": "t",
    "size_greater_than": "g",
    "size_less_than": "l",
    "filter_form": "f",
    "days": "d",
    "date": "a",
    "expires_delete_markers": "m",
    "noncurrent_days": "n",
    "newer_versions": "v",
    "abort_days": "u",
    "transitions": "r",
    "noncurrent_transitions": "w",
}
_DEFAULT_RULE = LifecycleRule("")


def encode_rules(rules: Sequence[LifecycleRule]) -> HeaderMap:
    """Return the headers that store the rules of a bucket; raise ``S3Error`` if they are too large."""
    return codec.LIFECYCLE.encode_json([_encode_rule(rule) for rule in rules] or None)


def _encode_rule(rule: LifecycleRule) -> JsonObject:
    return {
        short: getattr(rule, name)
        for name, short in _SHORT_NAMES.items()
        if getattr(rule, name) != getattr(_DEFAULT_RULE, name)
    }


def decode_rules(sysmeta: Mapping[str, str]) -> tuple[LifecycleRule, ...]:
    """Return the rules in a container's system metadata (names without prefix); none without a lifecycle."""
    return _decode_packed(codec.LIFECYCLE.read_packed(sysmeta))


@lru_cache(maxsize=_CACHED_CONFIGURATIONS)
def _decode_packed(text: str) -> tuple[LifecycleRule, ...]:
    items = codec.LIFECYCLE.unpack_list(text)
    try:
        return tuple(_decode_rule(item) for item in items)
    except (ValueError, TypeError, AttributeError):
        raise codec.LIFECYCLE.damaged_error()


def _decode_rule(item: JsonObject) -> LifecycleRule:
    known = {name: item[short] for name, short in _SHORT_NAMES.items() if short in item}
    known["tags"] = tuple((str(key), str(value)) for key, value in known.get("tags", ()))
    for name in ("transitions", "noncurrent_transitions"):
        known[name] = tuple(Transition(*move) for move in known.get(name, ()))
    known.setdefault("id", "")
    return LifecycleRule(**known)


# --- headers of responses -----------------------------------------------------------------------------


def expiration_headers(
    call: Call, size: int, stored: HeaderMap, *, modified_s: float | None = None
) -> HeaderMap:
    """Return the header for a current version that was read or written; none if no rule expires it.

    ``stored`` has its tags, and its time unless ``modified_s`` is given. The bucket's information is
    cached, so this needs no request.
    """
    sysmeta = call.session.bucket_info(call.bucket).sysmeta
    if not codec.LIFECYCLE.read_packed(sysmeta) or "versionId" in call.params:
        return {}
    try:
        rules = decode_rules(sysmeta)
    except codec.DamagedConfiguration as error:
        # The header only informs; the daemon, which expires objects, stops at such a bucket.
        call.log.warning(f"cannot read the lifecycle of bucket {call.bucket}: {error}")
        return {}
    if modified_s is None:
        try:
            modified_s = Timestamp(stored.get("x-timestamp", "")).seconds
        except InvalidTimestamp:
            return {}
    tags = decode_tags(stored.get(fields.TRANSIENT_S3_TAGGING))
    day_s = call.settings.lifecycle_debug_interval
    if day_s:
        rules = tuple(replace(rule, day_s=day_s) for rule in rules)
    found = find_expiry(rules, call.key, size, modified_s, tags)
    if found is None:
        return {}
    rule = wire_value(quote(found.rule, safe=""))
    return {"x-amz-expiration": f'expiry-date="{http_date(found.at_s)}", rule-id="{rule}"'}


# --- the configuration that is put --------------------------------------------------------------------

#: The header for the least size of a transition, and its only supported value.
MINIMUM_SIZE_HEADER, MINIMUM_SIZE = "x-amz-transition-default-minimum-object-size", "all_storage_classes_128K"


def encode_lifecycle(call: Call, tree: Tree) -> HeaderMap:
    """Return the headers that store a ``LifecycleConfiguration``; raise ``S3Error``.

    Create the segments containers for its transitions first.
    """
    rules = parse_rules_document(tree)
    requested = call.headers.get(MINIMUM_SIZE_HEADER, MINIMUM_SIZE)
    if requested != MINIMUM_SIZE:
        raise invalid_argument(MINIMUM_SIZE_HEADER, requested, f"Transitions are of {MINIMUM_SIZE} here.")
    _make_transition_containers(call, rules)
    return encode_rules(rules)


def _make_transition_containers(call: Call, rules: Sequence[LifecycleRule]) -> None:
    """Create the containers for transitions; raise ``S3Error`` for unavailable storage classes."""
    kinds = {
        move.storage_class for rule in rules for move in (*rule.transitions, *rule.noncurrent_transitions)
    }
    if not kinds:
        return
    own, classes = call.bucket_storage_class, call.features.storage_classes
    for kind in kinds:
        if not call.features.multipart:
            text = "Transitions need multipart uploads, which this cluster does not have."
        elif kind == own:
            text = f"The bucket's storage class is already {kind}; name another one for a transition."
        elif classes.policy_of_class(kind) is None:
            text = f"{kind} is not a storage class of this cluster; it has {', '.join(classes)}."
        else:
            continue
        raise S3Error("InvalidStorageClass", text)
    for kind in sorted(kinds):
        make_segments_container(call, kind)

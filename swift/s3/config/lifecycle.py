"""The lifecycle configuration of a bucket: document, stored form, and the headers that tell of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import quote
from uuid import uuid4

from swift.base.digits import is_digits
from swift.base.documents import JsonObject
from swift.base.timestamp import InvalidTimestamp, Timestamp, http_date
from swift.http import fields
from swift.http.headers import HeaderMap, wire_value
from swift.s3.api.call import Call, invalid_argument
from swift.s3.api.placement import make_segments_container
from swift.s3.api.tags import OBJECT_TAGS_MAX, Tags, add_tag, parsed_tags
from swift.s3.config import codec
from swift.s3.config.lifecyclerules import DAY_S, LifecycleRule, Transition, expiry_of
from swift.s3.errors import S3Error
from swift.s3.xml import Group, Many, Parsed, Text, Tree, Value, text_of, tree_of, trees_of

RULES_MAX, ID_MAX, NEWER_MAX = 1000, 255, 100
PREFIX_MAX = 1024
#: What a document of that many rules may take.
DOCUMENT_BYTES_MAX = 4 << 20
_NUMBER_MAX = 2**31 - 1
_SIZE_MAX = 1 << 50

_TAG = (Text("Key", required=True), Text("Value", required=True))
_SIZES = (Text("ObjectSizeGreaterThan"), Text("ObjectSizeLessThan"))
LIFECYCLE = Group(
    "LifecycleConfiguration",
    Many(
        "Rule",
        Text("ID"),
        Text("Prefix"),
        Group(
            "Filter",
            Text("Prefix"),
            Group("Tag", *_TAG),
            *_SIZES,
            Group("And", Text("Prefix"), Many("Tag", *_TAG), *_SIZES),
        ),
        Text("Status", required=True),
        Group("Expiration", Text("Days"), Text("Date"), Text("ExpiredObjectDeleteMarker")),
        Many("Transition", Text("Days"), Text("Date"), Text("StorageClass")),
        Group("NoncurrentVersionExpiration", Text("NoncurrentDays"), Text("NewerNoncurrentVersions")),
        Many(
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


def rules_of_document(tree: Tree) -> list[LifecycleRule]:
    """Return the rules of a ``LifecycleConfiguration``; raise ``S3Error``."""
    items = trees_of(tree.get("Rule"))
    if len(items) > RULES_MAX:
        raise S3Error("MalformedXML")
    rules = [_rule(item) for item in items]
    if len({rule.id for rule in rules}) < len(rules):
        raise _argument("Rule ID must be unique. Found same ID for more than one rule")
    if len({rule.form == "prefix" for rule in rules}) > 1:
        raise S3Error(
            "InvalidRequest",
            "Base level prefix cannot be used in Lifecycle V2, prefixes are only supported in the Filter.",
        )
    return rules


def _argument(text: str) -> S3Error:
    return S3Error("InvalidArgument", text)


def _rule(item: Tree) -> LifecycleRule:
    name = _text(item.get("ID")) or str(uuid4())
    if len(name) > ID_MAX:
        raise _argument(f"ID length should not exceed allowed limit of {ID_MAX}")
    status = text_of(item.get("Status"))
    if status not in ("Enabled", "Disabled"):
        raise S3Error("MalformedXML")
    prefix, form, tags, greater, less = _filter(item)
    days, date, markers = _expiration(item)
    noncurrent, newer = _noncurrent(item)
    abort = _abort(item)
    moves, noncurrent_moves = _transitions(item), _noncurrent_transitions(item)
    actions = (days, date, noncurrent, abort)
    if not (markers or moves or noncurrent_moves) and all(action is None for action in actions):
        raise S3Error("InvalidRequest", "At least one action needs to be specified in a rule")
    if markers and tags:
        raise S3Error("InvalidRequest", "ExpiredObjectDeleteMarker cannot be specified with Tags.")
    if abort is not None and (tags or greater is not None or less is not None):
        raise S3Error(
            "InvalidRequest", "AbortIncompleteMultipartUpload cannot be specified with Tags or object sizes."
        )
    if (newer or any(move.newer for move in noncurrent_moves)) and form == "prefix":
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


def _text(value: Parsed | None) -> str:
    """Return text as it stands: blanks are part of names."""
    return value if isinstance(value, str) else ""


def _number(tree: Tree, name: str, error: S3Error, *, least: int = 1, most: int = _NUMBER_MAX) -> int | None:
    if name not in tree:
        return None
    text = text_of(tree[name])
    if not is_digits(text) or not least <= int(text) <= most:
        raise error
    return int(text)


def _filter(item: Tree) -> tuple[str, str, Tags, int | None, int | None]:
    """Prefix, form, tags and the two sizes."""
    if ("Filter" in item) == ("Prefix" in item):
        raise S3Error("MalformedXML")
    if "Prefix" in item:
        return _prefix(item), "prefix", {}, None, None
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
        add_tag(tags, _text(tag.get("Key")), _text(tag.get("Value")))
    if len(tags) > OBJECT_TAGS_MAX:
        raise S3Error("InvalidRequest", f"A rule has no more than {OBJECT_TAGS_MAX} tags.")
    return _prefix(found), form, tags, *_sizes(found)


def _prefix(tree: Tree) -> str:
    prefix = _text(tree.get("Prefix"))
    if len(prefix.encode("utf-8", "surrogateescape")) > PREFIX_MAX:
        raise S3Error("InvalidRequest", f"The maximum size of a prefix is {PREFIX_MAX}.")
    return prefix


def _sizes(tree: Tree) -> tuple[int | None, int | None]:
    refused = _argument("Sizes of objects are whole numbers from 0 to 1125899906842624.")
    greater = _number(tree, "ObjectSizeGreaterThan", refused, least=0, most=_SIZE_MAX)
    less = _number(tree, "ObjectSizeLessThan", refused, most=_SIZE_MAX)
    if greater is not None and less is not None and less <= greater + 1:
        raise S3Error(
            "InvalidRequest", "ObjectSizeLessThan has to be a value greater than ObjectSizeGreaterThan."
        )
    return greater, less


def _expiration(item: Tree) -> tuple[int | None, int | None, bool]:
    """Days, date and whether delete markers are meant."""
    if "Expiration" not in item:
        return None, None, False
    tree = tree_of(item["Expiration"])
    if len(tree) != 1:
        raise S3Error("MalformedXML")
    days = _number(tree, "Days", _argument("'Days' for Expiration action must be a positive integer"))
    marker = text_of(tree.get("ExpiredObjectDeleteMarker")).lower()
    if marker not in ("", "true", "false") or (not marker and "ExpiredObjectDeleteMarker" in tree):
        raise S3Error("MalformedXML")
    date = _midnight(text_of(tree["Date"])) if "Date" in tree else None
    return days, date, marker == "true"


def _midnight(text: str) -> int:
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
        raise _argument("'Date' must be at midnight GMT")
    return int(seconds)


def _noncurrent(item: Tree) -> tuple[int | None, int]:
    """Days, and how many versions are kept."""
    if "NoncurrentVersionExpiration" not in item:
        return None, 0
    tree = tree_of(item["NoncurrentVersionExpiration"])
    days = _number(
        tree,
        "NoncurrentDays",
        _argument("'NoncurrentDays' for NoncurrentVersionExpiration action must be a positive integer"),
    )
    newer = _newer(tree)
    if days is None:
        raise S3Error("MalformedXML")
    return days, newer


def _newer(tree: Tree) -> int:
    """Return the number of versions that are kept whatever their age; 0 for none."""
    error = _argument(f"'NewerNoncurrentVersions' must be a whole number from 1 to {NEWER_MAX}")
    return _number(tree, "NewerNoncurrentVersions", error, most=NEWER_MAX) or 0


def _transitions(item: Tree) -> tuple[Transition, ...]:
    found = []
    for tree in trees_of(item.get("Transition")):
        if ("Days" in tree) == ("Date" in tree):
            raise S3Error("MalformedXML")
        error = _argument("'Days' for Transition action must be nonnegative")
        date = _midnight(text_of(tree["Date"])) if "Date" in tree else None
        found.append(Transition(_class(tree), _number(tree, "Days", error, least=0), date))
    if len({move.date is None for move in found}) > 1:
        raise S3Error("InvalidRequest", "Found mixed 'Date' and 'Days' based Transition actions in a rule.")
    return _ordered(found)


def _noncurrent_transitions(item: Tree) -> tuple[Transition, ...]:
    found = []
    for tree in trees_of(item.get("NoncurrentVersionTransition")):
        error = _argument("'NoncurrentDays' for NoncurrentVersionTransition action must be nonnegative")
        days = _number(tree, "NoncurrentDays", error, least=0)
        newer = _newer(tree)
        if days is None:
            raise S3Error("MalformedXML")
        found.append(Transition(_class(tree), days, newer=newer))
    return _ordered(found)


def _class(tree: Tree) -> str:
    kind = text_of(tree.get("StorageClass"))
    if not kind:
        raise S3Error("MalformedXML")
    return kind


def _ordered(moves: Sequence[Transition]) -> tuple[Transition, ...]:
    """Return the transitions of a rule in order, each to another class; raise ``S3Error``."""
    if len({move.kind for move in moves}) < len(moves) or len({move[1:3] for move in moves}) < len(moves):
        raise S3Error("InvalidRequest", "'StorageClass' and time must differ between transitions of a rule.")
    return tuple(sorted(moves, key=lambda move: move.due(0)))


def _abort(item: Tree) -> int | None:
    if "AbortIncompleteMultipartUpload" not in item:
        return None
    days = _number(
        tree_of(item["AbortIncompleteMultipartUpload"]),
        "DaysAfterInitiation",
        _argument("'DaysAfterInitiation' for AbortIncompleteMultipartUpload must be a positive integer"),
    )
    if days is None:
        raise S3Error("MalformedXML")
    return days


# --- writing ------------------------------------------------------------------------------------------


def document_of_lifecycle(rules: Sequence[LifecycleRule]) -> Value:
    """Return the value of a ``LifecycleConfiguration``."""
    return {"Rule": [_render_rule(rule) for rule in rules]}


def _render_rule(rule: LifecycleRule) -> Value:
    value: dict[str, Value] = {"ID": rule.id, "Status": "Enabled" if rule.is_enabled else "Disabled"}
    value.update({"Prefix": rule.prefix} if rule.form == "prefix" else {"Filter": _render_filter(rule)})
    if rule.days is not None:
        value["Expiration"] = {"Days": rule.days}
    elif rule.date is not None:
        value["Expiration"] = {"Date": _render_date(rule.date)}
    elif rule.ends_markers:
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
    value: dict[str, Value] = {"StorageClass": move.kind}
    if move.date is not None:
        value["Date"] = _render_date(move.date)
    else:
        value[unit] = move.days or 0
    if move.newer:
        value["NewerNoncurrentVersions"] = move.newer
    return value


def _render_filter(rule: LifecycleRule) -> Value:
    tags: list[Value] = [{"Key": key, "Value": value} for key, value in rule.tags]
    found: dict[str, Value] = {}
    if rule.greater is not None:
        found["ObjectSizeGreaterThan"] = rule.greater
    if rule.less is not None:
        found["ObjectSizeLessThan"] = rule.less
    if rule.form == "and":
        if rule.prefix:
            found["Prefix"] = rule.prefix
        return {"And": {**found, "Tag": tags}}
    if rule.form == "none":
        return {}
    if tags:
        return {"Tag": tags[0]}
    return found or {"Prefix": rule.prefix}


# --- the stored form ----------------------------------------------------------------------------------

#: Buckets whose rules are remembered.
_REMEMBERED = 256

_NAMES = {
    "id": "i",
    "is_enabled": "e",
    "prefix": "p",
    "tags": "t",
    "greater": "g",
    "less": "l",
    "form": "f",
    "days": "d",
    "date": "a",
    "ends_markers": "m",
    "noncurrent_days": "n",
    "newer_versions": "v",
    "abort_days": "u",
    "transitions": "r",
    "noncurrent_transitions": "w",
}
_USUAL = LifecycleRule("")


def stored_rules(rules: Sequence[LifecycleRule]) -> HeaderMap:
    """Return the headers that keep rules, and let go of others; raise ``S3Error`` for more than has room."""
    return codec.LIFECYCLE.encode_json([_short(rule) for rule in rules] or None)


def _short(rule: LifecycleRule) -> JsonObject:
    return {
        short: getattr(rule, name)
        for name, short in _NAMES.items()
        if getattr(rule, name) != getattr(_USUAL, name)
    }


def rules_of(sysmeta: Mapping[str, str]) -> tuple[LifecycleRule, ...]:
    """Return the rules in a container's system metadata (names without their prefix).

    None when there are none.
    """
    return _parsed(codec.LIFECYCLE.packed(sysmeta))


@lru_cache(maxsize=_REMEMBERED)
def _parsed(text: str) -> tuple[LifecycleRule, ...]:
    items = codec.LIFECYCLE.unpack_list(text)
    try:
        return tuple(_long(item) for item in items)
    except (ValueError, TypeError, AttributeError):
        raise codec.LIFECYCLE.damaged()


def _long(item: JsonObject) -> LifecycleRule:
    known = {name: item[short] for name, short in _NAMES.items() if short in item}
    known["tags"] = tuple((str(key), str(value)) for key, value in known.get("tags", ()))
    for name in ("transitions", "noncurrent_transitions"):
        known[name] = tuple(Transition(*move) for move in known.get(name, ()))
    known.setdefault("id", "")
    return LifecycleRule(**known)


# --- headers of answers -------------------------------------------------------------------------------


def expiration_headers(
    call: Call, size: int, stored: HeaderMap, *, modified_s: float | None = None
) -> HeaderMap:
    """Return the header for a current version that was found or written, none when no rule is about it.

    ``stored`` has its tags, and its time unless ``modified_s`` is it. The bucket was asked for it a moment
    ago, so this costs no request.
    """
    sysmeta = call.session.bucket_info(call.bucket).sysmeta
    if not codec.LIFECYCLE.packed(sysmeta) or "versionId" in call.params:
        return {}
    try:
        rules = rules_of(sysmeta)
    except codec.DamagedConfiguration as error:
        # The answer only tells of the end; the daemon, which would carry it out, stops.
        call.log.warning(f"{call.bucket}: {error}")
        return {}
    if modified_s is None:
        try:
            modified_s = Timestamp(stored.get("x-timestamp", "")).seconds
        except InvalidTimestamp:
            return {}
    tags = parsed_tags(stored.get(fields.TRANSIENT_S3_TAGGING))
    found = expiry_of(rules, call.key, size, modified_s, tags)
    if found is None:
        return {}
    rule = wire_value(quote(found.rule, safe=""))
    return {"x-amz-expiration": f'expiry-date="{http_date(found.at_s)}", rule-id="{rule}"'}


# --- the configuration that is put --------------------------------------------------------------------

#: From which size on objects get another class, and the only answer to that.
LEAST, LEAST_SIZE = "x-amz-transition-default-minimum-object-size", "all_storage_classes_128K"


def headers_of_lifecycle(call: Call, tree: Tree) -> HeaderMap:
    """Return the headers that store a ``LifecycleConfiguration``; raise ``S3Error``.

    The containers into which transitions will lead are made first.
    """
    rules = rules_of_document(tree)
    requested = call.headers.get(LEAST, LEAST_SIZE)
    if requested != LEAST_SIZE:
        raise invalid_argument(LEAST, requested, f"Transitions are of {LEAST_SIZE} here.")
    _make_containers(call, rules)
    return stored_rules(rules)


def _make_containers(call: Call, rules: Sequence[LifecycleRule]) -> None:
    """Make the containers for transitions; raises ``S3Error`` for classes that cannot be had."""
    kinds = {move.kind for rule in rules for move in (*rule.transitions, *rule.noncurrent_transitions)}
    if not kinds:
        return
    own, classes = call.storage_class, call.features.classes
    for kind in kinds:
        if kind == own or not call.features.multipart or classes.policy_of(kind) is None:
            text = f"'StorageClass' must be one that the bucket has not and the cluster has, not {kind}."
            raise S3Error("InvalidStorageClass", text)
    for kind in sorted(kinds):
        make_segments_container(call, kind)

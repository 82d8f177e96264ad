"""The lifecycle configuration of a bucket: document, stored form, and the expiration header of responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import quote
from uuid import uuid4

from swift.base.digits import is_digits
from swift.base.documents import JsonObject
from swift.base.timestamp import InvalidTimestamp, Timestamp, http_date
from swift.http import fields
from swift.http.headers import HeaderMap, wire_value
from swift.http.storedtags import Tags, decode_tags
from swift.s3.config.lifecyclerules import DAY_S, LifecycleRule, Transition, find_expiry
from swift.s3.core import codec
from swift.s3.core.call import Call, invalid_argument
from swift.s3.core.errors import S3Error, invalid_request
from swift.s3.core.schema import (
    BOOLEAN,
    RAW,
    Kind,
    Leaf,
    Many,
    Node,
    Record,
    Section,
    choice,
    elements_of,
    number,
)
from swift.s3.core.segments import make_segments_container
from swift.s3.core.tags import OBJECT_TAGS_MAX, add_tag
from swift.s3.core.xml import Group, RepeatedGroup, Tree, Value, tree_of, trees_of

RULES_MAX, ID_MAX, NEWER_VERSIONS_MAX = 1000, 255, 100
PREFIX_MAX = 1024
#: The largest document, for the greatest number of rules.
DOCUMENT_BYTES_MAX = 4 << 20
_SIZE_MAX = 1 << 50


# --- the document -------------------------------------------------------------------------------------


class _Tag(NamedTuple):
    key: str
    value: str


class _Filter:
    """The conditions of a rule: ``Prefix`` beside the other elements (the old form), or ``Filter``."""

    def __init__(self) -> None:
        tag = Record(_Tag, Leaf("Key", "key", RAW, required=True), Leaf("Value", "value", RAW, required=True))
        self._prefix = Leaf("Prefix", "prefix", RAW)
        sizes = (
            Leaf("ObjectSizeGreaterThan", "size_greater_than", number(_SIZE_ERROR, least=0, most=_SIZE_MAX)),
            Leaf("ObjectSizeLessThan", "size_less_than", number(_SIZE_ERROR, most=_SIZE_MAX)),
        )
        self._and = (self._prefix, Many("Tag", "tags", tag), *sizes)
        self._tag, self._sizes = tag, sizes
        single = (*self._prefix.elements, Group("Tag", *tag.elements), *elements_of(sizes))
        self.elements = (
            *self._prefix.elements,
            Group("Filter", *single, Group("And", *elements_of(self._and))),
        )

    def read(self, tree: Tree, found: dict[str, object]) -> None:
        """Add prefix, tags, sizes, and the form of the filter."""
        if ("Filter" in tree) == ("Prefix" in tree):
            raise S3Error("MalformedXML")
        inner = tree_of(tree.get("Filter"))
        if len(inner) > 1:
            raise S3Error("MalformedXML")
        nodes: tuple[Node, ...] = (self._prefix, *self._sizes)
        if "Prefix" in tree:
            found["filter_form"], inner = "prefix", tree
        elif "And" in inner:
            found["filter_form"], inner, nodes = "and", tree_of(inner["And"]), self._and
            tags = trees_of(inner.get("Tag"))
            if len(inner) - ("Tag" in inner) + len(tags) < 2:
                raise S3Error("MalformedXML")
        else:
            found["filter_form"] = "filter" if inner else "none"
            if "Tag" in inner:
                found["tags"] = (self._tag.read(tree_of(inner["Tag"])),)
        for node in nodes:
            node.read(inner, found)

    def write(self, value: object, defaults: Mapping[str, object], tree: dict[str, Value]) -> None:
        """Add ``Prefix`` or ``Filter``."""
        assert isinstance(value, LifecycleRule), "no other value has such a filter"
        inner: dict[str, Value] = {}
        if value.filter_form == "and":
            for node in self._and:
                node.write(value, defaults, inner)
            inner = {"And": inner}
        elif value.filter_form == "filter":
            for leaf in self._sizes:
                leaf.write(value, defaults, inner)
            if value.tags:
                inner = {"Tag": self._tag.write(_Tag(*value.tags[0]))}
        if value.filter_form == "prefix" or not (inner or value.filter_form == "none"):
            inner["Prefix"] = value.prefix
        tree.update(inner if value.filter_form == "prefix" else {"Filter": inner})


def _invalid_argument(text: str) -> S3Error:
    return S3Error("InvalidArgument", text)


def _parse_midnight(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text.strip())
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


def _render_date(midnight_s: int) -> str:
    return datetime.fromtimestamp(midnight_s, UTC).strftime("%Y-%m-%dT00:00:00.000Z")


def _parse_storage_class(text: str) -> str:
    if not text.strip():
        raise S3Error("MalformedXML")
    return text.strip()


def _days(name: str, action: str) -> Kind:
    return number(_invalid_argument(f"'{name}' for {action} action must be a positive integer"))


def _nonnegative_days(name: str, action: str) -> Kind:
    return number(_invalid_argument(f"'{name}' for {action} action must be nonnegative"), least=0)


_SIZE_ERROR = _invalid_argument("Sizes of objects are whole numbers from 0 to 1125899906842624.")
_NEWER_ERROR = _invalid_argument(
    f"'NewerNoncurrentVersions' must be a whole number from 1 to {NEWER_VERSIONS_MAX}"
)
_DATE = Leaf("Date", "date", Kind(_parse_midnight, _render_date))
_NEWER = Leaf("NewerNoncurrentVersions", "newer_versions", number(_NEWER_ERROR, most=NEWER_VERSIONS_MAX))
_STORAGE_CLASS = Leaf("StorageClass", "storage_class", Kind(_parse_storage_class), required=True)


def _validate_transition(move: Transition) -> None:
    if (move.days is None) == (move.date is None):
        raise S3Error("MalformedXML")


def _validate_rule(rule: LifecycleRule) -> None:
    """Raise ``S3Error`` for fields of a rule that do not go together."""
    if len(rule.id) > ID_MAX:
        raise _invalid_argument(f"ID length should not exceed allowed limit of {ID_MAX}")
    if len(rule.prefix.encode("utf-8", "surrogateescape")) > PREFIX_MAX:
        raise invalid_request(f"The maximum size of a prefix is {PREFIX_MAX}.")
    tags: Tags = {}
    for key, value in rule.tags:
        add_tag(tags, key, value)
    if len(tags) > OBJECT_TAGS_MAX:
        raise invalid_request(f"A rule has no more than {OBJECT_TAGS_MAX} tags.")
    greater, less = rule.size_greater_than, rule.size_less_than
    if greater is not None and less is not None and less <= greater + 1:
        raise invalid_request("ObjectSizeLessThan has to be a value greater than ObjectSizeGreaterThan.")
    _validate_transitions(rule.transitions)
    _validate_transitions(rule.noncurrent_transitions)
    if not rule.affects_objects and rule.abort_days is None:
        raise invalid_request("At least one action needs to be specified in a rule")
    if rule.expires_delete_markers and tags:
        raise invalid_request("ExpiredObjectDeleteMarker cannot be specified with Tags.")
    if rule.abort_days is not None and (tags or greater is not None or less is not None):
        text = "AbortIncompleteMultipartUpload cannot be specified with Tags or object sizes."
        raise invalid_request(text)
    newer = rule.newer_versions or any(move.newer_versions for move in rule.noncurrent_transitions)
    if newer and rule.filter_form == "prefix":
        raise invalid_request("NewerNoncurrentVersions needs a rule with a Filter.")


def _validate_transitions(moves: Sequence[Transition]) -> None:
    if len({move.date is None for move in moves}) > 1:
        raise invalid_request("Found mixed 'Date' and 'Days' based Transition actions in a rule.")
    if min(len({move.storage_class for move in moves}), len({move[1:3] for move in moves})) < len(moves):
        raise invalid_request("'StorageClass' and time must differ between transitions of a rule.")


_RULE: Record[LifecycleRule] = Record(
    LifecycleRule,
    Leaf("ID", "id", RAW),
    _Filter(),
    Leaf("Status", "is_enabled", choice({"Enabled": True, "Disabled": False}), always=True),
    Section(
        "Expiration",
        Leaf("Days", "days", _days("Days", "Expiration")),
        _DATE,
        Leaf("ExpiredObjectDeleteMarker", "expires_delete_markers", BOOLEAN),
        exactly=1,
    ),
    Many(
        "Transition",
        "transitions",
        Record(
            Transition,
            Leaf("Days", "days", _nonnegative_days("Days", "Transition")),
            _DATE,
            _STORAGE_CLASS,
            validate=_validate_transition,
        ),
    ),
    Section(
        "NoncurrentVersionExpiration",
        Leaf(
            "NoncurrentDays",
            "noncurrent_days",
            _days("NoncurrentDays", "NoncurrentVersionExpiration"),
            required=True,
        ),
        _NEWER,
    ),
    Many(
        "NoncurrentVersionTransition",
        "noncurrent_transitions",
        Record(
            Transition,
            Leaf(
                "NoncurrentDays",
                "days",
                _nonnegative_days("NoncurrentDays", "NoncurrentVersionTransition"),
                required=True,
            ),
            _NEWER,
            _STORAGE_CLASS,
        ),
    ),
    Section(
        "AbortIncompleteMultipartUpload",
        Leaf(
            "DaysAfterInitiation",
            "abort_days",
            _days("DaysAfterInitiation", "AbortIncompleteMultipartUpload"),
            required=True,
        ),
    ),
    validate=_validate_rule,
)
LIFECYCLE = Group("LifecycleConfiguration", RepeatedGroup("Rule", *_RULE.elements, required=True))


def parse_rules_document(tree: Tree) -> list[LifecycleRule]:
    """Return the rules in a ``LifecycleConfiguration`` document; raise ``S3Error``."""
    items = trees_of(tree.get("Rule"))
    if len(items) > RULES_MAX:
        raise S3Error("MalformedXML")
    rules = [_parse_rule(item) for item in items]
    if len({rule.id for rule in rules}) < len(rules):
        raise _invalid_argument("Rule ID must be unique. Found same ID for more than one rule")
    if len({rule.filter_form == "prefix" for rule in rules}) > 1:
        raise invalid_request(
            "Base level prefix cannot be used in Lifecycle V2, prefixes are only supported in the Filter."
        )
    return rules


def _parse_rule(item: Tree) -> LifecycleRule:
    rule = _RULE.read({**item, "ID": item.get("ID") or str(uuid4())})
    return replace(
        rule,
        transitions=_sort_transitions(rule.transitions),
        noncurrent_transitions=_sort_transitions(rule.noncurrent_transitions),
    )


def _sort_transitions(moves: Sequence[Transition]) -> tuple[Transition, ...]:
    """Return the transitions of a rule in order of time."""
    return tuple(sorted(moves, key=lambda move: move.due_s(0)))


def render_rules(rules: Sequence[LifecycleRule]) -> Value:
    """Return the value of a ``LifecycleConfiguration`` document."""
    return {"Rule": [_RULE.write(rule) for rule in rules]}


# --- the stored form ----------------------------------------------------------------------------------

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
    return codec.LIFECYCLE.decode_items(sysmeta, _decode_rule)


def _decode_rule(item: JsonObject) -> LifecycleRule:
    known = {name: item[short] for name, short in _SHORT_NAMES.items() if short in item}
    known["tags"] = tuple(_Tag(str(key), str(value)) for key, value in known.get("tags", ()))
    for name in ("transitions", "noncurrent_transitions"):
        known[name] = tuple(Transition(*move) for move in known.get(name, ()))
    known.setdefault("id", "")
    return LifecycleRule(**known)


# --- headers of responses -----------------------------------------------------------------------------


def expiration_headers(
    call: Call, stored: HeaderMap, *, size: int | None = None, modified_s: float | None = None
) -> HeaderMap:
    """Return the header for a current version that was read or written; none if no rule expires it.

    ``stored`` has its tags, and its size and time unless they are given. The bucket's information is cached,
    so this needs no request.
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
    size = _object_size(stored) if size is None else size
    found = find_expiry(rules, call.key, size, modified_s, tags)
    if found is None:
        return {}
    rule = wire_value(quote(found.rule, safe=""))
    return {"x-amz-expiration": f'expiry-date="{http_date(found.at_s)}", rule-id="{rule}"'}


def _object_size(headers: HeaderMap) -> int:
    """Return the size of a response's object, also of a partial response."""
    text = headers.get("content-range", "").rpartition("/")[2] or headers.get("content-length", "")
    return int(text) if is_digits(text) else 0


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

"""Requests of the Swift API as actions of policies: one table.

``swift_access`` maps a request to the actions that it needs, ``SwiftContext`` gives its values for
conditions. ``doc/reference/actions.md`` is generated from the table. Filters that make requests of their own
(bulk requests, copies, large objects, links) have each of them authorized.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple
from urllib.parse import unquote

from swift.base.digits import is_digits
from swift.base.entity import EntityPath
from swift.http import fields
from swift.http.headers import utf8_value
from swift.http.request import Request
from swift.identity.policy.requestvalues import request_value


class PathLevel(Enum):
    """The level of a path."""

    ACCOUNT = "account"
    CONTAINER = "container"
    OBJECT = "object"


class Effect(Enum):
    """The effect of a row of the table on the actions of a request."""

    #: The action of a method.
    BASE = "base"
    #: The action of a method without any header of the table.
    DEFAULT = "default"
    #: One more action.
    ADD = "add"
    #: Another action instead of the method's.
    REPLACE = "replace"
    #: No action of its own.
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the table: a method, a header or a query parameter, and the action that it needs."""

    level: PathLevel
    methods: tuple[str, ...]
    action: str
    effect: Effect
    parameter: str = ""
    #: A header; one that ends in a dash stands for all that begin so. ``X-Remove-…`` needs the same.
    header: str = ""
    #: The proxy takes the header from callers with the rights of an owner only.
    is_owner_header: bool = False
    note: str = ""


#: Every row.
RULES: list[Rule] = []

_ACCOUNT, _CONTAINER, _OBJECT = PathLevel
_READ, _WRITE = ("GET", "HEAD"), ("PUT", "POST")
#: Actions that decide if the proxy shows owner headers, and if it takes those that no row names.
GET_OWNER_HEADERS, PUT_OWNER_HEADERS = "swift:GetOwnerHeaders", "swift:PutOwnerHeaders"
#: The action by which an object loses its tags.
DELETE_TAGS = "s3:DeleteObjectTagging"
#: Headers that name the container of previous versions, and the action that they need in both containers.
ARCHIVE_HEADERS, ARCHIVE_ACTION = ("x-versions-location", "x-history-location"), "s3:PutBucketVersioning"
#: The action of methods that are not in the table.
OTHER_REQUEST = "swift:OtherRequest"


def _base(
    level: PathLevel, methods: tuple[str, ...], action: str, effect: Effect = Effect.BASE, note: str = ""
) -> None:
    RULES.append(Rule(level, methods, action, effect, note=note))


def _parameter(
    level: PathLevel, methods: tuple[str, ...], name: str, action: str, effect: Effect, note: str = ""
) -> None:
    RULES.append(Rule(level, methods, action, effect, parameter=name, note=note))


def _header(
    level: PathLevel,
    names: str,
    action: str,
    *,
    methods: tuple[str, ...] = _WRITE,
    is_owner_header: bool = False,
    note: str = "",
) -> None:
    effect = Effect.ADD if action else Effect.NONE
    for name in names.split():
        RULES.append(
            Rule(level, methods, action, effect, header=name, is_owner_header=is_owner_header, note=note)
        )


# --- accounts -----------------------------------------------------------------------------------------

_base(_ACCOUNT, _READ, "s3:ListAllMyBuckets")
_base(_ACCOUNT, ("PUT",), "swift:PutAccount", note="Operators only.")
_base(_ACCOUNT, ("POST",), "swift:PutAccountMetadata", Effect.DEFAULT, "If no header of the table is sent.")
_base(_ACCOUNT, ("DELETE",), "swift:DeleteAccount", note="Operators only.")
_parameter(_ACCOUNT, ("POST",), "reserve", "swift:CreateReservation", Effect.REPLACE)
_each = "Each object and container of it is authorized by itself."
for _level in PathLevel:
    _parameter(_level, ("POST", "DELETE"), "bulk-delete", "", Effect.NONE, _each)
    _parameter(_level, ("PUT",), "extract-archive", "", Effect.NONE, _each)
_header(
    _ACCOUNT,
    "x-account-meta-temp-url-key x-account-meta-temp-url-key-2",
    "swift:PutTempURLKeys",
    is_owner_header=True,
)
_header(_ACCOUNT, "x-account-access-control", "swift:PutAccountAcl", is_owner_header=True)
_quota = "The quota filters take it from operators only."
_header(_ACCOUNT, "x-account-quota- x-account-meta-quota-", "swift:PutAccountQuota", note=_quota)
_header(_ACCOUNT, "x-account-", "swift:PutAccountMetadata", note="All others with this beginning.")

# --- containers ---------------------------------------------------------------------------------------

_base(_CONTAINER, _READ, "s3:ListBucket")
_parameter(_CONTAINER, ("GET",), "versions", "s3:ListBucketVersions", Effect.REPLACE)
_base(_CONTAINER, ("PUT",), "s3:CreateBucket")
_base(
    _CONTAINER, ("POST",), "swift:PutContainerMetadata", Effect.DEFAULT, "If no header of the table is sent."
)
_base(_CONTAINER, ("DELETE",), "s3:DeleteBucket")
_header(_CONTAINER, "x-container-read x-container-write", "s3:PutBucketAcl", is_owner_header=True)
_header(
    _CONTAINER, "x-container-sync-to x-container-sync-key", "swift:PutContainerSync", is_owner_header=True
)
_header(
    _CONTAINER,
    "x-container-meta-temp-url-key x-container-meta-temp-url-key-2",
    "swift:PutTempURLKeys",
    is_owner_header=True,
)
_header(_CONTAINER, "x-versions-enabled", "s3:PutBucketVersioning")
_header(
    _CONTAINER,
    " ".join(ARCHIVE_HEADERS),
    ARCHIVE_ACTION,
    note="Also for the container that the header names.",
)
_header(_CONTAINER, "x-container-meta-access-control-", "s3:PutBucketCORS")
_header(_CONTAINER, "x-container-meta-web-", "s3:PutBucketWebsite")
_header(_CONTAINER, "x-container-meta-quota-", "swift:PutContainerQuota")
_header(_CONTAINER, "x-container-sharding", "swift:PutContainerSharding", note="Operators only.")
_header(_CONTAINER, "x-storage-policy", "", methods=("PUT",))
_header(_CONTAINER, "x-container-", "swift:PutContainerMetadata", note="All others with this beginning.")

# --- objects ------------------------------------------------------------------------------------------

_base(_OBJECT, _READ, "s3:GetObject")
_parameter(_OBJECT, _READ, "version-id", "s3:GetObjectVersion", Effect.REPLACE)
_base(_OBJECT, ("COPY",), "s3:GetObject", note="The destination is authorized by itself, as a PUT.")
_parameter(_OBJECT, ("COPY",), "version-id", "s3:GetObjectVersion", Effect.REPLACE)
_base(_OBJECT, ("PUT",), "s3:PutObject")
_parameter(
    _OBJECT, ("PUT",), "version-id", "s3:GetObjectVersion", Effect.ADD, "The version becomes the current one."
)
_base(
    _OBJECT,
    ("POST",),
    "s3:PutObject",
    note="And `s3:DeleteObjectTagging` for an object with tags: it loses them.",
)
_base(_OBJECT, ("DELETE",), "s3:DeleteObject")
_parameter(_OBJECT, ("DELETE",), "version-id", "s3:DeleteObjectVersion", Effect.REPLACE)
_parameter(_OBJECT, ("DELETE",), "upload-id", "s3:AbortMultipartUpload", Effect.REPLACE)
_parameter(
    _OBJECT,
    ("GET", "HEAD", "PUT", "DELETE"),
    "multipart-manifest",
    "",
    Effect.NONE,
    "Segments are authorized.",
)
for _names, _note in (
    ("x-object-meta- x-delete-at x-delete-after x-detect-content-type x-robots-tag", ""),
    ("x-copy-from x-copy-from-account x-fresh-metadata", "The source is authorized by itself, as a GET."),
    ("x-object-manifest x-static-large-object", "A read needs the rights to read the segments."),
    (
        "x-symlink-target x-symlink-target-account x-symlink-target-etag",
        "A read needs the rights to read the target.",
    ),
):
    _header(_OBJECT, _names, "", note=_note)

# --- the actions of a request -------------------------------------------------------------------------


class SwiftAccess(NamedTuple):
    """The actions of a request, and the one more that gives it the rights of an owner at the proxy."""

    #: All of them must be allowed; empty for OPTIONS, which ACLs allow.
    actions: tuple[str, ...]
    #: Empty if a request that is allowed has these rights.
    owner_action: str


@dataclass(frozen=True, slots=True)
class _Method:
    """The rows of one method at one level that have actions."""

    #: The access of a request without parameters and headers of the table.
    plain: SwiftAccess
    is_default: bool
    parameters: Mapping[str, Rule]
    headers: Mapping[str, Rule]
    #: Those with a dash at the end, the longest first.
    prefixes: tuple[Rule, ...]

    def header_rules(self, headers: Mapping[str, str]) -> Iterator[Rule]:
        """Yield the rows of a request's headers."""
        for name in headers:
            if name.startswith("x-"):
                name = _STORED_NAMES.get(name, name)
                name = "x-" + name[len(_REMOVE) :] if name.startswith(_REMOVE) else name
                rule = self.headers.get(name) or next(
                    (r for r in self.prefixes if name.startswith(r.header)), None
                )
                if rule is not None:
                    yield rule


_REMOVE = "x-remove-"
#: Headers that filters have replaced before the proxy authorizes the request.
_STORED_NAMES = {
    fields.SYSMETA_VERSIONS_ENABLED: "x-versions-enabled",
    fields.SYSMETA_VERSIONS_LOCATION: ARCHIVE_HEADERS[0],
    fields.SYSMETA_VERSIONS_MODE: ARCHIVE_HEADERS[0],
    fields.SYSMETA_VERSIONS_CONTAINER: "x-versions-enabled",
}


def _rows_of(level: PathLevel, method: str) -> _Method | None:
    rules = [rule for rule in RULES if rule.level is level and method in rule.methods and rule.action]
    base = next((rule for rule in rules if not rule.header and not rule.parameter), None)
    if base is None:
        return None
    headers = {rule.header: rule for rule in rules if rule.header}
    prefixes = [name for name in headers if name.endswith("-")]
    return _Method(
        SwiftAccess((base.action,), PUT_OWNER_HEADERS if method in _WRITE else GET_OWNER_HEADERS),
        base.effect is Effect.DEFAULT,
        {rule.parameter: rule for rule in rules if rule.parameter},
        headers,
        tuple(headers[name] for name in sorted(prefixes, key=len, reverse=True)),
    )


_METHODS = {
    (level, method): rows
    for level in PathLevel
    for method in {method for rule in RULES for method in rule.methods}
    if (rows := _rows_of(level, method)) is not None
}


def level_of(path: EntityPath) -> PathLevel:
    """Return the level of a path."""
    return _OBJECT if path.obj is not None else _ACCOUNT if path.container is None else _CONTAINER


def swift_access(
    method: str, level: PathLevel, params: Mapping[str, str], headers: Mapping[str, str]
) -> SwiftAccess:
    """Return the actions that a request of the Swift API needs; names of headers are in lower case."""
    if method == "OPTIONS":
        return SwiftAccess((), GET_OWNER_HEADERS)
    rows = _METHODS.get((level, method))
    if rows is None:
        return SwiftAccess((OTHER_REQUEST,), PUT_OWNER_HEADERS)
    (action,), owner_action = rows.plain
    if not params and not rows.headers:
        return rows.plain
    more = []
    is_implied = rows.is_default
    for name, rule in rows.parameters.items():
        if name in params and rule.effect is Effect.REPLACE:
            action, is_implied = rule.action, False
        elif name in params:
            more.append(rule.action)
    if rows.headers:
        for rule in rows.header_rules(headers):
            more.append(rule.action)
            if rule.is_owner_header:
                owner_action = ""
    actions = more if is_implied and more else (action, *more)
    return SwiftAccess(tuple(dict.fromkeys(actions)), owner_action)


def archive_of(headers: Mapping[str, str]) -> str:
    """Return the container of previous versions that a request names; empty if it names none."""
    names = (fields.SYSMETA_VERSIONS_LOCATION, *ARCHIVE_HEADERS)
    location = next((headers[name] for name in names if headers.get(name)), "")
    return unquote(utf8_value(location)).partition("/")[0]


# --- values -------------------------------------------------------------------------------------------

#: Returns the tags of an object or of a version.
ReadTags = Callable[[], Mapping[str, str]]
_CONDITION_HEADERS = {"s3:if-match": "if-match", "s3:if-none-match": "if-none-match"}
_TAG_PREFIX = "s3:existingobjecttag/"


class SwiftContext:
    """The values of a request of the Swift API for conditions of policies."""

    __slots__ = ("_request", "_path", "_read_tags", "_tags")

    def __init__(self, request: Request, path: EntityPath, read_tags: ReadTags = dict):
        """``read_tags`` reads the object's tags, if a condition needs them."""
        self._request = request
        self._path = path
        self._read_tags = read_tags
        self._tags: Mapping[str, str] | None = None

    def values(self, key: str) -> Sequence[str] | None:
        """Return the values of a condition key; None if the request does not have it."""
        if key.startswith("aws:"):
            value = request_value(self._request, key)
        elif key.startswith(_TAG_PREFIX):
            value = self.tags.get(key[len(_TAG_PREFIX) :])
        else:
            value = self._value(key)
        return None if value is None else (value,)

    def _value(self, key: str) -> str | None:
        if key == "s3:resourceaccount":
            return self._path.account
        if key in _CONDITION_HEADERS:
            value = self._request.headers.get(_CONDITION_HEADERS[key])
        elif key == "s3:versionid":
            value = self._request.params.get("version-id")
        elif self._path.obj is None:
            value = self._listing_value(key)
        else:
            return None
        return None if value is None else utf8_value(value)

    def _listing_value(self, key: str) -> str | None:
        params = self._request.params
        if key == "s3:max-keys":
            limit = params.get("limit", "")
            return limit if is_digits(limit) else None
        path = params.get("path")
        if path is not None and self._path.container is not None:
            # It overrides the prefix and the delimiter of a container's listing.
            listed = {"s3:prefix": f"{path.rstrip('/')}/" if path else "", "s3:delimiter": "/"}
            return listed.get(key)
        return params.get({"s3:prefix": "prefix", "s3:delimiter": "delimiter"}.get(key, ""))

    @property
    def tags(self) -> Mapping[str, str]:
        """The tags of the object, read when they are needed first."""
        if self._tags is None:
            self._tags = self._read_tags() if self._path.obj is not None else {}
        return self._tags

"""Translation of object headers between S3 and Swift, and storage classes (spec: middleware.md §20,
decision 0018).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from email.header import Header

from swift.base.documents import JsonObject
from swift.base.errors import ConfigError
from swift.base.etag import EtagList
from swift.base.memo import Memo
from swift.base.timestamp import InvalidTimestamp, Timestamp, http_date
from swift.http import fields
from swift.http.conditional import parse_http_date
from swift.http.headers import HeaderMap, has_control_characters, utf8_value
from swift.http.storedtags import decode_tags
from swift.middleware.versioned_writes.names import ARCHIVED_NULL
from swift.policy.policy import Policies
from swift.s3.core.errors import S3Error, invalid_request

#: The default storage class.
STANDARD = "STANDARD"
_is_class_name = re.compile(r"[A-Z][A-Z0-9_]{0,63}").fullmatch


class StorageClasses:
    """Storage class → the name of its policy, and from a policy's index back to the class."""

    def __init__(
        self,
        policy_of_class: Mapping[str, str] | None = None,
        class_of_policy_index: Mapping[int, str] | None = None,
        default_policy: str | None = None,
        policy_index_of_class: Mapping[str, int] | None = None,
    ):
        """``class_of_policy_index`` has the classes of buckets, ``policy_index_of_class`` those of objects.

        ``default_policy`` is the policy of ``STANDARD`` if no option names it; None if another class has
        it.
        """
        self._policy_of_class = dict(policy_of_class or {})
        self._class_of_policy_index = dict(class_of_policy_index or {})
        self._default_policy = default_policy
        self._policy_index_of_class = dict(policy_index_of_class or {})

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._policy_of_class, STANDARD)))

    @property
    def is_single(self) -> bool:
        """True if there is only one class."""
        return not self._policy_of_class

    def class_of_policy(self, index: int) -> str:
        """Return the class of a storage policy."""
        return self._class_of_policy_index.get(index, STANDARD)

    def is_in_policy(self, name: str, index: int) -> bool:
        """Return True if a class is stored in a storage policy."""
        return (
            self._policy_index_of_class[name] == index
            if name in self._policy_index_of_class
            else self.class_of_policy(index) == name
        )

    def policy_of_class(self, name: str) -> str | None:
        """Return the policy of a class; None for unknown classes."""
        return self._policy_of_class.get(name, self._default_policy if name == STANDARD else None)

    def has_class(self, name: str) -> bool:
        """Return True if the class exists."""
        return name == STANDARD or name in self._policy_of_class

    def __repr__(self) -> str:
        pairs = (f"{name}:{policy}" for name, policy in self._policy_of_class.items())
        return f"<StorageClasses {', '.join(pairs)}>"


def parse_storage_classes(options: Sequence[str], policies: Policies) -> StorageClasses:
    """Return the classes of the option ``storage_classes`` (``CLASS:policy``); raise ``ConfigError``."""
    found: dict[str, str] = {}
    names: dict[int, str] = {}
    indexes: dict[str, int] = {}
    for option in options:
        name, _, policy_name = (word.strip() for word in option.partition(":"))
        policy = policies.named(policy_name)
        if policy is None or _is_class_name(name) is None:
            raise ConfigError(
                f"[filter:s3api] storage_classes: {option!r} is not CLASS:policy with an existing policy"
            )
        if name in found:
            raise ConfigError(f"[filter:s3api] storage_classes: {option!r} repeats a storage class")
        found[name], indexes[name] = policy.name, policy.index
        # Buckets of a policy with several classes have the first one.
        names.setdefault(policy.index, name)
    default = policies.default
    return StorageClasses(found, names, None if default.index in names else default.name, indexes)


# --- headers ------------------------------------------------------------------------------------------

_S3_META_PREFIX, _SWIFT_META_PREFIX = "x-amz-meta-", "x-object-meta-"
#: Stored and returned under the same name.
CONTENT_HEADERS = ("cache-control", "content-disposition", "content-encoding", "content-language", "expires")
_STANDARD_HEADERS = (*CONTENT_HEADERS, "x-robots-tag")
_is_single_range = re.compile(r"bytes=(\d+-\d*|-\d+)", re.ASCII | re.IGNORECASE).fullmatch
#: Characters of names that are signed but, as in OpenStack Swift, not stored.
_UNSTORED_CHARACTERS = frozenset((*' "),/;<=>?@[\\]{}\x7f', *map(chr, range(32))))
REDIRECT_HEADER = "x-amz-website-redirect-location"
#: The content type of delete markers.
DELETE_MARKER_TYPE = "application/x-deleted;swift_versions_deleted=1"
EMPTY_MD5 = "d41d8cd98f00b204e9800998ecf8427e"
DEFAULT_CONTENT_TYPE = "binary/octet-stream"
#: Of a GET or HEAD, for the object server.
_DATE_CONDITIONS = ("if-modified-since", "if-unmodified-since")
CONDITION_HEADERS = ("if-match", "if-none-match", *_DATE_CONDITIONS)
#: In which metadata conditions find an ETag.
ETAG_IS_AT = fields.SYSMETA_S3_ETAG
#: The same for writes to a possible link to a version: they do not request its target first.
WRITE_ETAG_IS_AT = f"{ETAG_IS_AT},{fields.SYSMETA_SLO_ETAG},{fields.SYSMETA_SYMLINK_TARGET_ETAG}"
_RESPONSE_HEADERS = frozenset(
    (
        *("accept-ranges", "cache-control", "content-disposition", "content-encoding", "content-language"),
        *("content-length", "content-range", "content-type", "expires", "last-modified", "x-robots-tag"),
        *("connection",),
    )
)
#: Headers of GetObject and HeadObject that the query can override.
_OVERRIDABLE_HEADERS = (
    *("cache-control", "content-disposition", "content-encoding", "content-language"),
    *("content-type", "expires"),
)


def to_swift_headers(headers: HeaderMap) -> HeaderMap:
    """Return an upload's headers as Swift's: type, user metadata and some standard headers.

    Raise ``S3Error`` for metadata without a name.
    """
    found: HeaderMap = {}
    for name, value in headers.items():
        if name.startswith(_S3_META_PREFIX):
            key = name[len(_S3_META_PREFIX) :]
            if not key:
                raise invalid_request("Metadata name cannot be empty")
            if not _UNSTORED_CHARACTERS & set(key):
                found[_SWIFT_META_PREFIX + key.replace("_", "=5f")] = value
        elif name in _STANDARD_HEADERS:
            found[name] = value
    encoding = found.get("content-encoding")
    if encoding is not None and "aws-chunked" in encoding:
        kept = ",".join(word for word in encoding.split(",") if word.strip() != "aws-chunked").strip()
        if kept:
            found["content-encoding"] = kept
        else:
            del found["content-encoding"]
    found["content-type"] = headers.get("content-type") or DEFAULT_CONTENT_TYPE
    return found


def metadata_for_post(found: HeaderMap) -> HeaderMap:
    """Return the headers by which a POST preserves the metadata of a HEAD response."""
    return {
        name: value
        for name, value in found.items()
        if name in _STANDARD_HEADERS
        or name == "x-delete-at"
        or name.startswith((_SWIFT_META_PREFIX, fields.OBJECT_TRANSIENT_SYSMETA))
    }


#: Metadata of an object that is generated anew when the object is rewritten.
_REGENERATED_PREFIXES = (
    fields.SYSMETA_EC,
    fields.SYSMETA_CRYPTO,
    fields.SYSMETA_UPDATE_OVERRIDE,
    fields.SYSMETA_SLO_ETAG,
    fields.SYSMETA_SLO_SIZE,
)


def metadata_for_put(found: HeaderMap) -> HeaderMap:
    """Return the headers by which a PUT that replaces an object preserves its metadata."""
    kept = {
        name: text
        for name, text in found.items()
        if name.startswith(fields.OBJECT_SYSMETA) and not name.startswith(_REGENERATED_PREFIXES)
    }
    kept.update(metadata_for_post(found))
    kept.pop(fields.TRANSIENT_CRYPTO_META, None)
    kept["content-type"] = found.get("content-type", "").partition(";swift_bytes=")[0]
    return kept


def parse_read_headers(headers: HeaderMap) -> HeaderMap:
    """Return the range and conditions of a GET or HEAD."""
    found = {name: headers[name] for name in CONDITION_HEADERS if name in headers}
    for name in ("if-match", "if-none-match"):
        if "-N" in found.get(name, ""):
            # The suffix that ``object_etag`` adds to the ETag of a large object stored through Swift's API.
            found[name] = found[name].replace("-N", "")
    drop_date_conditions(found)
    if parse_range(headers) is not None:
        found["range"] = headers["range"]
        if "if-range" in headers:
            found["if-range"] = _store_date(headers["if-range"].replace("-N", ""))
    found[fields.BACKEND_ETAG_IS_AT] = ETAG_IS_AT
    return found


def parse_range(headers: HeaderMap) -> str | None:
    """Return the range of a GET or HEAD; None if it has none or several, which S3 ignores."""
    text = headers.get("range")
    return text if text is not None and _is_single_range(text) else None


def drop_date_conditions(conditions: HeaderMap) -> None:
    """Remove conditions on dates next to those on ETags, which take precedence (RFC 9110, 13.2.2)."""
    for etags, date in (("if-match", "if-unmodified-since"), ("if-none-match", "if-modified-since")):
        if etags in conditions:
            conditions.pop(date, None)


def fails_if_match(requested: HeaderMap, headers: HeaderMap) -> bool:
    """Return True if the object of a response does not meet If-Match, which is evaluated first."""
    etags = EtagList.parse(requested["if-match"]) if "if-match" in requested else None
    return etags is not None and not etags.matches(object_etag(headers).strip('"').removesuffix("-N"))


def fails_if_unmodified_since(requested: HeaderMap, headers: HeaderMap) -> bool:
    """Return True if an object is newer than If-Unmodified-Since, evaluated before If-None-Match."""
    if "if-unmodified-since" not in requested:
        return False
    limit_s = parse_http_date(requested["if-unmodified-since"])
    modified_s = modified_second(headers)
    return limit_s is not None and modified_s is not None and modified_s > limit_s


def fails_if_modified_since(requested: HeaderMap, headers: HeaderMap) -> bool:
    """Return True if an object is not newer than If-Modified-Since."""
    if "if-modified-since" not in requested:
        return False
    limit_s = parse_http_date(requested["if-modified-since"])
    modified_s = modified_second(headers)
    return limit_s is not None and modified_s is not None and modified_s <= limit_s


# Times are rounded down in the S3 API and up in Swift's, so storage nodes do not evaluate dates.


def pop_date_conditions(requested: HeaderMap) -> HeaderMap:
    """Remove the conditions on dates from those of a read and return them."""
    return {name: requested.pop(name) for name in _DATE_CONDITIONS if name in requested}


def modified_second(headers: HeaderMap) -> int | None:
    """Return the last change of a response's object as Unix second, rounded down; None if it is unknown."""
    for name in ("x-timestamp", fields.BACKEND_TIMESTAMP):
        try:
            return int(Timestamp(headers[name]).seconds)
        except (KeyError, InvalidTimestamp):
            continue
    return parse_http_date(headers.get("last-modified", ""))


def _store_date(text: str) -> str:
    """Return If-Range for storage nodes, which round up; an ETag as it is."""
    seconds = parse_http_date(text)
    return text if seconds is None else http_date(seconds + 1)


def object_etag(headers: HeaderMap) -> str:
    """Return the quoted ETag of a response's object."""
    etag = headers.get(fields.SYSMETA_S3_ETAG)
    if etag is None:
        etag = headers.get("etag", "").strip('"')
        if etag and is_large(headers):
            etag += "-N"
    return f'"{etag}"'


def is_multipart(headers: HeaderMap) -> bool:
    """Return True for a multipart object, False for one with a manifest only for its storage class."""
    return is_large(headers) and "-" in headers.get(fields.SYSMETA_S3_ETAG, "-")


def is_large(headers: HeaderMap) -> bool:
    """Return True if a response's object is a static large object."""
    return headers.get("x-static-large-object", "").lower() == "true"


def object_storage_class(headers: HeaderMap) -> str:
    """Return the storage class of a response's object; empty if it is that of the bucket."""
    return headers.get(fields.SYSMETA_S3_CLASS, "") if is_large(headers) else ""


def row_parameters(etag: str = "", storage_class: str = "") -> str:
    """Return the parameters of an object's row: a manifest's ETag, another storage class."""
    return (f"; s3_etag={etag}" if etag else "") + (f"; s3_class={storage_class}" if storage_class else "")


def manifest_headers(storage_class: str, upload_id: str, etag: str) -> HeaderMap:
    """Return the metadata of a manifest and the parameters of its row."""
    headers = {
        fields.SYSMETA_S3_UPLOAD_ID: upload_id,
        fields.SYSMETA_S3_ETAG: etag,
        fields.SYSMETA_UPDATE_OVERRIDE_ETAG: row_parameters(etag, storage_class),
    }
    if storage_class:
        headers[fields.SYSMETA_S3_CLASS] = storage_class
    return headers


def row_storage_class(row: JsonObject) -> str:
    """Return the storage class in a row; empty if it is that of the bucket."""
    return str(row.get("hash", "")).partition("; s3_class=")[2].partition(";")[0]


def row_etag(row: JsonObject) -> str:
    """Return the unquoted ETag of a row."""
    etag = str(row.get("hash", ""))
    if "; s3_etag=" in etag:
        return etag.partition("; s3_etag=")[2].partition(";")[0]
    slo = row.get("slo_etag")
    if slo:
        return f"{str(slo).strip(chr(34))}-N"
    return etag.partition(";")[0]


def s3_version_id(headers: HeaderMap) -> str:
    """Return the id of a response's version; ``null`` for an archived object from before versioning."""
    return "null" if fields.SYSMETA_VERSIONS_NULL in headers else headers.get("x-object-version-id", "")


def row_version_id(row: JsonObject) -> str:
    """Return the id of a row's version."""
    return "null" if ARCHIVED_NULL in row else str(row.get("version_id", "null"))


def to_s3_headers(headers: HeaderMap) -> HeaderMap:
    """Return the headers of a response about an object as S3's."""
    found: HeaderMap = {}
    for name, value in headers.items():
        s3_name = _S3_NAMES[name]
        if s3_name == name:
            found[name] = value
        elif s3_name and (text := _to_s3_value(name, value, headers)) is not None:
            found[s3_name] = text
    if "etag" in headers:
        found["etag"] = object_etag(headers)
    modified_s = modified_second(headers)
    if "last-modified" in found and modified_s is not None:
        found["last-modified"] = http_date(modified_s)
    if "x-delete-at" in headers:
        date = http_date(int(headers["x-delete-at"]))
        found["x-amz-expiration"] = f'expiry-date="{date}", rule-id="swift-object-expiration"'
    if headers.get("content-type", "").startswith("application/x-deleted;"):
        found["x-amz-delete-marker"] = "true"
    return found


def _to_s3_name(name: str) -> str:
    """Return the name of a header in responses of S3; empty for one that they do not have."""
    if name in _RESPONSE_HEADERS or name.startswith("access-control-"):
        return name
    if name.startswith(_SWIFT_META_PREFIX):
        return _S3_META_PREFIX + name[len(_SWIFT_META_PREFIX) :].replace("=5f", "_")
    return _TRANSLATED_HEADERS.get(name, "")


_TRANSLATED_HEADERS = {
    "x-object-version-id": "x-amz-version-id",
    "x-parts-count": "x-amz-mp-parts-count",
    fields.SYSMETA_S3_REDIRECT: REDIRECT_HEADER,
    fields.BACKEND_CRYPTO_CIPHER: "x-amz-server-side-encryption",
    fields.TRANSIENT_S3_TAGGING: "x-amz-tagging-count",
}
_S3_NAMES = Memo(_to_s3_name, 1024)


def _to_s3_value(name: str, value: str, headers: HeaderMap) -> str | None:
    """Return the value of a header whose name differs in S3; None if the response does not have it."""
    if name.startswith(_SWIFT_META_PREFIX):
        return _encode_printable(value)
    if name == "x-object-version-id":
        return s3_version_id(headers)
    if name == "x-parts-count":
        return value if is_multipart(headers) else None
    if name == fields.BACKEND_CRYPTO_CIPHER:
        return "AES256"
    if name == fields.TRANSIENT_S3_TAGGING:
        return str(len(decode_tags(value))) if value else None
    return value


def _encode_printable(value: str) -> str:
    """Return a value that any client can read: RFC 2047 for non-ASCII text."""
    if value.isascii() and value.isprintable():
        return value
    return Header(utf8_value(value).encode("utf-8", "replace").decode(), "UTF-8").encode().replace("\n", "")


def apply_response_overrides(headers: HeaderMap, params: Mapping[str, str]) -> None:
    """Replace headers by the ``response-…`` parameters of the query; raise ``S3Error``."""
    for name in _OVERRIDABLE_HEADERS:
        value = params.get(f"response-{name}")
        if value:
            if has_control_characters(value):
                raise S3Error("InvalidArgument", details={"ArgumentName": f"response-{name}"})
            headers[name] = value

"""Headers of objects between S3 and Swift, and storage classes (spec: middleware.md §20, decision 0018)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from email.header import Header

from swift.base.documents import JsonObject
from swift.base.errors import ConfigError
from swift.base.etag import EtagList
from swift.base.timestamp import http_date
from swift.http import fields
from swift.http.conditional import parse_http_date
from swift.http.headers import HeaderMap, has_control_characters, utf8_value
from swift.policy.policy import Policies
from swift.s3.errors import S3Error

#: The class of what no other class is said of.
STANDARD = "STANDARD"
_is_name = re.compile(r"[A-Z][A-Z0-9_]{0,63}").fullmatch


class StorageClasses:
    """Class → the name of its policy, and back from a policy's index."""

    def __init__(
        self,
        policies: Mapping[str, str] | None = None,
        names: Mapping[int, str] | None = None,
        usual: str | None = None,
        indexes: Mapping[str, int] | None = None,
    ):
        """``names`` are the classes of buckets by policy, ``indexes`` the policies of all classes.

        ``usual`` is the policy of ``STANDARD`` where no option says it; None when there is none."""
        self._policies = dict(policies or {})
        self._names = dict(names or {})
        self._usual = usual
        self._indexes = dict(indexes or {})

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._policies, STANDARD)))

    @property
    def is_alone(self) -> bool:
        """True if there is only one class."""
        return not self._policies

    def of_policy(self, index: int) -> str:
        """Return the class of a storage policy."""
        return self._names.get(index, STANDARD)

    def is_in(self, name: str, index: int) -> bool:
        """Return True if a class lies in a storage policy."""
        return self._indexes[name] == index if name in self._indexes else self.of_policy(index) == name

    def policy_of(self, name: str) -> str | None:
        """Return the policy of a class; None of one that there is not."""
        return self._policies.get(name, self._usual if name == STANDARD else None)

    def has(self, name: str) -> bool:
        """Return True if there is such a class."""
        return name == STANDARD or name in self._policies

    def __repr__(self) -> str:
        return f"<StorageClasses {', '.join(f'{name}:{policy}' for name, policy in self._policies.items())}>"


def classes_of(options: Sequence[str], policies: Policies) -> StorageClasses:
    """Return the classes of the option ``storage_classes`` (``CLASS:policy``); raise ``ConfigError``."""
    found: dict[str, str] = {}
    names: dict[int, str] = {}
    indexes: dict[str, int] = {}
    for option in options:
        name, _, policy_name = (word.strip() for word in option.partition(":"))
        policy = policies.named(policy_name)
        if policy is None or _is_name(name) is None:
            raise ConfigError(f"[filter:s3api] storage_classes: {option!r} is no CLASS:policy")
        if name in found:
            raise ConfigError(f"[filter:s3api] storage_classes: {option!r} names something twice")
        found[name], indexes[name] = policy.name, policy.index
        # Buckets of a policy with several classes have the first.
        names.setdefault(policy.index, name)
    usual = policies.default
    return StorageClasses(found, names, None if usual.index in names else usual.name, indexes)


# --- headers ------------------------------------------------------------------------------------------

_META, _SWIFT_META = "x-amz-meta-", "x-object-meta-"
#: Stored and shown under the same name.
_PLAIN = (
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "expires",
    "x-robots-tag",
)
_is_range = re.compile(r"bytes=(\d+-\d*|-\d+)", re.ASCII | re.IGNORECASE).fullmatch
#: Characters of names that are signed but, as in OpenStack Swift, not stored.
_STRANGE = frozenset((*' "),/;<=>?@[\\]{}\x7f', *map(chr, range(32))))
REDIRECT = "x-amz-website-redirect-location"
#: The content type of delete markers.
DELETE_MARKER_TYPE = "application/x-deleted;swift_versions_deleted=1"
EMPTY_MD5 = "d41d8cd98f00b204e9800998ecf8427e"
USUAL_TYPE = "binary/octet-stream"
#: Of a GET or HEAD, for the object server.
CONDITIONS = ("if-match", "if-none-match", "if-modified-since", "if-unmodified-since")
#: In which metadata conditions find an ETag.
ETAG_PLACES = fields.SYSMETA_S3_ETAG
#: The same where there may be a link to a version: a write does not request the target first.
WRITE_ETAG_PLACES = f"{ETAG_PLACES},{fields.SYSMETA_SLO_ETAG},{fields.SYSMETA_SYMLINK_TARGET_ETAG}"
_SHOWN = frozenset(
    (
        *("accept-ranges", "cache-control", "content-disposition", "content-encoding", "content-language"),
        *("content-length", "content-range", "content-type", "expires", "last-modified", "x-robots-tag"),
        *("connection",),
    )
)
#: What GetObject and HeadObject let a query say instead.
_OVERRIDES = (
    *("cache-control", "content-disposition", "content-encoding", "content-language"),
    *("content-type", "expires"),
)


def stored_headers(headers: HeaderMap) -> HeaderMap:
    """Return an upload's headers as Swift has them: type, user metadata and the few standard ones.

    Raises ``S3Error`` for metadata without a name.
    """
    found: HeaderMap = {}
    for name, value in headers.items():
        if name.startswith(_META):
            key = name[len(_META) :]
            if not key:
                raise S3Error("InvalidRequest", "Metadata name cannot be empty")
            if not _STRANGE & set(key):
                found[_SWIFT_META + key.replace("_", "=5f")] = value
        elif name in _PLAIN:
            found[name] = value
    encoding = found.get("content-encoding")
    if encoding is not None and "aws-chunked" in encoding:
        kept = ",".join(word for word in encoding.split(",") if word.strip() != "aws-chunked").strip()
        if kept:
            found["content-encoding"] = kept
        else:
            del found["content-encoding"]
    found["content-type"] = headers.get("content-type") or USUAL_TYPE
    return found


def echoed_metadata(found: HeaderMap) -> HeaderMap:
    """Return the metadata of a HEAD that a POST must echo to keep it."""
    return {
        name: value
        for name, value in found.items()
        if name in _PLAIN
        or name == "x-delete-at"
        or name.startswith((_SWIFT_META, fields.OBJECT_TRANSIENT_SYSMETA))
    }


#: Of the metadata of an object, what is made anew when it is written again.
_MADE_ANEW = (
    fields.SYSMETA_EC,
    fields.SYSMETA_CRYPTO,
    fields.SYSMETA_UPDATE_OVERRIDE,
    fields.SYSMETA_SLO_ETAG,
    fields.SYSMETA_SLO_SIZE,
)


def copied_metadata(found: HeaderMap) -> HeaderMap:
    """Return what a PUT that takes an object's place must say to keep its metadata."""
    kept = {
        name: text
        for name, text in found.items()
        if name.startswith(fields.OBJECT_SYSMETA) and not name.startswith(_MADE_ANEW)
    }
    kept.update(echoed_metadata(found))
    kept.pop(fields.TRANSIENT_CRYPTO_META, None)
    kept["content-type"] = found.get("content-type", "").partition(";swift_bytes=")[0]
    return kept


def reading_headers(headers: HeaderMap) -> HeaderMap:
    """Range and conditions of a GET or HEAD."""
    found = {name: headers[name] for name in CONDITIONS if name in headers}
    for name in ("if-match", "if-none-match"):
        if "-N" in found.get(name, ""):
            # How the ETag of a large object that came by Swift's API is shown.
            found[name] = found[name].replace("-N", "")
    drop_dates(found)
    if requested_range(headers) is not None:
        found["range"] = headers["range"]
        if "if-range" in headers:
            found["if-range"] = headers["if-range"].replace("-N", "")
    found[fields.BACKEND_ETAG_IS_AT] = ETAG_PLACES
    return found


def requested_range(headers: HeaderMap) -> str | None:
    """Return the range of a GET or HEAD.

    S3 knows one at a time, and answers with everything to anything else.
    """
    text = headers.get("range")
    return text if text is not None and _is_range(text) else None


def drop_dates(conditions: HeaderMap) -> None:
    """Leave out conditions on dates beside those on ETags, which say more (RFC 9110, 13.2.2)."""
    for etags, date in (("if-match", "if-unmodified-since"), ("if-none-match", "if-modified-since")):
        if etags in conditions:
            conditions.pop(date, None)


def is_other_etag(requested: HeaderMap, headers: HeaderMap) -> bool:
    """Return True if an answer about an object is not what If-Match requested.

    Of two conditions this one is first.
    """
    etags = EtagList.parse(requested["if-match"]) if "if-match" in requested else None
    return etags is not None and not etags.matches(object_etag(headers).strip('"').removesuffix("-N"))


def is_changed_since(requested: HeaderMap, headers: HeaderMap) -> bool:
    """Return True if an object is newer than If-Unmodified-Since, judged before If-None-Match."""
    limit_s = parse_http_date(requested.get("if-unmodified-since", ""))
    modified_s = parse_http_date(headers.get("last-modified", ""))
    return limit_s is not None and modified_s is not None and modified_s > limit_s


def object_etag(headers: HeaderMap) -> str:
    """Return the ETag of an answer about an object, in quotes."""
    etag = headers.get(fields.SYSMETA_S3_ETAG)
    if etag is None:
        etag = headers.get("etag", "").strip('"')
        if etag and is_large(headers):
            etag += "-N"
    return f'"{etag}"'


def is_multipart(headers: HeaderMap) -> bool:
    """Return True for an object of parts, False for one that is stored apart for its class."""
    return is_large(headers) and "-" in headers.get(fields.SYSMETA_S3_ETAG, "-")


def is_large(headers: HeaderMap) -> bool:
    """Return True if an answer is of an object whose bytes are in others."""
    return headers.get("x-static-large-object", "").lower() == "true"


def object_class(headers: HeaderMap) -> str:
    """Return the storage class that an answer about an object names; empty when it is that of the bucket."""
    return headers.get(fields.SYSMETA_S3_CLASS, "") if is_large(headers) else ""


def row_override(etag: str = "", kind: str = "") -> str:
    """Return the parameters of an object's row: a manifest's ETag, a class that is not the bucket's."""
    return (f"; s3_etag={etag}" if etag else "") + (f"; s3_class={kind}" if kind else "")


def manifest_headers(kind: str, upload_id: str, etag: str) -> HeaderMap:
    """Return the metadata of a manifest and the parameters of its row."""
    headers = {
        fields.SYSMETA_S3_UPLOAD_ID: upload_id,
        fields.SYSMETA_S3_ETAG: etag,
        fields.SYSMETA_UPDATE_OVERRIDE_ETAG: row_override(etag, kind),
    }
    if kind:
        headers[fields.SYSMETA_S3_CLASS] = kind
    return headers


def row_class(row: JsonObject) -> str:
    """Return the storage class that a row names; empty when it is that of the bucket."""
    return str(row.get("hash", "")).partition("; s3_class=")[2].partition(";")[0]


def row_etag(row: JsonObject) -> str:
    """Return the ETag of a row, unquoted."""
    etag = str(row.get("hash", ""))
    if "; s3_etag=" in etag:
        return etag.partition("; s3_etag=")[2].partition(";")[0]
    slo = row.get("slo_etag")
    if slo:
        return f"{str(slo).strip(chr(34))}-N"
    return etag.partition(";")[0]


def rendered_headers(headers: HeaderMap) -> HeaderMap:
    """Return the headers of an answer about an object as S3 has them."""
    found: HeaderMap = {}
    for name, value in headers.items():
        if name in _SHOWN or name.startswith("access-control-"):
            found[name] = value
        elif name.startswith(_SWIFT_META):
            found[_META + name[len(_SWIFT_META) :].replace("=5f", "_")] = _printable(value)
        elif name == "x-object-version-id":
            found["x-amz-version-id"] = value
        elif name == "x-parts-count" and is_multipart(headers):
            found["x-amz-mp-parts-count"] = value
        elif name == fields.SYSMETA_S3_REDIRECT:
            found[REDIRECT] = value
        elif name == fields.BACKEND_CRYPTO_CIPHER:
            found["x-amz-server-side-encryption"] = "AES256"
        elif name == fields.TRANSIENT_S3_TAGGING and value:
            found["x-amz-tagging-count"] = str(value.count("&") + 1)
    if "etag" in headers:
        found["etag"] = object_etag(headers)
    if "x-delete-at" in headers:
        date = http_date(int(headers["x-delete-at"]))
        found["x-amz-expiration"] = f'expiry-date="{date}", rule-id="swift-object-expiration"'
    if headers.get("content-type", "").startswith("application/x-deleted;"):
        found["x-amz-delete-marker"] = "true"
    return found


def _printable(value: str) -> str:
    """Return a value that any client can read: RFC 2047 for what is not ASCII."""
    if value.isascii() and value.isprintable():
        return value
    return Header(utf8_value(value).encode("utf-8", "replace").decode(), "UTF-8").encode().replace("\n", "")


def with_overrides(headers: HeaderMap, params: Mapping[str, str]) -> None:
    """Replace what ``response-…`` parameters say; raises ``S3Error``."""
    for name in _OVERRIDES:
        value = params.get(f"response-{name}")
        if value:
            if has_control_characters(value):
                raise S3Error("InvalidArgument", details={"ArgumentName": f"response-{name}"})
            headers[name] = value

"""The page of an object: what is known about it, its versions, tags and metadata, and what can be done."""

from __future__ import annotations

import calendar
import json
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote, unquote

from lxml import etree

from swift.base.documents import JsonObject
from swift.base.truth import is_true
from swift.console.core.api import ApiError
from swift.console.core.visit import Route, Visit
from swift.console.core.web import BadForm, Fields, StaleForm
from swift.console.core.xml import parse_xml
from swift.console.users.browse import DELETE_MARKER_TYPE, time_text
from swift.console.users.content import TEXT_BYTES_MAX, Preview, preview_of, version_query
from swift.console.users.deletion import delete_object
from swift.console.users.names import bucket_of, folder_of, is_s3_bucket, last_part, object_of
from swift.http.headers import HeaderMap, has_control_characters, lower_name, utf8_value
from swift.http.response import Response

_META_PREFIX = "x-object-meta-"
#: Headers of an object that its page changes, by the names of the form's fields.
EDITED_HEADERS = {
    "content_type": "content-type",
    "cache_control": "cache-control",
    "content_disposition": "content-disposition",
    "content_encoding": "content-encoding",
    "content_language": "content-language",
    "expires": "expires",
}
#: Other headers that a POST would remove.
_KEPT_HEADERS = ("x-robots-tag", "x-object-manifest")
_MOMENT_FORMS = ("%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")
_LOCK_WORDS = ("mode", "retain-until-date", "legal-hold")
_VERSIONS_SHOWN = 200
_SEGMENTS_SHOWN = 200
TAGS_MAX = 10
_S3_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


class Version(NamedTuple):
    """A version of an object."""

    id: str
    size: int
    changed: str
    is_latest: bool
    is_deletion: bool


class Segment(NamedTuple):
    """A segment of a large object."""

    name: str
    size: int


class Lock(NamedTuple):
    """The object lock of an object; texts of the S3 API, empty for what is not set."""

    mode: str = ""
    until: str = ""
    hold: str = ""


class Facts:
    """The headers of an object as its page shows them."""

    def __init__(self, headers: HeaderMap):
        self.size = int(headers.get("content-length") or 0)
        self.type = utf8_value(headers.get("content-type", ""))
        self.changed = headers.get("last-modified", "")
        self.etag = headers.get("etag", "").strip('"')
        self.stamp = headers.get("x-timestamp", "")
        self.version = headers.get("x-object-version-id", "")
        self.is_static = is_true(headers.get("x-static-large-object", ""))
        self.manifest = unquote(utf8_value(headers.get("x-object-manifest", "")))
        self.delete_at = int(headers.get("x-delete-at") or 0)
        self.preview = preview_of(headers)
        self.fields = {field: utf8_value(headers.get(name, "")) for field, name in EDITED_HEADERS.items()}
        self.metadata = [
            (utf8_value(name[len(_META_PREFIX) :]), utf8_value(value))
            for name, value in sorted(headers.items())
            if name.startswith(_META_PREFIX)
        ]
        self.kept = {name: headers[name] for name in _KEPT_HEADERS if name in headers}

    @property
    def delete_at_field(self) -> str:
        """The time of the deletion as the field of a form has it."""
        return time.strftime(_MOMENT_FORMS[1], time.gmtime(self.delete_at)) if self.delete_at else ""


def show_object(visit: Visit) -> Response:
    """Show an object or a version of it."""
    bucket, name = object_of(visit.query)
    version = visit.query.text("version")
    found = visit.api.read("HEAD", bucket, name, query=version_query(version), also=(404,))
    facts = Facts(found.headers) if found.is_success else None
    versions = _versions(visit, bucket, name)
    if facts is None and not versions:
        return visit.refusal(visit.text("object.not_there"), 404)
    is_current = facts is not None and not version
    return visit.page(
        "object.html",
        bucket=bucket,
        name=name,
        version=version,
        folder=folder_of(name),
        short_name=last_part(name) or name,
        facts=facts,
        is_current=is_current,
        versions=versions,
        segments=[] if facts is None else _segments(visit, bucket, name, version, facts),
        lock=_lock(visit, bucket, name, version) if versions and facts is not None else Lock(),
        tags=_tags(visit, bucket, name) if is_current else None,
        tags_max=TAGS_MAX,
        text_bytes_max=TEXT_BYTES_MAX,
        shows_whole_text=facts is not None and facts.size <= TEXT_BYTES_MAX,
        Preview=Preview,
        edited=[(field, visit.text(f"object.{field}")) for field in EDITED_HEADERS],
    )


def _versions(visit: Visit, bucket: str, name: str) -> list[Version]:
    """Return the newest versions of an object; none where there are no versions."""
    query = {"format": "json", "versions": "true", "prefix": name, "limit": str(_VERSIONS_SHOWN)}
    try:
        found = visit.api.read("GET", bucket, query=query, also=(204,))
    except ApiError:
        # The caller may read the object only, or the bucket never had versions.
        return []
    rows: list[JsonObject] = json.loads(found.read_body() or b"[]")
    own = [row for row in rows if row["name"] == name and "version_id" in row]
    has_versions = is_true(found.headers.get("x-versions-enabled", "")) or any(
        row["version_id"] != "null" for row in own
    )
    return [_version(row) for row in own] if has_versions else []


def _version(row: JsonObject) -> Version:
    return Version(
        str(row["version_id"]),
        int(row["bytes"]),
        time_text(str(row["last_modified"])),
        is_latest=row.get("is_latest") is True,
        is_deletion=row["content_type"] == DELETE_MARKER_TYPE,
    )


def _segments(visit: Visit, bucket: str, name: str, version: str, facts: Facts) -> list[Segment]:
    """Return the first segments of a large object; none where they cannot be read."""
    try:
        if facts.is_static:
            query = {"multipart-manifest": "get", **version_query(version)}
            found = visit.api.read("GET", bucket, name, query=query)
            rows = json.loads(found.read_body())
        elif facts.manifest:
            container, _, prefix = facts.manifest.partition("/")
            rows = visit.api.listing(container, prefix=prefix, limit=str(_SEGMENTS_SHOWN))
            rows = [{**row, "name": f"/{container}/{row['name']}"} for row in rows]
        else:
            return []
    except (ApiError, ValueError):
        return []
    return [Segment(str(row.get("name", "")), int(row.get("bytes") or 0)) for row in rows[:_SEGMENTS_SHOWN]]


def _lock(visit: Visit, bucket: str, name: str, version: str) -> Lock:
    """Return the lock of an object, as far as the caller may see it."""
    if not is_s3_bucket(visit.api, bucket):
        return Lock()
    query = {"versionId": version} if version else {}
    try:
        headers = visit.api.s3("HEAD", bucket, name, query=query).headers
    except ApiError:
        return Lock()
    return Lock(*(headers.get(f"x-amz-object-lock-{word}", "") for word in _LOCK_WORDS))


# --- tags ---------------------------------------------------------------------------------------------


def _tags(visit: Visit, bucket: str, name: str) -> list[tuple[str, str]] | None:
    """Return the tags of an object; None where the S3 API cannot name it or the caller may not."""
    if not is_s3_bucket(visit.api, bucket):
        return None
    try:
        return _read_tags(visit, bucket, name)
    except ApiError:
        return None


def _read_tags(visit: Visit, bucket: str, name: str) -> list[tuple[str, str]]:
    """Return the tags of an object; raise ``ApiError``."""
    document = visit.api.s3_document(bucket, name, tagging="")
    if document is None:
        return []
    tags = parse_xml(document).iter("{*}Tag")
    return [(str(tag.findtext("{*}Key") or ""), str(tag.findtext("{*}Value") or "")) for tag in tags]


def _write_tags(visit: Visit, bucket: str, name: str, tags: Iterable[tuple[str, str]]) -> None:
    """Replace the tags of an object; raise ``ApiError`` or ``BadForm``."""
    root = etree.Element("Tagging", xmlns=_S3_NAMESPACE)
    group = etree.SubElement(root, "TagSet")
    for key, value in tags:
        tag = etree.SubElement(group, "Tag")
        try:
            etree.SubElement(tag, "Key").text = key
            etree.SubElement(tag, "Value").text = value
        except ValueError:
            raise BadForm("form.tag")
    body = etree.tostring(root, xml_declaration=True, encoding="UTF-8")
    visit.api.s3("PUT", bucket, name, query={"tagging": ""}, body=body)


def _pairs(form: Fields, area: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a form's rows that have a key."""
    for key, value in zip(form.all(f"{area}_key"), form.all(f"{area}_value"), strict=False):
        if key.strip():
            yield key.strip(), value


def change_tags(visit: Visit) -> Response:
    """Replace the tags of an object."""
    bucket, name = object_of(visit.query)
    if not is_s3_bucket(visit.api, bucket):
        return visit.refusal(visit.text("object.no_tags"))
    _write_tags(visit, bucket, name, _pairs(visit.form, "tag"))
    return _to_object(visit, bucket, name, "tags_changed")


# --- metadata -----------------------------------------------------------------------------------------


def change_metadata(visit: Visit) -> Response:
    """Replace the metadata and headers of an object; others than those of the form stay."""
    bucket, name = object_of(visit.query)
    form = visit.form
    facts = Facts(visit.api.read("HEAD", bucket, name).headers)
    if form.text("stamp") != facts.stamp:
        raise StaleForm
    # A POST removes the tags.
    tags = _read_tags(visit, bucket, name) if is_s3_bucket(visit.api, bucket) else []
    headers: HeaderMap = dict(facts.kept)
    for field, header in EDITED_HEADERS.items():
        value = form.text(field).strip()
        if value and (header != "content-type" or value != facts.type):
            headers[header] = _header_value(value)
    if form.text("delete_at"):
        headers["x-delete-at"] = str(_parse_moment(form.text("delete_at")))
    for key, value in _pairs(form, "meta"):
        if ":" in key or " " in key:
            return visit.refusal(visit.text("object.bad_key", name=key))
        headers[f"{_META_PREFIX}{lower_name(_header_value(key))}"] = _header_value(value.strip())
    visit.api.read("POST", bucket, name, headers=headers)
    if tags:
        _write_tags(visit, bucket, name, tags)
    return _to_object(visit, bucket, name, "metadata_changed")


def _header_value(text: str) -> str:
    try:
        value = text.encode().decode("latin-1")
    except UnicodeEncodeError:
        raise BadForm("form.value_utf8")
    if has_control_characters(value):
        raise BadForm("form.control")
    return value


def _parse_moment(text: str) -> int:
    """Return the Unix time of a form's field, in UTC; raises ``BadForm``."""
    for form in _MOMENT_FORMS:
        try:
            return calendar.timegm(time.strptime(text, form))
        except (ValueError, OverflowError):
            continue
    raise BadForm("form.time")


# --- copies, versions, deletion -----------------------------------------------------------------------


def copy_object(visit: Visit) -> Response:
    """Copy or move an object within the account."""
    bucket, name = object_of(visit.query)
    version, form = visit.query.text("version"), visit.form
    to_bucket, to_name = bucket_of(form), form.text("to_name")
    moves = form.text("action") == "move" and not version
    is_same = (bucket, name) == (to_bucket, to_name)
    if not to_name or (is_same and (moves or not version)):
        return visit.refusal(visit.text("object.same_name"))
    if not form.text("overwrite") and visit.api.read("HEAD", to_bucket, to_name, also=(404,)).is_success:
        return visit.refusal(visit.text("object.target_exists"), 409)
    source = quote(f"/{bucket}/{name}")
    visit.api.read("PUT", to_bucket, to_name, query=version_query(version), headers={"x-copy-from": source})
    if moves:
        delete_object(visit.api, bucket, name, with_segments=True)
    return _to_object(visit, to_bucket, to_name, "object_moved" if moves else "object_copied")


def restore_version(visit: Visit) -> Response:
    """Make a version the current one."""
    bucket, name = object_of(visit.query)
    visit.api.read("PUT", bucket, name, query=version_query(_version_id(visit)))
    return _to_object(visit, bucket, name, "version_restored")


def delete_version(visit: Visit) -> Response:
    """Delete a version for good; of the current one the newest version that is left takes the place."""
    bucket, name = object_of(visit.query)
    version = _version_id(visit)
    if is_s3_bucket(visit.api, bucket):
        visit.api.s3("DELETE", bucket, name, query={"versionId": version})
    else:
        visit.api.read("DELETE", bucket, name, query=version_query(version))
    if _versions(visit, bucket, name):
        return _to_object(visit, bucket, name, "version_deleted")
    return visit.redirect("/browse", bucket=bucket, prefix=folder_of(name), done="version_deleted")


def _version_id(visit: Visit) -> str:
    version = visit.query.text("version")
    if not version:
        raise BadForm("form.no_version")
    return version


def delete_one(visit: Visit) -> Response:
    """Delete an object; in a versioned bucket its versions stay."""
    bucket, name = object_of(visit.query)
    delete_object(visit.api, bucket, name, with_segments=bool(visit.form.text("segments")))
    return visit.redirect("/browse", bucket=bucket, prefix=folder_of(name), done="object_deleted")


def _to_object(visit: Visit, bucket: str, name: str, done: str) -> Response:
    return visit.redirect("/object", bucket=bucket, name=name, done=done)


ROUTES = (
    Route("GET", "/object", show_object),
    Route("POST", "/object/metadata", change_metadata),
    Route("POST", "/object/tags", change_tags),
    Route("POST", "/object/copy", copy_object),
    Route("POST", "/object/restore", restore_version),
    Route("POST", "/object/delete", delete_one),
    Route("POST", "/object/delete-version", delete_version),
)

"""The objects of a bucket, folder by folder."""

from __future__ import annotations

import json
from typing import NamedTuple

from swift.base.documents import JsonObject
from swift.base.truth import is_true
from swift.console.core.api import ApiError
from swift.console.core.visit import Route, Visit
from swift.console.users.names import bucket_of
from swift.console.users.uploads import script_texts
from swift.http.response import Response

PAGE = 200
DELIMITER = "/"
#: Type of the versions that stand for deletions.
DELETE_MARKER_TYPE = "application/x-deleted;swift_versions_deleted=1"


class Entry(NamedTuple):
    """A row of the page: a folder, an object, or a version of one."""

    name: str
    #: The name without the prefix of the page.
    short_name: str
    is_folder: bool
    size: int = 0
    changed: str = ""
    type: str = ""
    version: str = ""
    is_latest: bool = False

    @property
    def is_deletion(self) -> bool:
        """True for a delete marker."""
        return self.type == DELETE_MARKER_TYPE


def show_objects(visit: Visit) -> Response:
    """Show a page of the folders and objects below a prefix."""
    query = visit.query
    bucket, prefix, marker = bucket_of(query), query.text("prefix"), query.text("marker")
    shows_versions = "versions" in query
    requested = {"format": "json", "delimiter": DELIMITER, "limit": str(PAGE + 1)}
    requested.update({"prefix": prefix, "marker": marker})
    if shows_versions:
        requested["versions"] = "true"
        if query.text("version_marker"):
            requested["version_marker"] = query.text("version_marker")
    try:
        found = visit.api.read("GET", bucket, query=requested, also=(204,))
    except ApiError as error:
        key = {403: "browse.not_allowed", 404: "browse.no_bucket"}.get(error.status)
        if key is None:
            raise
        return visit.refusal(visit.text(key), error.status)
    rows: list[JsonObject] = json.loads(found.read_body() or b"[]")
    entries = [_entry(row, prefix) for row in rows[:PAGE]]
    return visit.page(
        "browse.html",
        bucket=bucket,
        prefix=prefix,
        marker=marker,
        entries=entries,
        next=entries[-1] if len(rows) > PAGE else None,
        crumbs=_crumbs(prefix),
        is_versioned=is_true(found.headers.get("x-versions-enabled", "")),
        shows_versions=shows_versions,
        script_texts=script_texts(visit),
    )


def _entry(row: JsonObject, prefix: str) -> Entry:
    if "subdir" in row:
        name = str(row["subdir"])
        return Entry(name, name[len(prefix) : -1], is_folder=True)
    name = str(row["name"])
    return Entry(
        name,
        name[len(prefix) :],
        is_folder=False,
        size=int(row["bytes"]),
        changed=time_text(str(row["last_modified"])),
        type=str(row["content_type"]),
        version=str(row.get("version_id", "")),
        is_latest=row.get("is_latest") is True,
    )


def time_text(text: str) -> str:
    """Return the time of a row for people, in UTC."""
    return f"{text[:19].replace('T', ' ')} UTC"


def _crumbs(prefix: str) -> list[tuple[str, str]]:
    """Return name and prefix of each folder on the way to the page."""
    parts = prefix.split(DELIMITER)
    return [(part, DELIMITER.join(parts[: i + 1]) + DELIMITER) for i, part in enumerate(parts[:-1])]


ROUTES = (Route("GET", "/browse", show_objects),)

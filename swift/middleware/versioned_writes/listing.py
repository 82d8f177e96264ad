"""Listings of versions and of accounts with hidden containers (spec: middleware.md §9.2).

Pure: takes the rows of a container, of its hidden container and of an account, and returns rows. A link to
the current version is rendered as that version; hidden names never appear.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import quote

from swift.base.documents import JsonObject
from swift.base.entity import RESERVED
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.middleware.versioned_writes.archive import DELETE_MARKER_TYPE
from swift.middleware.versioned_writes.names import (
    ARCHIVED_NULL,
    HIDDEN_PREFIX,
    NULL_VERSION_ID,
    Version,
    visible_container,
    visible_url,
)

Row = JsonObject
_ARCHIVED_NULL_PARAMETER = f"{ARCHIVED_NULL}=true"
#: Sorts after all inverted times.
_AFTER_ALL_TIMES = ":"
#: Characters of inverted times: a delimiter with one of these would split a time.
_TIME_CHARS = frozenset(f"0123456789.{RESERVED}")


class BadParameter(ValueError):
    """An invalid listing parameter; the text is for the client."""


# --- containers ---------------------------------------------------------------------------------------


def resolve_version_links(rows: Iterable[Row]) -> None:
    """Replace links to current versions in a plain listing by the data of their targets."""
    for row in rows:
        url = visible_url(row.get("symlink_path", ""))
        if url is None:
            continue
        etag, size = row.pop("symlink_etag", None), row.pop("symlink_bytes", None)
        if etag is not None:
            # Other filters append parameters to the hash; keep them.
            row["hash"] = ";".join([etag, *row["hash"].split(";")[1:]])
        if size is not None:
            row["bytes"] = size
        row["symlink_path"] = url
        row["version_symlink"] = True


def hidden_listing_parameters(
    *, prefix: str, marker: str | None, version_marker: str | None, delimiter: str
) -> dict[str, str]:
    """Return the parameters for the hidden listing that match those of a listing of versions.

    ``marker`` and ``version_marker`` are None when the client sent none. Raises ``BadParameter``.
    """
    if _TIME_CHARS & set(delimiter):
        raise BadParameter("invalid delimiter param")
    if version_marker is not None and marker is None:
        raise BadParameter("version_marker param requires marker")
    parameters = {"prefix": RESERVED + prefix}
    if delimiter:
        parameters["delimiter"] = delimiter
    hidden_marker = _hidden_marker(marker or "", version_marker)
    if marker:
        parameters["marker"] = hidden_marker
    return parameters


def _hidden_marker(marker: str, version_marker: str | None) -> str:
    """Return the hidden name after which a page begins; raises ``BadParameter``."""
    if version_marker is None:
        return f"{RESERVED}{marker}{RESERVED}{_AFTER_ALL_TIMES}"
    if version_marker == NULL_VERSION_ID:
        return f"{RESERVED}{marker}{RESERVED}"
    try:
        return Version(marker, Timestamp(version_marker)).name
    except InvalidTimestamp:
        raise BadParameter("invalid version_marker param")


def merge_version_rows(
    visible: Sequence[Row], hidden: Sequence[Row], *, reverse: bool, limit: int
) -> list[Row]:
    """Return one page of versions, merged from a container and its hidden container.

    Objects of the container that are not links to versions are null versions, the first of their names.
    """
    merged: list[Row] = []
    current: dict[str, str] = {}
    for row in visible:
        if "subdir" in row:
            merged.append(row)
        elif "version_symlink" in row:
            current[row["name"]] = row["symlink_path"].rpartition("?version-id=")[2]
        else:
            current[row["name"]] = NULL_VERSION_ID
            merged.append({**row, "version_id": NULL_VERSION_ID, "is_latest": True})
    subdirs = {row["subdir"] for row in merged if "subdir" in row}
    versions = [
        row for row in map(_parse_hidden_row, hidden) if row is not None and row.get("subdir") not in subdirs
    ]
    _mark_latest(versions, current)
    return sorted([*merged, *versions], key=_sort_key, reverse=reverse)[:limit]


def _sort_key(row: Row) -> str:
    return str(row["subdir"] if "subdir" in row else row["name"])


def _parse_hidden_row(row: Row) -> Row | None:
    """Return a row of the hidden container as a row of a version listing; None for other rows."""
    if "subdir" in row:
        return {"subdir": row["subdir"].removeprefix(RESERVED)}
    version = Version.from_hidden_name(row["name"])
    if version is None:
        return None
    found = {**row, "name": version.obj, "is_latest": False, "version_id": version.id}
    etag, *parameters = row["hash"].split("; ")
    if _ARCHIVED_NULL_PARAMETER in parameters:
        parameters.remove(_ARCHIVED_NULL_PARAMETER)
        found |= {"hash": "; ".join([etag, *parameters]), ARCHIVED_NULL: True}
    return found


def _mark_latest(versions: Iterable[Row], current: dict[str, str]) -> None:
    """Mark the current version of each object; without an object, its newest delete marker."""
    deleted: dict[str, Row] = {}
    for row in versions:
        name = row.get("name")
        if name is None:
            continue
        if name in current:
            row["is_latest"] = row["version_id"] == current[name]
        elif row["content_type"] == DELETE_MARKER_TYPE:
            newest = deleted.setdefault(name, row)
            if row["version_id"] > newest["version_id"]:
                deleted[name] = row
    for row in deleted.values():
        row["is_latest"] = True


# --- accounts -----------------------------------------------------------------------------------------


def hidden_account_query(params: dict[str, str]) -> str:
    """Return the query that lists the hidden containers for the account listing of ``params`` (Latin-1)."""
    passed_names = ("delimiter", "limit", "reverse")
    query: dict[str, str] = {name: params[name] for name in passed_names if name in params}
    for name in ("prefix", "marker", "end_marker"):
        if params.get(name) or name == "prefix":
            query[name] = HIDDEN_PREFIX + params.get(name, "")
    query["format"] = "json"
    return "&".join(f"{name}={quote(value.encode('latin-1'), safe='')}" for name, value in query.items())


def merge_account_rows(
    visible: Sequence[Row], hidden: Iterable[Row], *, reverse: bool, limit: int
) -> list[Row]:
    """Return the containers of an account with the bytes of their versions added.

    Deleted containers that still have versions are listed too.
    """
    rows = list(visible)
    by_name = {_sort_key(row): row for row in rows}
    for row in hidden:
        name = visible_container(row.get("name", ""))
        if name is None:
            continue
        if name not in by_name:
            rows.append({**row, "name": name, "count": 0})
        elif "name" in by_name[name]:
            by_name[name]["bytes"] += row["bytes"]
    return sorted(rows, key=_sort_key, reverse=reverse)[:limit]

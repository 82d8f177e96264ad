"""Rows of listings, as clients are to see them (spec: middleware.md §9.2).

Pure: rows of a container, of its hidden container and of an account in, rows out. A link to the current
version of an object is shown as that version; the hidden names never are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import quote

from swift.base.documents import JsonObject
from swift.base.entity import RESERVED
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.middleware.versioned_writes.archive import MARKER_TYPE
from swift.middleware.versioned_writes.names import HIDDEN, NULL, Version, base_container, shown_url

Row = JsonObject
#: Greater than all inverted times.
_AFTER_TIMES = ":"
#: What inverted times consist of: delimiters with these would cut them.
_OF_TIMES = frozenset(f"0123456789.{RESERVED}")


class BadParameter(ValueError):
    """A parameter of a listing; the text is for the client."""


# --- containers ---------------------------------------------------------------------------------------


def shown_rows(rows: Iterable[Row]) -> None:
    """Show the links to current versions in a plain listing as what they lead to."""
    for row in rows:
        url = shown_url(row.get("symlink_path", ""))
        if url is None:
            continue
        etag, size = row.pop("symlink_etag", None), row.pop("symlink_bytes", None)
        if etag is not None:
            # Another filter may keep something of its own behind it.
            row["hash"] = ";".join([etag, *row["hash"].split(";")[1:]])
        if size is not None:
            row["bytes"] = size
        row["symlink_path"] = url
        row["version_symlink"] = True


def hidden_parameters(
    *, prefix: str, marker: str | None, version_marker: str | None, delimiter: str
) -> dict[str, str]:
    """Return the parameters of the hidden listing that belong to those of a listing of versions.

    ``marker`` and ``version_marker`` are None when the client gave none. Raises ``BadParameter``.
    """
    if _OF_TIMES & set(delimiter):
        raise BadParameter("invalid delimiter param")
    if version_marker is not None and marker is None:
        raise BadParameter("version_marker param requires marker")
    parameters = {"prefix": RESERVED + prefix}
    if delimiter:
        parameters["delimiter"] = delimiter
    after = _hidden_marker(marker or "", version_marker)
    if marker:
        parameters["marker"] = after
    return parameters


def _hidden_marker(marker: str, version_marker: str | None) -> str:
    """Return the hidden name after which a page begins; raises ``BadParameter``."""
    if version_marker is None:
        return f"{RESERVED}{marker}{RESERVED}{_AFTER_TIMES}"
    if version_marker == NULL:
        return f"{RESERVED}{marker}{RESERVED}"
    try:
        return Version(marker, Timestamp(version_marker)).name
    except InvalidTimestamp:
        raise BadParameter("invalid version_marker param")


def version_rows(own: Sequence[Row], hidden: Sequence[Row], *, reverse: bool, limit: int) -> list[Row]:
    """One page of versions: what is in the container, and what is in its hidden one.

    Objects of the container that are no links to versions are null versions, the first of their names.
    """
    shown: list[Row] = []
    current: dict[str, str] = {}
    for row in own:
        if "subdir" in row:
            shown.append(row)
        elif "version_symlink" in row:
            current[row["name"]] = row["symlink_path"].rpartition("?version-id=")[2]
        else:
            current[row["name"]] = NULL
            shown.append({**row, "version_id": NULL, "is_latest": True})
    subdirs = {row["subdir"] for row in shown if "subdir" in row}
    versions = [
        row for row in map(_of_hidden, hidden) if row is not None and row.get("subdir") not in subdirs
    ]
    _mark_latest(versions, current)
    return sorted([*shown, *versions], key=_place, reverse=reverse)[:limit]


def _place(row: Row) -> str:
    return str(row["subdir"] if "subdir" in row else row["name"])


def _of_hidden(row: Row) -> Row | None:
    """Return a row of the hidden container as one of versions; None for what is none."""
    if "subdir" in row:
        return {"subdir": row["subdir"].removeprefix(RESERVED)}
    version = Version.of_name(row["name"])
    if version is None:
        return None
    return {**row, "name": version.obj, "is_latest": False, "version_id": version.id}


def _mark_latest(versions: Iterable[Row], current: dict[str, str]) -> None:
    """Mark the version that each object is now: where there is none, the newest mark of its deletion."""
    deleted: dict[str, Row] = {}
    for row in versions:
        name = row.get("name")
        if name is None:
            continue
        if name in current:
            row["is_latest"] = row["version_id"] == current[name]
        elif row["content_type"] == MARKER_TYPE:
            newest = deleted.setdefault(name, row)
            if row["version_id"] > newest["version_id"]:
                deleted[name] = row
    for row in deleted.values():
        row["is_latest"] = True


# --- accounts -----------------------------------------------------------------------------------------


def hidden_account_query(params: dict[str, str]) -> str:
    """Return the query that lists the hidden containers of what ``params`` (Latin-1 views) list."""
    kept = ("delimiter", "limit", "reverse")
    asked: dict[str, str] = {name: params[name] for name in kept if name in params}
    for name in ("prefix", "marker", "end_marker"):
        if params.get(name) or name == "prefix":
            asked[name] = HIDDEN + params.get(name, "")
    asked["format"] = "json"
    return "&".join(f"{name}={quote(value.encode('latin-1'), safe='')}" for name, value in asked.items())


def account_rows(own: Sequence[Row], hidden: Iterable[Row], *, reverse: bool, limit: int) -> list[Row]:
    """Return the containers of an account, what their versions take counted.

    Versions of none are shown too.
    """
    rows = list(own)
    by_name = {_place(row): row for row in rows}
    for row in hidden:
        name = base_container(row.get("name", ""))
        if name is None:
            continue
        if name not in by_name:
            rows.append({**row, "name": name, "count": 0})
        elif "name" in by_name[name]:
            by_name[name]["bytes"] += row["bytes"]
    return sorted(rows, key=_place, reverse=reverse)[:limit]

"""Common prefixes of a listing that the rest of the pipeline cannot fold.

Versions lie under names that end with their times, so a delimiter with digits or dots would cut the times;
markers of uploads lie under names that end with the upload's id, and between parts. Such a listing is read
without a delimiter. Behind each common prefix it goes on with another request, so that its cost is that of
the answer and not of what the prefixes hold. Pure: the caller reads the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from swift.base.documents import JsonObject

#: The characters of the times in names of versions.
_OF_TIMES = frozenset("0123456789.")
#: Sorts behind all names that begin with what it follows.
AFTER_ALL = "\U0010ffff"
#: Rows of the first request behind a common prefix; each further one asks for twice as many.
_ROWS_MIN = 8


class Page(NamedTuple):
    """Rows of a listing, and True if there are more."""

    rows: list[JsonObject]
    is_truncated: bool


#: (number of rows, key marker, version marker) → a page.
ReadPage = Callable[[int, str, str], Page]


def cuts_times(delimiter: str) -> bool:
    """Return True if a delimiter could be inside of the time of a version."""
    return not _OF_TIMES.isdisjoint(delimiter)


def folded_page(
    read: ReadPage, *, prefix: str, delimiter: str, marker: str, version_marker: str, limit: int
) -> Page:
    """Return up to ``limit`` rows and common prefixes behind a marker, which may be a common prefix."""
    if delimiter and marker.startswith(prefix) and marker[len(prefix) :].endswith(delimiter):
        marker += AFTER_ALL
    rows: list[JsonObject] = []
    wanted = limit
    while len(rows) <= limit:
        page = read(wanted, marker, version_marker)
        for row in page.rows:
            name = str(row["name"])
            cut = name.find(delimiter, len(prefix)) if delimiter else -1
            if cut >= 0:
                common = name[: cut + len(delimiter)]
                rows.append({"subdir": common})
                marker, version_marker, wanted = f"{common}{AFTER_ALL}", "", _ROWS_MIN // 2
                break
            rows.append(row)
            marker, version_marker = name, str(row.get("version_id", "null"))
        else:
            if not page.is_truncated:
                break
        wanted = max(1, min(wanted * 2, limit + 1 - len(rows)))
    return Page(rows[:limit], len(rows) > limit)

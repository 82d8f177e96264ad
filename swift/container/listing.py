"""Container listings as JSON rows and JSON text (public-api.md §7.2).

The text is made directly from database rows, without dictionaries between. Escaping is done by the standard
library's encoder.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from io import BytesIO
from json.encoder import encode_basestring_ascii as quoted
from time import gmtime

from swift.base.memo import Memo
from swift.base.timestamp import decode_timestamps
from swift.container.rows import split_swift_bytes
from swift.db.listing import PageRow

#: Seconds that are remembered of a listing.
_REMEMBERED_MAX = 10_000
#: Rows whose JSON text is made at once.
_PORTION = 1000
_MINUTES = tuple(f"{hour:02d}:{minute:02d}:" for hour in range(24) for minute in range(60))
_SECONDS = tuple(f"{second:02d}." for second in range(60))


@lru_cache(maxsize=1024)
def shown_type(content_type: str) -> tuple[str, int | None]:
    """Return the content type of a listing: parameters as ``;name=value``, ``swift_bytes`` as the size."""
    if ";" not in content_type:
        return content_type, None
    plain, size = split_swift_bytes(content_type)
    kind, *parameters = _parts(plain)
    pairs = (parameter.partition("=") for parameter in parameters if parameter.strip())
    shown = kind + "".join(f";{name.strip()}={value.strip()}" for name, _equals, value in pairs)
    return shown, int(size) if size is not None and size.isascii() and size.isdigit() else None


def _parts(content_type: str) -> Iterable[str]:
    """Yield the pieces between semicolons that are not inside quotes."""
    piece, inside, escaped = "", False, False
    for char in content_type:
        if char == ";" and not inside:
            yield piece
            piece = ""
            continue
        if char == '"' and not escaped:
            inside = not inside
        escaped = char == "\\" and not escaped
        piece += char
    yield piece


@lru_cache(maxsize=1024)
def _json_type(content_type: str) -> tuple[str, int | None]:
    shown, size = shown_type(content_type)
    return quoted(shown), size


class _Clock:
    """ISO texts of row times; remembers the days and seconds of one listing."""

    def __init__(self) -> None:
        self._days: Memo[int, str] = Memo(_date, _REMEMBERED_MAX)
        #: By the ten digits of a second, up to the point.
        self.seconds: Memo[str, str] = Memo(self._text, _REMEMBERED_MAX)

    def _text(self, digits: str) -> str:
        day, second = divmod(int(digits), 86400)
        minute, second = divmod(second, 60)
        return f"{self._days[day]}{_MINUTES[minute]}{_SECONDS[second]}"

    def iso(self, created_at: str) -> str:
        """Return the ISO text of the newest time that ``created_at`` packs."""
        if len(created_at) == 16 and created_at[10] == ".":
            return f"{self.seconds[created_at[:10]]}{created_at[11:]}0"
        return decode_timestamps(created_at)[2].isoformat


def _date(day: int) -> str:
    t = gmtime(day * 86400)
    return f"{t.tm_year:04d}-{t.tm_mon:02d}-{t.tm_mday:02d}T"


def as_rows(page: Iterable[PageRow]) -> list[dict[str, object]]:
    """Return the JSON rows of a page."""
    clock = _Clock()
    rows: list[dict[str, object]] = []
    for name, created_at, size, content_type, etag, directory in page:
        if directory is not None:
            rows.append({"subdir": directory})
            continue
        shown, real_size = shown_type(content_type)
        rows.append(
            {
                "bytes": size if real_size is None else real_size,
                "hash": etag,
                "name": name,
                "content_type": shown,
                "last_modified": clock.iso(created_at),
            }
        )
    return rows


def as_json(page: Sequence[PageRow]) -> bytes:
    """Return the JSON text of a page, equal to encoding ``as_rows``."""
    clock = _Clock()
    text = BytesIO()
    text.write(b"[")
    # In portions, so that the texts of ten thousand rows are never in memory beside the rows and the answer.
    for start in range(0, len(page), _PORTION):
        text.write(b", " if start else b"")
        text.write(_json_of(page[start : start + _PORTION], clock))
    text.write(b"]")
    return text.getvalue()


def _json_of(page: Sequence[PageRow], clock: _Clock) -> bytes:
    parts: list[str] = []
    add, seconds = parts.append, clock.seconds
    for name, created_at, size, content_type, etag, directory in page:
        if directory is not None:
            add(f'{{"subdir": {quoted(directory)}}}')
            continue
        shown, real_size = _json_type(content_type)
        if len(created_at) == 16 and created_at[10] == ".":
            modified = f"{seconds[created_at[:10]]}{created_at[11:]}0"
        else:
            modified = clock.iso(created_at)
        add(
            f'{{"bytes": {size if real_size is None else real_size}, "hash": {quoted(etag)}, '
            f'"name": {quoted(name)}, "content_type": {shown}, "last_modified": "{modified}"}}'
        )
    return ", ".join(parts).encode("ascii")


def as_text(page: Iterable[PageRow]) -> bytes:
    """One name a line; of the columns only the name is needed."""
    lines = [f"{row[0] if row[-1] is None else row[-1]}\n" for row in page]
    return "".join(lines).encode("utf-8", "surrogateescape")

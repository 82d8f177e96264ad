"""Manifests of static large objects: upload format, stored format and ETag (middleware.md §5).

Pure: texts in, values out. A client's manifest is a list of ``SegmentReference`` (to another object) and
``InlineData`` (bytes in the manifest itself). A stored manifest is a list of ``Part`` with known sizes and
ETags.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import md5
from typing import Any

from swift.base.documents import JsonObject
from swift.base.entity import EntityPath
from swift.base.ranges import ByteRanges, Span

MIN_SEGMENT_BYTES = 1
#: The largest stored manifest: 10,000 parts of any names.
MANIFEST_BYTES_MAX = 64 << 20
SEGMENT_TOO_SMALL = f"too small; each segment must be at least {MIN_SEGMENT_BYTES} byte."
_PATH_ERROR = "path does not refer to an object. Path must be of the form /container/object."
_SEGMENT_KEYS = frozenset(("path", "etag", "size_bytes", "range"))
#: The largest valid size of an object.
_SIZE_MAX = 1 << 63


class BadManifest(ValueError):
    """An invalid manifest; the text is for the client. ``is_plain`` requests the type text/plain."""

    def __init__(self, text: str, *, is_plain: bool = False):
        super().__init__(text)
        self.text = text
        self.is_plain = is_plain


@dataclass(frozen=True, slots=True)
class SegmentReference:
    """A client's entry that names another object."""

    #: The path as the client wrote it, for reports.
    name: str
    container: str
    obj: str
    etag: str | None
    size: int | None
    ranges: ByteRanges | None


@dataclass(frozen=True, slots=True)
class InlineData:
    """A client's entry that contains its bytes."""

    text: str
    data: bytes


Entry = SegmentReference | InlineData


def parse_upload(text: bytes, own_path: EntityPath) -> list[Entry]:
    """Return the entries of a client's manifest for ``own_path``; raises ``BadManifest``."""
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        raise BadManifest("Manifest must be valid JSON.\n")
    if not isinstance(items, list):
        raise BadManifest("Manifest must be a list.\n")
    entries: list[Entry] = []
    errors = []
    for number, item in enumerate(items):
        try:
            entries.append(_parse_entry(item, own_path))
        except ValueError as error:
            errors.append(f"Index {number}: {error}")
    objects = sum(1 for item in items if not (isinstance(item, dict) and "data" in item))
    if items and not objects:
        errors.append("Inline data segments require at least one object-backed segment.")
    if errors:
        raise BadManifest("".join(f"{error}\n" for error in errors), is_plain=True)
    return entries


def _parse_entry(item: object, own_path: EntityPath) -> Entry:
    """Return one entry; raises ValueError that names the problem."""
    if not isinstance(item, dict):
        raise ValueError("not a JSON object")
    is_inline = "data" in item
    extra = set(item) - (frozenset(("data",)) if is_inline else _SEGMENT_KEYS)
    if extra:
        raise ValueError("extraneous keys " + ", ".join(f'"{key}"' for key in sorted(extra)))
    return _parse_inline(item["data"]) if is_inline else _parse_reference(item, own_path)


def _parse_inline(text: object) -> InlineData:
    if not isinstance(text, str):
        raise ValueError("data must be valid base64")
    try:
        data = base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise ValueError("data must be valid base64")
    if len(data) < MIN_SEGMENT_BYTES:
        raise ValueError(SEGMENT_TOO_SMALL)
    return InlineData(text, data)


def _parse_reference(item: dict[str, object], own_path: EntityPath) -> SegmentReference:
    name, etag = item.get("path"), item.get("etag")
    if not isinstance(name, str):
        raise ValueError('"path" must be a string')
    if etag is not None and not isinstance(etag, str):
        raise ValueError('"etag" must be a string or null (if provided)')
    container, _, obj = name.lstrip("/").partition("/")
    if not container or not obj or not _is_utf8(name):
        raise ValueError(_PATH_ERROR)
    size = _parse_size(item.get("size_bytes"))
    ranges = _parse_ranges(item.get("range"), size)
    if (container, obj) == own_path[1:]:
        raise ValueError("manifest must not include itself as a segment")
    return SegmentReference(name, container, obj, etag, size, ranges)


def _is_utf8(text: str) -> bool:
    """Return True if a text has no lone surrogate."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _parse_size(value: Any) -> int | None:
    if value is None:
        return None
    try:
        size = int(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError("invalid size_bytes")
    if abs(size) > _SIZE_MAX:
        raise ValueError("invalid size_bytes")
    return size


def _parse_ranges(value: object, size: int | None) -> ByteRanges | None:
    if value is None or value == "":
        return None
    ranges = ByteRanges.parse(f"bytes={value}") if isinstance(value, str) else None
    if ranges is None:
        raise ValueError("invalid range")
    if len(ranges) > 1:
        raise ValueError("multiple ranges (only one allowed)")
    if size is not None and not ranges.resolve(size):
        raise ValueError("unsatisfiable range")
    return ranges


# --- the stored form ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """One entry of a stored manifest: inline bytes, or a range of another object."""

    #: ``container/object`` of the segment; empty for bytes in the manifest.
    name: str
    #: The range of the segment's bytes that belongs to the large object.
    span: Span
    #: Bytes of the segment, its ETag and type.
    size: int = 0
    etag: str = ""
    content_type: str = ""
    last_modified: str = ""
    #: The segment is itself a manifest.
    is_manifest: bool = False
    text: str = ""
    data: bytes = b""

    @property
    def length(self) -> int:
        """Bytes that the part contributes to the large object."""
        return self.span.length

    @property
    def is_whole_segment(self) -> bool:
        """True if the part is the whole segment."""
        return self.span == (0, self.size)

    @property
    def etag_contribution(self) -> str:
        """Return the part's contribution to the manifest ETag."""
        if not self.name:
            return md5(self.data, usedforsecurity=False).hexdigest()
        return self.etag if self.is_whole_segment else f"{self.etag}:{self._range_text};"

    @property
    def _range_text(self) -> str:
        return f"{self.span.start}-{self.span.stop - 1}"

    def path(self, account: str) -> EntityPath:
        """Return the path of the segment in the manifest's account."""
        container, _, obj = self.name.lstrip("/").partition("/")
        return EntityPath(account, container, obj)

    def to_stored(self) -> dict[str, object]:
        """Return the part's entry in the stored manifest."""
        if not self.name:
            return {"data": self.text}
        entry: dict[str, object] = {
            "name": self.name,
            "bytes": self.size,
            "hash": self.etag,
            "content_type": self.content_type,
            "last_modified": self.last_modified,
        }
        if not self.is_whole_segment:
            entry["range"] = self._range_text
        if self.is_manifest:
            entry["sub_slo"] = True
        return entry

    def to_raw(self) -> dict[str, object]:
        """Return the part's entry in a manifest that can be uploaded again."""
        if not self.name:
            return {"data": self.text}
        entry: dict[str, object] = {"etag": self.etag, "path": self.name}
        if not self.is_whole_segment:
            entry["range"] = self._range_text
        return {**entry, "size_bytes": self.size}


def make_inline_part(entry: InlineData) -> Part:
    """Return the part of an inline entry."""
    return Part("", Span(0, len(entry.data)), text=entry.text, data=entry.data)


def render_stored(parts: Sequence[Part]) -> bytes:
    """Return the manifest in its stored format."""
    return json.dumps([part.to_stored() for part in parts]).encode()


def render_raw(parts: Sequence[Part]) -> bytes:
    """Return the manifest in the format that clients upload."""
    return json.dumps([part.to_raw() for part in parts]).encode()


def parse_stored(text: bytes) -> list[Part]:
    """Return the parts of a stored manifest; raises ``BadManifest`` for anything else."""
    try:
        return [_parse_stored_part(item) for item in json.loads(text)]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise BadManifest(f"not a stored manifest: {error}")


def _parse_stored_part(item: JsonObject) -> Part:
    if "data" in item:
        return make_inline_part(InlineData(item["data"], base64.b64decode(item["data"], validate=True)))
    size = int(item["bytes"])
    span = Span(0, size)
    if item.get("range"):
        resolved = (ByteRanges.parse(f"bytes={item['range']}") or ByteRanges()).resolve(size)
        if len(resolved) != 1:
            raise ValueError(f"range {item['range']!r}")
        span = resolved[0]
    if size < 0 or not item["name"].strip("/").partition("/")[2]:
        raise ValueError(f"segment {item['name']!r}")
    return Part(
        item["name"],
        span,
        size,
        str(item["hash"] or ""),
        item.get("content_type", ""),
        item.get("last_modified", ""),
        bool(item.get("sub_slo")),
    )


def total_bytes(parts: Sequence[Part]) -> int:
    """Return the size of the large object."""
    return sum(part.length for part in parts)


def manifest_etag(parts: Sequence[Part]) -> str:
    """Return the ETag of the large object, unquoted."""
    return md5("".join(part.etag_contribution for part in parts).encode(), usedforsecurity=False).hexdigest()


def overlapping_parts(parts: Sequence[Part], span: Span) -> Iterator[tuple[Part, Span]]:
    """Yield the parts that overlap ``span`` of the large object, each with its range of the segment."""
    position = 0
    for part in parts:
        if position >= span.stop:
            return
        first = max(span.start - position, 0)
        last = min(span.stop - position, part.length)
        position += part.length
        if first < last:
            yield part, Span(part.span.start + first, part.span.start + last)


def part_span(parts: Sequence[Part], number: int) -> Span | None:
    """Return the range of the large object that part ``number`` (from 1) covers; None for an unknown part."""
    if not 1 <= number <= len(parts):
        return None
    start = total_bytes(parts[: number - 1])
    return Span(start, start + parts[number - 1].length)

"""Resources of policies: the bucket and the key that a path belongs to."""

from __future__ import annotations

import re
from typing import NamedTuple

from swift.base.entity import RESERVED, EntityPath

_match_segments_container = re.compile(r"([^+/]+)(?:\+[A-Z][A-Z0-9_]{0,63})?\+segments").fullmatch
#: The name of an upload's marker or of its part; the id of an upload is the base64 of a UUID.
_match_part = re.compile(r"(.+)/[A-Za-z0-9_-]{48}(?:/[0-9]+)?", re.DOTALL).fullmatch


class SwiftResource(NamedTuple):
    """The bucket and the key that policies know a path by; empty ones for an account."""

    bucket: str
    key: str


def bucket_of_container(container: str) -> str:
    """Return the bucket that a segments container belongs to; for any other container its own name."""
    match = _match_segments_container(container)
    return container if match is None else match[1]


def resource_of(path: EntityPath) -> SwiftResource:
    """Return the resource of a path.

    A hidden container of versions or parts, and a segments container of S3, belong to the container in their
    names. A hidden object and a part of an upload belong to the object in their names.
    """
    container, obj = path.container or "", path.obj or ""
    if container.startswith(RESERVED):
        container = container.rpartition(RESERVED)[2]
    if obj.startswith(RESERVED):
        obj = obj.split(RESERVED)[1]
    if not container.endswith("+segments"):
        return SwiftResource(container, obj)
    bucket = bucket_of_container(container)
    part = _match_part(obj) if bucket != container else None
    return SwiftResource(bucket, obj if part is None else part[1])

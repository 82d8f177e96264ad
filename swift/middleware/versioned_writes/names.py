"""Names of what is hidden: containers of versions, the versions in them (spec: middleware.md §9.2).

The versions of ``c/o`` are the objects ``\\0o\\0<inverted time>`` of the container ``\\0versions\\0c``, so
that a plain listing gives the newest first. The id of a version is its time.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from swift.base.entity import RESERVED, Entity, EntityPath
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.gateway.info import ContainerInfo

HIDDEN = f"{RESERVED}versions{RESERVED}"
#: The id of the object that is in the container itself.
NULL = "null"


class Version(NamedTuple):
    """One version of an object."""

    obj: str
    time: Timestamp

    @property
    def id(self) -> str:
        """Version id in the API."""
        return self.time.internal

    @property
    def name(self) -> str:
        """Its name in the hidden container."""
        return f"{RESERVED}{self.obj}{RESERVED}{self.time.inverted().internal}"

    @classmethod
    def of_name(cls, name: str) -> Version | None:
        """Return the version that a hidden object is; None when it is none."""
        start, _, rest = name.partition(RESERVED)
        obj, mark, inverted = rest.rpartition(RESERVED)
        if start or not mark or not obj:
            return None
        try:
            return cls(obj, Timestamp(inverted).inverted())
        except InvalidTimestamp:
            return None


def hidden_container(container: str) -> str:
    """Return the name of the hidden container that holds the versions of a container's objects."""
    return HIDDEN + container


def base_container(hidden: str) -> str | None:
    """Return the container whose versions a hidden one keeps; None for other containers."""
    return hidden[len(HIDDEN) :] if hidden.startswith(HIDDEN) else None


def shown_path(path: EntityPath) -> tuple[EntityPath, str] | None:
    """Return the object and the id by which clients know a hidden object; None for other objects."""
    base = base_container(path.container or "")
    version = Version.of_name(path.obj or "")
    if base is None or version is None:
        return None
    return EntityPath(path.account, base, version.obj), version.id


def shown_url(raw_path: str) -> str | None:
    """Return the URL by which clients know a hidden object, of its raw path; None for other paths."""
    if "%00" not in raw_path:
        return None
    entity = Entity.parse(raw_path)
    shown = shown_path(entity.path)
    if shown is None:
        return None
    return f"{Entity(entity.version, shown[0]).raw_path}?version-id={shown[1]}"


def home_of(info: ContainerInfo) -> str | None:
    """Return the hidden container of a container's versions; None when it never had any."""
    stored = info.sysmeta.get("versions-container")
    return name_of_stored(stored) if stored else None


def stored_name(container: str) -> str:
    """Return a container's name as metadata keeps it."""
    return quote(container, safe="", errors="surrogateescape")


def name_of_stored(text: str) -> str:
    """Return the name in the metadata, of any writer."""
    return unquote_to_bytes(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")

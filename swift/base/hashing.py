"""MD5 of short texts, above all of paths: where accounts, containers, objects live (spec: ring.md §1)."""

from __future__ import annotations

try:
    # Python's own takes half as long as OpenSSL's for texts as short as names.
    from _md5 import md5 as short_md5
except ImportError:
    import hashlib
    from functools import partial

    short_md5 = partial(hashlib.md5, usedforsecurity=False)


class PathHasher:
    """MD5 of a path between a cluster-wide prefix and suffix.

    ``prefix`` and ``suffix`` are the Latin-1 bytes of ``[swift-hash]`` in swift.conf. Names are decoded
    text; undecodable bytes travel as surrogate escapes.
    """

    __slots__ = ("prefix", "suffix", "_head")

    def __init__(self, prefix: bytes = b"", suffix: bytes = b""):
        self.prefix = prefix
        self.suffix = suffix
        self._head = prefix + b"/"

    def _path(self, account: str, container: str | None, obj: str | None) -> bytes:
        path = account
        if container:
            path = f"{path}/{container}"
            if obj:
                path = f"{path}/{obj}"
        elif obj:
            raise ValueError("an object needs a container")
        return self._head + path.encode("utf-8", "surrogateescape") + self.suffix

    def digest(self, account: str, container: str | None = None, obj: str | None = None) -> bytes:
        """Return the 16 digest bytes; the ring takes the partition from the first four."""
        return short_md5(self._path(account, container, obj)).digest()

    def hexdigest(self, account: str, container: str | None = None, obj: str | None = None) -> str:
        """Return the 32 hex digits that name the hash directory; the last three are the suffix directory."""
        return short_md5(self._path(account, container, obj)).hexdigest()

    def __repr__(self) -> str:
        return "PathHasher(prefix and suffix hidden)"

"""The memcached text protocol and the peer's key placement, sans I/O (spec: proxy.md §15).

Apart from the client because it does no input or output.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from hashlib import md5

FLAG_PICKLE = 1
FLAG_JSON = 2
#: A relative expiry above this many seconds means a Unix time to memcached.
RELATIVE_MAX_S = 30 * 24 * 3600
POINTS_PER_SERVER = 50


def wire_key(key: str) -> str:
    """Return the 32 hex digits under which a key is stored."""
    return md5(key.encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()


def expiry(ttl_s: float, now_s: float) -> int:
    """Return the exptime field of a time to live; 0 never expires."""
    return int(now_s + ttl_s) if ttl_s > RELATIVE_MAX_S else int(ttl_s)


def set_command(hashed: str, value: object, exptime: int, *, raw: bool = False) -> bytes:
    """Return the ``set`` of a value, as ASCII JSON (flag 2) or, with ``raw``, as its text (flag 0)."""
    flags, data = (0, str(value).encode()) if raw else (FLAG_JSON, json.dumps(value).encode("ascii"))
    return b"set %s %d %d %d\r\n%s\r\n" % (hashed.encode(), flags, exptime, len(data), data)


def get_command(hashed: Sequence[str]) -> bytes:
    """Return the ``get`` of one or several keys."""
    return b"get " + " ".join(hashed).encode() + b"\r\n"


def decode_value(flags: int, data: bytes) -> object:
    """Return a stored value.

    None for one that must be read as a miss (pickles, broken or bottomless JSON).
    """
    if flags & FLAG_PICKLE:
        return None
    if flags & FLAG_JSON:
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            return None
    return data.decode("utf-8", "replace")


class ServerRing:
    """Maps keys to servers: points by MD5, walked in the peer's order."""

    def __init__(self, servers: Sequence[str], tries: int = 3):
        self.servers = sorted(servers)
        self._tries = min(tries, len(self.servers))
        self._points: dict[str, str] = {}
        for server in self.servers:
            for i in range(POINTS_PER_SERVER):
                self._points[wire_key(f"{server}-{i}")] = server
        self._sorted = sorted(self._points)

    def servers_for(self, hashed: str) -> Iterator[str]:
        """Yield distinct servers in the order to try; the point at the bisect position itself is skipped."""
        position = bisect_right(self._sorted, hashed)
        seen: list[str] = []
        for _ in range(len(self._sorted)):
            if len(seen) >= self._tries:
                return
            position = (position + 1) % len(self._sorted)
            server = self._points[self._sorted[position]]
            if server not in seen:
                seen.append(server)
                yield server

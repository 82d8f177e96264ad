"""A small in-memory cache that speaks memcached's text protocol, for machines without memcached.

Enough for one all-in-one cluster: get, set, add, delete, incr, decr with expiry and bounds on entries and
bytes.
"""

from __future__ import annotations

import re
import sys
import time
from collections import OrderedDict

from swift import green
from swift.platform import sockets

ENTRIES_MAX = 50_000
#: Keys and values together, with what Python needs for an entry.
BYTES_MAX = 64 << 20
_ENTRY_BYTES = 300
VALUE_BYTES_MAX = 1 << 20
LINE_BYTES_MAX = 4096
RELATIVE_MAX_S = 30 * 24 * 3600
_TIME = re.compile(rb"-?[0-9]{1,20}")


class CacheStore:
    """Keys with values, flags and expiry; the least recently used go when it is full."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._entries: OrderedDict[bytes, tuple[bytes, bytes, float]] = OrderedDict()
        self._bytes_max = bytes_max
        self.size_bytes = 0

    def get(self, key: bytes) -> tuple[bytes, bytes] | None:
        """Return (flags, value) of a live key."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        flags, value, expires = entry
        if expires and expires <= time.time():
            self.delete(key)
            return None
        self._entries.move_to_end(key)
        return flags, value

    def set(self, key: bytes, flags: bytes, value: bytes, exptime: int) -> None:
        """Store a value; ``exptime`` as the protocol defines it."""
        expires = 0.0
        if exptime:
            expires = float(exptime) if exptime > RELATIVE_MAX_S else time.time() + exptime
        self._put(key, (flags, value, expires))
        while self.size_bytes > self._bytes_max or len(self._entries) > ENTRIES_MAX:
            self.delete(next(iter(self._entries)))

    def _put(self, key: bytes, entry: tuple[bytes, bytes, float]) -> None:
        self.delete(key)
        self._entries[key] = entry
        self.size_bytes += _entry_size(key, entry)

    def change(self, key: bytes, delta: int) -> bytes | None:
        """Add to a number, never below zero; None when it is missing or no number."""
        entry = self._entries.get(key)
        if self.get(key) is None or entry is None or not entry[1].isdigit():
            return None
        value = str(max(0, int(entry[1]) + delta)).encode()
        self._put(key, (entry[0], value, entry[2]))
        return value

    def delete(self, key: bytes) -> bool:
        """Delete a key; return True if it existed."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.size_bytes -= _entry_size(key, entry)
        return entry is not None


def _entry_size(key: bytes, entry: tuple[bytes, bytes, float]) -> int:
    return _ENTRY_BYTES + len(key) + len(entry[0]) + len(entry[1])


class CacheSession:
    """One client connection: bytes in, bytes out."""

    def __init__(self, store: CacheStore):
        self._store = store
        self._buffer = b""
        #: The client ended the session.
        self.is_ended = False

    def feed(self, data: bytes) -> bytes:
        """Return the responses to all complete commands in the data so far; raises ValueError to close."""
        self._buffer += data
        out = []
        while not self.is_ended and (answer := self._process_command()) is not None:
            out.append(answer)
        if len(self._buffer) > VALUE_BYTES_MAX + LINE_BYTES_MAX:
            raise ValueError("command too long")
        return b"".join(out)

    def _process_command(self) -> bytes | None:
        end = self._buffer.find(b"\r\n")
        if end < 0:
            return None
        words = self._buffer[:end].split()
        rest = self._buffer[end + 2 :]
        verb = words[0] if words else b""
        if verb in (b"set", b"add"):
            if len(words) < 5 or not words[4].isdigit() or not _TIME.fullmatch(words[3]):
                raise ValueError("malformed storage command")
            size = int(words[4])
            if size > VALUE_BYTES_MAX:
                raise ValueError("value too large")
            if len(rest) < size + 2:
                return None
            self._buffer = rest[size + 2 :]
            return self._set(verb, words, rest[:size])
        self._buffer = rest
        return self._process_other(verb, words[1:])

    def _set(self, verb: bytes, words: list[bytes], value: bytes) -> bytes:
        if verb == b"add" and self._store.get(words[1]) is not None:
            return b"NOT_STORED\r\n"
        self._store.set(words[1], words[2], value, int(words[3]))
        return b"STORED\r\n"

    def _process_other(self, verb: bytes, args: list[bytes]) -> bytes:
        if verb == b"get":
            found = ((key, self._store.get(key)) for key in args)
            lines = [
                b"VALUE %s %s %d\r\n%s\r\n" % (key, entry[0], len(entry[1]), entry[1])
                for key, entry in found
                if entry is not None
            ]
            return b"".join(lines) + b"END\r\n"
        if verb in (b"incr", b"decr") and len(args) >= 2 and args[1].isdigit():
            value = self._store.change(args[0], int(args[1]) * (1 if verb == b"incr" else -1))
            return b"NOT_FOUND\r\n" if value is None else value + b"\r\n"
        if verb == b"delete" and args:
            return b"DELETED\r\n" if self._store.delete(args[0]) else b"NOT_FOUND\r\n"
        if verb == b"quit":
            self.is_ended = True
            return b""
        if verb == b"version":
            return b"VERSION swift-aio\r\n"
        return b"ERROR\r\n"


def _serve_client(sock, store: CacheStore) -> None:  # type: ignore[no-untyped-def]
    session = CacheSession(store)
    sock.setblocking(False)
    try:
        while True:
            try:
                data = sock.recv(65536)
            except BlockingIOError:
                green.wait_readable(sock.fileno())
                continue
            if not data:
                return
            rest = memoryview(session.feed(data))
            while rest:
                try:
                    rest = rest[sock.send(rest) :]
                except BlockingIOError:
                    green.wait_writable(sock.fileno())
            if session.is_ended:
                return
    except (OSError, ValueError):
        # A client that went away or talks something else: its connection ends.
        return
    finally:
        sock.close()


def main(ip: str, port: int) -> None:
    """Serve until the process is ended."""
    store = CacheStore()
    listener = sockets.listen(ip, port, 1024)
    while True:
        try:
            sock, _peer = listener.accept()
        except BlockingIOError:
            green.wait_readable(listener.fileno())
            continue
        green.spawn_detached(_serve_client, sock, store)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

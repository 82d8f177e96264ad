"""Recon files: what daemons last did, as one line of JSON that ``/recon`` and the operator's tools read.

A file is shared by all daemons of a server type, and with the peer's; each merges its own keys under a lock
(spec: object-server.md §16). A recon file is news, not data: it is replaced atomically but never synced,
and a daemon goes on when it cannot be written.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping

from swift.base.documents import JsonObject
from swift.base.errors import LockTimeout
from swift.platform.disk import Disk
from swift.platform.locks import lock_descriptor
from swift.platform.privileges import inherit_owner
from swift.platform.regularfiles import open_or_replace, read_regular
from swift.telemetry.log import Log

LOCK_TIMEOUT_S = 2.0

Facts = Mapping[str, object]


def merge(have: Facts, new: Facts) -> dict[str, object]:
    """Return ``have`` updated by ``new``: ``{}`` deletes a key, dictionaries are merged one level deep."""
    merged = dict(have)
    for key, value in new.items():
        if not isinstance(value, Mapping):
            merged[key] = value
        elif not value:
            merged.pop(key, None)
        else:
            merged[key] = _merge_inner(merged.get(key), value)
    return merged


def _merge_inner(have: object, new: Facts) -> dict[str, object]:
    inner = dict(have) if isinstance(have, Mapping) else {}
    for key, value in new.items():
        if isinstance(value, Mapping) and not value:
            inner.pop(key, None)
        else:
            inner[key] = value
    return inner


def parse(text: str) -> JsonObject:
    """Return the content of a recon file; whatever is not a JSON object counts as nothing."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


class ReconFile:
    """``<recon_cache_path>/<server type>.recon``."""

    def __init__(self, directory: str, server_type: str, log: Log, *, disk: Disk | None = None):
        self.directory = directory
        self.path = os.path.join(directory, f"{server_type}.recon")
        self._log = log
        self._disk = disk or Disk()

    def read(self) -> JsonObject:
        """Return the content of the file; empty when there is none."""
        try:
            return parse(read_regular(self._disk, self.path).decode())
        except (OSError, UnicodeDecodeError):
            return {}

    def dump(self, new: Facts) -> None:
        """Merge ``new`` into the file; a failure is logged and otherwise ignored."""
        self.update(lambda _have: new)

    def update(self, change: Callable[[JsonObject], Facts]) -> None:
        """Merge what ``change`` makes of the file's content into it; a failure is logged and ignored."""
        try:
            fd = self._locked()
            try:
                have = self.read()
                text = json.dumps(merge(have, change(have)), sort_keys=True)
                replace_text(self.path, text + "\n")
            finally:
                self._disk.close(fd)
        except (OSError, LockTimeout) as error:
            self._log.warning(f"cannot write recon file {self.path}: {error}")

    def _locked(self) -> int:
        """Return a descriptor of the current file that holds its lock."""
        disk = self._disk
        while True:
            fd = open_or_replace(disk, self.path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                lock_descriptor(disk, fd, self.path, LOCK_TIMEOUT_S)
                if os.path.samestat(disk.fstat(fd), disk.stat(self.path)):
                    return fd
            except FileNotFoundError:
                pass
            except BaseException:
                disk.close(fd)
                raise
            # The former holder replaced the file; what was locked is the old one.
            disk.close(fd)

    def __repr__(self) -> str:
        return f"<ReconFile {self.path}>"


def replace_text(path: str, text: str) -> None:
    """Give ``path`` a whole new content in one step, unsynced; raises OSError."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        # A link of this name, made by the owner of the directory, is not followed.
        with open(temporary, "x", encoding="utf-8") as file:
            file.write(text)
        inherit_owner(temporary)
        os.replace(temporary, path)
    except OSError:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise

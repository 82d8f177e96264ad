"""Identifies the cluster of a device by a fingerprint of the hash path settings on it.

All places on a device follow from the prefix and suffix in swift.conf. With others, everything would look
lost or misplaced, and what is written would be lost to the right ones. Therefore each device carries the
file ``.hash-path``: a salted scrypt digest, from which the settings cannot be guessed at any useful speed.
A device without one, such as the peer's, gets it, unless the objects and databases on it contradict the
settings. The peer ignores the file.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice

from swift.base.documents import JsonObject
from swift.base.errors import ConfigError, DeviceUnavailable, SwiftError
from swift.base.hashing import PathHasher
from swift.db.connection import connect
from swift.platform.devices import Devices
from swift.platform.disk import Disk
from swift.platform.durable import replace_file
from swift.platform.heap import return_free_memory
from swift.platform.privileges import inherit_owner
from swift.platform.regularfiles import (
    IrregularFile,
    irregular_file_at,
    move_irregular_file_aside,
    read_regular,
)
from swift.store.metadata import read_metadata

FINGERPRINT_FILE = ".hash-path"
#: Of scrypt: 16 MiB of memory and some 40 ms for each guess.
_SCRYPT_COST = {"n": 1 << 14, "r": 8, "p": 1}
_DIGEST_BYTES = 32
#: A device without fingerprint is judged by so many things at most, and by so many at least.
SAMPLED_MAX = 20
CONTRADICTIONS_MIN = 3
#: Names of each directory that are gone into.
_WIDTH = 3
_HASH_DIGITS = 32
_NAMES = (
    "SELECT account, container FROM container_info",
    "SELECT account, container FROM container_stat",
    "SELECT account FROM account_stat",
)


class DeviceOfAnotherCluster(SwiftError):
    """A device belongs to a cluster with other hash path settings."""


@lru_cache(64)
def _digest(prefix: bytes, suffix: bytes, salt: str) -> str:
    text = b"%d:%b:%d:%b" % (len(prefix), prefix, len(suffix), suffix)
    digest = hashlib.scrypt(text, salt=salt.encode(), dklen=_DIGEST_BYTES, **_SCRYPT_COST).hex()
    # Otherwise each server and daemon keeps these 16 MiB as long as it runs.
    return_free_memory()
    return digest


class DeviceIdentity:
    """Checks devices for one process; ``warn`` is called once for each that is refused."""

    def __init__(
        self,
        hasher: PathHasher,
        *,
        disk: Disk | None = None,
        warn: Callable[[str], None] = lambda _text: None,
    ):
        self._hasher = hasher
        self._disk = disk or Disk()
        self._warn = warn
        #: New devices of one node share it, so that a start computes one digest.
        self._salt = ""
        self._refused: set[str] = set()

    def check_new_device(self, device: str, path: str) -> None:
        """Refuse a device that is used for the first time; raises ``DeviceUnavailable``."""
        try:
            self.check(path)
        except DeviceOfAnotherCluster as error:
            if device not in self._refused:
                self._refused.add(device)
                self._warn(f"ERROR {error}")
            raise DeviceUnavailable(device) from error

    def check_all(self, devices: Devices) -> None:
        """Check the devices that are there; raises ``ConfigError`` when some are refused and none fits."""
        names = devices.names()
        usable = [name for name in names if devices.is_usable(name)]
        refused = [name for name in names if name in self._refused]
        if refused and not usable:
            raise ConfigError(str(_wrong_cluster_error(f"{devices.root}/{refused[0]}")))

    def check(self, path: str) -> None:
        """Compare a device with the settings, or give it a fingerprint; raises ``DeviceOfAnotherCluster``.

        A device that cannot be read or written is left to those who use it.
        """
        try:
            salt, digest = _parse_fingerprint(read_regular(self._disk, f"{path}/{FINGERPRINT_FILE}"))
        except (FileNotFoundError, IrregularFile, ValueError, KeyError, TypeError, RecursionError):
            # None, or a damaged one, which is as good as none.
            self._write_fingerprint(path)
            return
        except OSError:
            return
        self._salt = self._salt or salt
        if not hmac.compare_digest(digest, self._fingerprint_digest(salt)):
            raise _wrong_cluster_error(path)

    def _fingerprint_digest(self, salt: str) -> str:
        return _digest(self._hasher.prefix, self._hasher.suffix, salt)

    def _write_fingerprint(self, path: str) -> None:
        """Write the fingerprint, if what the device holds allows it."""
        try:
            verdicts = list(islice(self._sampled_placements(path), SAMPLED_MAX))
            if not any(verdicts) and len(verdicts) >= CONTRADICTIONS_MIN:
                raise _wrong_cluster_error(path)
            if verdicts and not any(verdicts):
                # Too little to judge by, and too much to ignore.
                return
            self._salt = self._salt or secrets.token_hex(16)
            text = json.dumps(
                {"version": 1, "salt": self._salt, "digest": self._fingerprint_digest(self._salt)}
            )
            file = f"{path}/{FINGERPRINT_FILE}"
            if irregular_file_at(self._disk, file) is not None:
                move_irregular_file_aside(self._disk, file)
            replace_file(self._disk, file, text.encode(), mode=0o644)
            inherit_owner(file)
        except OSError:
            # A read-only device, or one of another user: there will be another start.
            return

    def _sampled_placements(self, path: str) -> Iterator[bool]:
        """Return for some objects and databases of a device whether they are where their names belong."""
        for kind in self._sample_entries(path, lambda name: name == "objects" or name.startswith("objects-")):
            for directory in self._hash_directories(f"{path}/{kind}"):
                names = self._object_names(directory)
                if names is not None:
                    yield self._hasher.hexdigest(*names) == os.path.basename(directory)
        for kind in ("containers", "accounts"):
            for directory in self._hash_directories(f"{path}/{kind}"):
                database = _database_names(directory)
                if database is not None:
                    yield self._hasher.hexdigest(*database) == os.path.basename(directory)

    def _hash_directories(self, path: str) -> Iterator[str]:
        for partition in self._sample_entries(path, str.isdigit):
            for suffix in self._sample_entries(f"{path}/{partition}", lambda name: len(name) == 3):
                for name in self._sample_entries(
                    f"{path}/{partition}/{suffix}", lambda n: len(n) == _HASH_DIGITS
                ):
                    yield f"{path}/{partition}/{suffix}/{name}"

    def _sample_entries(self, path: str, is_wanted: Callable[[str], bool]) -> list[str]:
        try:
            return list(islice(filter(is_wanted, self._disk.listdir(path)), _WIDTH))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _object_names(self, directory: str) -> tuple[str, ...] | None:
        for file in self._sample_entries(directory, lambda name: name.endswith((".data", ".ts", ".meta"))):
            try:
                name = read_metadata(self._disk, f"{directory}/{file}").get("name", "")
            except (SwiftError, OSError):
                continue
            parts = name.split("/", 3)
            if len(parts) == 4 and not parts[0]:
                return tuple(parts[1:])
        return None

    def __repr__(self) -> str:
        return f"DeviceIdentity({self._hasher!r})"


def _parse_fingerprint(text: bytes) -> tuple[str, str]:
    """Return salt and digest; raises ``ValueError``, ``KeyError`` and others for what is no fingerprint."""
    found: JsonObject = json.loads(text)
    salt, digest = found["salt"], found["digest"]
    if (
        not isinstance(salt, str)
        or not isinstance(digest, str)
        or len(bytes.fromhex(digest)) != _DIGEST_BYTES
    ):
        raise ValueError("no fingerprint")
    return salt, digest


def _database_names(directory: str) -> tuple[str, ...] | None:
    try:
        connection = connect(f"{directory}/{os.path.basename(directory)}.db", wait_s=0.0)
    except SwiftError:
        return None
    try:
        for sql in _NAMES:
            try:
                row = connection.execute(sql).fetchone()
            except sqlite3.Error:
                continue
            if row is not None and all(isinstance(name, str) and name for name in row):
                return tuple(row)
        return None
    finally:
        connection.close()


def _wrong_cluster_error(path: str) -> DeviceOfAnotherCluster:
    return DeviceOfAnotherCluster(
        f"{path} belongs to a cluster with another hash path prefix or suffix: correct [swift-hash] in "
        f"swift.conf or remove the device (its fingerprint is {path}/{FINGERPRINT_FILE})"
    )

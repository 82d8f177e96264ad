"""The state directory beside an inventory: the cluster's secrets, its builders and its rings.

Only its owner may read it. Without it a cluster cannot be changed any more, so operators keep a copy.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from swift.base.errors import ConfigError
from swift.operations.deploy.inventory import Inventory
from swift.operations.deploy.rings import RingUpdate
from swift.platform.disk import Disk
from swift.platform.durable import replace_file
from swift.platform.locks import file_lock
from swift.ring.builder import RingBuilder

_SECRETS = "secrets.json"
_BACKUPS = "backups"
_LOCK = ".lock"
_LOCK_TIMEOUT_S = 5.0
_DIRECTORY_MODE = 0o700
_FILE_MODE = 0o600
_BYTES = 16


@dataclass(frozen=True)
class Secrets:
    """The hash path values and the keys of users; never printed."""

    prefix: str = field(repr=False)
    suffix: str = field(repr=False)
    #: account:user → key.
    keys: Mapping[str, str] = field(repr=False)


class State:
    """The state directory of a cluster."""

    def __init__(self, path: str):
        self.path = path

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the directory's lock: one ``apply`` runs at a time. Raises ``LockTimeout`` and OSError."""
        self._make_directory()
        with file_lock(Disk(), self._file(_LOCK), _LOCK_TIMEOUT_S):
            yield

    def _file(self, name: str) -> str:
        return os.path.join(self.path, name)

    def _make_directory(self) -> None:
        os.makedirs(self.path, mode=_DIRECTORY_MODE, exist_ok=True)
        os.chmod(self.path, _DIRECTORY_MODE)

    # --- secrets ----------------------------------------------------------------------------------

    def load_secrets(self) -> Secrets | None:
        """Return the secrets; None if there are none yet. Raises ``ConfigError`` and OSError."""
        path = self._file(_SECRETS)
        try:
            with open(path, encoding="utf-8") as file:
                values = json.load(file)
            return Secrets(
                str(values["hash_path_prefix"]), str(values["hash_path_suffix"]), dict(values["keys"])
            )
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            # The error's text could show a part of the file.
            raise ConfigError(f"{path} is damaged; restore it from a copy") from None

    def save_secrets(self, secrets_: Secrets) -> None:
        """Write the secrets, readable by the owner alone."""
        self._make_directory()
        values = {
            "hash_path_prefix": secrets_.prefix,
            "hash_path_suffix": secrets_.suffix,
            "keys": dict(secrets_.keys),
        }
        data = json.dumps(values, indent=2).encode() + b"\n"
        replace_file(Disk(), self._file(_SECRETS), data, mode=_FILE_MODE)

    # --- rings ------------------------------------------------------------------------------------

    def load_builder(self, name: str) -> RingBuilder | None:
        """Return the builder of a ring; None if there is none. Raises ``BuilderFileError`` and OSError."""
        try:
            return RingBuilder.load(self._file(f"{name}.builder"))
        except FileNotFoundError:
            return None

    def save_rings(self, rings: Iterable[RingUpdate]) -> None:
        """Write changed builders with their rings; former builders go to ``backups``."""
        for ring in rings:
            if not ring.changes:
                continue
            self._make_directory()
            path = self._file(f"{ring.name}.builder")
            if os.path.exists(path):
                os.makedirs(self._file(_BACKUPS), mode=_DIRECTORY_MODE, exist_ok=True)
                shutil.copyfile(path, self._file(f"{_BACKUPS}/{int(time.time())}.{ring.name}.builder"))
            replace_file(Disk(), self._file(ring.file_name), ring.content, mode=_FILE_MODE)
            ring.builder.save(path)


def complete_secrets(known: Secrets | None, inventory: Inventory) -> Secrets:
    """Return secrets that have a key for each user of the inventory; existing ones stay."""
    if known is None:
        known = Secrets(secrets.token_hex(_BYTES), secrets.token_hex(_BYTES), {})
    new = {
        name: secrets.token_hex(_BYTES) for name, _groups in inventory.proxy.users if name not in known.keys
    }
    return Secrets(known.prefix, known.suffix, {**known.keys, **new})

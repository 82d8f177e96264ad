"""The state directory beside an inventory: the cluster's secrets, its builders and its rings.

Only its owner may read it. Without it a cluster cannot be changed any more, so operators keep a copy.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from swift.base.digits import is_digits
from swift.base.errors import ConfigError
from swift.cluster.serverauth import make_secret
from swift.identity.clusterkeys import new_key_line
from swift.operations.deploy.inventory import AUTH_OFF, SWIFTAUTH, Inventory, Overrides
from swift.operations.deploy.rings import RingUpdate
from swift.platform.disk import Disk
from swift.platform.durable import replace_file
from swift.platform.locks import file_lock
from swift.ring.builder import RingBuilder
from swift.ring.errors import LayoutError
from swift.ring.layoutfiles import PUBLIC_KEYS
from swift.ring.manifest import parse_trusted_keys

_SECRETS = "secrets.json"
_BACKUPS = "backups"
_LOCK = ".lock"
_LOCK_TIMEOUT_S = 5.0
_DIRECTORY_MODE = 0o700
_FILE_MODE = 0o600
_BYTES = 16
#: Names of options whose values are secret, and of those that only tell about secrets.
_SECRET = re.compile(r"passw|passphrase|secret|token$|(^|[_-]|api|access|shared)keys?([_-]|$)", re.IGNORECASE)
_NO_SECRET = re.compile(
    r"_(path|file|id|ids|dir|name|duration|time|life|seconds)$|^key_id_|^transit_key$", re.IGNORECASE
)
#: A user and a password in a URL.
_CREDENTIALS = re.compile(r"://[^/@\s]*:[^/@\s]+@")


@dataclass(frozen=True)
class Secrets:
    """The hash path values and the keys of users; never printed."""

    prefix: str = field(repr=False)
    suffix: str = field(repr=False)
    #: account:user → key.
    keys: Mapping[str, str] = field(repr=False)
    #: Options of configuration files that are secret.
    options: Overrides = field(repr=False, default_factory=dict)
    #: The lines of swiftauth.key; empty until a cluster needs them.
    swiftauth: str = field(repr=False, default="")
    #: The lines of server.secret, the one that signs first; empty until servers know each other.
    servers: str = field(repr=False, default="")
    #: The content of layout.pub, with which hosts take their rings from the layout; empty without one.
    layout: str = ""


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
                str(values["hash_path_prefix"]),
                str(values["hash_path_suffix"]),
                dict(values["keys"]),
                _overrides(values.get("options", {})),
                str(values.get("swiftauth", "")),
                str(values.get("servers", "")),
                self._load_layout(),
            )
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError):
            # The error's text could show a part of the file.
            raise ConfigError(f"{path} is damaged; restore it from a copy") from None

    def _load_layout(self) -> str:
        path = self._file(PUBLIC_KEYS)
        try:
            with open(path, encoding="ascii") as file:
                text = file.read()
            parse_trusted_keys(text)
            return text
        except FileNotFoundError:
            return ""
        except (LayoutError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: {error}")

    def save_secrets(self, secrets_: Secrets) -> None:
        """Write the secrets, readable by the owner alone."""
        self._make_directory()
        values = {
            "hash_path_prefix": secrets_.prefix,
            "hash_path_suffix": secrets_.suffix,
            "keys": dict(secrets_.keys),
            "options": secrets_.options,
            "swiftauth": secrets_.swiftauth,
            "servers": secrets_.servers,
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
    """Return secrets that have all keys that the inventory needs; existing ones stay."""
    if known is None:
        known = Secrets(secrets.token_hex(_BYTES), secrets.token_hex(_BYTES), {})
    new = {
        name: secrets.token_hex(_BYTES) for name, _groups in inventory.proxy.users if name not in known.keys
    }
    swiftauth = known.swiftauth
    if inventory.proxy.auth == SWIFTAUTH and not swiftauth:
        swiftauth = new_key_line("1")
    servers = known.servers
    if inventory.cluster.server_auth != AUTH_OFF and not servers:
        servers = f"1 {make_secret()}\n"
    return replace(known, keys={**known.keys, **new}, swiftauth=swiftauth, servers=servers)


def next_rotation(servers: str) -> str:
    """Return the lines of server.secret after the next step of a rotation; their ids tell which one it is.

    A new secret is added, then it signs, then the former one is dropped.
    """
    first, *others = servers.splitlines(keepends=True)
    if not others:
        return f"{first}{_number(first) + 1} {make_secret()}\n"
    newest = max((first, *others), key=_number)
    return newest if newest == first else "".join((newest, first))


def is_rotating(servers: str) -> bool:
    """Return True between two steps of a rotation."""
    return servers.count("\n") > 1


def _number(line: str) -> int:
    """Return the number that is the id of a secret; 0 for another id, of an adopted cluster."""
    name = line.split(" ")[0]
    return int(name) if is_digits(name) else 0


def _overrides(values: Mapping[str, Mapping[str, Mapping[str, str]]]) -> Overrides:
    """Return a copy of options by file and section, as texts."""
    return {
        file: {
            section: {name: str(value) for name, value in options.items()}
            for section, options in sections.items()
        }
        for file, sections in values.items()
    }


def is_user(section: str, option: str) -> bool:
    """Return True if an option is a user of tempauth."""
    return section.startswith("filter:") and option.startswith(("user_", "user64_"))


def is_secret(section: str, option: str, value: str) -> bool:
    """Return True if a value is for those alone who may read the file."""
    if option.startswith("swift_hash_path_") or is_user(section, option) or _CREDENTIALS.search(value):
        return True
    return bool(_SECRET.search(option)) and not _NO_SECRET.search(option)

"""keymaster: the keys of containers and objects, made from root secrets (spec: middleware.md §17.1).

A key is HMAC-SHA256 of a path under a root secret. The id that is stored with what a key encrypted names the
path and the secret, so that secrets can be added and objects of older ones still be read.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import ClassVar

from swift.base.entity import EntityPath
from swift.base.errors import ConfigError
from swift.compose import PROCESS_KEY
from swift.config.files import read_section
from swift.config.kinds import integer
from swift.config.schema import PLUMBING_KEYS, Settings, option
from swift.http import environkeys
from swift.http.cryptokeys import FetchKeys, KeyId, Keys, NoKeys
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.filter import App, Conf, Filter, factory_of, parse_options

SECRET_BYTES_MIN = 32
_SECRET = "encryption_root_secret"
_VERSIONS = ("1", "2", "3")


@dataclass(frozen=True)
class KeymasterSettings(Settings):
    """``[filter:keymaster]`` without its secrets."""

    option_patterns: ClassVar[tuple[str, ...]] = ("encryption_root_secret_*",)

    encryption_root_secret: str = option("", "The root secret without an id: base64 of 32 bytes or more.")
    active_root_secret_id: str = option("", "The secret that new objects are encrypted with.")
    keymaster_config_path: str = option("", "A file whose section [keymaster] has these options instead.")
    meta_version_to_write: int = option(
        2, "The form of key ids: 3 needs peers that know it, 1 and 2 are for older ones.", kind=integer(1, 3)
    )


@dataclass(frozen=True, slots=True)
class RootSecrets:
    """Secrets by id; None is the id of the one without."""

    secrets: Mapping[str | None, bytes] = field(repr=False)
    active: str | None
    version: str

    def keys(self, path: EntityPath, key_id: KeyId | None) -> Keys:
        """The keys of a path, or of what has an id; raises ``NoKeys``."""
        if key_id is None:
            named, secret_id, version = path, self.active, self.version
        else:
            version = key_id.get("v", "")
            named, secret_id = _path_of(path, key_id), key_id.get("secret_id")
        secret = self.secrets.get(secret_id)
        if secret is None or version not in _VERSIONS:
            raise NoKeys(f"no key for secret id {secret_id!r} in version {version!r}", unknown_secret=True)
        container = EntityPath(named.account, named.container)
        ids = [self._id(path, self.version, secret_id) for secret_id in sorted(self.secrets, key=str)]
        return Keys(
            container=_derived(secret, str(container)),
            object=None if named.obj is None else _derived(secret, _object_path(named, version)),
            id=key_id or self._id(path, self.version, self.active),
            all_ids=ids,
        )

    @staticmethod
    def _id(path: EntityPath, version: str, secret_id: str | None) -> KeyId:
        text = _object_path(path, version)
        if version != "3":
            text = text.encode("utf-8", "surrogateescape").decode("latin-1")
        key_id: KeyId = {"v": version, "path": text}
        if secret_id is not None:
            key_id["secret_id"] = secret_id
        return key_id


def _object_path(path: EntityPath, version: str) -> str:
    """The text that a key is made from; the first version took names that begin with a slash alone."""
    if version == "1" and path.obj is not None and path.obj.startswith("/"):
        return path.obj
    return str(path)


def _derived(secret: bytes, path: str) -> bytes:
    return hmac.digest(secret, path.encode("utf-8", "surrogateescape"), sha256)


def _path_of(asked: EntityPath, key_id: KeyId) -> EntityPath:
    """The path that a stored id names; the text of old ones is Latin-1 of UTF-8, mostly."""
    text = key_id.get("path", "")
    readings = [text]
    if key_id.get("v") != "3":
        try:
            readings.insert(0, text.encode("latin-1").decode("utf-8"))
        except UnicodeError:
            readings = [text]
    version = key_id.get("v", "")
    for reading in readings:
        if reading in (str(asked), _object_path(asked, version)):
            return asked
    text = readings[0]
    home = EntityPath(asked.account, asked.container)
    if version == "1" and not text.startswith(f"{home}/"):
        return home._replace(obj=text)
    parts = text[1:].split("/", 2)
    if not text.startswith("/") or len(parts) < 2:
        raise NoKeys(f"a key id has the path {text!r}")
    return EntityPath(*parts)


class Keymaster(Filter):
    """Hands out keys to the encryption filter."""

    def __init__(self, app: App, secrets: RootSecrets):
        super().__init__(app)
        self._secrets = secrets

    def handle(self, request: Request) -> Response:
        """Leave the callback that fetches keys."""
        entity = request.entity
        if entity is not None and entity.path.container is not None:
            other = request.env.get(environkeys.FETCH_CRYPTO_KEYS)
            request.env[environkeys.FETCH_CRYPTO_KEYS] = partial(self._fetch, entity.path, other)
        return self.forward(request)

    def _fetch(self, path: EntityPath, other: FetchKeys | None, key_id: KeyId | None = None) -> Keys:
        try:
            return self._secrets.keys(path, key_id)
        except NoKeys as error:
            if other is None or not error.unknown_secret:
                raise
            return other(key_id)


def parse_secrets(conf: Mapping[str, str], settings: KeymasterSettings) -> RootSecrets:
    """The secrets of a section; raises ``ConfigError`` that names the option and not its value."""
    secrets: dict[str | None, bytes] = {}
    for name, text in conf.items():
        if name == _SECRET and text or name.startswith(f"{_SECRET}_"):
            secret_id = name[len(_SECRET) + 1 :] or None
            secrets[secret_id] = _decoded(name, str(text))
    active = settings.active_root_secret_id or None
    if not secrets:
        raise ConfigError(f"[filter:keymaster] needs the option {_SECRET}")
    if active not in secrets:
        wanted = "active_root_secret_id" if active is None else f"{_SECRET}_{active}"
        raise ConfigError(f"[filter:keymaster] needs the option {wanted}")
    return RootSecrets(secrets, active, str(settings.meta_version_to_write))


def _decoded(name: str, text: str) -> bytes:
    try:
        secret = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if len(secret) < SECRET_BYTES_MIN:
        raise ConfigError(f"option {name} must be base64 of at least {SECRET_BYTES_MIN} bytes")
    return secret


def options_of(conf: Conf) -> dict[str, str]:
    """The options of a filter section, or those of the file that it names; raises ``ConfigError``."""
    own = {name: value for name, value in conf.items() if name != PROCESS_KEY and name not in PLUMBING_KEYS}
    path = own.get("keymaster_config_path")
    if not path:
        return own
    known = KeymasterSettings.known_names() - {"keymaster_config_path"}
    both = [name for name in own if name in known or name.startswith(_SECRET)]
    if both:
        raise ConfigError(f"[filter:keymaster] option {both[0]} belongs into {path}, which it names")
    try:
        return read_section(path, "keymaster")
    except OSError as error:
        raise ConfigError(f"keymaster_config_path: {error}")


def make_keymaster(app: App, conf: Conf) -> Keymaster:
    """The filter of a configuration section."""
    options = options_of(conf)
    return Keymaster(app, parse_secrets(options, parse_options(KeymasterSettings, options, "keymaster")))


filter_factory = factory_of(make_keymaster)

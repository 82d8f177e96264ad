"""keymaster: provides keys for the encryption filter from root secrets in the configuration."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Protocol

from swift.base.entity import EntityPath
from swift.base.errors import ConfigError
from swift.compose import Services
from swift.config.files import read_section, repeated_options
from swift.config.kinds import integer
from swift.config.schema import PLUMBING_KEYS, Conf, Settings, option
from swift.config.unknown import KnownOptions
from swift.http import environkeys
from swift.http.cryptokeys import EncryptionKeys, EncryptionKeysUnavailable, FetchKeys, KeyId
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.middleware.keymaster.derivation import SECRET_BYTES_MIN, RootSecrets

_SECRET_OPTION = "encryption_root_secret"


@dataclass(frozen=True)
class SecretSettings(Settings):
    """Options of every keymaster."""

    active_root_secret_id: str = option("", "The secret that new objects are encrypted with.")
    keymaster_config_path: str = option(
        "", "A file that has these options instead, in the section of the filter's name."
    )
    meta_version_to_write: int = option(
        2, "The form of key ids: 3 needs peers that know it, 1 and 2 are for older ones.", kind=integer(1, 3)
    )


@dataclass(frozen=True)
class KeymasterSettings(SecretSettings):
    """``[filter:keymaster]`` without its secrets."""

    option_patterns: ClassVar[tuple[str, ...]] = ("encryption_root_secret_*",)

    encryption_root_secret: str = option("", "The root secret without an id: base64 of 32 bytes or more.")


class KeySource(Protocol):
    """Derives keys, from root secrets in memory or from those of a service."""

    def derive_keys(self, path: EntityPath, key_id: KeyId | None) -> EncryptionKeys:
        """Derive the keys of a path, or of a stored key id; raises ``EncryptionKeysUnavailable``."""


class Keymaster(Filter):
    """Provides keys to the encryption filter."""

    def __init__(self, app: App, secrets: KeySource):
        super().__init__(app)
        self._secrets = secrets

    def handle(self, request: Request) -> Response:
        """Set the callback that fetches keys."""
        entity = request.entity
        if entity is not None and entity.path.container is not None:
            next_callback = request.env.get(environkeys.FETCH_CRYPTO_KEYS)
            request.env[environkeys.FETCH_CRYPTO_KEYS] = partial(self._fetch_keys, entity.path, next_callback)
        return self.forward(request)

    def _fetch_keys(
        self, path: EntityPath, next_callback: FetchKeys | None, key_id: KeyId | None = None
    ) -> EncryptionKeys:
        try:
            return self._secrets.derive_keys(path, key_id)
        except EncryptionKeysUnavailable as error:
            if next_callback is None or not error.unknown_secret:
                raise
            return next_callback(key_id)


def parse_secrets(conf: Mapping[str, str], settings: KeymasterSettings) -> RootSecrets:
    """Return the secrets of a section; raises ``ConfigError`` that names the option, not its value."""
    secrets: dict[str | None, bytes] = {}
    for name, text in conf.items():
        if name == _SECRET_OPTION and text or name.startswith(f"{_SECRET_OPTION}_"):
            secret_id = name[len(_SECRET_OPTION) + 1 :] or None
            secrets[secret_id] = _decode_secret(name, str(text))
    active = settings.active_root_secret_id or None
    if not secrets:
        raise ConfigError(f"[filter:keymaster] needs the option {_SECRET_OPTION}")
    if active not in secrets:
        missing_option = "active_root_secret_id" if active is None else f"{_SECRET_OPTION}_{active}"
        raise ConfigError(f"[filter:keymaster] needs the option {missing_option}")
    return RootSecrets(secrets, active, str(settings.meta_version_to_write))


def _decode_secret(name: str, text: str) -> bytes:
    try:
        secret = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if len(secret) < SECRET_BYTES_MIN:
        raise ConfigError(f"option {name} must be base64 of at least {SECRET_BYTES_MIN} bytes")
    return secret


def read_options(conf: Conf, settings: type[SecretSettings], name: str) -> dict[str, str]:
    """Return the options of the filter ``name`` or of the file that it names; raises ``ConfigError``.

    With a file, the section must not have options of its own besides the common ones.
    """
    section_options = {key: value for key, value in conf.items() if key not in PLUMBING_KEYS}
    path = section_options.get("keymaster_config_path")
    known_options = KnownOptions.of(settings)

    def is_own(key: str) -> bool:
        return key != "keymaster_config_path" and (
            key in known_options.names or known_options.has_pattern(key)
        )

    if not path:
        _check_repeated(conf.get("__file__", ""), is_own)
        return section_options
    conflicting = [key for key in section_options if is_own(key)]
    if conflicting:
        raise ConfigError(f"[filter:{name}] option {conflicting[0]} belongs into {path}, which it names")
    try:
        _check_repeated(path, is_own)
        return read_section(path, name)
    except OSError as error:
        raise ConfigError(f"keymaster_config_path: {error}")


def _check_repeated(path: str, is_own: Callable[[str], bool]) -> None:
    """Refuse a key that stands twice: what the first one encrypted would be unreadable."""
    for repeated in repeated_options(path) if path else ():
        if is_own(repeated.option):
            raise ConfigError(f"{repeated.text.partition('; ')[0]}; remove one, or give it an id of its own")


def _make_filter(app: App, _settings: KeymasterSettings, services: Services) -> Keymaster:
    """Return the filter of a configuration section, or of the file that it names."""
    options = read_options(services.conf, KeymasterSettings, "keymaster")
    settings = KeymasterSettings.parse(options, source="[filter:keymaster]")
    return Keymaster(app, parse_secrets(options, settings))


FILTER = FilterDeclaration(
    "keymaster",
    KeymasterSettings,
    _make_filter,
    position=270,
    sample_lines=("# encryption_root_secret_<id> = <base64 of 32 bytes or more>",),
    left_of={"encryption": "the keymaster provides the keys"},
)

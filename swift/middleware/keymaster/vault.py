"""vault_keymaster: root secrets that the transit engine of HashiCorp Vault or OpenBao unwraps.

The configuration has the wrapped secrets only. A worker unwraps them at its first request that needs a key,
and keeps them in memory for ``secret_seconds``; then it unwraps them again, so that a revoked key or log-in
has an effect. While Vault does not respond or is sealed, known secrets serve for ``outage_seconds`` more. A
request whose secret is not known gets 503.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from swift import green
from swift.base.entity import EntityPath
from swift.base.errors import ConfigError
from swift.compose import Services
from swift.config.schema import Conf
from swift.http.cryptokeys import EncryptionKeys, KeyId, KeyServiceUnavailable
from swift.middleware.filter import App, FilterDeclaration
from swift.middleware.keymaster.derivation import RootSecrets
from swift.middleware.keymaster.filter import Keymaster, read_options
from swift.middleware.keymaster.vaultclient import (
    VaultClient,
    VaultKeymasterSettings,
    VaultRefused,
    VaultUnavailable,
    check_vault_settings,
    is_wrapped,
    make_tls,
)
from swift.telemetry.log import Log

NAME = "vault_keymaster"
SOURCE = f"[filter:{NAME}]"
WRAPPED_OPTION = "wrapped_root_secret"
#: Seconds until another try after Vault did not respond, and after it refused to unwrap a secret.
RETRY_S, REFUSED_RETRY_S = 1.0, 10.0

#: Returns the root secret of a wrapped one; raises ``VaultError``.
Unwrap = Callable[[str], bytes]


class UnwrappedSecrets:
    """Root secrets in memory, unwrapped again after a time; green threads share them."""

    def __init__(
        self,
        wrapped: Mapping[str | None, str],
        settings: VaultKeymasterSettings,
        unwrap: Unwrap,
        log: Log,
        *,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._wrapped = wrapped
        self._settings = settings
        self._unwrap = unwrap
        self._log = log
        self._clock = clock
        self._lock = green.Semaphore()
        self._secrets = self._root_secrets({})
        #: Why Vault does not unwrap a secret.
        self._refusals: dict[str | None, str] = {}
        #: Why Vault unwraps none now; empty while it does.
        self._outage = ""
        self._fresh_until = self._usable_until = self._retry_at = clock()
        self._is_refreshing = False

    def derive_keys(self, path: EntityPath, key_id: KeyId | None) -> EncryptionKeys:
        """Derive the keys of a path, or of a stored key id; raises ``EncryptionKeysUnavailable``."""
        if self._clock() >= self._fresh_until:
            self._refresh()
        secret_id = self._secrets.active_secret_id if key_id is None else key_id.get("secret_id")
        if secret_id in self._wrapped and secret_id not in self._secrets.secrets:
            reason = self._refusals.get(secret_id) or self._outage
            raise KeyServiceUnavailable(reason or "the key service does not respond")
        return self._secrets.derive_keys(path, key_id)

    def _refresh(self) -> None:
        """Unwrap the secrets again, unless a try failed a moment ago.

        Requests wait for it; not while known secrets serve during an outage.
        """
        if self._outage and self._clock() < self._usable_until:
            if not self._is_refreshing and self._clock() >= self._retry_at:
                self._is_refreshing = True
                green.spawn_detached(self._refresh_in_background)
            return
        with self._lock:
            if self._clock() >= max(self._fresh_until, self._retry_at):
                self._unwrap_all()
        if self._clock() >= self._usable_until and self._secrets.secrets:
            self._log.error(f"{SOURCE} root secrets are dropped after outage_seconds: {self._outage}")
            self._secrets = self._root_secrets({})

    def _refresh_in_background(self) -> None:
        try:
            with self._lock:
                self._unwrap_all()
        finally:
            self._is_refreshing = False

    def _unwrap_all(self) -> None:
        """Unwrap each secret; after an outage keep what is known, after a refusal forget the secret."""
        found: dict[str | None, bytes] = {}
        refusals: dict[str | None, str] = {}
        for secret_id, wrapped in self._wrapped.items():
            try:
                found[secret_id] = self._unwrap(wrapped)
            except VaultRefused as error:
                refusals[secret_id] = error.reason
                if secret_id not in self._refusals:
                    self._log.error(f"{SOURCE} root secret {secret_id or 'without an id'}: {error}")
            except VaultUnavailable as error:
                self._note_outage(error)
                return
        if self._outage or self._refusals.keys() - refusals.keys():
            self._log.notice(f"{SOURCE} the key service unwraps root secrets again")
        self._secrets, self._refusals, self._outage = self._root_secrets(found), refusals, ""
        fresh_s = self._settings.secret_seconds
        now = self._clock()
        self._fresh_until = now + (min(fresh_s, REFUSED_RETRY_S) if refusals else fresh_s)
        self._usable_until = self._fresh_until + self._settings.outage_seconds

    def _note_outage(self, error: VaultUnavailable) -> None:
        now = self._clock()
        if error.reason != self._outage:
            left_s = max(0.0, self._usable_until - now)
            known = f"known ones serve for {left_s:.0f} s more" if self._secrets.secrets else "none is known"
            self._log.error(f"{SOURCE} root secrets cannot be unwrapped, {known}: {error}")
        self._outage, self._retry_at = error.reason, now + RETRY_S

    def _root_secrets(self, secrets: Mapping[str | None, bytes]) -> RootSecrets:
        settings = self._settings
        return RootSecrets(
            secrets, settings.active_root_secret_id or None, str(settings.meta_version_to_write)
        )

    def __repr__(self) -> str:
        return f"<UnwrappedSecrets {len(self._secrets.secrets)} of {len(self._wrapped)} {self._outage}>"


def read_vault_section(conf: Conf) -> tuple[VaultKeymasterSettings, dict[str | None, str]]:
    """Return the settings and the wrapped secrets by id; raises ``ConfigError``, which names no secret."""
    options = read_options(conf, VaultKeymasterSettings, NAME)
    settings = VaultKeymasterSettings.parse(options, source=SOURCE)
    check_vault_settings(settings, SOURCE)
    wrapped: dict[str | None, str] = {}
    for name, text in options.items():
        if text and (name == WRAPPED_OPTION or name.startswith(f"{WRAPPED_OPTION}_")):
            wrapped[name[len(WRAPPED_OPTION) + 1 :] or None] = "".join(text.split())
    for secret_id, text in wrapped.items():
        if not is_wrapped(text):
            raise ConfigError(f"{SOURCE}: option {wrapped_option(secret_id)} is no text vault:v1:...")
    return settings, wrapped


def wrapped_option(secret_id: str | None) -> str:
    """Return the name of the option of a wrapped secret."""
    return f"{WRAPPED_OPTION}_{secret_id}" if secret_id else WRAPPED_OPTION


def make_vault_keymaster(
    app: App,
    conf: Conf,
    log: Log,
    *,
    unwrap: Unwrap | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Keymaster:
    """Return the filter of a configuration section; ``unwrap`` replaces Vault. Raises ``ConfigError``."""
    settings, wrapped = read_vault_section(conf)
    active = settings.active_root_secret_id or None
    if active not in wrapped:
        raise ConfigError(f"{SOURCE} needs the option {wrapped_option(active)}")
    if unwrap is None:
        client = VaultClient(settings, make_tls(settings, SOURCE), clock=clock, later=green.spawn_after)
        unwrap = client.unwrap
    return Keymaster(app, UnwrappedSecrets(wrapped, settings, unwrap, log, clock=clock))


def _make_filter(app: App, _settings: VaultKeymasterSettings, services: Services) -> Keymaster:
    """Return the filter of a configuration section, or of the file that it names."""
    return make_vault_keymaster(app, services.conf, services.telemetry().log)


FILTER = FilterDeclaration(
    NAME,
    VaultKeymasterSettings,
    _make_filter,
    position=295,
    sample_lines=("# wrapped_root_secret_<id> = vault:v1:<base64>",),
    left_of={"encryption": "the keymaster provides the keys"},
)

"""Root secrets of a key service, fetched once at startup (``fetch``, in a process of its own).

A server that cannot fetch its secrets does not start. A running server does not need the service any more. A
reload fetches the secrets again, and keeps the running server unchanged on failure.
"""

from __future__ import annotations

import base64
import binascii
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from swift.base.errors import ConfigError
from swift.config.schema import Conf
from swift.middleware.filter import App
from swift.middleware.keymaster import fetch as fetching
from swift.middleware.keymaster.derivation import RootSecrets
from swift.middleware.keymaster.filter import Keymaster, SecretSettings, read_options

#: Timeout for a response of the service, seconds.
FETCH_TIMEOUT_S = 60.0
_KEY_ID_OPTION = "key_id"

#: (service, options, key ids) → secrets by key id; raises ``ConfigError``.
FetchSecrets = Callable[[str, Mapping[str, str], Sequence[str]], Mapping[str, bytes]]
_Settings = TypeVar("_Settings", bound=SecretSettings)


def fetch_in_process(
    service: str,
    options: Mapping[str, str],
    key_ids: Sequence[str],
    *,
    command: Sequence[str] = (sys.executable, "-P", "-m", fetching.__name__),
    timeout_s: float = FETCH_TIMEOUT_S,
) -> dict[str, bytes]:
    """Fetch secrets in a child process; raises ``ConfigError`` with the error of the service."""
    request = json.dumps({"service": service, "options": dict(options), "key_ids": list(key_ids)})
    try:
        completed = subprocess.run(
            command, input=request, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(f"the key service did not answer within {timeout_s:g} s")
    if completed.returncode:
        lines = completed.stderr.strip().splitlines()
        raise ConfigError(lines[-1] if lines else f"fetching ended with status {completed.returncode}")
    try:
        fetched: dict[str, str] = json.loads(completed.stdout)
        return {key_id: base64.b64decode(text, validate=True) for key_id, text in fetched.items()}
    except (ValueError, binascii.Error):
        raise ConfigError("the answer of the key service cannot be read")


def make_external_keymaster(
    app: App, conf: Conf, *, name: str, service: str, settings: type[_Settings], fetch: FetchSecrets
) -> Keymaster:
    """Return a keymaster with the secrets of a service; raises ``ConfigError``, which names no secret."""
    options = read_options(conf, settings, name)
    parsed = settings.parse(options, source=f"[filter:{name}]")
    key_ids = parse_key_ids(options, parsed.active_root_secret_id or None, name)
    service_options = {
        option.name: _option_text(getattr(parsed, option.name))
        for option in settings.options()
        if option.name not in SecretSettings.known_names()
    }
    try:
        secrets = fetch(service, service_options, sorted(set(key_ids.values())))
        found = {secret_id: secrets[key_id] for secret_id, key_id in key_ids.items()}
    except ConfigError as error:
        raise ConfigError(f"[filter:{name}] cannot fetch the root secrets: {error}")
    except KeyError as error:
        raise ConfigError(f"[filter:{name}] the key service has no key {error}")
    return Keymaster(
        app, RootSecrets(found, parsed.active_root_secret_id or None, str(parsed.meta_version_to_write))
    )


def parse_key_ids(options: Mapping[str, str], active: str | None, name: str) -> dict[str | None, str]:
    """Return secret id → key id in the service; None is the secret without id. Raises ``ConfigError``."""
    key_ids: dict[str | None, str] = {}
    for option, value in options.items():
        if value and (option == _KEY_ID_OPTION or option.startswith(f"{_KEY_ID_OPTION}_")):
            key_ids[option.removeprefix(_KEY_ID_OPTION).removeprefix("_") or None] = value.strip()
    if active not in key_ids:
        raise ConfigError(
            f"[filter:{name}] needs the option {_KEY_ID_OPTION}{f'_{active}' if active else ''}"
        )
    return key_ids


def _option_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

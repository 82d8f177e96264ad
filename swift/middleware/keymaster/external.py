"""Root secrets of a key service, fetched once at the start (``fetch`` in a process of its own).

A server that cannot have its secrets does not start; one that has them does not need the service any more.
A reload fetches them again, and leaves the running server as it is when that fails.
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
from swift.middleware.keymaster.filter import Keymaster, SecretSettings, options_of

#: A service that has not answered after so long is away, seconds.
FETCH_TIMEOUT_S = 60.0
_KEY_ID = "key_id"

#: (service, options, key ids) → secrets by key id; raises ``ConfigError``.
Fetch = Callable[[str, Mapping[str, str], Sequence[str]], Mapping[str, bytes]]
_Settings = TypeVar("_Settings", bound=SecretSettings)


def fetch_in_process(
    service: str,
    options: Mapping[str, str],
    key_ids: Sequence[str],
    *,
    command: Sequence[str] = (sys.executable, "-m", fetching.__name__),
    timeout_s: float = FETCH_TIMEOUT_S,
) -> dict[str, bytes]:
    """Fetch secrets in a child process; raises ``ConfigError`` with what the service said."""
    request = json.dumps({"service": service, "options": dict(options), "key_ids": list(key_ids)})
    try:
        done = subprocess.run(
            command, input=request, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(f"the key service did not answer within {timeout_s:g} s")
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise ConfigError(lines[-1] if lines else f"fetching ended with status {done.returncode}")
    try:
        fetched: dict[str, str] = json.loads(done.stdout)
        return {key_id: base64.b64decode(text, validate=True) for key_id, text in fetched.items()}
    except (ValueError, binascii.Error):
        raise ConfigError("the answer of the key service cannot be read")


def make_external(
    app: App, conf: Conf, *, name: str, service: str, settings: type[_Settings], fetch: Fetch
) -> Keymaster:
    """Return a keymaster whose secrets a service keeps; raises ``ConfigError`` that names no secret."""
    options = options_of(conf, settings, name)
    parsed = settings.parse(options, source=f"[filter:{name}]")
    key_ids = key_ids_of(options, parsed.active_root_secret_id or None, name)
    sent = {
        option.name: _text(getattr(parsed, option.name))
        for option in settings.options()
        if option.name not in SecretSettings.known_names()
    }
    try:
        secrets = fetch(service, sent, sorted(set(key_ids.values())))
        found = {secret_id: secrets[key_id] for secret_id, key_id in key_ids.items()}
    except ConfigError as error:
        raise ConfigError(f"[filter:{name}] cannot fetch the root secrets: {error}")
    except KeyError as error:
        raise ConfigError(f"[filter:{name}] the key service has no key {error}")
    return Keymaster(
        app,
        RootSecrets(found, parsed.active_root_secret_id or None, str(parsed.meta_version_to_write)),
    )


def key_ids_of(options: Mapping[str, str], active: str | None, name: str) -> dict[str | None, str]:
    """Return secret id → id of its key in the service; None is the one without id. Raises ``ConfigError``."""
    found: dict[str | None, str] = {}
    for option, value in options.items():
        if value and (option == _KEY_ID or option.startswith(f"{_KEY_ID}_")):
            found[option.removeprefix(_KEY_ID).removeprefix("_") or None] = value.strip()
    if active not in found:
        raise ConfigError(f"[filter:{name}] needs the option {_KEY_ID}{f'_{active}' if active else ''}")
    return found


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

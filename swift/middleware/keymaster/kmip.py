"""kmip_keymaster: root secrets from a KMIP service (spec: middleware.md §17)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from swift.config.kinds import PORT
from swift.config.schema import Conf, option
from swift.middleware.filter import App, FilterDeclaration
from swift.middleware.keymaster.external import FetchSecrets, fetch_in_process, make_external_keymaster
from swift.middleware.keymaster.filter import Keymaster, SecretSettings

NAME = "kmip_keymaster"


@dataclass(frozen=True)
class KmipKeymasterSettings(SecretSettings):
    """``[filter:kmip_keymaster]``: ids of keys, and the credentials of this proxy."""

    option_patterns: ClassVar[tuple[str, ...]] = ("key_id_*",)

    key_id: str = option("", "The service's unique identifier of the root secret without an id.")
    host: str = option("127.0.0.1", "Host of the service.")
    port: int = option(5696, "Its port.", kind=PORT)
    certfile: str = option("", "Certificate of this client.")
    keyfile: str = option("", "Its key.")
    ca_certs: str = option("", "Certificates of the service's CAs.")
    username: str = option("", "User of the service, if it requires one.")
    password: str = option("", "Password of the user.")


def make_kmip_keymaster(app: App, conf: Conf, fetch: FetchSecrets = fetch_in_process) -> Keymaster:
    """Return the filter of a configuration section; raises ``ConfigError``."""
    return make_external_keymaster(
        app, conf, name=NAME, service="kmip", settings=KmipKeymasterSettings, fetch=fetch
    )


FILTER = FilterDeclaration(
    "kmip_keymaster",
    KmipKeymasterSettings,
    lambda app, _settings, services: make_kmip_keymaster(app, services.conf),
    position=290,
    sample_lines=("# key_id_<id> = <key id>",),
    left_of={"encryption": "the keymaster provides the keys"},
)

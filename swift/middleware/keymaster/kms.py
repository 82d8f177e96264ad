"""kms_keymaster: root secrets from Barbican (spec: middleware.md §17)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from swift.config.schema import Conf, option
from swift.middleware.filter import App, FilterDeclaration
from swift.middleware.keymaster.external import FetchSecrets, fetch_in_process, make_external_keymaster
from swift.middleware.keymaster.filter import Keymaster, SecretSettings

NAME = "kms_keymaster"


@dataclass(frozen=True)
class KmsKeymasterSettings(SecretSettings):
    """``[filter:kms_keymaster]``: ids of keys, and the keystone credentials of this proxy."""

    option_patterns: ClassVar[tuple[str, ...]] = ("key_id_*",)

    key_id: str = option("", "Barbican's id of the root secret without an id.")
    api_class: str = option("", "castellan's class or name of another key manager; empty: Barbican.")
    auth_endpoint: str = option("", "URL of keystone, such as http://keystone:5000/v3.")
    username: str = option("", "User of keystone.")
    user_id: str = option("", "Its id, instead of username.")
    password: str = option("", "Password of the user.")
    user_domain_name: str = option("", "Domain of username; Default if neither name nor id is set.")
    user_domain_id: str = option("", "Id of the domain of username.")
    project_name: str = option("", "Project that owns the secrets.")
    project_id: str = option("", "Its id, instead of project_name.")
    project_domain_name: str = option("", "Domain of project_name; Default if neither name nor id is set.")
    project_domain_id: str = option("", "Id of the domain of project_name.")
    trust_id: str = option("", "Trust whose rights to use.")
    domain_id: str = option("", "Domain for a token of a domain.")
    domain_name: str = option("", "Its name.")
    reauthenticate: bool = option(True, "Get a new token when the current one expires.")
    barbican_endpoint: str = option("", "URL of Barbican; empty: the URL in keystone's catalog.")
    barbican_region_name: str = option("", "Region of Barbican in keystone's catalogue.")


def make_kms_keymaster(app: App, conf: Conf, fetch: FetchSecrets = fetch_in_process) -> Keymaster:
    """Return the filter of a configuration section; raises ``ConfigError``."""
    return make_external_keymaster(
        app, conf, name=NAME, service="kms", settings=KmsKeymasterSettings, fetch=fetch
    )


FILTER = FilterDeclaration(
    "kms_keymaster",
    KmsKeymasterSettings,
    lambda app, _settings, services: make_kms_keymaster(app, services.conf),
    position=280,
    sample_lines=("# key_id_<id> = <key id>",),
    left_of={"encryption": "the keymaster provides the keys"},
)

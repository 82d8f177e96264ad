"""Fetch root secrets from a key service: ``python -m swift.middleware.keymaster.fetch < REQUEST``.

A process of its own, because the clients of key services block and import the libraries of their projects.
A server gets the secrets and nothing else. The request is a JSON object on standard input::

    {"service": "kms" or "kmip", "options": {…}, "key_ids": ["…"]}

and standard output is ``{key id: base64 of the secret}``. On an error it is one line on standard error and 1.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Mapping, Sequence

from swift.base.extras import install_command

#: The only kind of root secret: AES-256.
KEY_ALGORITHM, KEY_BITS = "AES", 256
#: Options of the keystone credentials; keystone uses the same names.
_CREDENTIAL_OPTIONS = (
    "username",
    "user_id",
    "user_domain_id",
    "user_domain_name",
    "trust_id",
    "domain_id",
    "domain_name",
    "project_id",
    "project_name",
    "project_domain_id",
    "project_domain_name",
)
DEFAULT_DOMAIN = "Default"


class FetchError(Exception):
    """A secret cannot be fetched; the text is the reason."""


def main() -> int:
    """Fetch the secrets requested on standard input; return the exit code."""
    request = json.load(sys.stdin)
    fetch = {"kms": fetch_kms, "kmip": fetch_kmip}[request["service"]]
    options = {name: value for name, value in request["options"].items() if value}
    try:
        secrets = fetch(options, request["key_ids"])
    except ImportError as error:
        install = install_command(f"{request['service']}_keymaster")
        print(f"the package {error.name} is not installed; {install}", file=sys.stderr)
        return 1
    except Exception as error:
        # The operator needs the text of any client library's exception, without a traceback.
        print(f"{type(error).__name__}: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    json.dump({key_id: base64.b64encode(secret).decode() for key_id, secret in secrets.items()}, sys.stdout)
    return 0


def fetch_kms(options: Mapping[str, str], key_ids: Sequence[str]) -> dict[str, bytes]:
    """Return secrets of a key manager of castellan, Barbican unless ``api_class`` names another.

    ``options`` must not have empty values: the clients take them for given ones.
    """
    from castellan import key_manager
    from castellan import options as castellan_options
    from castellan.common.credentials.keystone_password import KeystonePassword
    from oslo_config import cfg

    conf = cfg.ConfigOpts()
    conf([], project="swift", default_config_files=[], default_config_dirs=[])
    castellan_options.set_defaults(
        conf,
        backend=options.get("api_class", "barbican"),
        auth_endpoint=options.get("auth_endpoint"),
        barbican_endpoint=options.get("barbican_endpoint"),
    )
    manager = key_manager.API(conf)
    if "barbican_region_name" in options:
        conf.set_override("barbican_region_name", options["barbican_region_name"], group="barbican")
    credentials = KeystonePassword(
        password=options.get("password", ""),
        auth_url=options.get("auth_endpoint"),
        reauthenticate=options.get("reauthenticate", "true") == "true",
        **keystone_credentials(options),
    )
    return {key_id: _key_bytes(manager.get(credentials, key_id), key_id) for key_id in key_ids}


def keystone_credentials(options: Mapping[str, str]) -> dict[str, str]:
    """Return user and scope for keystone; domains without id and name are ``Default``."""
    credentials = {name: options[name] for name in _CREDENTIAL_OPTIONS if name in options}
    for name, domain in (("username", "user_domain"), ("project_name", "project_domain")):
        if name in credentials and not {f"{domain}_id", f"{domain}_name"} & credentials.keys():
            credentials[f"{domain}_name"] = DEFAULT_DOMAIN
    return credentials


def _key_bytes(key: object, key_id: str) -> bytes:
    """Return the bytes of a key of castellan; raises ``FetchError``."""
    algorithm, bits = getattr(key, "algorithm", None), getattr(key, "bit_length", None)
    if str(algorithm).upper() != KEY_ALGORITHM or bits != KEY_BITS:
        raise FetchError(
            f"key {key_id} is no {KEY_ALGORITHM} key of {KEY_BITS} bits but {algorithm} of {bits} bits"
        )
    encoded = key.get_encoded()  # type: ignore[attr-defined]
    if not isinstance(encoded, bytes) or len(encoded) * 8 != KEY_BITS:
        raise FetchError(f"key {key_id} has no {KEY_BITS // 8} bytes")
    return encoded


def fetch_kmip(options: Mapping[str, str], key_ids: Sequence[str]) -> dict[str, bytes]:
    """Return secrets of a KMIP service."""
    from kmip.core.enums import CryptographicAlgorithm
    from kmip.pie.client import ProxyKmipClient
    from kmip.pie.objects import SymmetricKey

    secrets = {}
    port = options.get("port")
    with ProxyKmipClient(
        hostname=options.get("host"),
        port=int(port) if port else None,
        cert=options.get("certfile"),
        key=options.get("keyfile"),
        ca=options.get("ca_certs"),
        username=options.get("username"),
        password=options.get("password"),
        # The library would look into files of its own otherwise.
        config_file="/dev/null",
    ) as client:
        for key_id in key_ids:
            key = client.get(key_id)
            if not isinstance(key, SymmetricKey):
                raise FetchError(f"{key_id} is no symmetric key")
            if (
                key.cryptographic_algorithm != CryptographicAlgorithm.AES
                or key.cryptographic_length != KEY_BITS
            ):
                algorithm, bits = key.cryptographic_algorithm.name, key.cryptographic_length
                raise FetchError(
                    f"key {key_id} is no {KEY_ALGORITHM} key of {KEY_BITS} bits "
                    f"but {algorithm} of {bits} bits"
                )
            secrets[key_id] = key.value
    return secrets


if __name__ == "__main__":
    raise SystemExit(main())

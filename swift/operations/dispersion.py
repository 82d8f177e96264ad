"""dispersion.conf, and logging in to the cluster (spec: cli-and-config.md §7, §11)."""

from __future__ import annotations

import argparse
import ssl
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from swift.base.errors import ConfigError, SwiftError
from swift.cluster.outbound import Outbound, OutboundConnection, OutboundRefused, Trust
from swift.cluster.transport import TransportError
from swift.compose import Cluster, cluster_of
from swift.config.files import parser_of
from swift.config.kinds import COUNT, SECONDS, integer, number
from swift.config.schema import Settings, option
from swift.http.headers import HeaderMap, wire_value
from swift.policy.policy import Policy
from swift.runtime.service.services import SWIFT_DIR
from swift.wire import keystone

CONFIG = "/etc/swift/dispersion.conf"
SECTION = "dispersion"
TIMEOUT_S = 30.0
#: More than any listing or login response has, bytes.
RESPONSE_BYTES_MAX = 64 << 20


@dataclass(frozen=True)
class DispersionSettings(Settings):
    """``[dispersion]``."""

    auth_url: str = option("", "URL of the login, e.g. http://localhost:8080/auth/v1.0.", sample="")
    auth_user: str = option("", "Who logs in, e.g. test:tester.", sample="")
    auth_key: str = option("", "With which key.", sample="")
    auth_version: str = option("1.0", "Version of the login: 1.0, or 3.0, Keystone's.")
    project_name: str = option("", "The user's project, of 3.0; or auth_user is project:user.", sample="")
    project_domain_name: str = option(
        "", "Domain of the project; empty: that with the id default.", sample=""
    )
    user_domain_name: str = option("", "Domain of the user; empty: that with the id default.", sample="")
    endpoint_type: str = option(
        "publicURL", "Interface of the object store in the catalog: publicURL, internalURL, adminURL."
    )
    region_name: str = option("", "Of which region; empty: the first.", sample="")
    swift_dir: str = option(SWIFT_DIR, "Directory of swift.conf and the ring files.")
    dispersion_coverage: float = option(1.0, "Percentage of the partitions to cover.", kind=number(0, 100))
    retries: int = option(5, "Number of times to retry a request.", kind=COUNT)
    concurrency: int = option(25, "Requests at the same time.", kind=integer(1))
    container_populate: bool = option(True, "Make containers.")
    object_populate: bool = option(True, "Make objects.")
    container_report: bool = option(True, "Report on containers.")
    object_report: bool = option(True, "Report on objects.")
    dump_json: bool = option(False, "Report as JSON.")
    keystone_api_insecure: bool = option(False, "Do not verify the certificate of the login.")
    conn_timeout: float = option(5.0, "Seconds to wait for a storage server's connection.", kind=SECONDS)
    node_timeout: float = option(15.0, "Seconds to wait for a storage server's response.", kind=SECONDS)


#: Values of auth_version → whether it is Keystone's.
_VERSIONS = {"1": False, "1.0": False, "3": True, "3.0": True}
_INTERFACES = {"publicURL": "public", "internalURL": "internal", "adminURL": "admin"}


class LoginFailed(SwiftError):
    """The cluster gave no token."""


class Login(NamedTuple):
    """Result of a login."""

    host: str
    port: int
    is_tls: bool
    #: The path of the account, e.g. ``/v1/AUTH_test``.
    path: str
    token: str

    @property
    def account(self) -> str:
        """The account's name."""
        return unquote(self.path.rstrip("/").rpartition("/")[2])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that both tools have."""
    parser.add_argument("config", nargs="?", default=CONFIG, help="configuration file (default: %(default)s)")
    parser.add_argument("--container-only", action="store_true", help="only containers")
    parser.add_argument("--object-only", action="store_true", help="only objects")
    parser.add_argument("--insecure", action="store_true", help="do not verify the certificate of the login")
    parser.add_argument(
        "-P", "--policy-name", default="", help="the storage policy (default: the default one)"
    )


def read_conf(path: str) -> DispersionSettings:
    """Return the settings. Raises ``ConfigError``."""
    parser = parser_of(path)
    if not parser.has_section(SECTION):
        raise ConfigError(f"{path} has no [{SECTION}]")
    settings = DispersionSettings.parse(dict(parser.items(SECTION)), source=f"{path} [{SECTION}]")
    if not settings.auth_url:
        raise ConfigError(f"{path} [{SECTION}]: option auth_url is missing")
    if not settings.auth_url.lower().startswith(("http://", "https://")):
        raise ConfigError(f"{path} [{SECTION}]: auth_url {settings.auth_url} is no http or https URL")
    for name, known in (("auth_version", _VERSIONS), ("endpoint_type", _INTERFACES)):
        value = getattr(settings, name)
        if value not in known:
            raise ConfigError(
                f"{path} [{SECTION}]: {name} {value} is not known; use one of {', '.join(known)}"
            )
    return settings


def find_policy(settings: DispersionSettings, name: str) -> tuple[Cluster, Policy]:
    """Return the cluster and the policy of a name. Raises ``ConfigError``."""
    cluster = cluster_of({"swift_dir": settings.swift_dir})
    policy = cluster.policies.named(name) if name else cluster.policies.default
    if policy is None:
        raise ConfigError(f"Unable to find policy: {name}")
    return cluster, policy


def connect(host: str, port: int, *, is_tls: bool, insecure: bool) -> OutboundConnection:
    """Connect to the proxy or the login service; raises ``OutboundRefused`` and OSError."""
    context = ssl.create_default_context() if is_tls else None
    if context and insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    scheme = "https" if is_tls else "http"
    return Outbound().connection(scheme, host, port, Trust.OPERATOR, timeout_s=TIMEOUT_S, tls=context)


def log_in(settings: DispersionSettings, *, insecure: bool) -> Login:
    """Return a token. Raises ``LoginFailed``."""
    try:
        if _VERSIONS[settings.auth_version]:
            token, storage_url = _log_in_v3(settings, insecure=insecure)
        else:
            token, storage_url = _log_in_v1(settings, insecure=insecure)
        storage = urlsplit(storage_url)
        if not token or not storage.hostname:
            raise ValueError("it gave no token and storage URL")
        is_tls = storage.scheme == "https"
        return Login(storage.hostname, storage.port or (443 if is_tls else 80), is_tls, storage.path, token)
    except (OSError, OutboundRefused, TransportError, ValueError) as error:
        raise LoginFailed(f"cannot log in at {settings.auth_url}: {' '.join(str(error).split())}")


def _log_in_v1(settings: DispersionSettings, *, insecure: bool) -> tuple[str, str]:
    headers = {"X-Auth-User": wire_value(settings.auth_user), "X-Auth-Key": wire_value(settings.auth_key)}
    found, _body = _request(settings, settings.auth_url, "GET", headers, insecure=insecure)
    return found.get("x-auth-token", ""), found.get("x-storage-url", "")


def _log_in_v3(settings: DispersionSettings, *, insecure: bool) -> tuple[str, str]:
    project, _, user = settings.auth_user.rpartition(":")
    document = keystone.password_login(
        user,
        settings.auth_key,
        settings.project_name or project,
        user_domain=_domain(settings.user_domain_name),
        project_domain=_domain(settings.project_domain_name),
    )
    url = keystone.tokens_url(settings.auth_url)
    kind = {"Content-Type": "application/json"}
    found, body = _request(settings, url, "POST", kind, document, insecure=insecure)
    interface = _INTERFACES[settings.endpoint_type]
    storage_url = keystone.storage_url_in(body, interface=interface, region=settings.region_name)
    return found.get("x-subject-token", ""), storage_url


def _domain(name: str) -> keystone.Domain:
    return {"name": name} if name else keystone.DEFAULT_DOMAIN


def _request(
    settings: DispersionSettings,
    where: str,
    method: str,
    headers: dict[str, str],
    body: bytes = b"",
    *,
    insecure: bool,
) -> tuple[HeaderMap, bytes]:
    """Return headers and body of a 2xx; raises OSError, ``TransportError`` and ValueError."""
    url = urlsplit(where)
    is_tls = url.scheme == "https"
    with connect(
        url.hostname or "",
        url.port or (443 if is_tls else 80),
        is_tls=is_tls,
        insecure=insecure or settings.keystone_api_insecure,
    ) as asked:
        reply = asked.request(method, url.path, headers, body, bytes_max=RESPONSE_BYTES_MAX)
    if not reply.is_success:
        raise ValueError(f"it answers {reply.status}")
    return reply.headers, reply.body

"""dispersion.conf, and logging in to the cluster (spec: cli-and-config.md §7, §11)."""

from __future__ import annotations

import argparse
import http.client
import ssl
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from swift.base.errors import ConfigError, SwiftError
from swift.cli.services import SWIFT_DIR
from swift.compose import Cluster, cluster_of
from swift.config.files import parser_of
from swift.config.kinds import COUNT, SECONDS, integer, number
from swift.config.schema import Settings, option
from swift.policy.policy import Policy

CONFIG = "/etc/swift/dispersion.conf"
SECTION = "dispersion"
TIMEOUT_S = 30.0


@dataclass(frozen=True)
class DispersionSettings(Settings):
    """``[dispersion]``."""

    auth_url: str = option("", "Where to log in, e.g. http://localhost:8080/auth/v1.0.", sample="")
    auth_user: str = option("", "Who logs in, e.g. test:tester.", sample="")
    auth_key: str = option("", "With which key.", sample="")
    auth_version: str = option("1.0", "Version of the login; 1.0 is the only one that is known here.")
    swift_dir: str = option(SWIFT_DIR, "Directory of swift.conf and the ring files.")
    dispersion_coverage: float = option(1.0, "Percentage of the partitions to cover.", kind=number(0, 100))
    retries: int = option(5, "How often a request is tried again.", kind=COUNT)
    concurrency: int = option(25, "Requests at the same time.", kind=integer(1))
    container_populate: bool = option(True, "Make containers.")
    object_populate: bool = option(True, "Make objects.")
    container_report: bool = option(True, "Report on containers.")
    object_report: bool = option(True, "Report on objects.")
    dump_json: bool = option(False, "Report as JSON.")
    keystone_api_insecure: bool = option(False, "Do not verify the certificate of the login.")
    conn_timeout: float = option(5.0, "Seconds to wait for a storage server's connection.", kind=SECONDS)
    node_timeout: float = option(15.0, "Seconds to wait for a storage server's answer.", kind=SECONDS)


class LoginFailed(SwiftError):
    """The cluster gave no token."""


class Login(NamedTuple):
    """What a login gives."""

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
    """What both tools have."""
    parser.add_argument("config", nargs="?", default=CONFIG, help="configuration file (default: %(default)s)")
    parser.add_argument("--container-only", action="store_true", help="only containers")
    parser.add_argument("--object-only", action="store_true", help="only objects")
    parser.add_argument("--insecure", action="store_true", help="do not verify the certificate of the login")
    parser.add_argument(
        "-P", "--policy-name", default="", help="the storage policy (default: the default one)"
    )


def read_conf(path: str) -> DispersionSettings:
    """The settings. Raises ``ConfigError``."""
    parser = parser_of(path)
    if not parser.has_section(SECTION):
        raise ConfigError(f"{path} has no [{SECTION}]")
    settings = DispersionSettings.parse(dict(parser.items(SECTION)), source=f"{path} [{SECTION}]")
    if not settings.auth_url:
        raise ConfigError(f"{path} [{SECTION}]: option auth_url is missing")
    if settings.auth_version not in ("1", "1.0"):
        raise ConfigError(f"{path} [{SECTION}]: auth_version {settings.auth_version} is not known; use 1.0")
    return settings


def policy_of(settings: DispersionSettings, name: str) -> tuple[Cluster, Policy]:
    """The cluster and the policy of a name. Raises ``ConfigError``."""
    cluster = cluster_of({"swift_dir": settings.swift_dir})
    policy = cluster.policies.named(name) if name else cluster.policies.default
    if policy is None:
        raise ConfigError(f"Unable to find policy: {name}")
    return cluster, policy


def connection(host: str, port: int, *, is_tls: bool, insecure: bool) -> http.client.HTTPConnection:
    """A connection to the proxy or the login."""
    if not is_tls:
        return http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    context = ssl.create_default_context()
    if insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=context)


def log_in(settings: DispersionSettings, *, insecure: bool) -> Login:
    """A token. Raises ``LoginFailed``."""
    url = urlsplit(settings.auth_url)
    is_tls = url.scheme == "https"
    try:
        asked = connection(
            url.hostname or "",
            url.port or (443 if is_tls else 80),
            is_tls=is_tls,
            insecure=insecure or settings.keystone_api_insecure,
        )
        headers = {"X-Auth-User": settings.auth_user, "X-Auth-Key": settings.auth_key}
        asked.request("GET", url.path, headers=headers)
        answer = asked.getresponse()
        answer.read()
        asked.close()
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise LoginFailed(f"cannot log in at {settings.auth_url}: {error}")
    token, storage = answer.getheader("X-Auth-Token"), urlsplit(answer.getheader("X-Storage-Url") or "")
    if answer.status // 100 != 2 or not token or not storage.hostname:
        raise LoginFailed(f"cannot log in at {settings.auth_url}: it answers {answer.status}")
    is_tls = storage.scheme == "https"
    return Login(storage.hostname, storage.port or (443 if is_tls else 80), is_tls, storage.path, token)

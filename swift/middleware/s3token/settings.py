"""Options of the filter (spec: middleware.md §18)."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from swift.base.errors import ConfigError
from swift.config.kinds import COUNT
from swift.config.schema import Settings, option


@dataclass(frozen=True)
class S3TokenSettings(Settings):
    """``[filter:s3token]``."""

    auth_uri: str = option("", "URL of the identity service, e.g. http://host:5000/v3.")
    reseller_prefix: str = option("AUTH_", "Prefix of the accounts of projects.")
    delay_auth_decision: bool = option(
        False, "Pass requests with unknown keys on to the next authentication filter."
    )
    http_timeout: float = option(10.0, "Seconds that the identity service may take; at most 60.")
    insecure: bool = option(False, "Do not check the identity service's certificate.")
    certfile: str = option("", "A file with our own certificate.")
    keyfile: str = option("", "A file with its key.")
    secret_cache_duration: int = option(
        60, "Seconds to keep a secret key in memcached; needs auth_url. 0: never.", kind=COUNT
    )
    auth_url: str = option(
        "", "URL at which this service's own user gets its token, e.g. http://host:5000/v3."
    )
    auth_type: str = option(
        "password", "Authentication method of this service's own user; only password is supported."
    )
    username: str = option("", "Our own user, which may read credentials of others.")
    password: str = option("", "Password of the user.")
    project_name: str = option("", "Its project.")
    user_domain_id: str = option("default", "The domain of our own user.")
    project_domain_id: str = option("default", "The domain of its project.")
    region_name: str = option("", "Taken for the sake of shared configuration; one URL is of one region.")

    @property
    def caches_secrets(self) -> bool:
        """True if secret keys can be read from Keystone and cached."""
        return bool(self.secret_cache_duration and self.auth_url and self.username)


def parse_url(uri: str, name: str) -> SplitResult:
    """Return the parts of a configured URL; raises ``ConfigError``."""
    try:
        parts = urlsplit(uri)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ConfigError(f"[filter:s3token] {name}: {uri!r} is no URL")
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(f"[filter:s3token] {name} must be a URL of http or https, not {uri!r}")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ConfigError(f"[filter:s3token] {name} must have no user, query or fragment")
    return parts


def validate_settings(settings: S3TokenSettings) -> S3TokenSettings:
    """Return the same settings; raises ``ConfigError`` for an invalid combination."""
    parse_url(settings.auth_uri, "auth_uri")
    if not 0 < settings.http_timeout <= 60:
        raise ConfigError("[filter:s3token] http_timeout must be above 0 and at most 60")
    if settings.auth_url:
        parse_url(settings.auth_url, "auth_url")
        if settings.auth_type != "password":
            raise ConfigError(
                f"[filter:s3token] auth_type: there is only password, not {settings.auth_type!r}"
            )
    return settings

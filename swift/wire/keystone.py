"""Logging in at an identity service with a password, by version 3 of its API (Keystone): two documents."""

from __future__ import annotations

import json
from collections.abc import Mapping

from swift.base.errors import InvalidValue

#: Path of token requests below the URL of version 3.
TOKENS = "/auth/tokens"
#: A domain by ``id`` or ``name``.
Domain = Mapping[str, str]
DEFAULT_DOMAIN: Domain = {"id": "default"}


def tokens_url(auth_url: str) -> str:
    """Return the URL of token requests, given that URL or the one of API version 3."""
    url = auth_url.rstrip("/")
    return url if url.endswith(TOKENS) else url + TOKENS


def password_login(
    user: str,
    password: str,
    project: str,
    *,
    user_domain: Domain = DEFAULT_DOMAIN,
    project_domain: Domain = DEFAULT_DOMAIN,
) -> bytes:
    """Return the body of a request for a token of a user within a project."""
    named = {"name": user, "domain": dict(user_domain), "password": password}
    identity = {"methods": ["password"], "password": {"user": named}}
    scope = {"project": {"name": project, "domain": dict(project_domain)}}
    return json.dumps({"auth": {"identity": identity, "scope": scope}}).encode("ascii")


def storage_url_in(body: bytes, *, interface: str = "public", region: str = "") -> str:
    """Return the URL of the object store in the catalog of a token.

    Raises ``InvalidValue`` when there is none.
    """
    try:
        catalog = json.loads(body)["token"]["catalog"]
        found = [
            str(point["url"])
            for service in catalog
            if service["type"] == "object-store"
            for point in service["endpoints"]
            if point["interface"] == interface and region in ("", point.get("region"), point.get("region_id"))
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InvalidValue("the answer has no catalog of services")
    if not found:
        where = f" in region {region}" if region else ""
        raise InvalidValue(f"the catalog has no {interface} object-store{where}")
    return found[0]

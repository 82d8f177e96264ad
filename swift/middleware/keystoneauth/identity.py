"""Identity of the requester, from the headers of the filter that validated the token (spec: middleware.md
§2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from swift.http import environkeys
from swift.http.headers import HeaderMap
from swift.http.request import Request

CONFIRMED = "Confirmed"

#: The id of something and its name as headers have them (Latin-1 views); None is absent.
Named = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class Identity:
    """A user, the project that its token is for, and the roles that it has there."""

    user: Named
    project: Named
    roles: tuple[str, ...]
    service_roles: tuple[str, ...]
    #: Only tokens of version 3 have domains.
    user_domain_id: str | None
    project_domain_id: str | None
    shared: dict[str, object]

    @property
    def own_roles(self) -> frozenset[str]:
        """The user's roles in lower case, as they are compared."""
        return frozenset(role.lower() for role in self.roles)

    @property
    def own_service_roles(self) -> frozenset[str]:
        """The roles of the service that asks for the user, in lower case."""
        return frozenset(role.lower() for role in self.service_roles)


def identity_of(request: Request) -> Identity | None:
    """Return the confirmed identity of a request, None when there is none."""
    headers = request.headers
    if headers.get("x-identity-status") != CONFIRMED:
        return None
    if headers.get("x-service-identity-status", CONFIRMED) != CONFIRMED:
        return None
    user = _named(headers, "x-user")
    project = (
        _first(headers, "x-project-id", "x-tenant-id"),
        _first(headers, "x-project-name", "x-tenant-name"),
    )
    roles, service_roles = _words(headers, "x-roles"), _words(headers, "x-service-roles")
    version = _version_of(request.env.get(environkeys.KEYSTONE_TOKEN_INFO))
    absent: Named = (None, None)
    user_domain = _named(headers, "x-user-domain") if version == 3 else absent
    project_domain = _named(headers, "x-project-domain") if version == 3 else absent
    shared = {
        "user": user,
        "tenant": project,
        "roles": list(roles),
        "service_roles": list(service_roles),
        "user_domain": user_domain,
        "project_domain": project_domain,
        "auth_version": version,
    }
    return Identity(user, project, roles, service_roles, user_domain[0], project_domain[0], shared)


def _first(headers: HeaderMap, *names: str) -> str | None:
    for name in names:
        if name in headers:
            return headers[name]
    return None


def _named(headers: HeaderMap, prefix: str) -> Named:
    return _first(headers, f"{prefix}-id"), _first(headers, f"{prefix}-name")


def _words(headers: HeaderMap, name: str) -> tuple[str, ...]:
    items = (item.strip() for item in headers.get(name, "").split(","))
    return tuple(item for item in items if item)


def _version_of(token_info: object) -> int:
    """Return the version of the identity service's API that a token's facts are of; 0 when unknown."""
    if not isinstance(token_info, Mapping):
        return 0
    return 2 if "access" in token_info else 3 if "token" in token_info else 0

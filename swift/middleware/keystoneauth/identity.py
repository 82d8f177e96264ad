"""Identity of the requester, from the headers that the token filter sets (spec: middleware.md §2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from swift.http import environkeys
from swift.http.headers import HeaderMap
from swift.http.request import Request

CONFIRMED = "Confirmed"

#: (id, name) as in headers (Latin-1 views); None is absent.
IdAndName = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class Identity:
    """A user, the project of its token, and its roles in that project."""

    user: IdAndName
    project: IdAndName
    roles: tuple[str, ...]
    service_roles: tuple[str, ...]
    #: Only tokens of version 3 have domains.
    user_domain_id: str | None
    project_domain_id: str | None
    environ_value: dict[str, object]

    @property
    def folded_roles(self) -> frozenset[str]:
        """The user's roles in lower case, for comparisons."""
        return frozenset(role.lower() for role in self.roles)

    @property
    def folded_service_roles(self) -> frozenset[str]:
        """The roles of the requesting service in lower case."""
        return frozenset(role.lower() for role in self.service_roles)


def get_identity(request: Request) -> Identity | None:
    """Return the confirmed identity of a request, None without one."""
    headers = request.headers
    if headers.get("x-identity-status") != CONFIRMED:
        return None
    if headers.get("x-service-identity-status", CONFIRMED) != CONFIRMED:
        return None
    user = _id_and_name(headers, "x-user")
    project = (
        _first_header(headers, "x-project-id", "x-tenant-id"),
        _first_header(headers, "x-project-name", "x-tenant-name"),
    )
    roles, service_roles = _split_list(headers, "x-roles"), _split_list(headers, "x-service-roles")
    version = _token_version(request.env.get(environkeys.KEYSTONE_TOKEN_INFO))
    absent: IdAndName = (None, None)
    user_domain = _id_and_name(headers, "x-user-domain") if version == 3 else absent
    project_domain = _id_and_name(headers, "x-project-domain") if version == 3 else absent
    environ_value = {
        "user": user,
        "tenant": project,
        "roles": list(roles),
        "service_roles": list(service_roles),
        "user_domain": user_domain,
        "project_domain": project_domain,
        "auth_version": version,
    }
    return Identity(user, project, roles, service_roles, user_domain[0], project_domain[0], environ_value)


def _first_header(headers: HeaderMap, *names: str) -> str | None:
    for name in names:
        if name in headers:
            return headers[name]
    return None


def _id_and_name(headers: HeaderMap, prefix: str) -> IdAndName:
    return _first_header(headers, f"{prefix}-id"), _first_header(headers, f"{prefix}-name")


def _split_list(headers: HeaderMap, name: str) -> tuple[str, ...]:
    items = (item.strip() for item in headers.get(name, "").split(","))
    return tuple(item for item in items if item)


def _token_version(token_info: object) -> int:
    """Return the version of the identity API from a token's info; 0 if unknown."""
    if not isinstance(token_info, Mapping):
        return 0
    return 2 if "access" in token_info else 3 if "token" in token_info else 0

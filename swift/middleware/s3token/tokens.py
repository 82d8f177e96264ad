"""Converts a token of Keystone into the headers that keystoneauth reads. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from swift.http.headers import HeaderMap, wire_value

#: Identity headers; removed from requests of clients.
IDENTITY_HEADERS = (
    "x-identity-status",
    "x-service-identity-status",
    *(
        f"x-{kind}-{name}"
        for kind in ("user", "project")
        for name in ("id", "name", "domain-id", "domain-name")
    ),
    *("x-tenant-id", "x-tenant-name", "x-tenant", "x-roles", "x-role", "x-user", "x-service-catalog"),
    *(f"x-service-{name}" for name in ("user-id", "user-name", "user-domain-id", "user-domain-name")),
    *(
        f"x-service-{name}"
        for name in ("project-id", "project-name", "project-domain-id", "project-domain-name")
    ),
    *("x-service-roles", "x-domain-id", "x-domain-name", "x-is-admin-project", "x-system-scope"),
    "openstack-system-scope",
)


class Known(NamedTuple):
    """Identity of the signer."""

    headers: HeaderMap
    project_id: str
    project_name: str
    user_id: str


def known_of(document: Mapping[str, object]) -> Known | None:
    """Return the identity in a token of version 2 or 3, or None if the document is no token."""
    token, access = document.get("token"), document.get("access")
    if isinstance(token, dict):
        return _of_v3(token)
    return _of_v2(access) if isinstance(access, dict) else None


def _of_v3(token: Mapping[str, object]) -> Known | None:
    user, project = _map(token, "user"), _map(token, "project")
    more = {
        "x-user-domain-id": _text(_map(user, "domain"), "id"),
        "x-user-domain-name": _text(_map(user, "domain"), "name"),
        "x-project-domain-id": _text(_map(project, "domain"), "id"),
        "x-project-domain-name": _text(_map(project, "domain"), "name"),
    }
    return _known(user, project, token.get("roles"), more)


def _of_v2(access: Mapping[str, object]) -> Known | None:
    user = _map(access, "user")
    return _known(user, _map(_map(access, "token"), "tenant"), user.get("roles"), {})


def _known(
    user: Mapping[str, object], project: Mapping[str, object], roles: object, more: Mapping[str, str]
) -> Known | None:
    project_id, user_id = _text(project, "id"), _text(user, "id")
    if not project_id or not user_id or "/" in project_id:
        return None
    names = (
        [_text(role, "name") for role in roles if isinstance(role, dict)] if isinstance(roles, list) else []
    )
    headers = {
        "x-identity-status": "Confirmed",
        "x-roles": ",".join(filter(None, names)),
        "x-user-id": user_id,
        "x-user-name": _text(user, "name"),
        "x-project-id": project_id,
        "x-project-name": _text(project, "name"),
        "x-tenant-id": project_id,
        "x-tenant-name": _text(project, "name"),
        **{name: text for name, text in more.items() if text},
    }
    wired = {name: wire_value(text) for name, text in headers.items()}
    return Known(wired, project_id, _text(project, "name"), user_id)


def _map(tree: Mapping[str, object], name: str) -> Mapping[str, object]:
    value = tree.get(name)
    return value if isinstance(value, dict) else {}


def _text(tree: Mapping[str, object], name: str) -> str:
    value = tree.get(name)
    return value if isinstance(value, str) and value.isprintable() else ""

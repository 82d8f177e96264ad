"""Conversion of a Keystone token to the headers that keystoneauth reads. Pure."""

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


class SignerIdentity(NamedTuple):
    """Identity of the signer of an S3 request."""

    headers: HeaderMap
    project_id: str
    project_name: str
    user_id: str


def parse_identity(document: Mapping[str, object]) -> SignerIdentity | None:
    """Return the identity in a token of version 2 or 3; None for any other document."""
    token, access = document.get("token"), document.get("access")
    if isinstance(token, dict):
        return _parse_v3(token)
    return _parse_v2(access) if isinstance(access, dict) else None


def _parse_v3(token: Mapping[str, object]) -> SignerIdentity | None:
    user, project = _child_object(token, "user"), _child_object(token, "project")
    domain_headers = {
        "x-user-domain-id": _child_text(_child_object(user, "domain"), "id"),
        "x-user-domain-name": _child_text(_child_object(user, "domain"), "name"),
        "x-project-domain-id": _child_text(_child_object(project, "domain"), "id"),
        "x-project-domain-name": _child_text(_child_object(project, "domain"), "name"),
    }
    return _make_identity(user, project, token.get("roles"), domain_headers)


def _parse_v2(access: Mapping[str, object]) -> SignerIdentity | None:
    user = _child_object(access, "user")
    return _make_identity(
        user, _child_object(_child_object(access, "token"), "tenant"), user.get("roles"), {}
    )


def _make_identity(
    user: Mapping[str, object],
    project: Mapping[str, object],
    roles: object,
    domain_headers: Mapping[str, str],
) -> SignerIdentity | None:
    project_id, user_id = _child_text(project, "id"), _child_text(user, "id")
    if not project_id or not user_id or "/" in project_id:
        return None
    names = (
        [_child_text(role, "name") for role in roles if isinstance(role, dict)]
        if isinstance(roles, list)
        else []
    )
    headers = {
        "x-identity-status": "Confirmed",
        "x-roles": ",".join(filter(None, names)),
        "x-user-id": user_id,
        "x-user-name": _child_text(user, "name"),
        "x-project-id": project_id,
        "x-project-name": _child_text(project, "name"),
        "x-tenant-id": project_id,
        "x-tenant-name": _child_text(project, "name"),
        **{name: text for name, text in domain_headers.items() if text},
    }
    wire_headers = {name: wire_value(text) for name, text in headers.items()}
    return SignerIdentity(wire_headers, project_id, _child_text(project, "name"), user_id)


def _child_object(tree: Mapping[str, object], name: str) -> Mapping[str, object]:
    value = tree.get(name)
    return value if isinstance(value, dict) else {}


def _child_text(tree: Mapping[str, object], name: str) -> str:
    value = tree.get(name)
    return value if isinstance(value, str) and value.isprintable() else ""

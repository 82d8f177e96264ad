"""Roles."""

from __future__ import annotations

from dataclasses import replace

from swift.base.documents import JsonObject
from swift.identity.admin.base import (
    OPERATOR_GROUPS,
    OWNER_GROUP,
    PAGE_MAX,
    Admin,
    unique,
    validate_note,
)
from swift.identity.names import (
    InvalidIdentity,
    QualifiedName,
)
from swift.identity.policy.conditions import InvalidPolicy
from swift.identity.policy.document import parse_trust_policy
from swift.identity.policy.principals import role_arn
from swift.identity.records import (
    POLICIES_MAX,
    Role,
)

SESSION_S_MIN, SESSION_S_MAX = 900.0, 12 * 3600.0


class RoleAdmin(Admin):
    """Roles of tenants."""

    def create_role(
        self,
        *,
        role: str,
        trust: str,
        groups: tuple[str, ...] = (),
        policies: tuple[str, ...] = (),
        max_session: float = 3600.0,
        note: str = "",
    ) -> JsonObject:
        """Create a role that the callers of a trust policy may take."""
        name = QualifiedName.parse(role, "role")
        for policy in policies:
            self._require_policy(name, policy)
        record = Role(
            name,
            trust=_validate_trust(trust),
            created=self._now(),
            groups=_validate_role_groups(groups),
            policies=unique(policies, POLICIES_MAX, "policies"),
            max_session=_validate_max_session(max_session),
            note=validate_note(note),
        )
        self._create(record)
        return describe_role(record)

    def get_role(self, *, role: str) -> JsonObject:
        """Return a role."""
        return describe_role(self._require(Role, role, "role"))

    def list_roles(self, *, tenant: str, marker: str = "", limit: float = PAGE_MAX) -> JsonObject:
        """Return a page of the names of a tenant's roles."""
        return self._list(Role, tenant, marker, limit)

    def update_role(
        self,
        *,
        role: str,
        trust: str | None = None,
        groups: tuple[str, ...] | None = None,
        max_session: float | None = None,
        disabled: bool | None = None,
        note: str | None = None,
    ) -> JsonObject:
        """Change a role."""
        if trust is not None:
            _validate_trust(trust)
        if groups is not None:
            _validate_role_groups(groups)
        if max_session is not None:
            _validate_max_session(max_session)
        if note is not None:
            validate_note(note)

        def change(old: Role) -> Role:
            return replace(
                old,
                trust=old.trust if trust is None else trust,
                groups=old.groups if groups is None else groups,
                max_session=old.max_session if max_session is None else max_session,
                disabled=old.disabled if disabled is None else disabled,
                note=old.note if note is None else note,
            )

        return describe_role(self._update(Role, role, "role", change))

    def delete_role(self, *, role: str) -> JsonObject:
        """Delete a role; its sessions end."""
        self._find(Role, role, "role")
        self._delete(Role, role)
        return {}


def _validate_trust(document: str) -> str:
    try:
        parse_trust_policy(document)
    except InvalidPolicy as error:
        raise InvalidIdentity("trust", str(error))
    return document


def _validate_max_session(seconds: float) -> float:
    if not SESSION_S_MIN <= seconds <= SESSION_S_MAX:
        raise InvalidIdentity("max_session", f"must be {SESSION_S_MIN:g} to {SESSION_S_MAX:g} seconds")
    return seconds


def _validate_role_groups(groups: tuple[str, ...]) -> tuple[str, ...]:
    for group in groups:
        if group != OWNER_GROUP and group not in OPERATOR_GROUPS:
            raise InvalidIdentity(
                "groups", f"of a role are {OWNER_GROUP}, {' and '.join(OPERATOR_GROUPS)} only"
            )
    return tuple(dict.fromkeys(groups))


def describe_role(role: Role) -> JsonObject:
    """Return a role as operations report it."""
    name = QualifiedName(role.name)
    return {
        "role": role.name,
        "arn": role_arn(name.tenant, name.name),
        "created": role.created,
        "disabled": role.disabled,
        "trust": role.trust,
        "groups": list(role.groups),
        "policies": list(role.policies),
        "inline": dict(role.inline),
        "max_session": role.max_session,
        "note": role.note,
    }

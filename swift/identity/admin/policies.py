"""Policies, and who has them."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol, TypeVar

from swift.base.documents import JsonObject
from swift.identity.admin.base import (
    PAGE_MAX,
    Admin,
    NoSuchIdentity,
    unique,
    validate_note,
)
from swift.identity.admin.groups import describe_group
from swift.identity.admin.roles import describe_role
from swift.identity.admin.users import describe_user
from swift.identity.names import (
    InvalidIdentity,
    QualifiedName,
    shown,
    validate_name,
)
from swift.identity.policy.conditions import InvalidPolicy
from swift.identity.policy.document import parse_identity_policy
from swift.identity.policy.predefined import PREDEFINED, PREDEFINED_DOCUMENTS
from swift.identity.records import (
    INLINE_MAX,
    POLICIES_MAX,
    Group,
    Role,
    StoredPolicy,
    User,
)

#: Records with policies.
HolderT = TypeVar("HolderT", User, Group, Role)


class _HolderChange(Protocol):
    """Returns what becomes of a holder of policies."""

    def __call__(self, old: HolderT, /) -> HolderT:
        """Return the changed record."""


class PolicyAdmin(Admin):
    """Policies of tenants."""

    def create_policy(self, *, policy: str, document: str, note: str = "") -> JsonObject:
        """Create a policy that users, groups and roles of the tenant can have."""
        name = QualifiedName.parse(policy, "policy")
        if name.name in PREDEFINED:
            raise InvalidIdentity("policy", f"{name.name} is a predefined policy")
        now = self._now()
        record = StoredPolicy(
            name, document=_validate_policy(document), created=now, changed=now, note=validate_note(note)
        )
        self._create(record)
        return _describe_policy(record)

    def get_policy(self, *, policy: str) -> JsonObject:
        """Return a policy with its document."""
        name = QualifiedName.parse(policy, "policy")
        known = PREDEFINED_DOCUMENTS.get(name.name)
        if known is not None:
            return _describe_policy(StoredPolicy(name, document=known, note="predefined"))
        return _describe_policy(self._require(StoredPolicy, policy, "policy"))

    def list_policies(self, *, tenant: str, marker: str = "", limit: float = PAGE_MAX) -> JsonObject:
        """Return a page of the names of a tenant's policies, and the predefined ones."""
        return {**self._list(StoredPolicy, tenant, marker, limit), "predefined": sorted(PREDEFINED)}

    def update_policy(self, *, policy: str, document: str) -> JsonObject:
        """Replace the document of a policy."""
        _validate_policy(document)
        now = self._now()
        return _describe_policy(
            self._update(StoredPolicy, policy, "policy", lambda p: replace(p, document=document, changed=now))
        )

    def delete_policy(self, *, policy: str) -> JsonObject:
        """Delete a policy; its rights and its denials end for all that have it."""
        self._find(StoredPolicy, policy, "policy")
        self._delete(StoredPolicy, policy)
        return {}

    def attach_policy(self, *, policy: str, user: str = "", group: str = "", role: str = "") -> JsonObject:
        """Attach a policy, by its bare name, to a user, group or role."""
        kind, name = _holder(user, group, role)
        self._require_policy(name, policy)

        def change(old: HolderT) -> HolderT:
            return replace(old, policies=unique((*old.policies, policy), POLICIES_MAX, "policies"))

        return self._change_holder(kind, name, change)

    def detach_policy(self, *, policy: str, user: str = "", group: str = "", role: str = "") -> JsonObject:
        """Detach a policy from a user, group or role."""
        kind, name = _holder(user, group, role)

        def change(old: HolderT) -> HolderT:
            if policy not in old.policies:
                raise NoSuchIdentity("policy", f"{name} does not have {shown(policy)}")
            return replace(old, policies=tuple(each for each in old.policies if each != policy))

        return self._change_holder(kind, name, change)

    def put_inline_policy(
        self, *, name: str, document: str, user: str = "", group: str = "", role: str = ""
    ) -> JsonObject:
        """Give a user, group or role a policy of its own, or replace it."""
        kind, holder = _holder(user, group, role)
        validate_name(name, "name")
        _validate_policy(document)

        def change(old: HolderT) -> HolderT:
            inline = {**old.inline, name: document}
            if len(inline) > INLINE_MAX:
                raise InvalidIdentity("name", f"{holder} has {INLINE_MAX} policies of its own already")
            return replace(old, inline=inline)

        return self._change_holder(kind, holder, change)

    def delete_inline_policy(
        self, *, name: str, user: str = "", group: str = "", role: str = ""
    ) -> JsonObject:
        """Delete a policy of its own of a user, group or role."""
        kind, holder = _holder(user, group, role)

        def change(old: HolderT) -> HolderT:
            if name not in old.inline:
                raise NoSuchIdentity("name", f"{holder} has no policy {shown(name)} of its own")
            return replace(old, inline={key: text for key, text in old.inline.items() if key != name})

        return self._change_holder(kind, holder, change)

    def _change_holder(self, kind: str, name: str, change: _HolderChange) -> JsonObject:
        if kind == "user":
            return describe_user(self._update(User, name, kind, change))
        if kind == "group":
            return describe_group(self._update(Group, name, kind, change))
        return describe_role(self._update(Role, name, kind, change))


def _validate_policy(document: str) -> str:
    try:
        parse_identity_policy(document)
    except InvalidPolicy as error:
        raise InvalidIdentity("document", str(error))
    return document


def _holder(user: str, group: str, role: str) -> tuple[str, QualifiedName]:
    """Return the kind and name of the one holder that is given."""
    given = [(kind, name) for kind, name in (("user", user), ("group", group), ("role", role)) if name]
    if len(given) != 1:
        raise InvalidIdentity("user", "one of user, group and role must be given")
    kind, name = given[0]
    return kind, QualifiedName.parse(name, kind)


def _describe_policy(policy: StoredPolicy) -> JsonObject:
    name = QualifiedName(policy.name)
    return {
        "policy": policy.name,
        "arn": f"arn:aws:iam::{name.tenant}:policy/{name.name}",
        "document": policy.document,
        "created": policy.created,
        "changed": policy.changed,
        "note": policy.note,
    }

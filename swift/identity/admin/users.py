"""Users and their tokens."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Protocol, TypeVar

from swift.base.documents import JsonObject
from swift.identity.admin.base import (
    OPERATOR_GROUPS,
    OWNER_GROUP,
    PAGE_MAX,
    Admin,
    NoSuchIdentity,
    unique,
    validate_note,
)
from swift.identity.names import (
    InvalidIdentity,
    QualifiedName,
    shown,
    validate_name,
)
from swift.identity.policy.principals import user_arn
from swift.identity.records import (
    GROUPS_MAX,
    MEMBERS_MAX,
    POLICIES_MAX,
    AccessKey,
    DamagedRecord,
    Group,
    KeyUse,
    Role,
    User,
)

#: Holders of tokens and sessions.
SessionsT = TypeVar("SessionsT", User, Role)
_REVOKED_MAX = 5000
_is_token_id = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII).fullmatch


class _SessionsChange(Protocol):
    """Returns what becomes of a holder of sessions."""

    def __call__(self, old: SessionsT, /) -> SessionsT:
        """Return the changed record."""


class UserAdmin(Admin):
    """Users of tenants."""

    def create_user(
        self,
        *,
        user: str,
        password: str = "",
        groups: tuple[str, ...] = (),
        policies: tuple[str, ...] = (),
        note: str = "",
        imported: bool = False,
    ) -> JsonObject:
        """Create a user; without a password it has access keys only.

        ``imported``: the password comes from elsewhere and may be shorter than new ones.
        """
        name = QualifiedName.parse(user, "user")
        record = User(
            name,
            created=self._now(),
            password=self._passwords.make_hash(password, may_be_short=imported) if password else "",
            groups=unique(groups, GROUPS_MAX, "groups"),
            policies=unique(policies, POLICIES_MAX, "policies"),
            note=validate_note(note),
        )
        for group in groups:
            self._require_group(name, group)
        for policy in policies:
            self._require_policy(name, policy)
        self._create(record)
        for group in groups:
            self._note_member(name, group, is_member=True)
        return describe_user(record)

    def get_user(self, *, user: str) -> JsonObject:
        """Return a user."""
        return describe_user(self._require(User, user, "user"))

    def list_users(self, *, tenant: str, marker: str = "", limit: float = PAGE_MAX) -> JsonObject:
        """Return a page of the names of a tenant's users."""
        return self._list(User, tenant, marker, limit)

    def set_password(self, *, user: str, password: str) -> JsonObject:
        """Set the password of a user; its tokens and sessions end."""
        hashed = self._passwords.make_hash(password)
        now = self._now()

        def change(old: User) -> User:
            # Another proxy's clock may be ahead: what was revoked stays so.
            return replace(old, password=hashed, valid_from=max(now, old.valid_from))

        return describe_user(self._update(User, user, "user", change))

    def update_user(self, *, user: str, disabled: bool | None = None, note: str | None = None) -> JsonObject:
        """Disable or enable a user, or change its note."""
        if note is not None:
            validate_note(note)

        def change(old: User) -> User:
            return replace(
                old,
                disabled=old.disabled if disabled is None else disabled,
                note=old.note if note is None else note,
            )

        return describe_user(self._update(User, user, "user", change))

    def delete_user(self, *, user: str) -> JsonObject:
        """Delete a user and its access keys; the keys of a damaged one stay, without a use."""
        record = self._find(User, user, "user")
        for access_key in record.keys if record else ():
            if self._is_key_of(access_key, user):
                self._delete(AccessKey, access_key)
                self._delete(KeyUse, access_key)
        self._delete(User, user)
        for group in record.groups if record else ():
            self._note_member(QualifiedName(user), group, is_member=False)
        return {}

    def _is_key_of(self, access_key: str, user: str) -> bool:
        """Return True for a key of a user, and for a damaged one; the name may be another user's by now."""
        try:
            key = self._store.read(AccessKey, access_key).record
        except DamagedRecord:
            return True
        return key is not None and key.user == user

    def revoke_sessions(self, *, user: str = "", role: str = "") -> JsonObject:
        """End all tokens and sessions of a user or role."""
        now = self._now()

        def change(old: SessionsT) -> SessionsT:
            return replace(old, valid_from=max(now, old.valid_from))

        self._change_sessions(user, role, change)
        return {}

    def revoke_token(self, *, token_id: str, ends: float, user: str = "", role: str = "") -> JsonObject:
        """End one token of a user or role, by its id and the time at which it ends by itself."""
        if not _is_token_id(token_id):
            raise InvalidIdentity("token_id", "is no id of a token")
        now = self._now()

        def change(old: SessionsT) -> SessionsT:
            left = {known: end for known, end in old.revoked.items() if end > now}
            if len(left) >= _REVOKED_MAX:
                # All tokens end instead of none.
                return replace(old, revoked={}, valid_from=now)
            return replace(old, revoked={**left, token_id: ends})

        self._change_sessions(user, role, change)
        return {}

    def _change_sessions(self, user: str, role: str, change: _SessionsChange) -> None:
        if bool(user) == bool(role):
            raise InvalidIdentity("user", "one of user and role must be given")
        if user:
            self._update(User, user, "user", change)
        else:
            self._update(Role, role, "role", change)

    def list_tenants(self) -> JsonObject:
        """Return the tenants that have users."""
        tenants: list[str] = []
        marker = ""
        while True:
            name = next(self._store.names(User, marker=marker), None)
            if name is None:
                return {"tenants": tenants}
            tenants.append(QualifiedName(name).tenant)
            # The character after the colon.
            marker = f"{tenants[-1]};"

    # groups of users

    def add_user_to_group(self, *, user: str, group: str) -> JsonObject:
        """Add a user to a group of its tenant, given by its bare name."""
        name = QualifiedName.parse(user, "user")
        self._require_group(name, group)

        def change(old: User) -> User:
            return replace(old, groups=unique((*old.groups, group), GROUPS_MAX, "groups"))

        # A group's record lists at least its members, so that none with members is deleted.
        self._note_member(name, group, is_member=True)
        record = self._update(User, user, "user", change)
        try:
            self._require_group(name, group)
        except NoSuchIdentity:
            # It was deleted meanwhile; a later one of its name has not chosen this member.
            self.remove_user_from_group(user=user, group=group)
            raise
        return describe_user(record)

    def remove_user_from_group(self, *, user: str, group: str) -> JsonObject:
        """Remove a user from a group."""

        def change(old: User) -> User:
            if group not in old.groups:
                raise NoSuchIdentity("group", f"{user} is not in {shown(group)}")
            return replace(old, groups=tuple(each for each in old.groups if each != group))

        record = self._update(User, user, "user", change)
        self._note_member(record.qualified, group, is_member=False)
        return describe_user(record)

    def _require_group(self, user: QualifiedName, group: str) -> None:
        if group == OWNER_GROUP or group in OPERATOR_GROUPS:
            return
        self._require(Group, f"{user.tenant}:{validate_name(group, 'group')}", "group")

    def _note_member(self, user: QualifiedName, group: str, *, is_member: bool) -> None:
        """Note in a group's record who is in it, for ``get_group``."""
        if group.startswith("."):
            return

        def change(old: Group) -> Group:
            others = tuple(member for member in old.members if member != user)
            if len(others) >= MEMBERS_MAX:
                raise InvalidIdentity("group", f"has {MEMBERS_MAX} members already")
            return replace(old, members=(*others, str(user)) if is_member else others)

        try:
            self._update(Group, f"{user.tenant}:{group}", "group", change)
        except NoSuchIdentity:
            return


def describe_user(user: User) -> JsonObject:
    """Return a user as operations report it, without its password."""
    return {
        "user": user.name,
        "arn": user_arn(user.qualified.tenant, user.qualified.name),
        "created": user.created,
        "disabled": user.disabled,
        "has_password": bool(user.password),
        "groups": list(user.groups),
        "policies": list(user.policies),
        "inline": dict(user.inline),
        "keys": list(user.keys),
        "note": user.note,
    }

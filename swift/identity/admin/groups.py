"""Groups of users."""

from __future__ import annotations

from swift.base.documents import JsonObject
from swift.identity.admin.base import (
    PAGE_MAX,
    Admin,
    InUse,
    validate_note,
)
from swift.identity.names import QualifiedName
from swift.identity.policy.principals import group_arn
from swift.identity.records import DamagedRecord, Group, User


class GroupAdmin(Admin):
    """Groups of tenants."""

    def create_group(self, *, group: str, plain: bool = False, note: str = "") -> JsonObject:
        """Create a group; ``plain``: ACLs may name it without its tenant."""
        name = QualifiedName.parse(group, "group")
        record = Group(name, created=self._now(), plain=plain, note=validate_note(note))
        self._create(record)
        return describe_group(record)

    def get_group(self, *, group: str) -> JsonObject:
        """Return a group with its members."""
        record = self._require(Group, group, "group")
        name = QualifiedName(group)
        members = [member for member in record.members if self._is_member(member, name)]
        return {**describe_group(record), "members": members}

    def _is_member(self, user: str, group: QualifiedName) -> bool:
        """Return True for a member of a group, and for a damaged user that was one."""
        try:
            record = self._store.read(User, user).record
        except DamagedRecord:
            return True
        return record is not None and group.name in record.groups

    def list_groups(self, *, tenant: str, marker: str = "", limit: float = PAGE_MAX) -> JsonObject:
        """Return a page of the names of a tenant's groups."""
        return self._list(Group, tenant, marker, limit)

    def delete_group(self, *, group: str) -> JsonObject:
        """Delete a group without members."""
        members = self.get_group(group=group)["members"] if self._find(Group, group, "group") else ()
        if members:
            raise InUse("group", f"has {len(members)} members; remove them first")
        self._delete(Group, group)
        return {}


def describe_group(group: Group) -> JsonObject:
    """Return a group as operations report it."""
    name = QualifiedName(group.name)
    return {
        "group": group.name,
        "arn": group_arn(name.tenant, name.name),
        "created": group.created,
        "policies": list(group.policies),
        "inline": dict(group.inline),
        "plain": group.plain,
        "note": group.note,
    }

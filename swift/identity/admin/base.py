"""The base of all changes of identities: records that must be there, pages of names, and limits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TypeVar

from swift.base.documents import JsonObject
from swift.gateway.documents import Conflict
from swift.identity.clusterkeys import ClusterKeys
from swift.identity.names import (
    InvalidIdentity,
    QualifiedName,
    shown,
    validate_access_key,
    validate_name,
    validate_tenant,
)
from swift.identity.passwords import Passwords
from swift.identity.policy.predefined import PREDEFINED
from swift.identity.records import (
    NOTE_MAX,
    AccessKey,
    DamagedRecord,
    Record,
    StoredPolicy,
)
from swift.identity.store import RecordCache, RecordStore

RecordT = TypeVar("RecordT", bound=Record)

PAGE_MAX = 1000
#: Groups that are rights: of the own account, and those that only operators give.
OWNER_GROUP = ".admin"
OPERATOR_GROUPS = (".reseller_admin", ".reseller_reader")


class NoSuchIdentity(InvalidIdentity):
    """There is no such record."""


class IdentityExists(InvalidIdentity):
    """There is such a record already."""


class InUse(InvalidIdentity):
    """Something refers to the record."""


class Admin:
    """Changes of records.

    All operations raise ``InvalidIdentity``, ``Conflict``, ``DamagedRecord`` and ``StoreUnavailable``.
    """

    def __init__(
        self,
        cache: RecordCache,
        keys: ClusterKeys,
        passwords: Passwords,
        now: Callable[[], float] = time.time,
    ):
        self._cache = cache
        self._store: RecordStore = cache.store
        self._keys = keys
        self._passwords = passwords
        self._now = now

    def _require(self, kind: type[RecordT], name: str, field: str) -> RecordT:
        """Return the newest version of a record; raise ``NoSuchIdentity``."""
        if kind is not AccessKey:
            QualifiedName.parse(name, field)
        else:
            validate_access_key(name)
        record = self._store.read(kind, name).record
        if record is None:
            raise NoSuchIdentity(field, f"there is no {field.replace('_', ' ')} {shown(name)}")
        return record

    def _find(self, kind: type[RecordT], name: str, field: str) -> RecordT | None:
        """Return a record that is to be deleted, None for a damaged one; raise ``NoSuchIdentity``."""
        try:
            return self._require(kind, name, field)
        except DamagedRecord:
            return None

    def _create(self, record: Record) -> None:
        try:
            self._store.create(record)
        except Conflict:
            raise IdentityExists("name", f"there is {record.name} already")
        finally:
            self._cache.forget(type(record), record.name)

    def _update(
        self, kind: type[RecordT], name: str, field: str, change: Callable[[RecordT], RecordT]
    ) -> RecordT:
        if kind is not AccessKey:
            QualifiedName.parse(name, field)
        try:
            record = self._store.update(kind, name, change)
        finally:
            self._cache.forget(kind, name)
        if record is None:
            raise NoSuchIdentity(field, f"there is no {field.replace('_', ' ')} {shown(name)}")
        return record

    def _delete(self, kind: type[Record], name: str) -> None:
        try:
            self._store.delete(kind, name)
        finally:
            self._cache.forget(kind, name)

    def _list(self, kind: type[Record], tenant: str, marker: str, limit: float) -> JsonObject:
        validate_tenant(tenant, "tenant")
        count = int(max(1, min(limit, PAGE_MAX)))
        start = f"{tenant}:"
        names = self._store.names(kind, prefix=start, marker=start + marker if marker else "")
        page = [name.removeprefix(start) for name in islice(names, count + 1)]
        return {"tenant": tenant, kind.kind: page[:count], "more": len(page) > count}

    def _require_policy(self, holder: QualifiedName, policy: str) -> None:
        if policy not in PREDEFINED:
            self._require(StoredPolicy, f"{holder.tenant}:{validate_name(policy, 'policy')}", "policy")


def unique(items: Iterable[str], most: int, field: str) -> tuple[str, ...]:
    """Return items once each, in order; raise ``InvalidIdentity`` if they are too many."""
    found = tuple(dict.fromkeys(items))
    if len(found) > most:
        raise InvalidIdentity(field, f"must be {most} at most")
    return found


def validate_note(note: str) -> str:
    """Return a note; raise ``InvalidIdentity``."""
    if len(note) > NOTE_MAX or not note.isprintable():
        raise InvalidIdentity("note", f"must have at most {NOTE_MAX} printable characters")
    return note

"""Records: users, groups, roles, policies and access keys as JSON documents in the account ``.swiftauth``.

Each kind has a container, and each record is an object named by its owner: ``users/test:alice``. A record
that was deleted leaves a document without content for a while, so that the newest version that any replica
has decides. Format: doc/formats/identity.md.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from swift.base.documents import JsonObject
from swift.base.errors import SwiftError
from swift.identity.names import InvalidIdentity, QualifiedName, validate_access_key

FORMAT = 1
#: Most of what a record may list.
POLICIES_MAX, INLINE_MAX, GROUPS_MAX, KEYS_MAX, MEMBERS_MAX = 20, 10, 64, 20, 100_000
NOTE_MAX = 256
RECORD_BYTES_MAX = 8 << 20


class DamagedRecord(SwiftError):
    """A record that cannot be read; its text names the record and the field."""


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a string")
    return value


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _time(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise ValueError("must be a Unix time")
    return float(value)


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError("must be a list of strings")
    return tuple(map(_text, value))


def _named_texts(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError("must be an object of strings")
    return {name: _text(item) for name, item in value.items()}


def _named_times(value: object) -> dict[str, float]:
    if not isinstance(value, dict):
        raise ValueError("must be an object of times")
    return {name: _time(item) for name, item in value.items()}


def _member(
    read: Callable[[object], object], default: object = dataclasses.MISSING, *, repr: bool = True
) -> Any:
    """Return a dataclass field of a document, read by a function that raises ValueError."""
    metadata = {"read": read}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata, repr=repr)
    if default is dataclasses.MISSING:
        return field(metadata=metadata, repr=repr)
    return field(default=default, metadata=metadata, repr=repr)


@dataclass(frozen=True)
class Record:
    """A record; ``name`` is the object's."""

    kind: ClassVar[str]
    name: str

    def to_document(self) -> bytes:
        """Return the record as JSON."""
        tree: JsonObject = {"format": FORMAT}
        for each in dataclasses.fields(self):
            if "read" in each.metadata:
                value = getattr(self, each.name)
                tree[each.name] = list(value) if isinstance(value, tuple) else value
        return json.dumps(tree, ensure_ascii=True, separators=(",", ":"), sort_keys=True).encode("ascii")

    @classmethod
    def from_document(cls, name: str, tree: JsonObject) -> Self:
        """Return the record of a parsed document; raise ``DamagedRecord``."""
        place = f"{cls.kind}/{name}"
        if tree.get("format") != FORMAT:
            raise DamagedRecord(f"{place}: its format is not {FORMAT}; another version wrote it")
        values: JsonObject = {}
        for each in dataclasses.fields(cls):
            read = each.metadata.get("read")
            if read is None or each.name not in tree:
                continue
            try:
                values[each.name] = read(tree[each.name])
            except ValueError as error:
                raise DamagedRecord(f"{place}: {each.name} {error}")
        try:
            return cls(name, **values)
        except (TypeError, InvalidIdentity) as error:
            raise DamagedRecord(f"{place}: {error}")


@dataclass(frozen=True)
class User(Record):
    """A person or a program; named ``TENANT:NAME``."""

    kind = "users"

    created: float = _member(_time, 0.0)
    #: The hash of the password in PHC's format; empty: no log-in by password.
    password: str = _member(_text, "", repr=False)
    disabled: bool = _member(_truth, False)
    #: Names within the tenant, and the words of tempauth such as ``.admin``.
    groups: tuple[str, ...] = _member(_texts, ())
    #: Names of attached policies, within the tenant or predefined.
    policies: tuple[str, ...] = _member(_texts, ())
    #: Name → document of policies of its own.
    inline: Mapping[str, str] = _member(_named_texts, {})
    keys: tuple[str, ...] = _member(_texts, ())
    note: str = _member(_text, "")
    #: Tokens and sessions of before are refused.
    valid_from: float = _member(_time, 0.0)
    #: Ids of revoked tokens → when they end by themselves.
    revoked: Mapping[str, float] = _member(_named_times, {})

    @property
    def qualified(self) -> QualifiedName:
        """The name with its parts."""
        return QualifiedName(self.name)


@dataclass(frozen=True)
class Group(Record):
    """A group of users of a tenant; named ``TENANT:NAME``. Users say themselves which groups they are in."""

    kind = "groups"

    created: float = _member(_time, 0.0)
    policies: tuple[str, ...] = _member(_texts, ())
    inline: Mapping[str, str] = _member(_named_texts, {})
    note: str = _member(_text, "")
    #: True if ACLs may name it by its bare name, which other tenants' ACLs may have too.
    plain: bool = _member(_truth, False)
    #: Names of users that are or were in it; the users' records decide.
    members: tuple[str, ...] = _member(_texts, ())


@dataclass(frozen=True)
class Role(Record):
    """Rights that callers take for a time; named ``TENANT:NAME``."""

    kind = "roles"

    trust: str = _member(_text)
    created: float = _member(_time, 0.0)
    disabled: bool = _member(_truth, False)
    #: Words of tempauth such as ``.admin``.
    groups: tuple[str, ...] = _member(_texts, ())
    policies: tuple[str, ...] = _member(_texts, ())
    inline: Mapping[str, str] = _member(_named_texts, {})
    max_session: float = _member(_time, 3600.0)
    note: str = _member(_text, "")
    valid_from: float = _member(_time, 0.0)
    revoked: Mapping[str, float] = _member(_named_times, {})


@dataclass(frozen=True)
class StoredPolicy(Record):
    """A policy that users, groups and roles of a tenant share; named ``TENANT:NAME``."""

    kind = "policies"

    document: str = _member(_text)
    created: float = _member(_time, 0.0)
    changed: float = _member(_time, 0.0)
    note: str = _member(_text, "")


@dataclass(frozen=True)
class AccessKey(Record):
    """An access key of a user; named by itself."""

    kind = "keys"

    user: str = _member(_text)
    #: The secret key, sealed by ``ClusterKeys`` for the access key.
    secret: str = _member(_text, repr=False)
    created: float = _member(_time, 0.0)
    #: When it ends; 0: never.
    ends: float = _member(_time, 0.0)
    disabled: bool = _member(_truth, False)
    note: str = _member(_text, "")
    read_only: bool = _member(_truth, False)
    container: str = _member(_text, "")
    prefix: str = _member(_text, "")
    networks: tuple[str, ...] = _member(_texts, ())

    def __post_init__(self) -> None:
        validate_access_key(self.name)

    def is_usable(self, now: float) -> bool:
        """Return True unless it is disabled or ended."""
        return not self.disabled and not 0 < self.ends <= now


@dataclass(frozen=True)
class KeyUse(Record):
    """The last use of an access key; named by it."""

    kind = "uses"

    #: Unix time, to the hour.
    at: float = _member(_time, 0.0)
    address: str = _member(_text, "")


@dataclass(frozen=True)
class OidcProvider(Record):
    """A provider of OpenID Connect; named by one word. Its settings are those of ``identity.oidc``."""

    kind = "providers"

    settings: str = _member(_text)
    #: The client's secret, sealed for the provider's name.
    client_secret: str = _member(_text, "", repr=False)
    created: float = _member(_time, 0.0)


KINDS: tuple[type[Record], ...] = (User, Group, Role, StoredPolicy, AccessKey, KeyUse, OidcProvider)


def tombstone(now: float | None = None) -> bytes:
    """Return the document of a deleted record."""
    return json.dumps({"format": FORMAT, "deleted": time.time() if now is None else now}).encode("ascii")

"""Callers: who a password, token, access key or session is, and which rights they have.

Everything comes from cached records. What is made of them is kept until one of the records has to be read
again, so that the requests of a known caller cost a look-up.
"""

from __future__ import annotations

import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

from swift import green
from swift.base.memo import SizedCache
from swift.gateway.documents import StoreUnavailable
from swift.identity.clusterkeys import ClusterKeys, Unreadable
from swift.identity.names import SESSION_PREFIX, QualifiedName, is_access_key
from swift.identity.policy.conditions import InvalidPolicy
from swift.identity.policy.document import IdentityPolicy, parse_identity_policy
from swift.identity.policy.predefined import PREDEFINED, limits_policy
from swift.identity.policy.principals import (
    Principal,
    session_arn,
    session_principal,
    user_arn,
    user_principal,
)
from swift.identity.records import (
    AccessKey,
    DamagedRecord,
    Group,
    KeyUse,
    Record,
    Role,
    StoredPolicy,
    User,
)
from swift.identity.rights import NamedPolicy, Rights
from swift.identity.store import RecordCache
from swift.identity.tokens import Ticket, Tickets, is_session_key

RecordT = TypeVar("RecordT", bound=Record)

#: Groups that are rights.
ADMIN, RESELLER_ADMIN, RESELLER_READER = ".admin", ".reseller_admin", ".reseller_reader"
#: Bytes of callers that are kept, and of each one besides the texts of its policies. Parsed policies take
#: some ten times as much as their texts.
_CALLERS_BYTES_MAX, _CALLER_BYTES = 32 << 20, 1 << 10
#: Longest text of the policies of one caller, bytes: each request evaluates all of them.
POLICY_TEXT_MAX = 128 << 10
_USES_MAX = 20_000
_HOUR_S = 3600


class Caller(NamedTuple):
    """A caller and its rights."""

    #: ``TENANT:NAME``; of a session of a role ``TENANT:role/ROLE/SESSION``.
    name: str
    tenant: str
    account: str
    #: The group string of ACLs, see ``middleware.groupauth``.
    groups: str
    rights: Rights
    is_operator: bool
    #: True for temporary keys, and with an access key that ends.
    is_temporary: bool = False


class KnownKey(NamedTuple):
    """An access key that may be used: its secret, and how to find its caller after the signature is right."""

    secret: str
    #: The user of a lasting key; empty for a session.
    user: str
    find_caller: Callable[[], Caller | None]

    def is_secret(self, text: str) -> bool:
        """Return True for the secret key; compares in constant time."""
        return hmac.compare_digest(self.secret.encode(), text.encode("utf-8", "surrogateescape"))


class Directory:
    """Finds callers. Its methods raise ``StoreUnavailable``, and ``DamagedRecord`` for a damaged caller."""

    def __init__(
        self,
        cache: RecordCache,
        keys: ClusterKeys,
        *,
        prefix: str,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        spawn: Callable[[Callable[[], object]], object] = green.spawn_detached,
    ):
        """``prefix`` is the reseller prefix of accounts."""
        self.cache = cache
        self.tickets = Tickets(keys)
        self._keys = keys
        self._prefix = prefix
        self._now = now
        self._monotonic = monotonic
        self._spawn = spawn
        #: (user or role, session, access key, session policy) → caller, until when (monotonic).
        self._callers: SizedCache[tuple[str, str, str, str], tuple[Caller, float]] = SizedCache(
            _CALLERS_BYTES_MAX
        )
        #: Sealed secrets that were opened.
        self._open_secret = lru_cache(maxsize=10_000)(keys.open)
        #: Access key → hour and address of the use that is stored.
        self._uses: OrderedDict[str, tuple[int, str]] = OrderedDict()

    def account_of(self, tenant: str) -> str:
        """Return the account of a tenant."""
        return self._prefix + tenant

    # credentials

    def user(self, name: str) -> User | None:
        """Return a user, also a disabled one."""
        return self.cache.get(User, name)

    def caller_of_ticket(self, ticket: Ticket) -> Caller | None:
        """Return the caller of a valid token or session; None if it was revoked."""
        if ticket.is_session:
            return self._session_caller(ticket)
        user = self.cache.get(User, ticket.name)
        if user is None or user.disabled or ticket.id in user.revoked:
            return None
        if ticket.issued < max(user.created, user.valid_from):
            return None
        if ticket.parent:
            key = self.cache.get(AccessKey, ticket.parent)
            if key is None or not key.is_usable(self._now()):
                return None
            if key.user != user.name or key.created < user.created:
                return None
        caller = self._user_caller(ticket.name, ticket.parent, ticket.policy)
        return caller._replace(is_temporary=True) if caller and ticket.access_key else caller

    def find_key(self, access_key: str, session_token: str) -> KnownKey | None:
        """Return a usable access key; None for an unknown, ended or disabled one."""
        if not is_access_key(access_key):
            return None
        if session_token or access_key.startswith(SESSION_PREFIX):
            found = self.tickets.read_session_token(access_key, session_token, self._now())
            if found is None:
                return None
            ticket, secret = found
            return KnownKey(secret, "", lambda: self.caller_of_ticket(ticket))
        key = self.cache.get(AccessKey, access_key)
        if key is None or not key.is_usable(self._now()):
            return None
        try:
            secret = self._open_secret(key.secret, access_key)
        except Unreadable as error:
            raise DamagedRecord(f"keys/{access_key}: {error}")
        return KnownKey(secret, key.user, lambda: self._key_caller(key))

    def is_key(self, text: str) -> bool:
        """Return True for a lasting access key, also one that may not be used."""
        if not is_access_key(text) or is_session_key(text):
            return False
        return self.cache.get(AccessKey, text) is not None

    def _key_caller(self, key: AccessKey) -> Caller | None:
        user = self.cache.get(User, key.user)
        if user is None or user.disabled or key.created < user.created:
            # Keys of an earlier user of this name are not the user's.
            return None
        return self._user_caller(key.user, key.name, "")

    # callers

    def caller_of_user(self, name: QualifiedName) -> Caller | None:
        """Return a user with its rights; None for one there is not, or a disabled one."""
        return self._user_caller(name, "", "")

    def caller_of_role(self, name: QualifiedName) -> Caller | None:
        """Return a session of a role, for questions about it; None as for users."""
        return self._cached((name, "check", "", ""), self._make_session_caller)

    def _user_caller(self, name: str, access_key: str, policy: str) -> Caller | None:
        return self._cached((name, "", access_key, policy), self._make_user_caller)

    def _session_caller(self, ticket: Ticket) -> Caller | None:
        role = self.cache.get(Role, ticket.name)
        if role is None or role.disabled or ticket.id in role.revoked:
            return None
        if ticket.issued < max(role.created, role.valid_from):
            return None
        return self._cached((ticket.name, ticket.session, "", ticket.policy), self._make_session_caller)

    def _cached(
        self,
        key: tuple[str, str, str, str],
        make: Callable[[_Reading, tuple[str, str, str, str]], Caller | None],
    ) -> Caller | None:
        known = self._callers.get(key)
        if known is not None and self._monotonic() < known[1]:
            return known[0]
        reading = _Reading(self.cache)
        caller = make(reading, key)
        if caller is None:
            self._callers.drop(key)
        elif reading.text_bytes > POLICY_TEXT_MAX:
            text = f"its policies and those of its groups have more than {POLICY_TEXT_MAX} bytes"
            raise DamagedRecord(f"{caller.name}: {text}")
        else:
            self._callers.keep(key, (caller, reading.until), _CALLER_BYTES + reading.text_bytes)
        return caller

    def _make_user_caller(self, reading: _Reading, key: tuple[str, str, str, str]) -> Caller | None:
        name, _, access_key, policy = key
        user = reading.get(User, name)
        if user is None or user.disabled:
            return None
        qualified = user.qualified
        boundaries = []
        ends = 0.0
        if access_key:
            record = reading.get(AccessKey, access_key)
            if record is None:
                return None
            ends = record.ends
            limits = _limits(record)
            if limits is not None:
                boundaries.append(NamedPolicy(f"limits of {access_key}", limits))
        if policy:
            boundaries.append(NamedPolicy("session policy", reading.parse(policy)))
        groups = [group for group in user.groups if not group.startswith(".")]
        records = [(group, reading.get(Group, f"{qualified.tenant}:{group}")) for group in groups]
        held = [
            *self._policies(reading, qualified, user),
            *(
                each
                for group, record in records
                if record is not None
                for each in self._policies(reading, qualified, record, f"group {group}: ")
            ),
        ]
        names = [
            *(f"{qualified.tenant}:group/{group}" for group in groups),
            *(group for group, record in records if record is not None and record.plain),
        ]
        tenant = qualified.tenant
        caller = self._caller(
            *(name, tenant, user.groups, names, held, boundaries),
            user_principal(tenant, qualified.name, self._prefix + tenant, groups),
            {
                "aws:username": qualified.name,
                "aws:userid": name,
                "aws:principaltype": "User",
                "aws:principalarn": user_arn(tenant, qualified.name),
            },
        )
        return caller._replace(is_temporary=ends > 0)

    def _make_session_caller(self, reading: _Reading, key: tuple[str, str, str, str]) -> Caller | None:
        name, session, _, policy = key
        role = reading.get(Role, name)
        if role is None or role.disabled:
            return None
        qualified = QualifiedName(name)
        boundaries = [NamedPolicy("session policy", reading.parse(policy))] if policy else []
        tenant, role_name = qualified.tenant, qualified.name
        return self._caller(
            *(f"{tenant}:role/{role_name}/{session}", tenant, role.groups, [f"{tenant}:role/{role_name}"]),
            *(self._policies(reading, qualified, role), boundaries),
            session_principal(tenant, role_name, session, self._prefix + tenant),
            {
                "aws:userid": f"{name}:{session}",
                "aws:principaltype": "AssumedRole",
                "aws:principalarn": session_arn(tenant, role_name, session),
            },
        )

    def _caller(
        self,
        name: str,
        tenant: str,
        flags: Iterable[str],
        group_names: Sequence[str],
        policies: Sequence[NamedPolicy],
        boundaries: Sequence[NamedPolicy],
        principal: Principal,
        values: Mapping[str, str],
    ) -> Caller:
        account = self._prefix + tenant
        rights_words = [flag for flag in flags if flag in (RESELLER_ADMIN, RESELLER_READER)]
        groups = [tenant, name, *group_names, *rights_words]
        is_owner, is_operator = ADMIN in flags, RESELLER_ADMIN in flags
        if is_owner:
            groups.append(account)
        rights = Rights(
            principal=principal,
            account=account,
            is_owner=is_owner,
            is_operator=is_operator,
            policies=tuple(policies),
            boundaries=tuple(boundaries),
            condition_values={**values, "aws:principalaccount": account},
        )
        return Caller(name, tenant, account, ",".join(groups), rights, is_operator)

    def _policies(
        self, reading: _Reading, holder: QualifiedName, record: User | Group | Role, place: str = ""
    ) -> list[NamedPolicy]:
        """Return the policies of a record; raise ``DamagedRecord``: a denial that is not read would allow."""
        found = [NamedPolicy(place + name, reading.parse(text)) for name, text in record.inline.items()]
        for name in record.policies:
            policy = PREDEFINED.get(name)
            if policy is None:
                stored = reading.get(StoredPolicy, f"{holder.tenant}:{name}")
                if stored is None:
                    continue
                policy = reading.parse(stored.document)
            found.append(NamedPolicy(place + name, policy))
        return found

    # uses of keys

    def note_use(self, access_key: str, address: str) -> None:
        """Store that an access key is used, once an hour and address, in the background."""
        hour = int(self._now() // _HOUR_S)
        if self._uses.get(access_key) == (hour, address) or is_session_key(access_key):
            return
        known = self._uses.pop(access_key, None)
        if len(self._uses) >= _USES_MAX:
            self._uses.popitem(last=False)
        self._uses[access_key] = hour, address
        if known is None or known[0] != hour:
            self._spawn(lambda: self._store_use(access_key, hour, address))

    def _store_use(self, access_key: str, hour: int, address: str) -> None:
        try:
            self.cache.store.put_unconditionally(
                KeyUse(access_key, at=float(hour * _HOUR_S), address=address)
            )
        except StoreUnavailable:
            # It is stored in the next hour.
            return


class _Reading:
    """Reads of records, until when what is made of them counts, and how much text it has."""

    def __init__(self, cache: RecordCache):
        self._cache = cache
        self.until = float("inf")
        self.text_bytes = 0

    def get(self, kind: type[RecordT], name: str) -> RecordT | None:
        record, until = self._cache.get_until(kind, name)
        self.until = min(self.until, until)
        return record

    def parse(self, document: str) -> IdentityPolicy:
        """Return a policy; raise ``DamagedRecord``."""
        self.text_bytes += len(document)
        found = _POLICIES.get(document)
        if found is None:
            try:
                found = _POLICIES.keep(document, parse_identity_policy(document), len(document))
            except InvalidPolicy as error:
                raise DamagedRecord(f"a policy cannot be read: {error}")
        return found


#: Policies that were parsed lately, within bytes of text; users share them.
_POLICIES: SizedCache[str, IdentityPolicy] = SizedCache(4 << 20)


def _limits(key: AccessKey) -> IdentityPolicy | None:
    """Return the policy that an access key must pass; None without limits."""
    containers = (key.container,) if key.container else ()
    try:
        return limits_policy(
            read_only=key.read_only, containers=containers, prefix=key.prefix, networks=key.networks
        )
    except InvalidPolicy as error:
        raise DamagedRecord(f"keys/{key.name}: {error}")

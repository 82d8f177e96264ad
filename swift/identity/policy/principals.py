"""Principals: the names of a caller, and the callers that a statement names.

A caller is a user, a session of a role, or a web identity of a provider; an anonymous one has no names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from swift.identity.policy.conditions import InvalidPolicy, Json, parse_texts

ALL_PRINCIPALS = "*"
_IAM_ARN_PREFIX = "arn:aws:iam::"
_STS_ARN_PREFIX = "arn:aws:sts::"
_PROVIDER_KIND = "oidc-provider"
_INVALID = "Invalid principal in policy"


def user_arn(tenant: str, name: str) -> str:
    """Return the ARN of a user."""
    return f"{_IAM_ARN_PREFIX}{tenant}:user/{name}"


def group_arn(tenant: str, name: str) -> str:
    """Return the ARN of a group."""
    return f"{_IAM_ARN_PREFIX}{tenant}:group/{name}"


def role_arn(tenant: str, name: str) -> str:
    """Return the ARN of a role."""
    return f"{_IAM_ARN_PREFIX}{tenant}:role/{name}"


def session_arn(tenant: str, role: str, session: str) -> str:
    """Return the ARN of a session of a role."""
    return f"{_STS_ARN_PREFIX}{tenant}:assumed-role/{role}/{session}"


@dataclass(frozen=True, slots=True)
class Principal:
    """The names by which policies of buckets and roles may name a caller; all empty for an anonymous one."""

    #: ``TENANT:NAME``, or the access key of a caller without rights of its own.
    user: str = ""
    #: Names of the caller's account.
    accounts: frozenset[str] = frozenset()
    #: ARNs of the user's groups.
    groups: frozenset[str] = frozenset()
    #: ARNs of a role and of its session.
    role: str = ""
    session: str = ""
    #: The name of the provider of a web identity.
    provider: str = ""
    #: A Deny with NotPrincipal spares the caller only if its account is named as well, as AWS has it.
    needs_named_account: bool = False


def user_principal(tenant: str, name: str, account: str, groups: Iterable[str] = ()) -> Principal:
    """Return the principal of a user; ``groups`` are names in its tenant."""
    return Principal(
        f"{tenant}:{name}",
        frozenset((tenant, account)),
        frozenset(group_arn(tenant, group) for group in groups),
        needs_named_account=True,
    )


def session_principal(tenant: str, role: str, session: str, account: str) -> Principal:
    """Return the principal of a session of a role."""
    return Principal(
        accounts=frozenset((tenant, account)),
        role=role_arn(tenant, role),
        session=session_arn(tenant, role, session),
        needs_named_account=True,
    )


@dataclass(frozen=True, slots=True)
class Principals:
    """The principals that a statement names."""

    #: All principals, anonymous ones included.
    includes_all: bool = False
    #: Access keys and names of users.
    users: frozenset[str] = frozenset()
    #: Accounts, all of whose users are meant.
    accounts: frozenset[str] = frozenset()
    #: ARNs of groups, roles and sessions.
    arns: frozenset[str] = frozenset()
    #: Names of providers of web identities.
    providers: frozenset[str] = frozenset()

    def names_caller(self, principal: Principal, *, allows: bool) -> bool:
        """Return True if the caller is named by itself, by its group or role, or with all others.

        To allow a web identity its provider must be named: ``*`` would be all people of the world.
        """
        if self.includes_all and not (allows and principal.provider):
            return True
        return self._names_identity(principal)

    def names_account(self, principal: Principal) -> bool:
        """Return True if the caller's account is named."""
        return not self.accounts.isdisjoint(principal.accounts)

    def spares(self, principal: Principal, *, allows: bool) -> bool:
        """Return True if the statement leaves out the caller, as its ``NotPrincipal``.

        Of the readings of AWS's text this is the one that permits less. An Allow leaves out a caller named in
        any way. A Deny leaves out a caller with rights of its own if its account is named too, and a session
        if its role is named too.
        """
        if self.includes_all:
            return True
        if allows or not principal.needs_named_account:
            return self._names_identity(principal) or self.names_account(principal)
        if not self.names_account(principal):
            return False
        if principal.session:
            return principal.role in self.arns and principal.session in self.arns
        return self._names_identity(principal)

    def _names_identity(self, principal: Principal) -> bool:
        if principal.user and principal.user in self.users:
            return True
        if principal.provider and principal.provider in self.providers:
            return True
        arns = self.arns
        return bool(arns) and (
            principal.role in arns or principal.session in arns or not arns.isdisjoint(principal.groups)
        )


#: The principals of documents that name none: the holders of the policy.
EVERY_HOLDER = Principals(includes_all=True)


class PrincipalParser:
    """Collects the principals of one statement."""

    def __init__(self, unsupported_kinds: tuple[str, ...] = ()):
        #: Kinds that the cluster does not have: they are stored and match no caller.
        self._unsupported_kinds = unsupported_kinds
        self._includes_all = False
        self._users: set[str] = set()
        self._accounts: set[str] = set()
        self._arns: set[str] = set()
        self._providers: set[str] = set()

    def parse(self, value: Json) -> Principals:
        """Return the principals; raise ``InvalidPolicy``."""
        if value == ALL_PRINCIPALS:
            return Principals(includes_all=True)
        if not isinstance(value, dict) or not value:
            raise InvalidPolicy(_INVALID, value if isinstance(value, str) else "")
        self._add_kinds(value)
        return Principals(
            self._includes_all,
            *map(frozenset, (self._users, self._accounts, self._arns, self._providers)),
        )

    def _add_kinds(self, kinds: Mapping[str, Json]) -> None:
        for kind, names in kinds.items():
            for name in parse_texts(names, "Principal"):
                if kind in self._unsupported_kinds:
                    continue
                if name == ALL_PRINCIPALS and kind == "AWS":
                    self._includes_all = True
                    continue
                if "*" in name or "?" in name:
                    raise InvalidPolicy(_INVALID, name)
                if kind == "AWS":
                    self._add_name(name)
                elif kind == "CanonicalUser":
                    self._users.add(name)
                elif kind == "Federated":
                    self._providers.add(_provider_name(name))
                else:
                    raise InvalidPolicy(_INVALID, kind)

    def _add_name(self, name: str) -> None:
        """Add an access key, an account, or an ARN."""
        if name.startswith("arn:"):
            self._add_arn(name)
            return
        self._users.add(name)
        if ":" not in name:
            # A key of Keystone has no colon, nor has an account.
            self._accounts.add(name)

    def _add_arn(self, arn: str) -> None:
        is_session = arn.startswith(_STS_ARN_PREFIX)
        if not is_session and not arn.startswith(_IAM_ARN_PREFIX):
            raise InvalidPolicy(_INVALID, arn)
        account, _, rest = arn[len(_IAM_ARN_PREFIX) :].partition(":")
        kind, _, path = rest.partition("/")
        # The path before a name is ignored.
        name = path.rpartition("/")[2]
        if not account or (rest != "root" and not name):
            raise InvalidPolicy(_INVALID, arn)
        if is_session:
            role, _, session = path.partition("/")
            if kind != "assumed-role" or not role or not session or "/" in session:
                raise InvalidPolicy(_INVALID, arn)
            self._arns.add(session_arn(account, role, session))
        elif rest == "root":
            self._accounts.add(account)
        elif kind == "user":
            self._users.add(f"{account}:{name}")
        elif kind == "group":
            self._arns.add(group_arn(account, name))
        elif kind == "role":
            self._arns.add(role_arn(account, name))
        else:
            raise InvalidPolicy(_INVALID, arn)


def _provider_name(text: str) -> str:
    """Return the name of a provider from its ARN or its plain name."""
    if not text.startswith("arn:"):
        return text
    account, _, rest = text.removeprefix(_IAM_ARN_PREFIX).partition(":")
    kind, _, name = rest.partition("/")
    if not text.startswith(_IAM_ARN_PREFIX) or not account or kind != _PROVIDER_KIND or not name:
        raise InvalidPolicy(_INVALID, text)
    return name

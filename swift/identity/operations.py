"""Operations on identities by name: parameters from outside, and who may call what.

Operators may call all of them. Others need the action of the operation in the tenant of the record, by
policies or as owners of the tenant's account. Only operators give the rights of operators, and change users
and roles with these rights. A user may manage its own password and keys if its credentials are not limited
and do not end.
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable
from typing import NamedTuple

from swift.base.documents import JsonObject
from swift.gateway.internal_client import InternalClient
from swift.identity.admin.base import OPERATOR_GROUPS, Admin
from swift.identity.admin.check import PolicyCheck, account_of_resource
from swift.identity.admin.groups import GroupAdmin
from swift.identity.admin.keys import KeyAdmin
from swift.identity.admin.policies import PolicyAdmin
from swift.identity.admin.providers import ProviderAdmin
from swift.identity.admin.roles import RoleAdmin
from swift.identity.admin.users import UserAdmin
from swift.identity.clusterkeys import ClusterKeys
from swift.identity.directory import Caller, Directory
from swift.identity.names import (
    InvalidIdentity,
    QualifiedName,
    shown,
)
from swift.identity.passwords import Passwords
from swift.identity.policy.conditions import PolicyContext
from swift.identity.policy.evaluate import PolicyVerdict, combine_verdicts
from swift.identity.records import DamagedRecord, Role, User
from swift.identity.rights import AccessRequest
from swift.identity.store import RecordCache
from swift.identity.tokens import Ticket


class _EmptyContext:
    """The context of calls without a request."""

    def values(self, _key: str) -> None:
        """Return None: it has no values."""


EMPTY_CONTEXT = _EmptyContext()


class Forbidden(Exception):
    """The caller may not call an operation; the text says which action is missing."""


class Operation(NamedTuple):
    """An operation: the method that carries it out, and the action that callers need."""

    admin: type[Admin | PolicyCheck]
    method: str
    #: Action, without ``iam:``.
    action: str
    #: True if users may call it for themselves.
    is_own: bool = False
    for_operators: bool = False

    @property
    def is_read(self) -> bool:
        """True if it changes nothing."""
        return self.method.startswith(("get_", "list_", "check_"))


#: Every operation by name.
OPERATIONS: dict[str, Operation] = {
    "CreateUser": Operation(UserAdmin, "create_user", "CreateUser"),
    "GetUser": Operation(UserAdmin, "get_user", "GetUser", is_own=True),
    "ListUsers": Operation(UserAdmin, "list_users", "ListUsers"),
    "SetPassword": Operation(UserAdmin, "set_password", "UpdateLoginProfile", is_own=True),
    "UpdateUser": Operation(UserAdmin, "update_user", "UpdateUser"),
    "DeleteUser": Operation(UserAdmin, "delete_user", "DeleteUser"),
    "RevokeSessions": Operation(UserAdmin, "revoke_sessions", "UpdateUser"),
    "RevokeToken": Operation(UserAdmin, "revoke_token", "UpdateUser", is_own=True),
    "AddUserToGroup": Operation(UserAdmin, "add_user_to_group", "AddUserToGroup"),
    "RemoveUserFromGroup": Operation(UserAdmin, "remove_user_from_group", "RemoveUserFromGroup"),
    "ListTenants": Operation(UserAdmin, "list_tenants", "ListUsers", for_operators=True),
    "CreateAccessKey": Operation(KeyAdmin, "create_access_key", "CreateAccessKey", is_own=True),
    "ListAccessKeys": Operation(KeyAdmin, "list_access_keys", "ListAccessKeys", is_own=True),
    "UpdateAccessKey": Operation(KeyAdmin, "update_access_key", "UpdateAccessKey", is_own=True),
    "DeleteAccessKey": Operation(KeyAdmin, "delete_access_key", "DeleteAccessKey", is_own=True),
    "CreateGroup": Operation(GroupAdmin, "create_group", "CreateGroup"),
    "GetGroup": Operation(GroupAdmin, "get_group", "GetGroup"),
    "ListGroups": Operation(GroupAdmin, "list_groups", "ListGroups"),
    "DeleteGroup": Operation(GroupAdmin, "delete_group", "DeleteGroup"),
    "CreateRole": Operation(RoleAdmin, "create_role", "CreateRole"),
    "GetRole": Operation(RoleAdmin, "get_role", "GetRole"),
    "ListRoles": Operation(RoleAdmin, "list_roles", "ListRoles"),
    "UpdateRole": Operation(RoleAdmin, "update_role", "UpdateRole"),
    "DeleteRole": Operation(RoleAdmin, "delete_role", "DeleteRole"),
    "CreatePolicy": Operation(PolicyAdmin, "create_policy", "CreatePolicy"),
    "GetPolicy": Operation(PolicyAdmin, "get_policy", "GetPolicy"),
    "ListPolicies": Operation(PolicyAdmin, "list_policies", "ListPolicies"),
    "UpdatePolicy": Operation(PolicyAdmin, "update_policy", "CreatePolicyVersion"),
    "DeletePolicy": Operation(PolicyAdmin, "delete_policy", "DeletePolicy"),
    "AttachPolicy": Operation(PolicyAdmin, "attach_policy", "Attach{}Policy"),
    "DetachPolicy": Operation(PolicyAdmin, "detach_policy", "Detach{}Policy"),
    "PutInlinePolicy": Operation(PolicyAdmin, "put_inline_policy", "Put{}Policy"),
    "DeleteInlinePolicy": Operation(PolicyAdmin, "delete_inline_policy", "Delete{}Policy"),
    "CheckPolicy": Operation(PolicyCheck, "check_policy", "SimulatePrincipalPolicy"),
    "PutProvider": Operation(
        ProviderAdmin, "put_provider", "CreateOpenIDConnectProvider", for_operators=True
    ),
    "GetProvider": Operation(ProviderAdmin, "get_provider", "GetOpenIDConnectProvider", for_operators=True),
    "ListProviders": Operation(
        ProviderAdmin, "list_providers", "ListOpenIDConnectProviders", for_operators=True
    ),
    "DeleteProvider": Operation(
        ProviderAdmin, "delete_provider", "DeleteOpenIDConnectProvider", for_operators=True
    ),
}
#: Operation and parameter → the action that callers need for the parameter as well, without ``iam:``.
_ACTIONS_OF_PARAMS = {
    ("CreateUser", "password"): "CreateLoginProfile",
    ("CreateUser", "policies"): "AttachUserPolicy",
    ("CreateRole", "groups"): "AttachRolePolicy",
    ("CreateRole", "policies"): "AttachRolePolicy",
    ("UpdateRole", "groups"): "AttachRolePolicy",
    ("UpdateRole", "trust"): "UpdateAssumeRolePolicy",
}
#: Parameters that name a record, in the order in which they are the resource of an operation.
_RESOURCES = ("user", "role", "group", "policy")
#: Kinds of a parameter, by its annotation.
_KINDS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "str": (str, "a string"),
    "bool": (bool, "true or false"),
    "float": ((int, float), "a number"),
    "tuple[str, ...]": (list, "a list of strings"),
}


class IdentityOperations:
    """Calls operations."""

    def __init__(
        self,
        cache: RecordCache,
        keys: ClusterKeys,
        passwords: Passwords,
        *,
        directory: Directory,
        client: InternalClient,
        prefix: str,
        now: Callable[[], float] = time.time,
    ):
        self._prefix = prefix
        self._store = cache.store
        self._key_admin = KeyAdmin(cache, keys, passwords, now)
        kinds: tuple[type[Admin], ...] = (UserAdmin, GroupAdmin, RoleAdmin, PolicyAdmin, ProviderAdmin)
        self._admins: dict[type[Admin | PolicyCheck], Admin | PolicyCheck] = {
            KeyAdmin: self._key_admin,
            PolicyCheck: PolicyCheck(directory, client),
            **{kind: kind(cache, keys, passwords, now) for kind in kinds},
        }

    def call(
        self, name: str, params: JsonObject, caller: Caller | None, context: PolicyContext
    ) -> JsonObject:
        """Return the result of an operation; without a caller it is allowed.

        Raises ``Forbidden``, and what the operations raise.
        """
        operation = OPERATIONS.get(name)
        if operation is None:
            raise InvalidIdentity("operation", f"there is no {shown(name)}")
        admin = self._admins[operation.admin]
        method = getattr(admin, operation.method)
        given = _validate_params(method, params)
        if caller is not None and not caller.is_operator:
            self._authorize(name, operation, given, caller, context)
        elif caller is not None:
            self._decide(operation, given, caller, "", context)
        result: JsonObject = method(**given)
        return result

    def revoke(self, ticket: Ticket) -> None:
        """End a token, for its owner."""
        holder = "role" if ticket.is_session else "user"
        params = {holder: ticket.name, "token_id": ticket.id, "ends": ticket.ends}
        self.call("RevokeToken", params, None, EMPTY_CONTEXT)

    def _authorize(
        self,
        name: str,
        operation: Operation,
        given: JsonObject,
        caller: Caller,
        context: PolicyContext,
    ) -> None:
        """Raise ``Forbidden`` unless a caller may call an operation."""
        asked = [given.get("group", ""), *(given.get("groups") or ())]
        is_for_operators = operation.for_operators or given.get("plain") or given.get("imported")
        if is_for_operators or any(group in OPERATOR_GROUPS for group in asked):
            raise Forbidden(f"{name}: only operators may do that")
        owner = self._owner_of_key(given) if _is_of_key(operation) else ""
        user = owner or given.get("user", "")
        verdict = self._decide(operation, given, caller, owner, context)
        is_own = operation.is_own and _is_own(caller, user, operation)
        if verdict is not PolicyVerdict.ALLOW and not (is_own and verdict is PolicyVerdict.SILENT):
            raise Forbidden(f"{name}: no policy of {caller.name} allows iam:{_action(operation, given)}")
        if not is_own and not operation.is_read and self._is_operator(user, given.get("role", "")):
            # Else the owner of a tenant would become the operator that is in it.
            raise Forbidden(f"{name}: only operators may change operators")
        if operation.admin is PolicyCheck:
            account = account_of_resource(given["resource"])
            tenant = QualifiedName(user or given.get("role", "")).tenant
            if account and account != self._prefix + tenant:
                raise Forbidden(f"{name}: only operators may ask about other accounts")

    def _is_operator(self, user: str, role: str) -> bool:
        """Return True for a user or role with rights that only operators give, and for a damaged one."""
        try:
            holders = (
                self._store.read(User, QualifiedName.parse(user, "user")).record if user else None,
                self._store.read(Role, QualifiedName.parse(role, "role")).record if role else None,
            )
        except DamagedRecord:
            return True
        return any(group in OPERATOR_GROUPS for holder in holders if holder for group in holder.groups)

    def _owner_of_key(self, given: JsonObject) -> str:
        try:
            return self._key_admin.owner_of_key(given["access_key"], given.get("user", ""))
        except DamagedRecord:
            raise Forbidden("the access key is damaged; name its user, or ask an operator")

    def _decide(
        self,
        operation: Operation,
        given: JsonObject,
        caller: Caller,
        owner: str,
        context: PolicyContext,
    ) -> PolicyVerdict:
        """Return the verdict; raise ``Forbidden`` for a denial of an operator."""
        named = {"user": owner} if owner else given
        kind, name = next(((kind, named[kind]) for kind in _RESOURCES if named.get(kind)), ("", ""))
        groups = given.get("groups", ()) if operation.action == "CreateUser" else ()
        if name:
            qualified = QualifiedName.parse(name, kind)
            tenant, resource = qualified.tenant, f"{kind}/{qualified.name}"
        else:
            tenant = str(given.get("tenant", ""))
            resource = "*"
        if kind == "user" and given.get("group"):
            # As in AWS the group is the resource.
            resource = f"group/{given['group']}"
        more = {
            action
            for (op, param), action in _ACTIONS_OF_PARAMS.items()
            if op == operation.action and given.get(param)
        }
        needed = [((_action(operation, given), *sorted(more)), resource)]
        needed += [(("AddUserToGroup",), f"group/{group}") for group in groups]
        verdict = combine_verdicts(
            caller.rights.decide(
                AccessRequest(
                    tuple(f"iam:{action}" for action in actions),
                    self._prefix + tenant,
                    context,
                    arn=f"arn:aws:iam::{tenant}:{arn_end}",
                ),
                None,
            ).verdict
            for actions, arn_end in needed
        )
        if caller.is_operator and verdict is PolicyVerdict.DENY:
            raise Forbidden(f"a policy of {caller.name} denies iam:{_action(operation, given)}")
        return verdict


def _is_of_key(operation: Operation) -> bool:
    return operation.method in ("update_access_key", "delete_access_key")


def _is_own(caller: Caller, user: str, operation: Operation) -> bool:
    """Return True if a caller may act for itself as a user.

    Limited credentials may not; those that end may only read, or they would make some that do not end.
    """
    may = operation.is_read or not caller.is_temporary
    return caller.name == user and not caller.rights.boundaries and may


def _action(operation: Operation, given: JsonObject) -> str:
    kind = next((kind for kind in ("user", "group", "role") if given.get(kind)), "user")
    if operation.action == "UpdateUser" and kind == "role":
        return "UpdateRole"
    return operation.action.format(kind.capitalize())


def _validate_params(method: Callable[..., JsonObject], params: JsonObject) -> JsonObject:
    """Return the parameters as a method takes them; raise ``InvalidIdentity`` naming the wrong one."""
    known = inspect.signature(method).parameters
    for name in params:
        if name not in known:
            raise InvalidIdentity(name[:64], f"there is no such parameter; known are {', '.join(known)}")
    given: JsonObject = {}
    for name, parameter in known.items():
        if name not in params or params[name] is None:
            if parameter.default is inspect.Parameter.empty:
                raise InvalidIdentity(name, "is missing")
            continue
        given[name] = _validate_param(name, params[name], str(parameter.annotation).removesuffix(" | None"))
    return given


def _validate_param(name: str, value: object, annotation: str) -> object:
    kind, words = _KINDS[annotation]
    if not isinstance(value, kind) or (isinstance(value, bool) and annotation == "float"):
        raise InvalidIdentity(name, f"must be {words}")
    if annotation == "tuple[str, ...]":
        assert isinstance(value, list), "it was checked"
        if not all(isinstance(item, str) for item in value):
            raise InvalidIdentity(name, f"must be {words}")
        return tuple(value)
    if annotation == "float":
        assert isinstance(value, int | float), "it was checked"
        return _finite(name, value)
    return value


def _finite(name: str, value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidIdentity(name, "must be a finite number")
    return number

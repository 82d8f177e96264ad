"""Operations on identities by name: parameters from outside, and who may call what.

Operators may call all of them. Others need the action of the operation in the tenant of the record, by
policies or as owners of the tenant's account. Only operators give the rights of operators. A user may manage
its own password and keys if its credentials are not limited.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import NamedTuple

from swift.base.documents import JsonObject
from swift.gateway.internal_client import InternalClient
from swift.identity.admin.base import OPERATOR_GROUPS, Admin
from swift.identity.admin.check import PolicyCheck
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
from swift.identity.policy.evaluate import PolicyVerdict
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
    #: Action, without ``iam:``; empty: operators only.
    action: str
    #: True if users may call it for themselves.
    is_own: bool = False


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
    "ListTenants": Operation(UserAdmin, "list_tenants", ""),
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
    "PutProvider": Operation(ProviderAdmin, "put_provider", ""),
    "GetProvider": Operation(ProviderAdmin, "get_provider", ""),
    "ListProviders": Operation(ProviderAdmin, "list_providers", ""),
    "DeleteProvider": Operation(ProviderAdmin, "delete_provider", ""),
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
        is_for_operators = not operation.action or given.get("plain") or given.get("imported")
        if is_for_operators or any(group in OPERATOR_GROUPS for group in asked):
            raise Forbidden(f"{name}: only operators may do that")
        owner = self._key_admin.owner_of_key(given["access_key"]) if _is_of_key(operation) else ""
        if operation.is_own and _is_own(caller, owner or given.get("user", "")):
            if self._decide(operation, given, caller, owner, context) is not PolicyVerdict.DENY:
                return
        elif self._decide(operation, given, caller, owner, context) is PolicyVerdict.ALLOW:
            return
        raise Forbidden(f"{name}: no policy of {caller.name} allows iam:{_action(operation, given)}")

    def _decide(
        self,
        operation: Operation,
        given: JsonObject,
        caller: Caller,
        owner: str,
        context: PolicyContext,
    ) -> PolicyVerdict:
        """Return the verdict; raise ``Forbidden`` for a denial of an operator."""
        if not operation.action:
            return PolicyVerdict.ALLOW
        named = {"user": owner} if owner else given
        kind, name = next(((kind, named[kind]) for kind in _RESOURCES if named.get(kind)), ("", ""))
        if name:
            qualified = QualifiedName.parse(name, kind)
            tenant, resource = qualified.tenant, f"{kind}/{qualified.name}"
        else:
            tenant = str(given.get("tenant", ""))
            resource = "*"
        request = AccessRequest(
            (f"iam:{_action(operation, given)}",),
            self._prefix + tenant,
            context,
            arn=f"arn:aws:iam::{tenant}:{resource}",
        )
        verdict = caller.rights.decide(request, None).verdict
        if caller.is_operator and verdict is PolicyVerdict.DENY:
            raise Forbidden(f"a policy of {caller.name} denies iam:{_action(operation, given)}")
        return verdict


def _is_of_key(operation: Operation) -> bool:
    return operation.method in ("update_access_key", "delete_access_key")


def _is_own(caller: Caller, user: str) -> bool:
    """Return True if a caller may act for itself as a user: with credentials that nothing limits."""
    return caller.name == user and not caller.rights.boundaries


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
    return value

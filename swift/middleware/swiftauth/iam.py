"""The IAM API as far as ``aws iam`` needs it for users, groups, access keys, policies and roles.

An action is a row of ``ACTIONS``: the operation behind it, its parameters, and what the response has. Names
of users, groups, roles and policies are those of the caller's tenant; operators may write ``TENANT:NAME``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

from swift.base.documents import JsonObject
from swift.identity.admin.base import NoSuchIdentity
from swift.identity.names import InvalidIdentity, QualifiedName, parse_arn
from swift.identity.records import DamagedRecord
from swift.middleware.swiftauth.query import Query, QueryError, Value
from swift.middleware.swiftauth.service import IdentityService

NAMESPACE = "https://iam.amazonaws.com/doc/2010-05-08/"
_MARKER_MAX = 128


class Iam:
    """The actions of IAM."""

    def __init__(self, service: IdentityService):
        self._operations = service.operations
        self.handlers: dict[str, Callable[[Query], dict[str, Value] | None]] = dict.fromkeys(
            ACTIONS, self._serve
        )

    def _serve(self, query: Query) -> dict[str, Value] | None:
        action = ACTIONS[query.action]
        _refuse_params(query, action)
        return action.run(_Call(query, self._operations.call))


class _Call:
    """One request: its parameters by the names of operations, and calls of operations."""

    def __init__(self, query: Query, call: Callable[..., JsonObject]):
        self.query = query
        self._call = call

    def operation(self, operation: str, **params: object) -> JsonObject:
        """Call an operation as the caller."""
        given = {key: value for key, value in params.items() if value is not None}
        return self._call(operation, given, self.query.caller, self.query.context())

    def elements(self, kind: str, names: Iterable[str]) -> list[Value]:
        """Return records that an operation has listed to the caller; of damaged ones the names."""
        found: list[Value] = []
        for name in names:
            try:
                record = self._call(f"Get{kind}", {kind.lower(): name}, None, self.query.context())
                found.append(_element(kind, record))
            except NoSuchIdentity:
                # It was deleted a moment ago.
                continue
            except DamagedRecord:
                found.append({**_names(kind, name), "Status": "damaged"})
        return found

    @property
    def tenant(self) -> str:
        """The caller's tenant."""
        assert self.query.caller is not None, "it is signed"
        return self.query.caller.tenant

    def name(self, param: str, default: str | None = None) -> str:
        """Return the qualified name in a parameter; raise ``QueryError``."""
        text = self.query.text(param, default)
        return text if not text or ":" in text else f"{self.tenant}:{text}"

    def user(self) -> str:
        """Return the user that a request names, or the caller itself."""
        name = self.name("UserName", "")
        if name:
            return name
        assert self.query.caller is not None, "it is signed"
        return self.query.caller.name

    def policy_of_arn(self) -> str:
        """Return the qualified name of the policy whose ARN a request has."""
        arn = self.query.text("PolicyArn")
        if arn.startswith(_AWS_POLICY_ARN):
            return f"{self.tenant}:{arn.removeprefix(_AWS_POLICY_ARN)}"
        return parse_arn(arn, "policy", "PolicyArn")

    def attached_policy(self, holder: str) -> str:
        """Return the bare name of a policy of the holder's tenant; raise ``InvalidIdentity``."""
        policy = QualifiedName(self.policy_of_arn())
        if policy.tenant != QualifiedName(holder).tenant:
            raise InvalidIdentity("PolicyArn", f"is of another tenant than {holder}")
        return policy.name


#: Predefined policies are named as AWS names its own.
_AWS_POLICY_ARN = "arn:aws:iam::aws:policy/"


class Action(NamedTuple):
    """An action: what it does, and the parameters it knows besides ``Action`` and ``Version``."""

    run: Callable[[_Call], dict[str, Value] | None]
    params: frozenset[str]


def _refuse_params(query: Query, action: Action) -> None:
    """Raise ``QueryError`` for parameters that would be ignored."""
    for name in query.params:
        base = name.partition(".")[0]
        if base not in action.params and base not in ("Action", "Version"):
            raise QueryError("NotImplemented", f"{base[:64]} of {query.action} is not implemented", 501)


ACTIONS: dict[str, Action] = {}
_Run = Callable[[_Call], "dict[str, Value] | None"]


def _action(name: str, params: str = "") -> Callable[[_Run], _Run]:
    def declare(run: _Run) -> _Run:
        ACTIONS[name] = Action(run, frozenset(params.split()))
        return run

    return declare


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _bare(name: str) -> str:
    return name.partition(":")[2]


def _names(kind: str, name: str) -> dict[str, Value]:
    qualified = QualifiedName(name)
    return {
        "Path": "/",
        f"{kind}Name": qualified.name,
        f"{kind}Id": name,
        "Arn": f"arn:aws:iam::{qualified.tenant}:{kind.lower()}/{qualified.name}",
    }


def _element(kind: str, record: JsonObject) -> dict[str, Value]:
    """Return a user, group, role or policy."""
    more: dict[str, Value] = {}
    if kind == "Role":
        more = {
            "AssumeRolePolicyDocument": quote(record["trust"], safe=""),
            "MaxSessionDuration": int(record["max_session"]),
        }
    elif kind == "Policy":
        more = {"DefaultVersionId": "v1", "UpdateDate": _time(record["changed"])}
    if more:
        more["Description"] = record["note"] or None
    return {**_names(kind, record[kind.lower()]), "CreateDate": _time(record["created"]), **more}


def _declare_list(kind: str, plural: str, params: str = "") -> None:
    """Declare the action that lists a page of users, groups, roles or policies."""

    @_action(f"List{plural}", f"Marker MaxItems PathPrefix {params}")
    def list_page(call: _Call) -> dict[str, Value]:
        marker = unquote(call.query.params.get("Marker", ""))
        if len(marker) > _MARKER_MAX:
            raise QueryError("ValidationError", "Marker: is not one of ours")
        limit = max(1.0, call.query.number("MaxItems", 100))
        found = call.operation(f"List{plural}", tenant=call.tenant, marker=marker, limit=limit)
        names = found[plural.lower()]
        return {
            plural: call.elements(kind, (f"{call.tenant}:{name}" for name in names)),
            "IsTruncated": found["more"],
            "Marker": quote(names[-1], safe="") if found["more"] and names else None,
        }


_declare_list("User", "Users")
_declare_list("Group", "Groups")
_declare_list("Role", "Roles")
_declare_list("Policy", "Policies", "Scope OnlyAttached")


# --- users --------------------------------------------------------------------------------------------


@_action("CreateUser", "UserName Path")
def _create_user(call: _Call) -> dict[str, Value]:
    return {"User": _element("User", call.operation("CreateUser", user=call.name("UserName")))}


@_action("GetUser", "UserName")
def _get_user(call: _Call) -> dict[str, Value]:
    return {"User": _element("User", call.operation("GetUser", user=call.user()))}


@_action("DeleteUser", "UserName")
def _delete_user(call: _Call) -> None:
    user = call.name("UserName")
    _refuse_holder(call, "User", user)
    call.operation("DeleteUser", user=user)


def _refuse_holder(call: _Call, kind: str, name: str) -> None:
    """Raise ``QueryError`` for a user or role with something that AWS has a caller remove first."""
    try:
        found = call.operation(f"Get{kind}", **{kind.lower(): name})
    except DamagedRecord:
        return
    groups = [group for group in found["groups"] if not group.startswith(".")]
    if found.get("keys") or groups or found["policies"] or found["inline"]:
        text = f"the {kind.lower()} has access keys, groups or policies; remove them first"
        raise QueryError("DeleteConflict", text, 409)


@_action("CreateLoginProfile", "UserName Password PasswordResetRequired")
def _create_login_profile(call: _Call) -> dict[str, Value]:
    user = call.name("UserName")
    if call.operation("GetUser", user=user)["has_password"]:
        raise QueryError("EntityAlreadyExists", "the user has a password", 409)
    call.operation("SetPassword", user=user, password=call.query.text("Password"))
    return {"LoginProfile": {"UserName": _bare(user), "CreateDate": _time(time.time())}}


@_action("UpdateLoginProfile", "UserName Password")
def _update_login_profile(call: _Call) -> None:
    call.operation("SetPassword", user=call.name("UserName"), password=call.query.text("Password"))


@_action("CreateAccessKey", "UserName")
def _create_access_key(call: _Call) -> dict[str, Value]:
    key = call.operation("CreateAccessKey", user=call.user())
    return {"AccessKey": {**_key_element(key), "SecretAccessKey": key["secret_key"]}}


def _key_element(key: JsonObject) -> dict[str, Value]:
    return {
        "UserName": _bare(key["user"]),
        "AccessKeyId": key["access_key"],
        "Status": "damaged" if key.get("damaged") else "Inactive" if key["disabled"] else "Active",
        "CreateDate": _time(key["created"]),
    }


@_action("ListAccessKeys", "UserName Marker MaxItems")
def _list_access_keys(call: _Call) -> dict[str, Value]:
    keys = call.operation("ListAccessKeys", user=call.user())["keys"]
    return {"AccessKeyMetadata": [_key_element(key) for key in keys], "IsTruncated": False}


@_action("UpdateAccessKey", "UserName AccessKeyId Status")
def _update_access_key(call: _Call) -> None:
    status = call.query.text("Status")
    if status not in ("Active", "Inactive"):
        raise QueryError("ValidationError", "Status: must be Active or Inactive")
    call.operation(
        "UpdateAccessKey", access_key=call.query.text("AccessKeyId"), disabled=status == "Inactive"
    )


@_action("DeleteAccessKey", "UserName AccessKeyId")
def _delete_access_key(call: _Call) -> None:
    user = call.name("UserName", "") or None
    call.operation("DeleteAccessKey", access_key=call.query.text("AccessKeyId"), user=user)


# --- groups -------------------------------------------------------------------------------------------


@_action("CreateGroup", "GroupName Path")
def _create_group(call: _Call) -> dict[str, Value]:
    return {"Group": _element("Group", call.operation("CreateGroup", group=call.name("GroupName")))}


@_action("GetGroup", "GroupName Marker MaxItems")
def _get_group(call: _Call) -> dict[str, Value]:
    group = call.operation("GetGroup", group=call.name("GroupName"))
    users = call.elements("User", group["members"])
    return {"Group": _element("Group", group), "Users": users, "IsTruncated": False}


@_action("ListGroupsForUser", "UserName Marker MaxItems")
def _list_groups_for_user(call: _Call) -> dict[str, Value]:
    user = call.user()
    tenant = QualifiedName(user).tenant
    groups = call.operation("GetUser", user=user)["groups"]
    names = (f"{tenant}:{name}" for name in groups if not name.startswith("."))
    return {"Groups": call.elements("Group", names), "IsTruncated": False}


@_action("DeleteGroup", "GroupName")
def _delete_group(call: _Call) -> None:
    call.operation("DeleteGroup", group=call.name("GroupName"))


@_action("AddUserToGroup", "UserName GroupName")
def _add_user_to_group(call: _Call) -> None:
    user, group = call.name("UserName"), call.query.text("GroupName")
    call.operation("AddUserToGroup", user=user, group=group)


@_action("RemoveUserFromGroup", "UserName GroupName")
def _remove_user_from_group(call: _Call) -> None:
    user, group = call.name("UserName"), call.query.text("GroupName")
    call.operation("RemoveUserFromGroup", user=user, group=group)


# --- policies -----------------------------------------------------------------------------------------


@_action("CreatePolicy", "PolicyName PolicyDocument Path Description")
def _create_policy(call: _Call) -> dict[str, Value]:
    policy = call.operation(
        "CreatePolicy",
        policy=call.name("PolicyName"),
        document=call.query.text("PolicyDocument"),
        note=call.query.text("Description", ""),
    )
    return {"Policy": _element("Policy", policy)}


@_action("GetPolicy", "PolicyArn")
def _get_policy(call: _Call) -> dict[str, Value]:
    return {"Policy": _element("Policy", call.operation("GetPolicy", policy=call.policy_of_arn()))}


def _version(policy: JsonObject) -> dict[str, Value]:
    """Return the one version that a policy has."""
    return {"VersionId": "v1", "IsDefaultVersion": True, "CreateDate": _time(policy["changed"])}


@_action("GetPolicyVersion", "PolicyArn VersionId")
def _get_policy_version(call: _Call) -> dict[str, Value]:
    policy = call.operation("GetPolicy", policy=call.policy_of_arn())
    return {"PolicyVersion": {"Document": quote(policy["document"], safe=""), **_version(policy)}}


@_action("ListPolicyVersions", "PolicyArn Marker MaxItems")
def _list_policy_versions(call: _Call) -> dict[str, Value]:
    policy = call.operation("GetPolicy", policy=call.policy_of_arn())
    return {"Versions": [_version(policy)], "IsTruncated": False}


@_action("CreatePolicyVersion", "PolicyArn PolicyDocument SetAsDefault")
def _create_policy_version(call: _Call) -> dict[str, Value]:
    if call.query.params.get("SetAsDefault") != "true":
        raise QueryError("NotImplemented", "a policy has one version here: SetAsDefault must be true", 501)
    policy = call.operation(
        "UpdatePolicy", policy=call.policy_of_arn(), document=call.query.text("PolicyDocument")
    )
    return {"PolicyVersion": _version(policy)}


@_action("DeletePolicy", "PolicyArn")
def _delete_policy(call: _Call) -> None:
    call.operation("DeletePolicy", policy=call.policy_of_arn())


def _declare_holder(kind: str) -> None:
    """Declare the actions on the policies of users, groups or roles."""
    param, get = f"{kind}Name", f"Get{kind}"
    key = kind.lower()

    @_action(f"Attach{kind}Policy", f"{param} PolicyArn")
    def attach(call: _Call) -> None:
        holder = call.name(param)
        call.operation("AttachPolicy", policy=call.attached_policy(holder), **{key: holder})

    @_action(f"Detach{kind}Policy", f"{param} PolicyArn")
    def detach(call: _Call) -> None:
        holder = call.name(param)
        call.operation("DetachPolicy", policy=call.attached_policy(holder), **{key: holder})

    @_action(f"ListAttached{kind}Policies", f"{param} Marker MaxItems PathPrefix")
    def list_attached(call: _Call) -> dict[str, Value]:
        holder = call.name(param)
        tenant = QualifiedName(holder).tenant
        found: list[Value] = [
            {"PolicyName": name, "PolicyArn": f"arn:aws:iam::{tenant}:policy/{name}"}
            for name in call.operation(get, **{key: holder})["policies"]
        ]
        return {"AttachedPolicies": found, "IsTruncated": False}

    @_action(f"Put{kind}Policy", f"{param} PolicyName PolicyDocument")
    def put(call: _Call) -> None:
        text = call.query.text
        call.operation(
            "PutInlinePolicy",
            name=text("PolicyName"),
            document=text("PolicyDocument"),
            **{key: call.name(param)},
        )

    @_action(f"Get{kind}Policy", f"{param} PolicyName")
    def get_inline(call: _Call) -> dict[str, Value]:
        holder, name = call.name(param), call.query.text("PolicyName")
        document = call.operation(get, **{key: holder})["inline"].get(name)
        if document is None:
            raise QueryError("NoSuchEntity", f"PolicyName: {_bare(holder)} has no such policy", 404)
        return {param: _bare(holder), "PolicyName": name, "PolicyDocument": quote(document, safe="")}

    @_action(f"List{kind}Policies", f"{param} Marker MaxItems")
    def list_inline(call: _Call) -> dict[str, Value]:
        names = sorted(call.operation(get, **{key: call.name(param)})["inline"])
        return {"PolicyNames": list(names), "IsTruncated": False}

    @_action(f"Delete{kind}Policy", f"{param} PolicyName")
    def delete(call: _Call) -> None:
        name = call.query.text("PolicyName")
        call.operation("DeleteInlinePolicy", name=name, **{key: call.name(param)})


for _kind in ("User", "Group", "Role"):
    _declare_holder(_kind)


# --- roles --------------------------------------------------------------------------------------------


@_action("CreateRole", "RoleName AssumeRolePolicyDocument Path Description MaxSessionDuration")
def _create_role(call: _Call) -> dict[str, Value]:
    role = call.operation(
        "CreateRole",
        role=call.name("RoleName"),
        trust=call.query.text("AssumeRolePolicyDocument"),
        max_session=call.query.number("MaxSessionDuration", 3600),
        note=call.query.text("Description", ""),
    )
    return {"Role": _element("Role", role)}


@_action("GetRole", "RoleName")
def _get_role(call: _Call) -> dict[str, Value]:
    return {"Role": _element("Role", call.operation("GetRole", role=call.name("RoleName")))}


@_action("UpdateRole", "RoleName Description MaxSessionDuration")
def _update_role(call: _Call) -> dict[str, Value]:
    given: Mapping[str, str] = call.query.params
    call.operation(
        "UpdateRole",
        role=call.name("RoleName"),
        max_session=call.query.number("MaxSessionDuration", 0) if "MaxSessionDuration" in given else None,
        note=given.get("Description"),
    )
    return {}


@_action("UpdateAssumeRolePolicy", "RoleName PolicyDocument")
def _update_assume_role_policy(call: _Call) -> None:
    call.operation("UpdateRole", role=call.name("RoleName"), trust=call.query.text("PolicyDocument"))


@_action("DeleteRole", "RoleName")
def _delete_role(call: _Call) -> None:
    role = call.name("RoleName")
    _refuse_holder(call, "Role", role)
    call.operation("DeleteRole", role=role)

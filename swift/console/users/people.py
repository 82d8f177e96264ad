"""Users, groups, roles and policies of a tenant, for those who may manage them.

Every action is an operation on identities with the caller's token; the API decides who may do what.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from swift.console.core.visit import Route, Visit
from swift.console.core.web import BadForm, Fields, checked_return
from swift.console.users.settings import BUCKET_ACTIONS
from swift.http.response import Response

PAGE = 100.0


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _is_yes(text: str) -> bool:
    return text == "yes"


class Field(NamedTuple):
    """A field of a form and the parameter that it becomes."""

    name: str
    parse: Callable[[str], object] = str.strip
    #: True if an empty field is left out.
    optional: bool = False


class Action(NamedTuple):
    """An operation and the fields of its form; no others are taken."""

    operation: str
    fields: tuple[Field, ...]
    done: str


_USER, _GROUP, _ROLE, _POLICY = Field("user"), Field("group"), Field("role"), Field("policy")
_NOTE = Field("note", optional=True)
_HOLDERS = (Field("user", optional=True), Field("group", optional=True), Field("role", optional=True))
_WORDS = tuple(Field(name, _words, optional=True) for name in ("groups", "policies"))
_DOCUMENT, _TRUST = Field("document", str), Field("trust", str)
_DISABLED = Field("disabled", _is_yes)
_MAX_SESSION = Field("max_session", float, optional=True)
#: Path → the operation.
ACTIONS = {
    "user-make": Action(
        "CreateUser", (_USER, Field("password", str, optional=True), *_WORDS, _NOTE), "user_made"
    ),
    "user-disable": Action("UpdateUser", (_USER, _DISABLED), "user_changed"),
    "user-delete": Action("DeleteUser", (_USER,), "user_deleted"),
    "user-sessions": Action("RevokeSessions", (_USER,), "sessions_ended"),
    "user-join": Action("AddUserToGroup", (_USER, _GROUP), "user_changed"),
    "user-leave": Action("RemoveUserFromGroup", (_USER, _GROUP), "user_changed"),
    "group-make": Action("CreateGroup", (_GROUP, _NOTE), "group_made"),
    "group-delete": Action("DeleteGroup", (_GROUP,), "group_deleted"),
    "role-make": Action("CreateRole", (_ROLE, _TRUST, *_WORDS, _MAX_SESSION, _NOTE), "role_made"),
    "role-change": Action("UpdateRole", (_ROLE, _TRUST, _MAX_SESSION), "role_changed"),
    "role-disable": Action("UpdateRole", (_ROLE, _DISABLED), "role_changed"),
    "role-delete": Action("DeleteRole", (_ROLE,), "role_deleted"),
    "role-sessions": Action("RevokeSessions", (_ROLE,), "sessions_ended"),
    "policy-make": Action("CreatePolicy", (_POLICY, _DOCUMENT, _NOTE), "policy_made"),
    "policy-change": Action("UpdatePolicy", (_POLICY, _DOCUMENT), "policy_changed"),
    "policy-delete": Action("DeletePolicy", (_POLICY,), "policy_deleted"),
    "policy-attach": Action("AttachPolicy", (_POLICY, *_HOLDERS), "policy_attached"),
    "policy-detach": Action("DetachPolicy", (_POLICY, *_HOLDERS), "policy_detached"),
}
#: Kind → the operation that lists its names, and the one that returns one.
KINDS = {
    "users": ("ListUsers", "GetUser", "user"),
    "groups": ("ListGroups", "GetGroup", "group"),
    "roles": ("ListRoles", "GetRole", "role"),
    "policies": ("ListPolicies", "GetPolicy", "policy"),
}


def show_people(visit: Visit) -> Response:
    """Show a page of the names of a tenant: users, groups, roles or policies."""
    session, query = visit.session, visit.query
    tenant = query.text("tenant") or session.tenant
    kind = query.text("kind") if query.text("kind") in KINDS else "users"
    tenants = visit.api.identity("ListTenants")["tenants"] if session.is_operator else [session.tenant]
    marker = query.text("marker")
    found = visit.api.identity(KINDS[kind][0], tenant=tenant, marker=marker, limit=PAGE)
    names = next(value for key, value in found.items() if isinstance(value, list) and key != "predefined")
    return visit.page(
        "people.html",
        tenant=tenant,
        tenants=tenants,
        kind=kind,
        kinds=list(KINDS),
        noun=KINDS[kind][2],
        names=names,
        predefined=found.get("predefined", []),
        more=names[-1] if found["more"] and names else "",
    )


def show_one(kind: str, visit: Visit) -> Response:
    """Show a user, group, role or policy with what can be done to it."""
    _list, operation, noun = KINDS[kind]
    name = visit.query.text(noun)
    found = visit.api.identity(operation, **{noun: name})
    return visit.page("person.html", kind=kind, noun=noun, name=name, found=found)


def act(action: Action, visit: Visit) -> Response:
    """Carry out an action of a form and lead to the page that the form names."""
    visit.api.identity(action.operation, **_parameters(action, visit.form))
    back = checked_return(visit.form.text("back"))
    return visit.lead_to(f"{back}{'&' if '?' in back else '?'}done={action.done}")


def _parameters(action: Action, form: Fields) -> dict[str, object]:
    found: dict[str, object] = {}
    for field in action.fields:
        text = form.text(field.name)
        if field.optional and not text.strip():
            continue
        try:
            found[field.name] = field.parse(text)
        except ValueError:
            raise BadForm("form.number", field=field.name)
    return found


def check_policy(visit: Visit) -> Response:
    """Answer whether a user or role may do something, and which statement says so."""
    query = visit.query
    asked = {name: query.text(name).strip() for name in ("user", "role", "action", "resource")}
    given = {name: value for name, value in asked.items() if value}
    result = None
    if "action" in given and "resource" in given:
        result = visit.api.identity("CheckPolicy", **given)
    return visit.page("check.html", asked=asked, result=result, actions=BUCKET_ACTIONS)


ROUTES = (
    Route("GET", "/users", show_people),
    *(Route("GET", f"/users/{noun}", partial(show_one, kind)) for kind, (_, _, noun) in KINDS.items()),
    *(Route("POST", f"/users/{path}", partial(act, action)) for path, action in ACTIONS.items()),
    Route("GET", "/users/check", check_policy),
)

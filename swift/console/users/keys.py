"""The access keys of a user: one's own, or those of a user whom one may manage."""

from __future__ import annotations

import time

from swift.console.core.visit import Route, Visit
from swift.console.core.web import BadForm, checked_return
from swift.http.response import Response

_DAYS_MAX = 36500


def show_keys(visit: Visit) -> Response:
    """Show the caller's own access keys, or those of the user that the query names."""
    session = visit.session
    user = visit.query.text("user") or session.name
    if user == session.name and ":role/" in user:
        return visit.page("keys.html", user=user, keys=None, made=None, now=time.time())
    keys = visit.api.identity("ListAccessKeys", user=user)["keys"]
    return visit.page("keys.html", user=user, keys=keys, made=None, now=time.time())


def make_key(visit: Visit) -> Response:
    """Make a key; its secret is on the page that follows, and never again."""
    form = visit.form
    user = form.text("user") or visit.session.name
    days = form.number("days", 0, 0, _DAYS_MAX)
    made = visit.api.identity(
        "CreateAccessKey",
        user=user,
        ends=time.time() + days * 86400.0 if days else 0.0,
        note=form.text("note").strip(),
        read_only=form.text("read_only") == "yes",
        container=form.text("container").strip(),
        prefix=form.text("prefix"),
        networks=form.text("networks").replace(",", " ").split(),
    )
    keys = visit.api.identity("ListAccessKeys", user=user)["keys"]
    return visit.page("keys.html", user=user, keys=keys, made=made, now=time.time())


def change_key(visit: Visit) -> Response:
    """Disable, enable or delete a key."""
    form = visit.form
    access_key, change = form.text("access_key"), form.text("change")
    if change == "delete":
        visit.api.identity("DeleteAccessKey", access_key=access_key)
    elif change in ("disable", "enable"):
        visit.api.identity("UpdateAccessKey", access_key=access_key, disabled=change == "disable")
    else:
        raise BadForm("form.change")
    user = form.text("user")
    return visit.redirect("/keys", user=user, done=f"key_{change}d")


def change_password(visit: Visit) -> Response:
    """Set a password; all tokens of the user end, this session too if it is the caller's own."""
    form = visit.form
    user = form.text("user") or visit.session.name
    if form.text("password") != form.text("repeated"):
        return visit.refusal(visit.text("keys.not_repeated"))
    visit.api.identity("SetPassword", user=user, password=form.text("password"))
    if user == visit.session.name:
        visit.parts.sessions.end(visit.session)
        return visit.redirect("/login")
    return visit.lead_to(checked_return(form.text("back")))


ROUTES = (
    Route("GET", "/keys", show_keys),
    Route("POST", "/keys/make", make_key),
    Route("POST", "/keys/change", change_key),
    Route("POST", "/keys/password", change_password),
)

"""Log-in with user and key or through a provider, and log-out."""

from __future__ import annotations

from urllib.parse import quote

from swift.console.core.session import session_cookie
from swift.console.core.visit import Access, ConsoleParts, Route, Visit
from swift.console.core.web import checked_return, safe_headers
from swift.gateway.subrequest import drained
from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import HTML, Response

_CREDENTIAL_CHARACTERS_MAX = 1024


def show_login(visit: Visit) -> Response:
    """Show the form; a person who has logged in is led on."""
    back = checked_return(visit.query.text("next"))
    if visit.has_session:
        return visit.lead_to(back)
    return _form(visit, back)


def log_in(visit: Visit) -> Response:
    """Begin a session with a user and its password, or an access key and its secret key."""
    form = visit.form
    back = checked_return(form.text("next"))
    user, key = form.text("user").strip(), form.text("key")
    if not user or not key or max(len(user), len(key)) > _CREDENTIAL_CHARACTERS_MAX:
        return _form(visit, back, visit.text("login.incomplete"), 400, user)
    try:
        named = {
            "x-auth-user": user.encode().decode("latin-1"),
            "x-auth-key": key.encode().decode("latin-1"),
        }
    except UnicodeEncodeError:
        return _form(visit, back, visit.text("login.wrong"), 401)
    if any(character < " " or character == "\x7f" for value in named.values() for character in value):
        return _form(visit, back, visit.text("login.wrong"), 401)
    found = visit.api.anonymous("GET", "/auth/v1.0", named)
    if found.status == 429:
        seconds = found.headers.get("retry-after", "1")
        return _form(visit, back, visit.text("login.slowed", seconds=seconds), 429, user)
    if found.status >= 500:
        return _form(visit, back, visit.text("errors.storage"), 503, user)
    token = found.headers.get("x-auth-token", "")
    if found.status != 200 or not token:
        return _form(visit, back, visit.text("login.wrong"), 401, user)
    response = visit.lead_to(back)
    response.headers["set-cookie"] = session_cookie(token)
    return response


def _form(visit: Visit, back: str, problem: str = "", status: int = 200, user: str = "") -> Response:
    providers = [
        (name, f"/auth/oidc/{quote(name)}/login?return_to={quote(back, safe='')}")
        for name in visit.parts.providers
    ]
    return visit.page("login.html", status, next=back, problem=problem, user=user, providers=providers)


def log_out(visit: Visit) -> Response:
    """End the session: its token is refused by every proxy from now on."""
    session = visit.session
    visit.api.revoke_token()
    visit.parts.sessions.end(session)
    response = visit.redirect("/login")
    response.headers["set-cookie"] = session_cookie("")
    return response


def finish_oidc(request: Request, parts: ConsoleParts) -> Response:
    """Let ``swiftauth`` serve the log-in; a token for a page of the console goes into the cookie."""
    response = parts.forward(request)
    session = request.env.pop(environkeys.OIDC_SESSION, None)
    if session is None:
        return response
    token, return_to = session
    drained(response)
    # A redirect would still count as the provider's, and the browser would keep the cookie back.
    page = parts.renderer.render("logged_in.html", {"address": checked_return(return_to)})
    headers = {**safe_headers(), "content-type": HTML, "set-cookie": session_cookie(token)}
    return Response(200, headers, page)


ROUTES = (
    Route("GET", "/login", show_login, Access.ANYONE),
    Route("POST", "/login", log_in, Access.ANYONE),
    Route("POST", "/logout", log_out),
)

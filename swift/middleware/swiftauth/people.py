"""Log-in of people through providers: the paths below ``/auth/oidc/``."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape
from urllib.parse import quote, urlsplit

from swift.base.clock import Clock
from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import HTML, Response
from swift.identity.directory import Caller
from swift.identity.oidc.login import LoginResult, OidcSession, PeopleLogin
from swift.identity.records import Role
from swift.identity.tokens import Ticket, new_id
from swift.middleware.swiftauth.query import RequestContext
from swift.middleware.swiftauth.service import IdentityService
from swift.middleware.swiftauth.webidentity import WebIdentity, is_trusted

LOGIN_KEY = "oidc login"
#: Log-ins that lead to it or to a path below it are passed to the console.
CONSOLE = "/console"
MakeToken = Callable[[Request, Ticket, Caller], Response]
_PAGE_HEADERS = {
    "content-type": HTML,
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}


class People:
    """Gives people who have logged in the token of a session of their role."""

    def __init__(self, service: IdentityService, clock: Clock, *, public_url: str):
        self._service = service
        self._clock = clock
        self._login = PeopleLogin(
            service.web.verifier,
            service.keys.sign(LOGIN_KEY, b""),
            clock,
            log=service.log.warning,
            public_url=public_url,
        )

    def serve(self, request: Request, make_token: MakeToken) -> Response:
        """Respond to a request below ``/auth/oidc/``."""
        if request.raw_path.endswith("/login"):
            return self._login.begin(request)
        result = self._login.finish(request)
        if isinstance(result, Response):
            return result
        session = self._session(request, result)
        if session is None:
            names = ", ".join(result.roles) or "none"
            text = f"No role is for you. Roles: {names}. Groups: {_list(result.groups)}"
            page = f"<html><h1>Log-in refused</h1><p>{escape(text)}</p></html>"
            return Response(403, {**_PAGE_HEADERS, **result.headers}, page.encode("utf-8", "replace"))
        response = make_token(request, *session)
        if result.return_to.startswith(CONSOLE):
            found = OidcSession(response.headers["x-auth-token"], result.return_to)
            request.env[environkeys.OIDC_SESSION] = found
        return _lead_back(response, result)

    def _session(self, request: Request, result: LoginResult) -> tuple[Ticket, Caller] | None:
        """Return the session of the first role of a person that there is; None without one."""
        directory = self._service.directory
        identity = WebIdentity(result.provider, result.claims)
        for role_name in result.roles:
            name = f"{result.provider.tenant}:{role_name}"
            role = directory.cache.get(Role, name)
            if role is None or role.disabled:
                continue
            session = session_name(result.claims.user)
            context = RequestContext(request, {"sts:rolesessionname": session}, identity.condition_values())
            if not is_trusted(role, identity, context):
                continue
            now = self._clock.time()
            ticket = Ticket(
                name,
                *(now, now + role.max_session, new_id(), session),
                source=f"{result.provider.name}:{result.claims.subject}"[:256],
            )
            caller = directory.caller_of_ticket(ticket)
            if caller is not None:
                return ticket, caller
        return None


def _lead_back(response: Response, result: LoginResult) -> Response:
    """Return the response to the browser: to a command on this machine with the token, or a page with it."""
    token, url = response.headers["x-auth-token"], response.headers["x-storage-url"]
    parts = urlsplit(result.return_to)
    if parts.scheme:
        # Any page may have begun the log-in, and any program may listen at the port: people decide.
        query = f"token={quote(token, safe='')}&storage_url={quote(url, safe='')}"
        target = f"{result.return_to}{'&' if parts.query else '?'}{query}"
        page = (
            f"<html><h1>Pass the log-in on?</h1><p>A command on this computer, at port {parts.port}, waits "
            f'for it. Go on only if you have started it: <a href="{escape(target)}">go on</a></p></html>'
        )
        return Response(200, {**_PAGE_HEADERS, **result.headers}, page.encode("utf-8", "replace"))
    lines = json.dumps({"X-Auth-Token": token, "X-Storage-Url": url}, indent=1)
    page = f"<html><h1>You have logged in</h1><pre>{escape(lines)}</pre></html>"
    return Response(200, {**_PAGE_HEADERS, **result.headers}, page.encode("utf-8", "replace"))


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names[:20]) or "none"


def session_name(user: str) -> str:
    """Return the name of a person's session: its user's name with safe characters."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "_+=,.@-") else "-" for c in user)
    return safe[:64].ljust(2, "-")

"""A request to the console: its session, its fields, the APIs it may use, and the responses it may have."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from typing import NamedTuple

from swift.base.documents import JsonObject
from swift.console.core.api import Api, ApiError, SessionSigners
from swift.console.core.cluster import ClusterWatch
from swift.console.core.rendering import Renderer, Texts
from swift.console.core.session import Session, Sessions
from swift.console.core.web import (
    BadForm,
    Fields,
    is_fragment_request,
    link,
    read_form,
    safe_headers,
)
from swift.gateway.subrequest import Forward
from swift.http.headers import HeaderMap
from swift.http.request import Request
from swift.http.response import HTML, Response

JSON = "application/json"


@dataclass(frozen=True)
class ConsoleParts:
    """The parts that all visits share."""

    forward: Forward
    renderer: Renderer
    texts: Texts
    sessions: Sessions
    signers: SessionSigners
    region: str
    cluster: ClusterWatch
    #: The file of the audit log.
    audit_log: str = ""
    #: Names of identity providers.
    providers: tuple[str, ...] = ()


class Visit:
    """A request and its response."""

    def __init__(self, request: Request, parts: ConsoleParts, session: Session | None):
        self.request = request
        self.parts = parts
        self._session = session
        self.query = Fields.of_query(request.query)
        self.api = Api(parts.forward, request, session, parts.signers, parts.region)

    @property
    def session(self) -> Session:
        """The session, of pages that need one."""
        assert self._session is not None, "the route says so"
        return self._session

    @property
    def has_session(self) -> bool:
        """True if a person has logged in."""
        return self._session is not None

    @cached_property
    def form(self) -> Fields:
        """The fields of the posted form."""
        return read_form(self.request)

    @property
    def is_fragment(self) -> bool:
        """True if htmx asks for a part of a page."""
        return is_fragment_request(self.request)

    @property
    def address(self) -> str:
        """Path and query of the visit."""
        query = self.request.query
        return f"{self.request.raw_path}?{query}" if query else self.request.raw_path

    def text(self, key: str, /, **values: object) -> str:
        """Return a text of ``texts.toml``."""
        return self.parts.texts(key, **values)

    # responses

    def page(self, template: str, status: int = 200, **values: object) -> Response:
        """Return a page, or a part of one, with the values that the template names.

        Every template also has ``session`` (None without one), ``csrf``, ``address`` and ``is_fragment``.
        """
        session = self._session
        known: JsonObject = {
            "session": session,
            "csrf": session.csrf_token if session else "",
            "address": self.address,
            "is_fragment": self.is_fragment,
            "notice": self._notice(),
        }
        body = self.parts.renderer.render(template, {**known, **values})
        return Response(status, {**safe_headers(), "content-type": HTML}, body)

    def _notice(self) -> str:
        """Return the text about what was done, which the address of a page names."""
        key = f"done.{self.query.text('done')}"
        return self.text(key) if key in self.parts.texts else ""

    def redirect(self, path: str, **query: object) -> Response:
        """Lead the browser to a page; ``done`` names a text of the table of that name."""
        return self.lead_to(link(path, **query))

    def lead_to(self, address: str) -> Response:
        """Lead the browser to an address of the console."""
        headers = safe_headers()
        if self.is_fragment:
            return Response(204, {**headers, "hx-redirect": address})
        return Response(303, {**headers, "location": address})

    def json(self, value: object, status: int = 200) -> Response:
        """Return JSON, for the console's own scripts."""
        return Response(status, {**safe_headers(), "content-type": JSON}, json.dumps(value).encode("ascii"))

    def refusal(self, sentence: str, status: int = 400) -> Response:
        """Return a page, or a part of one, that tells why nothing was done."""
        if self.wants_json:
            return self.json({"error": sentence}, status)
        return self.page("refusal.html", status, sentence=sentence, transaction="")

    def form_refusal(self, error: BadForm) -> Response:
        """Return a page, or a part of one, that tells why a form is refused."""
        return self.refusal(self.text(error.key, **error.values), error.status)

    def api_refusal(self, error: ApiError) -> Response:
        """Return a page, or a part of one, with a sentence on a refusal of an API, and the transaction."""
        sentence = self.sentence_of(error)
        if self.wants_json:
            return self.json({"error": sentence, "transaction": error.transaction}, error.status)
        return self.page("refusal.html", error.status, sentence=sentence, transaction=error.transaction)

    def sentence_of(self, error: ApiError) -> str:
        """Return a sentence about a refusal of an API."""
        key = f"errors.{error.status}"
        if key not in self.parts.texts:
            key = "errors.storage" if error.status >= 500 else "errors.other"
        sentence = self.text(key)
        return f"{sentence} {error.reason}" if error.reason and error.status < 500 else sentence

    @property
    def wants_json(self) -> bool:
        """True for a request of one of the console's own scripts."""
        return JSON in self.request.headers.get("accept", "")

    def headers(self, **more: str) -> HeaderMap:
        """Return the headers that all responses have, with others (``_`` stands for ``-``)."""
        return {**safe_headers(), **{name.replace("_", "-"): value for name, value in more.items()}}


class Access(Enum):
    """The people who may see a page."""

    ANYONE = auto()
    USERS = auto()
    OPERATORS = auto()


class Route(NamedTuple):
    """A page or an action: method and path below the console's."""

    method: str
    path: str
    respond: Callable[[Visit], Response]
    access: Access = Access.USERS


def route_table(routes: Sequence[Route]) -> dict[tuple[str, str], Route]:
    """Return the routes by method and path."""
    table = {(route.method, route.path): route for route in routes}
    assert len(table) == len(routes), "a route is there twice"
    return table

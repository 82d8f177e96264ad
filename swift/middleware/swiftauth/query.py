"""The query protocol of AWS: a form with ``Action`` and ``Version``, and XML responses.

``serve`` responds to the actions of ``sts`` and ``iam``. Other actions are ``NotImplemented``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from swift.http import environkeys
from swift.http.body import BodyError, read_up_to
from swift.http.queryapi import QUERY_BYTES_MAX
from swift.http.request import Request
from swift.http.response import Response
from swift.identity.directory import Caller
from swift.identity.policy.conditions import PolicyContext
from swift.identity.policy.requestvalues import request_value

#: Text, number, truth, a list of members, or an element with children; None is left out.
Value: TypeAlias = "str | int | float | bool | None | list[Value] | dict[str, Value]"
_FIELDS_MAX = 200


class QueryError(Exception):
    """An error response: AWS's code, a sentence, and the status."""

    def __init__(self, code: str, text: str, status: int = 400):
        super().__init__(text)
        self.code = code
        self.text = text
        self.status = status


def access_denied(text: str = "Access Denied") -> QueryError:
    """Return the error for a caller without the right."""
    return QueryError("AccessDenied", text, 403)


class RequestContext:
    """The values of a request that is for no bucket, and more values by condition key in lower case."""

    def __init__(self, request: Request, *values: Mapping[str, str | tuple[str, ...]]):
        self._request = request
        self._values = values

    def values(self, key: str) -> Sequence[str] | None:
        """Return the values of a condition key; None if the request does not have it."""
        for found in self._values:
            value = found.get(key)
            if value is not None:
                return (value,) if isinstance(value, str) else value
        value = request_value(self._request, key)
        return None if value is None else (value,)


class Query:
    """The parameters of one request, and its caller; None for requests without a signature."""

    def __init__(self, params: Mapping[str, str], caller: Caller | None, access_key: str, request: Request):
        self.params = params
        self.caller = caller
        self.access_key = access_key
        self._request = request

    def context(self, *values: Mapping[str, str | tuple[str, ...]]) -> PolicyContext:
        """Return the context of policies: that of the request, and values by condition key in lower case."""
        return RequestContext(self._request, *values)

    @property
    def action(self) -> str:
        """The name of the action."""
        return self.params.get("Action", "")

    def text(self, name: str, default: str | None = None) -> str:
        """Return a parameter; raise ``QueryError`` if it is missing and has no default."""
        value = self.params.get(name)
        if value is None or value == "":
            if default is None:
                raise QueryError("ValidationError", f"{name}: is missing")
            return default
        return value

    def number(self, name: str, default: float) -> float:
        """Return a number; raise ``QueryError``."""
        text = self.params.get(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 12):
            raise QueryError("ValidationError", f"{name}: must be a whole number")
        return float(text)

    def members(self, name: str) -> list[str]:
        """Return the items of a list, ``<name>.member.1`` and so on."""
        found: list[str] = []
        while (value := self.params.get(f"{name}.member.{len(found) + 1}")) is not None:
            found.append(value)
        return found


def read_form(request: Request) -> dict[str, str]:
    """Return the fields of the form in the body; raise ``QueryError``."""
    try:
        body = read_up_to(request.body, QUERY_BYTES_MAX + 1)
    except BodyError:
        raise QueryError("IncompleteBody", "the body broke off")
    if len(body) > QUERY_BYTES_MAX:
        raise QueryError("RequestEntityTooLarge", f"the body exceeds {QUERY_BYTES_MAX} bytes", 413)
    try:
        pairs = parse_qsl(
            body.decode("utf-8"), keep_blank_values=True, max_num_fields=_FIELDS_MAX, errors="strict"
        )
    except ValueError:
        raise QueryError("MalformedQueryString", "the body is no form in UTF-8")
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise QueryError("MalformedQueryString", "a parameter comes twice")
    return fields


Handler = Callable[[Query], "dict[str, Value] | None"]


def respond(request: Request, query: Query, namespace: str, handler: Handler) -> Response:
    """Return the response of an action's handler; raise ``QueryError``."""
    result = handler(query)
    name = query.action
    txid = str(request.env.get(environkeys.TRANS_ID, ""))
    children: dict[str, Value] = {} if result is None else {f"{name}Result": result}
    children["ResponseMetadata"] = {"RequestId": txid}
    return _xml_response(200, f"{name}Response", namespace, children)


def error_response(request: Request, error: QueryError, namespace: str) -> Response:
    """Return the response for an error."""
    txid = str(request.env.get(environkeys.TRANS_ID, ""))
    side = "Sender" if error.status < 500 else "Receiver"
    details: dict[str, Value] = {"Type": side, "Code": error.code, "Message": error.text}
    return _xml_response(error.status, "ErrorResponse", namespace, {"Error": details, "RequestId": txid})


def _xml_response(status: int, name: str, namespace: str, children: dict[str, Value]) -> Response:
    inner = "".join(_render(child, value) for child, value in children.items())
    document = f'<?xml version="1.0" encoding="UTF-8"?>\n<{name} xmlns="{namespace}">{inner}</{name}>'
    headers = {"content-type": "text/xml", "cache-control": "no-store"}
    return Response(status, headers, document.encode("utf-8", "replace"))


def _render(name: str, value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        inner = "".join(_render(child, item) for child, item in value.items())
    elif isinstance(value, list):
        inner = "".join(_render("member", item) for item in value)
    elif isinstance(value, bool):
        inner = "true" if value else "false"
    else:
        inner = escape(_without_controls(str(value)))
    return f"<{name}>{inner}</{name}>"


def _without_controls(text: str) -> str:
    """Return a text without characters that XML does not have."""
    return "".join(c if c >= " " or c in "\t\n\r" else "\ufffd" for c in text)

"""Status codes, their reasons and the default explanations (spec: public-api.md §3).

The texts are part of the observable interface: clients and log tools match them.
"""

from __future__ import annotations

#: code → (reason, explanation); an empty explanation means an empty default body.
STATUS: dict[int, tuple[str, str]] = {
    100: ("Continue", ""),
    200: ("OK", ""),
    201: ("Created", ""),
    202: ("Accepted", "The request is accepted for processing."),
    204: ("No Content", ""),
    206: ("Partial Content", ""),
    301: ("Moved Permanently", "The resource has moved permanently."),
    302: ("Found", "The resource has moved temporarily."),
    303: ("See Other", "The response to the request can be found under a different URI."),
    304: ("Not Modified", ""),
    307: ("Temporary Redirect", "The resource has moved temporarily."),
    400: (
        "Bad Request",
        "The server could not comply with the request since it is either malformed or otherwise incorrect.",
    ),
    401: (
        "Unauthorized",
        "This server could not verify that you are authorized to access the document you requested.",
    ),
    402: ("Payment Required", "Access was denied for financial reasons."),
    403: ("Forbidden", "Access was denied to this resource."),
    404: ("Not Found", "The resource could not be found."),
    405: ("Method Not Allowed", "The method is not allowed for this resource."),
    406: ("Not Acceptable", "The resource is not available in a format acceptable to your browser."),
    408: ("Request Timeout", "The server has waited too long for the request to be sent by the client."),
    409: ("Conflict", "There was a conflict when trying to complete your request."),
    410: ("Gone", "This resource is no longer available."),
    411: ("Length Required", "Content-Length header required."),
    412: ("Precondition Failed", "A precondition for this request was not met."),
    413: ("Request Entity Too Large", "The body of your request was too large for this server."),
    414: ("Request URI Too Long", "The request URI was too long for this server."),
    415: ("Unsupported Media Type", "The request media type is not supported by this server."),
    416: ("Requested Range Not Satisfiable", "The Range requested is not available."),
    417: ("Expectation Failed", "Expectation failed."),
    422: ("Unprocessable Entity", "Unable to process the contained instructions"),
    431: ("Too many headers", "The request has too many headers or one that is too long."),
    499: ("Client Disconnect", "The client was disconnected during request."),
    500: (
        "Internal Error",
        "The server has either erred or is incapable of performing the requested operation.",
    ),
    501: ("Not Implemented", "The requested method is not implemented by this server."),
    502: ("Bad Gateway", "Bad gateway."),
    503: (
        "Service Unavailable",
        "The server is currently unavailable. Please try again at a later time.",
    ),
    504: ("Gateway Timeout", "A timeout has occurred speaking to a backend server."),
    505: ("HTTP Version Not Supported", "This server speaks HTTP/1.0 and HTTP/1.1."),
    507: ("Insufficient Storage", "There was not enough space to save the resource. Drive: {drive}"),
    529: (
        "Too Many Backend Requests",
        "The server is incapable of performing the requested operation due to too many requests. Slow down.",
    ),
}


def reason_of(code: int) -> str:
    """The reason phrase of a status code."""
    return STATUS[code][0] if code in STATUS else "Unknown"


def default_body(code: int, drive: str = "") -> bytes:
    """The HTML body of a response that has none of its own; empty for 2xx-style codes without text."""
    reason, explanation = STATUS.get(code, ("", ""))
    if not explanation:
        return b""
    if code == 507:
        explanation = explanation.format(drive=drive)
    return f"<html><h1>{reason}</h1><p>{explanation}</p></html>".encode()


def is_success(code: int) -> bool:
    """2xx."""
    return 200 <= code <= 299

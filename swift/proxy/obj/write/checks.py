"""Checks of object PUTs and POSTs of clients (spec: public-api.md §8, §11, §12)."""

from __future__ import annotations

from urllib.parse import unquote

from swift.base.limits import Limits
from swift.base.ranges import Span
from swift.base.timestamp import normalize_delete_at
from swift.base.truth import is_true
from swift.http import environkeys, fields
from swift.http.mediatypes import TypeGuesser
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError
from swift.http.validate import check_metadata


def refuse_copy(request: Request) -> None:
    """Refuse a PUT with X-Copy-From, which the copy filter did not handle; raises ``HTTPError``.

    It must not become an upload of its empty body.
    """
    source = request.headers.get("x-copy-from")
    if not source:
        return
    if request.body.length:
        raise HTTPError(400, "Copy requests require a zero byte body", content_type=TEXT)
    container, _, name = unquote(source).lstrip("/").partition("/")
    if not container or not name:
        raise HTTPError(412, "X-Copy-From header must be of the form <container name>/<object name>")
    raise HTTPError(501, "Copying of objects is not supported", content_type=TEXT)


def refuse_part(request: Request) -> None:
    """Refuse a PUT of a part of an object, which would replace the whole (RFC 9110 §14.5).

    Raises ``HTTPError`` 400 unless Content-Range names all bytes of the body.
    """
    value = request.headers.get("content-range")
    length = request.body.length
    if value is None or (length and value.strip() == Span(0, length).content_range(length)):
        return
    text = "A PUT with Content-Range is not supported: a part would replace the whole object"
    raise HTTPError(400, text, content_type=TEXT)


def check_upload(request: Request, limits: Limits, guesser: TypeGuesser, name: str) -> None:
    """Check content type, size, name and metadata of a PUT; raises ``HTTPError`` 4xx, 501 for a copy.

    Sets the content type and turns X-Delete-After into X-Delete-At.
    """
    refuse_copy(request)
    refuse_part(request)
    headers = request.headers
    if is_true(headers.pop("x-detect-content-type", None)) or not headers.get("content-type"):
        headers["content-type"] = guesser.guess(name)
    convert_delete_after(request)
    length = request.body.length
    if length is None:
        pass
    elif length > limits.max_file_size:
        raise HTTPError(413, "Your request is too large.", content_type=TEXT)
    elif not length and "content-length" not in headers and "transfer-encoding" not in headers:
        raise HTTPError(411, "Missing Content-Length header.", content_type=TEXT)
    if len(name) > limits.max_object_name_length:
        raise HTTPError(
            400,
            f"Object name length of {len(name)} longer than {limits.max_object_name_length}",
            content_type=TEXT,
        )
    check_content_type(request)
    check_metadata(headers, "object", limits)


def check_content_type(request: Request) -> None:
    """Check that the type is UTF-8 and has no reserved ``swift_`` parameter, unless a filter put it there."""
    value = request.headers.get("content-type", "")
    try:
        value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        raise HTTPError(400, "Invalid Content-Type", content_type=TEXT)
    if request.env.get(environkeys.CONTENT_TYPE_OVERRIDDEN) or ";" not in value:
        return
    for parameter in value.split(";")[1:]:
        if parameter.lstrip().startswith("swift_"):
            raise HTTPError(400, "Invalid Content-Type, swift_* is not a valid parameter name.")


def convert_delete_after(request: Request) -> None:
    """Turn X-Delete-After into X-Delete-At, check both against the request's time, and log the result."""
    _check_delete_at(request)
    if when := request.headers.get("x-delete-at"):
        request.env.setdefault(environkeys.LOG_INFO, []).append(f"x-delete-at:{when}")


def _check_delete_at(request: Request) -> None:
    headers = request.headers
    now = request.timestamp
    after = headers.pop("x-delete-after", None)
    if after is not None:
        seconds = _integer(after, "X-Delete-After")
        when = int(now.seconds) + seconds
        if seconds <= 0 or when <= int(now.seconds):
            raise HTTPError(400, "X-Delete-After in past", content_type=TEXT)
        headers["x-delete-at"] = normalize_delete_at(when)
        return
    at = headers.get("x-delete-at")
    if at is None:
        return
    when = _integer(at, "X-Delete-At")
    if when <= now.seconds and not is_true(headers.get(fields.BACKEND_REPLICATION)):
        raise HTTPError(400, "X-Delete-At in past", content_type=TEXT)
    headers["x-delete-at"] = normalize_delete_at(when)


def _integer(text: str, name: str) -> int:
    """Parse a number as the peer reads it: with a sign or underscores too."""
    try:
        return int(text)
    except ValueError:
        raise HTTPError(400, f"Non-integer {name}", content_type=TEXT)

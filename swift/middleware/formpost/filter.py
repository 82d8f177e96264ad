"""Uploads by signed HTML forms (spec: middleware.md §4).

The fields before the first file state what is allowed and are signed. The filter stores each file by a PUT of
its own while it arrives. ``tempurl.scope`` limits a form like a temporary URL.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

from swift.base.clock import Clock, SystemClock
from swift.base.entity import API_VERSIONS
from swift.config.schema import Settings, option
from swift.gateway.subrequest import ReportedChange, make_subrequest, open_response, report_change
from swift.gateway.writing import WriteNotStored, forward_write
from swift.http.body import BodyError
from swift.http.headers import HeaderMap, has_control_characters
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response, reason_phrase
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.middleware.formpost.form import Form, InvalidForm, SizeLimitedFileBody, parse_parameters
from swift.middleware.tempurl.filter import digests_info
from swift.middleware.tempurl.scope import SignedScope
from swift.middleware.tempurl.signature import DIGESTS_KIND, Key, find_signing_key, get_keys, parse_signature
from swift.telemetry.events import Event
from swift.telemetry.telemetry import Telemetry

_DIGEST = Event("formpost.digests.{digest}", "Posted forms, by the digest of their signature.")

FORMPOST_USER = ".wsgi.formpost"
#: Fields that a form may have.
FIELDS_MAX = 1000
#: Characters that a number in a form may have.
_NUMBER_CHARS_MAX = 32
#: Characters that would end an HTML attribute → their references.
_HTML_ESCAPES = {ord(char): f"&#{ord(char)};" for char in "<>\"'"}


@dataclass(frozen=True)
class FormPostSettings(Settings):
    """``[filter:formpost]``."""

    allowed_digests: tuple[str, ...] = option(
        "sha1 sha256 sha512", "Digests of signatures.", kind=DIGESTS_KIND
    )


class FormRejected(HTTPError):
    """An invalid or unsigned form: the response has the reason and is never a redirect."""

    def __init__(self, status: int, text: str):
        headers = {"www-authenticate": 'Swift realm="unknown"'} if status == 401 else None
        super().__init__(status, f"FormPost: {text}", headers, content_type=TEXT if status == 400 else None)


class FormPost(Filter):
    """Turns POST requests of forms into a PUT for each file."""

    def __init__(
        self,
        app: App,
        settings: FormPostSettings,
        telemetry: Telemetry | None = None,
        clock: Clock | None = None,
    ):
        super().__init__(app)
        self._settings = settings
        self._statsd = (telemetry or Telemetry()).statsd
        self._clock = clock or SystemClock()

    def handle(self, request: Request) -> Response:
        """Store the files of a form; forward all other requests."""
        if request.method != "POST" or "/" not in request.raw_path.strip("/"):
            # A form without an account is for another filter, e.g. S3's form upload.
            return self.forward(request)
        kind, parameters = parse_parameters(request.headers.get("content-type", ""))
        boundary = parameters.get("boundary")
        if kind != "multipart/form-data" or not boundary:
            return self.forward(request)
        try:
            return self._store_files(request, Form(request.body, boundary))
        except InvalidForm as error:
            return FormRejected(400, str(error)).response
        except HTTPError as error:
            return error.response

    def _store_files(self, request: Request, form: Form) -> Response:
        form_fields: dict[str, str] = {}
        message, status, files = "", 0, 0
        while status // 100 in (0, 2) and (headers := form.next_part()) is not None:
            _, disposition = parse_parameters(headers.get("content-disposition", ""))
            filename = disposition.get("filename")
            if filename is None:
                _record_field(form_fields, disposition.get("name", ""), form.read_value(), accept=not files)
                continue
            if not filename:
                form.read_value()
                continue
            files += 1
            if files > _parse_number(form_fields, "max_file_count"):
                status, message = 400, "max file count exceeded"
                break
            status = self._store_file(request, form, form_fields, headers, filename)
        if not files:
            status, message = 400, "no files to process"
        return _make_response(status, message, form_fields.get("redirect", ""))

    def _store_file(
        self, request: Request, form: Form, form_fields: dict[str, str], part: HeaderMap, filename: str
    ) -> int:
        """PUT one file and return the status; raises ``FormRejected``."""
        size_max = _parse_number(form_fields, "max_file_size")
        headers = {"transfer-encoding": "chunked"}
        for name, expected in (("x_delete_at", "Unix timestamp"), ("x_delete_after", "Number of seconds")):
            if name in form_fields:
                problem = f"{name} not an integer: {expected} required."
                if not form_fields[name]:
                    raise FormRejected(400, problem)
                _parse_number(form_fields, name, problem)
                headers[name.replace("_", "-")] = form_fields[name]
        for name in ("content-type", "content-encoding"):
            if value := form_fields.get(name) or part.get(name):
                if has_control_characters(value):
                    raise FormRejected(400, f"{name} has characters that no header has")
                headers[name] = value
        key = self._validate_signature(request, form_fields)
        _check_redirect(form_fields.get("redirect", ""))
        entity = request.entity
        assert entity is not None, "only entities have keys"
        folder = request.lossy_path.encode("utf-8", "surrogateescape")
        if entity.path.obj is None and not folder.endswith(b"/"):
            folder += b"/"
        raw_path = quote(folder + filename.encode("latin-1"), safe="/~")
        body = SizeLimitedFileBody(form, size_max)
        agent = "%(orig)s FormPost"
        sub = make_subrequest(request, "PUT", raw_path, headers=headers, body=body, source="FP", agent=agent)
        scope = SignedScope(
            key.scope, entity.path._replace(obj=None), entity.path.obj or "", is_prefix=True, is_reading=False
        )
        scope.restrict(sub, FORMPOST_USER)
        try:
            with open_response(partial(forward_write, self.forward), sub) as response:
                status = response.status
        except WriteNotStored as error:
            status = error.response.status
        except BodyError as error:
            status = error.status
        change_status = 400 if body.is_too_large else status
        report_change(
            request, ReportedChange("PUT", raw_path, change_status, "formpost", sub.env, body.received)
        )
        if body.is_too_large:
            raise FormRejected(400, "max_file_size exceeded")
        if status // 100 == 2:
            body.drain()
        return status

    def _validate_signature(self, request: Request, form_fields: dict[str, str]) -> Key:
        """Return the key that signed the form; raises ``FormRejected``."""
        if _parse_number(form_fields, "expires", "expired not an integer") < self._clock.time():
            raise FormRejected(401, "Form Expired")
        signature = parse_signature(form_fields.get("signature", ""), self._settings.allowed_digests)
        entity = request.entity
        key = None
        if signature and entity and entity.path.container is not None and entity.version in API_VERSIONS:
            signed_fields = (
                ("redirect", ""),
                ("max_file_size", "0"),
                ("max_file_count", "0"),
                ("expires", "0"),
            )
            lines = [(form_fields.get(name) or default).encode("latin-1") for name, default in signed_fields]
            path = request.lossy_path.encode("utf-8", "surrogateescape")
            text = b"\n".join([path, *lines])
            key = find_signing_key(signature, [text], get_keys(request, self.forward, entity.path))
        if signature is None or key is None:
            raise FormRejected(401, "Invalid Signature")
        _DIGEST.count(self._statsd, digest=signature.digest)
        return key


def _record_field(form_fields: dict[str, str], name: str, value: str, *, accept: bool) -> None:
    """Record a field of the form; fields after the first file are ignored."""
    if accept:
        form_fields[name.lower()] = value
        if len(form_fields) > FIELDS_MAX:
            raise FormRejected(400, "too many fields")


def _parse_number(form_fields: dict[str, str], name: str, problem: str = "") -> int:
    """Return a numeric field, 0 when it is empty or missing; raises ``FormRejected``."""
    text = form_fields.get(name) or "0"
    try:
        if len(text) > _NUMBER_CHARS_MAX:
            raise ValueError(text)
        return int(text)
    except ValueError:
        raise FormRejected(400, problem or f"{name} not an integer")


def _check_redirect(redirect: str) -> None:
    """Raise ``FormRejected`` for a redirect that would inject headers into the response."""
    if has_control_characters(redirect):
        raise FormRejected(400, "redirect is not a URL")


def _make_response(status: int, message: str, redirect: str) -> Response:
    """Return the response for the browser: a page, or a redirect that carries the status."""
    if not redirect:
        text = f"{status} {reason_phrase(status)}"
        if message:
            text += f"\r\nFormPost: {message.title()}"
        return error_response(status, text, content_type=TEXT)
    _check_redirect(redirect)
    sign = "&" if "?" in redirect else "?"
    location = f"{redirect}{sign}status={status}&message={quote(message)}"
    target = location.translate(_HTML_ESCAPES)
    page = f'<html><body><p><a href="{target}">Click to continue...</a></p></body></html>'
    return Response(303, {"location": location}, page.encode("latin-1"))


FILTER = FilterDeclaration(
    "formpost",
    FormPostSettings,
    lambda app, settings, services: FormPost(app, settings, services.telemetry()),
    position=130,
    default=True,
    info=lambda settings: digests_info(settings.allowed_digests),
    left_of={
        "tempauth": "formpost authorizes posted forms",
        "swiftauth": "formpost authorizes posted forms",
        "keystoneauth": "formpost authorizes posted forms",
    },
)

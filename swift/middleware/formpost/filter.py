"""Stores the files of signed forms (spec: middleware.md §4).

The fields before the first file say what is allowed and are signed; each file is then stored by a PUT of its
own, as it arrives. What a form may do is bounded by ``tempurl.scope``, like what a link may do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

from swift.base.clock import Clock, SystemClock
from swift.base.entity import API_VERSIONS
from swift.config.schema import Settings, option
from swift.gateway.subrequest import make_subrequest, open_response
from swift.gateway.writing import WriteNotStored, forward_write
from swift.http import environkeys
from swift.http.body import BodyError
from swift.http.headers import HeaderMap, has_control_characters
from swift.http.request import Request
from swift.http.response import TEXT, HTTPError, Response, error_response, reason_phrase
from swift.middleware.filter import App, Filter, FilterDeclaration
from swift.middleware.formpost.form import BadForm, BoundedFileBody, Form, parse_parameters
from swift.middleware.tempurl.filter import digest_facts
from swift.middleware.tempurl.scope import SignedScope
from swift.middleware.tempurl.signature import DIGESTS, Key, keys_of, parse_signature, signing_key
from swift.telemetry.telemetry import Telemetry

USER = ".wsgi.formpost"
#: A form with more fields than this is refused.
FIELDS_MAX = 1000
#: A number of a form has no more characters than this.
_NUMBER_CHARS_MAX = 32
#: What would end the attribute that it stands in.
_MARKUP = {ord(char): f"&#{ord(char)};" for char in "<>\"'"}


@dataclass(frozen=True)
class FormPostSettings(Settings):
    """``[filter:formpost]``."""

    allowed_digests: tuple[str, ...] = option("sha1 sha256 sha512", "Digests of signatures.", kind=DIGESTS)


class FormRefused(HTTPError):
    """The form is not valid or no form: answered with the reason, never with a redirect."""

    def __init__(self, status: int, text: str):
        headers = {"www-authenticate": 'Swift realm="unknown"'} if status == 401 else None
        super().__init__(status, f"FormPost: {text}", headers, content_type=TEXT if status == 400 else None)


class FormPost(Filter):
    """Turns POSTs of forms into PUTs of their files."""

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
        """Store what a form brings; everything else is not this filter's business."""
        if request.method != "POST" or "/" not in request.raw_path.strip("/"):
            # A form without an account is for another filter, e.g. S3's form upload.
            return self.forward(request)
        kind, parameters = parse_parameters(request.headers.get("content-type", ""))
        boundary = parameters.get("boundary")
        if kind != "multipart/form-data" or not boundary:
            return self.forward(request)
        try:
            return self._store(request, Form(request.body, boundary))
        except BadForm as error:
            return FormRefused(400, str(error)).response
        except HTTPError as error:
            return error.response

    def _store(self, request: Request, form: Form) -> Response:
        terms: dict[str, str] = {}
        message, status, files = "", 0, 0
        while status // 100 in (0, 2) and (headers := form.next_part()) is not None:
            _, about = parse_parameters(headers.get("content-disposition", ""))
            filename = about.get("filename")
            if filename is None:
                _note(terms, about.get("name", ""), form.value(), accept=not files)
                continue
            if not filename:
                form.value()
                continue
            files += 1
            if files > _number(terms, "max_file_count"):
                status, message = 400, "max file count exceeded"
                break
            status = self._store_file(request, form, terms, headers, filename)
        if not files:
            status, message = 400, "no files to process"
        return _answer(status, message, terms.get("redirect", ""))

    def _store_file(
        self, request: Request, form: Form, terms: dict[str, str], part: HeaderMap, filename: str
    ) -> int:
        """PUT one file; the status. Raises ``FormRefused``."""
        size_max = _number(terms, "max_file_size")
        headers = {"transfer-encoding": "chunked"}
        for name, what in (("x_delete_at", "Unix timestamp"), ("x_delete_after", "Number of seconds")):
            if name in terms:
                problem = f"{name} not an integer: {what} required."
                if not terms[name]:
                    raise FormRefused(400, problem)
                _number(terms, name, problem)
                headers[name.replace("_", "-")] = terms[name]
        for name in ("content-type", "content-encoding"):
            if value := terms.get(name) or part.get(name):
                if has_control_characters(value):
                    raise FormRefused(400, f"{name} has characters that no header has")
                headers[name] = value
        key = self._key_of(request, terms)
        _check_redirect(terms.get("redirect", ""))
        entity = request.entity
        assert entity is not None, "only entities have keys"
        folder = request.lossy_path.encode("utf-8", "surrogateescape")
        if entity.path.obj is None and not folder.endswith(b"/"):
            folder += b"/"
        raw_path = quote(folder + filename.encode("latin-1"), safe="/~")
        body = BoundedFileBody(form, size_max)
        agent = "%(orig)s FormPost"
        sub = make_subrequest(request, "PUT", raw_path, headers=headers, body=body, source="FP", agent=agent)
        signed = SignedScope(
            key.scope,
            entity.path._replace(obj=None),
            entity.path.obj or "",
            is_prefix=True,
            is_reading=False,
        )
        sub.env[environkeys.AUTHORIZE] = signed.authorise
        sub.env[environkeys.AUTHORIZE_OVERRIDE] = True
        sub.env[environkeys.REMOTE_USER] = USER
        sub.env[environkeys.OWNER] = False
        try:
            with open_response(partial(forward_write, self.forward), sub) as response:
                status = response.status
        except WriteNotStored as error:
            status = error.response.status
        except BodyError as error:
            status = error.status
        if body.is_too_large:
            raise FormRefused(400, "max_file_size exceeded")
        if status // 100 == 2:
            body.drain()
        return status

    def _key_of(self, request: Request, terms: dict[str, str]) -> Key:
        """Return the key that signed the form; raises ``FormRefused``."""
        if _number(terms, "expires", "expired not an integer") < self._clock.time():
            raise FormRefused(401, "Form Expired")
        signature = parse_signature(terms.get("signature", ""), self._settings.allowed_digests)
        entity = request.entity
        key = None
        if signature and entity and entity.path.container is not None and entity.version in API_VERSIONS:
            signed = ("redirect", ""), ("max_file_size", "0"), ("max_file_count", "0"), ("expires", "0")
            lines = [(terms.get(name) or default).encode("latin-1") for name, default in signed]
            path = request.lossy_path.encode("utf-8", "surrogateescape")
            text = b"\n".join([path, *lines])
            key = signing_key(signature, [text], keys_of(request, self.forward, entity.path))
        if signature is None or key is None:
            raise FormRefused(401, "Invalid Signature")
        self._statsd.increment(f"formpost.digests.{signature.digest}")
        return key


def _note(terms: dict[str, str], name: str, value: str, *, accept: bool) -> None:
    """Keep a field of the form; those after the first file say nothing."""
    if accept:
        terms[name.lower()] = value
        if len(terms) > FIELDS_MAX:
            raise FormRefused(400, "too many fields")


def _number(terms: dict[str, str], name: str, problem: str = "") -> int:
    """Return a field that is a number, 0 when it is empty or missing; raises ``FormRefused``."""
    text = terms.get(name) or "0"
    try:
        if len(text) > _NUMBER_CHARS_MAX:
            raise ValueError(text)
        return int(text)
    except ValueError:
        raise FormRefused(400, problem or f"{name} not an integer")


def _check_redirect(redirect: str) -> None:
    """Refuse what would become headers of its own in the answer; raises ``FormRefused``."""
    if has_control_characters(redirect):
        raise FormRefused(400, "redirect is not a URL")


def _answer(status: int, message: str, redirect: str) -> Response:
    """Return the response for the browser: a page, or a redirect that carries the status."""
    if not redirect:
        text = f"{status} {reason_phrase(status)}"
        if message:
            text += f"\r\nFormPost: {message.title()}"
        return error_response(status, text, content_type=TEXT)
    _check_redirect(redirect)
    sign = "&" if "?" in redirect else "?"
    location = f"{redirect}{sign}status={status}&message={quote(message)}"
    target = location.translate(_MARKUP)
    page = f'<html><body><p><a href="{target}">Click to continue...</a></p></body></html>'
    return Response(303, {"location": location}, page.encode("latin-1"))


FILTER = FilterDeclaration(
    "formpost",
    FormPostSettings,
    lambda app, settings, services: FormPost(app, settings, services.telemetry()),
    position=130,
    default=True,
    info=lambda settings: digest_facts(settings.allowed_digests),
    left_of={
        "tempauth": "what it lets in would be refused",
        "keystoneauth": "what it lets in would be refused",
    },
)

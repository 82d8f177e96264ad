"""PostObject: the browser's form, its policy, and the upload of its file."""

from __future__ import annotations

import json
import re
import time
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NoReturn
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from swift.base.entity import RESERVED
from swift.http import environkeys
from swift.http.headers import HeaderMap, has_control_characters, wire_value
from swift.http.request import Request
from swift.http.response import Response
from swift.http.storedtags import tags_header
from swift.middleware.formpost.form import Form, FormFileBody, parse_parameters
from swift.s3.api.objects import put_object
from swift.s3.auth.identify import claim_from_form
from swift.s3.core.call import Call, Handler, xml_response
from swift.s3.core.claim import parse_iso_date
from swift.s3.core.errors import RejectedBody, S3Error
from swift.s3.core.metadata import CONTENT_HEADERS
from swift.s3.core.names import KEY_BYTES_MAX
from swift.s3.core.router import Endpoint
from swift.s3.core.tags import OBJECT_TAGS_MAX, TAGGING, parse_tags_document
from swift.s3.core.xml import Group, parse, texts
from swift.s3.policy.authorize import authorize

#: Bytes of all fields together, and how many there may be.
FIELDS_BYTES_MAX, FIELDS_MAX = 64 << 10, 200


def is_form(request: Request) -> bool:
    """Return True if a request is a browser's form and does not name an account of Swift."""
    return request.method == "POST" and "/" not in request.raw_path.strip("/") and bool(boundary_of(request))


def boundary_of(request: Request) -> str:
    """Return the boundary of a multipart/form-data request, empty for other requests."""
    kind, parameters = parse_parameters(request.headers.get("content-type", ""))
    return parameters.get("boundary", "") if kind.lower() == "multipart/form-data" else ""


class FormUpload:
    """The fields before the file, names in lower case, and the file."""

    def __init__(self, form: Form):
        self.fields: dict[str, str] = {}
        self.file_name = ""
        self._form = form

    def read_fields(self) -> None:
        """Read all fields up to the file; raise ``S3Error`` if there is no file."""
        left = FIELDS_BYTES_MAX
        while (headers := self._form.next_part()) is not None:
            _, about = parse_parameters(headers.get("content-disposition", ""))
            name = _decode_text(about.get("name", "").encode("latin-1", "replace")).lower()
            if name == "file":
                self._begin_file(about)
                return
            value = self._read_value(left)
            left -= len(value) + len(name)
            if name in self.fields or len(self.fields) >= FIELDS_MAX:
                # Fields that are not covered by the signed policy are rejected.
                raise S3Error("InvalidArgument", "A form has a field twice, or too many fields.")
            if name:
                self.fields[name] = _decode_text(value)
        raise S3Error("InvalidArgument", "POST requires exactly one file upload per request.")

    def _read_value(self, left: int) -> bytes:
        pieces, size = [], 0
        while data := self._form.read_data():
            size += len(data)
            if size > left:
                raise S3Error("MaxPostPreDataLengthExceededError")
            pieces.append(data)
        return b"".join(pieces)

    def _begin_file(self, about: dict[str, str]) -> None:
        name = _decode_text(about.get("filename", "").encode("latin-1", "replace"))
        # Some browsers send the whole path.
        self.file_name = name.replace("\\", "/").rpartition("/")[2]

    def substitute_file_name(self, variable: str) -> None:
        """Replace a variable by the file's name in every field.

        Raise ``S3Error`` if the fields become too large.
        """
        more = max(0, len(self.file_name) - len(variable))
        left = FIELDS_BYTES_MAX - sum(map(len, self.fields.values()))
        for name, text in self.fields.items():
            if variable in text and name != "policy":
                left -= text.count(variable) * more
                if left < 0:
                    raise S3Error("MaxPostPreDataLengthExceededError")
                self.fields[name] = text.replace(variable, self.file_name)

    def file_body(self, size_min: int, size_max: int) -> FormFile:
        """Return the file as a request body."""
        return FormFile(self._form, size_min, size_max)


def _decode_text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeError:
        raise S3Error("InvalidArgument", "The fields of a form must be UTF-8.")


class FormFile(FormFileBody):
    """The file of a form; raises ``RejectedBody`` if its size is out of the allowed range."""

    def __init__(self, form: Form, size_min: int, size_max: int):
        super().__init__(form)
        self._size_min, self._size_max = size_min, size_max
        #: The reason of the rejection, which other filters reduce to a status.
        self.s3_error: S3Error | None = None

    def check_size(self, *, is_complete: bool) -> None:
        """Raise ``RejectedBody`` for a file of a size that the policy does not allow."""
        if self.received > self._size_max:
            details = {"ProposedSize": self.received, "MaxSizeAllowed": self._size_max}
            self._reject(S3Error("EntityTooLarge", details=details))
        if is_complete and self.received < self._size_min:
            details = {"ProposedSize": self.received, "MinSizeAllowed": self._size_min}
            self._reject(S3Error("EntityTooSmall", details=details))

    def _reject(self, problem: S3Error) -> NoReturn:
        self.s3_error = problem
        raise RejectedBody(problem)


# --- the policy of a form -----------------------------------------------------------------------------
# A form may contain nothing that its signer did not foresee: every field needs a condition, except those that
# carry the policy and its signature. The bucket needs one too, also if only the URL names it.

POLICY_BYTES_MAX = 20 << 10
#: Fields that need no condition.
_UNCONDITIONED_FIELDS = frozenset(("policy", "signature", "x-amz-signature", "awsaccesskeyid", "file"))
_IGNORED_PREFIX = "x-ignore-"
#: Default limit of a file's size in bytes.
FILE_BYTES_MAX = 5 << 30


@dataclass(frozen=True, slots=True)
class PostPolicy:
    """The policy of a form: its end, conditions as (operator, field in lower case, value), and file sizes."""

    expires: int
    conditions: tuple[tuple[str, str, str], ...]
    size_min: int = 0
    size_max: int = FILE_BYTES_MAX


_is_iso_date = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)?", re.ASCII
).fullmatch


def parse_post_policy(text: str) -> PostPolicy:
    """Return the policy in the base64 text of a form's field; raise ``S3Error``."""
    if len(text) > 2 * POLICY_BYTES_MAX:
        raise _invalid_policy("The policy is too large.")
    try:
        tree = json.loads(b64decode("".join(text.split()), validate=True).decode("utf-8"))
    except (ValueError, RecursionError):
        raise _invalid_policy("Invalid Policy: Invalid JSON.")
    if not isinstance(tree, dict) or not {"expiration", "conditions"} >= set(tree):
        raise _invalid_policy("Invalid Policy: Unexpected property.")
    date = tree.get("expiration")
    expires = parse_iso_date(date) if isinstance(date, str) and _is_iso_date(date) else None
    if expires is None:
        raise _invalid_policy("Invalid Policy: Invalid 'expiration' value.")
    items = tree.get("conditions")
    if not isinstance(items, list):
        raise _invalid_policy("Invalid Policy: Invalid 'conditions' value: must be a List.")
    conditions: list[tuple[str, str, str]] = []
    size_min, size_max = 0, FILE_BYTES_MAX
    for item in items:
        if isinstance(item, list) and len(item) == 3 and str(item[0]).lower() == "content-length-range":
            low, high = _parse_size(item[1]), _parse_size(item[2])
            size_min, size_max = max(size_min, low), min(size_max, high)
        else:
            conditions += _parse_conditions(item)
    return PostPolicy(expires, tuple(conditions), size_min, size_max)


def _invalid_policy(text: str) -> S3Error:
    return S3Error("InvalidPolicyDocument", text)


def _parse_size(value: object) -> int:
    text = str(value)
    if isinstance(value, bool) or not (text.isascii() and text.isdigit()) or len(text) > 15:
        raise _invalid_policy("Invalid Policy: Invalid content-length-range.")
    return int(text)


def _parse_conditions(item: object) -> list[tuple[str, str, str]]:
    if isinstance(item, dict) and item:
        pairs = [("eq", f"${name}", value) for name, value in item.items()]
    elif isinstance(item, list) and len(item) == 3:
        pairs = [(item[0], item[1], item[2])]
    else:
        raise _invalid_policy("Invalid Policy: Invalid condition.")
    found = []
    for operator, name, value in pairs:
        if not (isinstance(operator, str) and isinstance(name, str) and isinstance(value, str)):
            raise _invalid_policy("Invalid Policy: Invalid condition.")
        if operator.lower() not in ("eq", "starts-with") or len(name) < 2 or not name.startswith("$"):
            raise _invalid_policy("Invalid Policy: Invalid condition.")
        found.append((operator.lower(), name[1:].lower(), value))
    return found


def validate_form(
    policy: PostPolicy, fields: Mapping[str, str], original_fields: Mapping[str, str], now: float
) -> None:
    """Raise ``S3Error`` if a form does not meet its policy.

    ``original_fields`` are the fields before the file's name was substituted.
    """
    if policy.expires <= now:
        raise _policy_denied("Policy expired.")
    covered = {name for _, name, _ in policy.conditions}
    for name in fields:
        if name not in covered and name not in _UNCONDITIONED_FIELDS and not name.startswith(_IGNORED_PREFIX):
            raise _policy_denied(f"Extra input fields: {name}")
    for operator, name, value in policy.conditions:
        if not _condition_holds(operator, name, value, fields, original_fields):
            raise _policy_denied(f'Policy Condition failed: ["{operator}", "${name}", "{value}"]')


def _condition_holds(
    operator: str, name: str, value: str, fields: Mapping[str, str], original_fields: Mapping[str, str]
) -> bool:
    text = fields.get(name, "")
    if operator == "eq":
        return value in (text, original_fields.get(name, ""))
    if name == "content-type":
        return all(word.strip().startswith(value) for word in text.split(","))
    return text.startswith(value)


def _policy_denied(text: str) -> S3Error:
    return S3Error("AccessDenied", f"Invalid according to Policy: {text}", reason="post_policy")


# --- PostObject ---------------------------------------------------------------------------------------
# The fields become the headers of a PutObject, which stores the file as it arrives. The signer of
# the policy uploads; without a policy the upload is anonymous.

POST_RESULT = Group("PostResponse", *texts("Location Bucket Key ETag"))
_FILE_NAME_VARIABLE = "${filename}"
_HEADER_FIELDS = (*CONTENT_HEADERS, "content-type", "content-md5")
#: Fields with these beginnings are those of the signature, not headers.
_SIGNATURE_FIELDS = frozenset(
    ("x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-signature", "x-amz-security-token")
)
_SUCCESS_STATUSES = {"200": 200, "201": 201, "204": 204}


def post_object(call: Call) -> Response:
    """PostObject."""
    boundary = boundary_of(call.request)
    if not boundary:
        text = "Bucket POST must be of the enclosure-type multipart/form-data"
        raise S3Error("PreconditionFailed", text)
    if not call.session.is_anonymous:
        raise S3Error("InvalidArgument", "Only one auth mechanism allowed")
    form = FormUpload(Form(call.request.body, boundary))
    form.read_fields()
    fields = form.fields
    claim = claim_from_form(fields, call.settings)
    if claim is None and not call.session.account:
        raise S3Error("AccessDenied")
    # Errors of a policy are reported only to a known signer.
    session = call.session if claim is None else call.identify_signer(claim)
    original_fields = dict(fields)
    form.substitute_file_name(_FILE_NAME_VARIABLE)
    key = _object_key(call, form)
    # For the audit log: the path names the bucket alone.
    call.request.env.setdefault(environkeys.S3_CALL, {})["key"] = key
    policy = _validated_policy(call, fields, original_fields) if claim is not None else None
    size_min, size_max = (policy.size_min, policy.size_max) if policy is not None else (0, FILE_BYTES_MAX)
    headers = {
        **_headers_of_fields(fields),
        **_forwarded_headers(call.headers),
        "transfer-encoding": "chunked",
    }
    inner = _make_put_request(call.request, headers)
    file = inner.body = form.file_body(size_min, size_max)
    put = replace(
        call, request=inner, endpoint=Endpoint(call.endpoint.operation, call.bucket, key), session=session
    )
    put = authorize(put, is_form_read=True)
    try:
        stored = put_object(put)
    except S3Error:
        if file.s3_error is not None:
            raise file.s3_error
        raise
    return _success_response(call, fields, key, stored)


def _object_key(call: Call, form: FormUpload) -> str:
    """Return the key of the object; raise ``S3Error``."""
    key = form.fields.get("key", "")
    if not key:
        raise S3Error("UserKeyMustBeSpecified")
    if RESERVED in key:
        raise S3Error("InvalidURI", "Names must not have NUL characters.")
    if len(key.encode("utf-8")) > KEY_BYTES_MAX:
        raise S3Error("KeyTooLongError")
    if form.fields.setdefault("bucket", call.bucket) != call.bucket:
        raise S3Error("InvalidArgument", "The form is for another bucket.")
    return key


def _validated_policy(
    call: Call, fields: Mapping[str, str], original_fields: Mapping[str, str]
) -> PostPolicy:
    policy = parse_post_policy(fields["policy"])
    validate_form(policy, fields, original_fields, time.time())
    return policy


def _headers_of_fields(fields: Mapping[str, str]) -> HeaderMap:
    """Return the upload headers for a form's fields; raise ``S3Error``."""
    found: HeaderMap = {}
    for name, text in fields.items():
        if name in _HEADER_FIELDS or (name.startswith("x-amz-") and name not in _SIGNATURE_FIELDS):
            found[name] = text
        elif name == "acl":
            found["x-amz-acl"] = text
        elif name == "tagging" and text:
            tags = parse_tags_document(parse(TAGGING, text.encode()), OBJECT_TAGS_MAX)
            found["x-amz-tagging"] = tags_header(tags)
    for name, text in found.items():
        if has_control_characters(name + text) or not name.isascii():
            raise S3Error("InvalidArgument", "A field has characters that no header has.")
        found[name] = wire_value(text)
    found.pop("x-amz-copy-source", None)
    return found


def _forwarded_headers(headers: HeaderMap) -> HeaderMap:
    """Return the request's own headers that conditions and logs need."""
    return {name: headers[name] for name in ("host", "user-agent", "referer", "origin") if name in headers}


def _make_put_request(request: Request, headers: HeaderMap) -> Request:
    inner = Request("PUT", request.raw_path, headers, env=request.env, scheme=request.scheme)
    inner.remote_addr, inner.http_minor = request.remote_addr, request.http_minor
    return inner


# --- the answer -----------------------------------------------------------------------------------------


def _success_response(call: Call, fields: Mapping[str, str], key: str, stored: Response) -> Response:
    """Return the response to the browser, or a redirect to the requested URL."""
    etag = stored.headers.get("etag", "")
    headers = {name: text for name, text in stored.headers.items() if name.startswith(("etag", "x-amz-"))}
    target = _validate_redirect(fields.get("success_action_redirect") or fields.get("redirect", ""))
    if target:
        more = urlencode({"bucket": call.bucket, "key": key, "etag": etag})
        return Response(303, {**headers, "location": f"{target}{'&' if '?' in target else '?'}{more}"})
    host = call.headers.get("host", "localhost")
    path = call.request.raw_path.rstrip("/")
    location = f"{call.request.scheme}://{host}{path}/{quote(key, safe='/~')}"
    headers["location"] = location
    status = _SUCCESS_STATUSES.get(fields.get("success_action_status", ""), 204)
    if status == 201:
        value = {"Location": location, "Bucket": call.bucket, "Key": key, "ETag": etag}
        return xml_response(POST_RESULT, value, headers=headers, status=201)
    return Response(status, headers)


def _validate_redirect(url: str) -> str:
    """Return a redirect URL without its fragment; empty for invalid URLs, which are ignored."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return ""
    if not known or not url.isascii() or not url.isprintable() or " " in url:
        return ""
    return urlunsplit(parts._replace(fragment=""))


HANDLERS: dict[str, Handler] = {"PostObject": post_object}

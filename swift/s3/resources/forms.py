"""PostObject: an upload by the form of a browser.

The fields become the headers of a PutObject, which stores the file as it arrives. Whoever signed the policy
uploads; without a policy it is nobody, who may do what everybody may.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from swift.base.entity import RESERVED
from swift.http.headers import HeaderMap, has_controls, wire_value
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.formpost.form import Form
from swift.s3.admission import admit
from swift.s3.call import Call, Handler, xml_response
from swift.s3.errors import S3Error
from swift.s3.names import KEY_BYTES_MAX
from swift.s3.posted import PostedForm, boundary_of
from swift.s3.postpolicy import FILE_BYTES_MAX, PostPolicy, check_form, parse_post_policy
from swift.s3.resources.objects import put_object
from swift.s3.router import Endpoint
from swift.s3.signature.form import claim_of_form
from swift.s3.tags import OBJECT_TAGS_MAX, TAGGING, stored_tags, tags_of_document
from swift.s3.xml import Group, Text, parse

RESULT = Group("PostResponse", Text("Location"), Text("Bucket"), Text("Key"), Text("ETag"))
_FILE_NAME = "${filename}"
_HEADERS = (
    "cache-control",
    "content-type",
    "content-disposition",
    "content-encoding",
    "content-language",
    "expires",
)
#: Fields with these beginnings are those of the signature, not headers.
_OF_SIGNATURE = frozenset(
    ("x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-signature", "x-amz-security-token")
)
_STATUSES = {"200": 200, "201": 201, "204": 204}


def post_object(call: Call) -> Response:
    """PostObject."""
    boundary = boundary_of(call.request)
    if not boundary:
        call.account.identify()
        text = "Bucket POST must be of the enclosure-type multipart/form-data"
        raise S3Error("PreconditionFailed", text)
    if not call.account.is_anonymous:
        raise S3Error("InvalidArgument", "Only one auth mechanism allowed")
    form = PostedForm(Form(call.request.body, boundary))
    form.read_fields()
    fields = form.fields
    claim = claim_of_form(fields, call.settings)
    account = call.account if claim is None else call.account.signed(claim)
    if claim is None and not account.name:
        raise S3Error("AccessDenied")
    # Nobody learns what is wrong with a policy that nobody we know has signed.
    account.identify()
    literal = dict(fields)
    form.name_file(_FILE_NAME)
    key = _key(call, form)
    policy = _policy(call, fields, literal) if claim is not None else None
    size_min, size_max = (policy.size_min, policy.size_max) if policy is not None else (0, FILE_BYTES_MAX)
    headers = {**_headers(fields), **_carried(call.headers), "transfer-encoding": "chunked"}
    inner = _inner(call.request, headers)
    file = inner.body = form.file(size_min, size_max)
    put = replace(
        call, request=inner, endpoint=Endpoint(call.endpoint.operation, call.bucket, key), account=account
    )
    admit(put, is_read=True)
    try:
        stored = put_object(put)
    except S3Error:
        if file.problem is not None:
            raise file.problem
        raise
    return _answer(call, fields, key, stored)


def _key(call: Call, form: PostedForm) -> str:
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


def _policy(call: Call, fields: Mapping[str, str], literal: Mapping[str, str]) -> PostPolicy:
    policy = parse_post_policy(fields["policy"])
    check_form(policy, fields, literal, time.time())
    return policy


def _headers(fields: Mapping[str, str]) -> HeaderMap:
    """The headers of an upload that fields stand for; raises ``S3Error``."""
    found: HeaderMap = {}
    for name, text in fields.items():
        if name in _HEADERS or (name.startswith("x-amz-") and name not in _OF_SIGNATURE):
            found[name] = text
        elif name == "acl":
            found["x-amz-acl"] = text
        elif name == "content-md5":
            found[name] = text
        elif name == "tagging" and text:
            tags = tags_of_document(parse(TAGGING, text.encode()), OBJECT_TAGS_MAX)
            found["x-amz-tagging"] = stored_tags(tags)
    for name, text in found.items():
        if has_controls(name + text) or not name.isascii():
            raise S3Error("InvalidArgument", "A field has characters that no header has.")
        found[name] = wire_value(text)
    found.pop("x-amz-copy-source", None)
    return found


def _carried(headers: HeaderMap) -> HeaderMap:
    """What of the request's own headers conditions may ask for, or logs."""
    return {name: headers[name] for name in ("host", "user-agent", "referer", "origin") if name in headers}


def _inner(request: Request, headers: HeaderMap) -> Request:
    inner = Request("PUT", request.raw_path, headers, env=request.env, scheme=request.scheme)
    inner.remote_addr, inner.http_minor = request.remote_addr, request.http_minor
    return inner


# --- the answer -----------------------------------------------------------------------------------------


def _answer(call: Call, fields: Mapping[str, str], key: str, stored: Response) -> Response:
    """What the browser is told, or where it is sent to be told."""
    etag = stored.headers.get("etag", "")
    headers = {name: text for name, text in stored.headers.items() if name.startswith(("etag", "x-amz-"))}
    target = _redirect(fields.get("success_action_redirect") or fields.get("redirect", ""))
    if target:
        more = urlencode({"bucket": call.bucket, "key": key, "etag": etag})
        return Response(303, {**headers, "location": f"{target}{'&' if '?' in target else '?'}{more}"})
    host = call.headers.get("host", "localhost")
    path = call.request.raw_path.rstrip("/")
    location = f"{call.request.scheme}://{host}{path}/{quote(key, safe='/~')}"
    headers["location"] = location
    status = _STATUSES.get(fields.get("success_action_status", ""), 204)
    if status == 201:
        value = {"Location": location, "Bucket": call.bucket, "Key": key, "ETag": etag}
        return xml_response(RESULT, value, headers=headers, status=201)
    return Response(status, headers)


def _redirect(url: str) -> str:
    """A URL of the form where a browser may be sent; empty for what is none, which is ignored."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return ""
    if not known or not url.isascii() or not url.isprintable() or " " in url:
        return ""
    return urlunsplit(parts._replace(fragment=""))


HANDLERS: dict[str, Handler] = {"PostObject": post_object}

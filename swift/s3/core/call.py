"""A call: one S3 request as its handler gets it; and responses of handlers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from swift import green
from swift.base.digits import is_digits
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.http import environkeys
from swift.http.body import BodyError, RequestBody, ResponseBody
from swift.http.headers import HeaderMap, utf8_value
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.identity.policy.evaluate import PolicyVerdict
from swift.s3.core.checksums import CHECKSUM_HEADER_PREFIX, Algorithm, default_algorithm
from swift.s3.core.claim import Claim
from swift.s3.core.errors import RejectedBody, S3Error, argument_error, error_for_status
from swift.s3.core.metadata import STANDARD, StorageClasses
from swift.s3.core.names import is_utf8
from swift.s3.core.payload import S3Upload, make_upload, read_small_body, validate_no_body
from swift.s3.core.router import Endpoint
from swift.s3.core.session import Session
from swift.s3.core.settings import S3Settings
from swift.s3.core.xml import DECLARATION, Element, Tree, Value, escape, parse, render
from swift.telemetry.log import Log

XML_TYPE = "application/xml"
#: The largest number of a parameter.
COUNT_MAX = 2**31 - 1
#: Default limit of a document's size in bytes.
DOCUMENT_MAX = 64 << 10


@dataclass(frozen=True, slots=True)
class Features:
    """Features of the rest of the pipeline."""

    multipart: bool = True
    versioning: bool = True
    encryption: bool = False
    #: The authentication filter serves STS and IAM.
    query_api: bool = False
    storage_classes: StorageClasses = field(default_factory=StorageClasses)


@dataclass(frozen=True, slots=True)
class PendingRead:
    """The part of an access check that needs the object; see ``policy.authorize.open_object``."""

    #: Returns the policy's verdict for the object's tags; None if the policy is silent.
    verdict: Callable[[dict[str, str]], PolicyVerdict] | None = None


@dataclass(slots=True)
class Call:
    """An S3 request, its endpoint, and the session of the caller."""

    request: Request
    endpoint: Endpoint
    session: Session
    settings: S3Settings
    features: Features
    log: Log
    #: Returns the session of the signer of a form; raises ``S3Error``.
    identify_signer: Callable[[Claim], Session]
    #: For GetObject and HeadObject: the check to make on the response.
    pending_read: PendingRead | None = None

    @property
    def bucket(self) -> str:
        """The bucket's name."""
        return self.endpoint.bucket

    @property
    def key(self) -> str:
        """The key."""
        return self.endpoint.key

    @property
    def headers(self) -> HeaderMap:
        """The client's headers."""
        return self.request.headers

    @property
    def params(self) -> Mapping[str, str]:
        """The parameters of the query, Latin-1 views."""
        return self.request.params

    def text_param(self, name: str) -> str:
        """Return a query parameter as text, empty if it is missing; raise ``S3Error``."""
        value = self.params.get(name, "")
        if not is_utf8(value):
            raise invalid_argument(name, quote(value.encode("latin-1", "replace")))
        return utf8_value(value)

    def count_param(self, name: str, most: int) -> int:
        """Return a numeric query parameter, at most and by default ``most``; raise ``S3Error``."""
        return min(self.parse_count_param(name, most), most)

    def parse_count_param(self, name: str, default: int) -> int:
        """Return a numeric query parameter as sent; raise ``S3Error`` if it is invalid."""
        text = self.params.get(name)
        if text is None:
            return default
        number = text.strip(" ").removeprefix("+")
        digits = number.removeprefix("-")
        if not is_digits(digits) or len(digits) > 10 or int(digits) > COUNT_MAX:
            raise invalid_argument(name, text, f"Provided {name} not an integer or within integer range")
        if number.startswith("-"):
            raise invalid_argument(
                name, text, f"Argument {name} must be an integer between 0 and {COUNT_MAX}"
            )
        return int(number)

    @property
    def bucket_storage_class(self) -> str:
        """The storage class of the bucket; raises ``S3Error`` if it does not exist."""
        classes = self.features.storage_classes
        if classes.is_single:
            return STANDARD
        return classes.class_of_policy(self.session.bucket_info(self.bucket).policy_index)

    # bodies

    def make_upload(self, requested: Algorithm | None = None) -> S3Upload:
        """Return the request's body as an upload; raise ``S3Error``.

        Its checksum is the declared one, else one of the requested kind, else the default one.
        """
        request = self.request
        if request.body.length is None and "transfer-encoding" not in request.headers:
            raise S3Error("MissingContentLength")
        if "content-length" not in request.headers and "transfer-encoding" not in request.headers:
            raise S3Error("MissingContentLength")
        return make_upload(request.body, request.headers, self.session.claim, requested, default_algorithm())

    def read_body(self, limit: int = DOCUMENT_MAX, error: str = "MalformedXML") -> bytes:
        """Return a small body, verified against its headers; raise ``S3Error``.

        The checksum headers of CompleteMultipartUpload are the object's, not the body's.
        ``error`` is the code for a body that exceeds the limit.
        """
        headers = self.request.headers
        if self.endpoint.operation.name == "CompleteMultipartUpload":
            of_object = (CHECKSUM_HEADER_PREFIX, "x-amz-sdk-checksum-algorithm")
            headers = {name: text for name, text in headers.items() if not name.startswith(of_object)}
        return read_small_body(self.request.body, headers, self.session.claim, limit, error)

    def parse_body(self, schema: Element, *, limit: int = DOCUMENT_MAX, error: str = "MalformedXML") -> Tree:
        """Return the body as an XML document; raise ``S3Error``."""
        body = self.read_body(limit, error)
        if not body:
            raise S3Error("MissingRequestBodyError")
        return parse(schema, body, error=error)

    def require_no_body(self) -> None:
        """Raise ``S3Error`` if the request has a body or headers that declare one."""
        body: RequestBody = self.request.body
        if body.length or (body.length is None and body.read(1)):
            raise S3Error("UnexpectedContent")
        validate_no_body(self.headers, self.session.claim)

    def delete_unreferenced_part(self, container: str, name: str, headers: HeaderMap | None = None) -> None:
        """Delete a part that no object refers to; log a failure."""
        try:
            with self.session.open_response("DELETE", container, name, headers=headers) as response:
                status = response.status
        except S3Error as error:
            status = error.status
        if status // 100 != 2 and status != 404:
            self.log.warning(f"cannot delete unreferenced part {container}/{name}: status {status}")

    def __repr__(self) -> str:
        return f"<Call {self.endpoint.operation.name} {self.bucket}/{self.key}>"


#: Returns the response of an operation.
Handler = Callable[[Call], Response]


def xml_response(
    schema: Element, value: Value, *, headers: HeaderMap | None = None, status: int = 200
) -> Response:
    """Return a response with an XML document."""
    return Response(status, {"content-type": XML_TYPE, **(headers or {})}, render(schema, value))


def no_content(headers: HeaderMap | None = None) -> Response:
    """Return a 204 response."""
    return Response(204, dict(headers or {}))


def invalid_argument(name: str, value: str, text: str | None = None) -> S3Error:
    """Return a 400 error that names an argument."""
    return argument_error(name, utf8_value(value), text)


def iso_time(seconds: float) -> str:
    """Return ``2026-11-22T18:00:00.000Z``, rounded down to seconds as everywhere in the S3 API.

    Rounded up as in Swift's API it would be in the future, and clients would skip fresh objects.
    """
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(math.floor(seconds)))


def iso_time_of_row(text: str) -> str:
    """Return the same for the ``last_modified`` of a listing row (``2026-11-22T18:00:00.123450``)."""
    return f"{text.partition('.')[0]}.000Z"


# --- errors -------------------------------------------------------------------------------------------


def as_s3_error(error: Exception) -> S3Error | None:
    """Return the ``S3Error`` for an exception that carries a response; None for others."""
    if isinstance(error, S3Error):
        return error
    if isinstance(error, RejectedBody):
        return error.s3_error
    if isinstance(error, HTTPError):
        return error_for_status(error.response.status)
    if isinstance(error, BodyError):
        return error_for_status(error.status)
    return None


def error_document(request: Request, error: S3Error) -> bytes:
    """Return the XML document of an error; text from the client is escaped."""
    txid = str(request.env.get(environkeys.TRANS_ID, ""))
    elements = [("Code", error.code), ("Message", error.text), ("RequestId", txid)]
    elements += [(name, str(value)) for name, value in error.details.items()]
    inner = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in elements)
    return DECLARATION + f"<Error>{inner}</Error>".encode("utf-8", "replace")


def late_error_document(call: Call, error: Exception) -> bytes:
    """Return the XML document of an error that occurs after the status line was sent."""
    known = as_s3_error(error)
    if known is None:
        txid = call.request.env.get(environkeys.TRANS_ID)
        call.log.exception(f"unexpected error in {call.endpoint.operation.name}", error, txid=txid)
        known = S3Error("InternalError")
    return error_document(call.request, known)


# --- keep-alive responses -----------------------------------------------------------------------------
# Work that ends early has its own status. Later the status line was sent: an error is then the
# document of a 200, as S3 does it.

Work = Callable[[], Response]
#: The document of an error, or None for one without a response.
RenderError = Callable[[Exception], bytes]


def respond_with_keep_alive(call: Call, work: Work) -> Response:
    """Return the response of ``work``; send spaces before its document while it takes long."""
    interval_s = call.settings.keep_alive_seconds
    return keep_alive_response(work, lambda error: late_error_document(call, error), interval_s=interval_s)


def keep_alive_response(work: Work, render_error: RenderError, *, interval_s: float) -> Response:
    """Return the response of ``work``, or one whose body begins before the result is known."""
    result_queue: green.Queue[Response | Exception] = green.Queue()

    def run() -> None:
        try:
            result_queue.put(work())
        except Exception as error:
            # The waiting caller raises or reports it.
            result_queue.put(error)

    green.spawn_detached(run)
    try:
        result = result_queue.get(time.monotonic() + interval_s)
    except green.DeadlineExceeded:
        headers: HeaderMap = {"content-type": XML_TYPE}
        return Response(200, headers, _KeepAliveBody(result_queue, render_error, interval_s))
    if isinstance(result, Exception):
        raise result
    return result


class _KeepAliveBody(ResponseBody):
    """The XML declaration, spaces while the work lasts, and then the document."""

    def __init__(
        self, result_queue: green.Queue[Response | Exception], render_error: RenderError, interval_s: float
    ):
        self.length = None
        self._result_queue = result_queue
        self._render_error = render_error
        self._interval_s = interval_s

    def __iter__(self) -> Iterator[bytes]:
        yield DECLARATION
        while True:
            try:
                result = self._result_queue.get(time.monotonic() + self._interval_s)
            except green.DeadlineExceeded:
                yield b" "
                continue
            document = self._render_error(result) if isinstance(result, Exception) else result.read_body()
            yield document.removeprefix(DECLARATION)
            return


# --- versions -----------------------------------------------------------------------------------------


def version_query(call: Call) -> str:
    """Return the query that selects the requested version; raise ``S3Error``."""
    version = call.params.get("versionId")
    if version is None:
        return ""
    if not version:
        raise invalid_argument("versionId", "", "Version id cannot be the empty string")
    validate_version_id(version)
    if not call.features.versioning:
        raise S3Error("NotImplemented", "There is no object versioning here.")
    return f"version-id={quote(version, safe='')}"


def validate_version_id(version: str) -> None:
    """Raise ``S3Error`` for invalid version ids; ``null`` is the version from before versioning."""
    try:
        Timestamp("0" if version == "null" else version)
    except InvalidTimestamp:
        raise invalid_argument("versionId", version, "Invalid version id specified")

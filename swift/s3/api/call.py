"""A call: one S3 request as its handler sees it; and the responses that handlers give."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import quote

from swift import green
from swift.base.digits import is_digits
from swift.http import environkeys
from swift.http.body import BodyError, RequestBody, ResponseBody
from swift.http.headers import HeaderMap, utf8_value
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.s3.api.checksums import PREFIX, Algorithm, usual_algorithm
from swift.s3.api.metadata import STANDARD, StorageClasses
from swift.s3.api.payload import S3Upload, read_document, upload_of, validate_no_body
from swift.s3.api.router import Endpoint
from swift.s3.auth.session import Session
from swift.s3.errors import RefusedBody, S3Error, refusal
from swift.s3.names import is_text
from swift.s3.policy.document import PolicyVerdict
from swift.s3.settings import S3Settings
from swift.s3.xml import DECLARATION, Element, Tree, Value, escape, parse, render
from swift.telemetry.log import Log

XML = "application/xml"
#: The largest number of a parameter.
COUNT_MAX = 2**31 - 1
#: Bytes of a document that a client sends, where its kind says nothing else.
DOCUMENT_MAX = 64 << 10


@dataclass(frozen=True, slots=True)
class Features:
    """The features of the rest of the pipeline."""

    multipart: bool = True
    versioning: bool = True
    encryption: bool = False
    classes: StorageClasses = field(default_factory=StorageClasses)


@dataclass(frozen=True, slots=True)
class PendingRead:
    """The part of an access check that needs the object; see ``policy.authorize.open_object``."""

    #: Tags of the object → the verdict of the bucket's policy; None if that is known to be silent.
    verdict: Callable[[dict[str, str]], PolicyVerdict] | None = None


@dataclass(slots=True)
class Call:
    """An endpoint, the request that asks for it, and the session of the caller."""

    request: Request
    endpoint: Endpoint
    session: Session
    settings: S3Settings
    features: Features
    log: Log
    #: Of a GetObject or HeadObject: the check to be made on its answer.
    pending: PendingRead | None = None

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
        """Return a parameter as text, empty when it is not there; raise ``S3Error``."""
        value = self.params.get(name, "")
        if not is_text(value):
            raise invalid_argument(name, quote(value.encode("latin-1", "replace")))
        return utf8_value(value)

    def count_param(self, name: str, most: int) -> int:
        """Return a parameter that is a number, no more than ``most``, which it is by default.

        Raise ``S3Error``.
        """
        return min(self.stated_count(name, most), most)

    def stated_count(self, name: str, default: int) -> int:
        """Return a parameter that is a number, as answers echo it; raise ``S3Error`` for others."""
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
    def storage_class(self) -> str:
        """The storage class of the bucket; raises ``S3Error`` if it does not exist."""
        classes = self.features.classes
        if classes.is_alone:
            return STANDARD
        return classes.of_policy(self.session.bucket_info(self.bucket).policy_index)

    # bodies

    def upload(self, requested: Algorithm | None = None) -> S3Upload:
        """Return the body as data, its checksum of a requested kind computed; raise ``S3Error``.

        Without a checksum, promised or requested, the usual one is computed.
        """
        request = self.request
        if request.body.length is None and "transfer-encoding" not in request.headers:
            raise S3Error("MissingContentLength")
        if "content-length" not in request.headers and "transfer-encoding" not in request.headers:
            raise S3Error("MissingContentLength")
        return upload_of(request.body, request.headers, self.session.claim, requested, usual_algorithm())

    def read_body(self, limit: int = DOCUMENT_MAX, error: str = "MalformedXML") -> bytes:
        """Return the body of a small document, all promises kept; raise ``S3Error``.

        The signature of the request is checked first, so only a valid signature makes the server read the
        body. At the end of a multipart upload the checksum in the head is that of the object, not of the
        document. ``error`` is the code for a body that exceeds the limit.
        """
        self.session.identify()
        headers = self.request.headers
        if self.endpoint.operation.name == "CompleteMultipartUpload":
            of_object = (PREFIX, "x-amz-sdk-checksum-algorithm")
            headers = {name: text for name, text in headers.items() if not name.startswith(of_object)}
        return read_document(self.request.body, headers, self.session.claim, limit, error)

    def document(self, schema: Element, *, limit: int = DOCUMENT_MAX, error: str = "MalformedXML") -> Tree:
        """Return the body as a document; raise ``S3Error``."""
        body = self.read_body(limit, error)
        if not body:
            raise S3Error("MissingRequestBodyError")
        return parse(schema, body, error=error)

    def take_no_body(self) -> None:
        """Raise ``S3Error`` when there is a body where none belongs, or one was stated that is not empty."""
        body: RequestBody = self.request.body
        if body.length or (body.length is None and body.read(1)):
            raise S3Error("UnexpectedContent")
        validate_no_body(self.headers, self.session.claim)

    def remove_unneeded(self, container: str, name: str) -> None:
        """Remove a part that no object refers to; log it if it stays."""
        with self.session.ask("DELETE", container, name) as response:
            if not response.is_success and response.status != 404:
                self.log.warning(f"cannot delete unused {container}/{name}: {response.status}")

    def __repr__(self) -> str:
        return f"<Call {self.endpoint.operation.name} {self.bucket}/{self.key}>"


#: What answers an operation.
Handler = Callable[[Call], Response]


def xml_response(
    schema: Element, value: Value, *, headers: HeaderMap | None = None, status: int = 200
) -> Response:
    """Return a document as an answer."""
    return Response(status, {"content-type": XML, **(headers or {})}, render(schema, value))


def no_content(headers: HeaderMap | None = None) -> Response:
    """Return a 204."""
    return Response(204, dict(headers or {}))


def invalid_argument(name: str, value: str, text: str | None = None) -> S3Error:
    """Return a 400 that names an argument."""
    return S3Error(
        "InvalidArgument", text, details={"ArgumentName": name, "ArgumentValue": utf8_value(value)}
    )


def iso_time(seconds: float) -> str:
    """Return ``2026-11-22T18:00:00.000Z``, rounded up as all times of the API are."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(math.ceil(seconds)))


def iso_of_row(text: str) -> str:
    """Return the same from the ``last_modified`` of a row of a listing (``2026-11-22T18:00:00.123450``)."""
    whole, _, fraction = text.partition(".")
    if not fraction.strip("0"):
        return f"{whole}.000Z"
    return f"{(datetime.fromisoformat(whole) + timedelta(seconds=1)).isoformat()}.000Z"


# --- errors -------------------------------------------------------------------------------------------


def as_s3_error(error: Exception) -> S3Error | None:
    """Return an exception that carries an answer as an error of the API; None for others."""
    if isinstance(error, S3Error):
        return error
    if isinstance(error, RefusedBody):
        return error.problem
    if isinstance(error, HTTPError):
        return refusal(error.response.status)
    if isinstance(error, BodyError):
        return refusal(error.status)
    return None


def error_document(request: Request, error: S3Error) -> bytes:
    """Return the document of an error; everything from the client is escaped."""
    txid = str(request.env.get(environkeys.TRANS_ID, ""))
    elements = [("Code", error.code), ("Message", error.text), ("RequestId", txid)]
    elements += [(name, str(value)) for name, value in error.details.items()]
    inner = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in elements)
    return DECLARATION + f"<Error>{inner}</Error>".encode("utf-8", "replace")


def explain(call: Call, error: Exception) -> bytes:
    """Return the document of an error that comes too late for a status."""
    known = as_s3_error(error)
    if known is None:
        txid = call.request.env.get(environkeys.TRANS_ID)
        call.log.exception(f"{call.endpoint.operation.name} failed", error, txid=txid)
        known = S3Error("InternalError")
    return error_document(call.request, known)


# --- keep-alive responses -----------------------------------------------------------------------------
# What ends early is answered with its own status. Later the status line is out: what went wrong then is the
# document of a 200, as S3 does it.

Work = Callable[[], Response]
#: The document of an error, or None for one without a response.
Explain = Callable[[Exception], bytes]


def keep_alive(call: Call, work: Work) -> Response:
    """Return the response of ``work``, with spaces before its document if it takes long."""
    interval_s = call.settings.keep_alive_seconds
    return keep_alive_response(work, lambda error: explain(call, error), interval_s=interval_s)


def keep_alive_response(work: Work, explain: Explain, *, interval_s: float) -> Response:
    """Return the response of ``work``, or one that begins before the result is known."""
    box: green.Queue[Response | Exception] = green.Queue()

    def run() -> None:
        try:
            box.put(work())
        except Exception as error:
            # The waiting caller raises or reports it.
            box.put(error)

    green.spawn_detached(run)
    try:
        result = box.get(time.monotonic() + interval_s)
    except green.DeadlineExceeded:
        headers: HeaderMap = {"content-type": XML}
        return Response(200, headers, _KeepAliveBody(box, explain, interval_s))
    if isinstance(result, Exception):
        raise result
    return result


class _KeepAliveBody(ResponseBody):
    """The declaration, spaces, and at last the document."""

    def __init__(self, box: green.Queue[Response | Exception], explain: Explain, interval_s: float):
        self.length = None
        self._box = box
        self._explain = explain
        self._interval_s = interval_s

    def __iter__(self) -> Iterator[bytes]:
        yield DECLARATION
        while True:
            try:
                result = self._box.get(time.monotonic() + self._interval_s)
            except green.DeadlineExceeded:
                yield b" "
                continue
            document = self._explain(result) if isinstance(result, Exception) else result.read_body()
            yield document.removeprefix(DECLARATION)
            return

"""The documents of errors."""

from __future__ import annotations

from swift.http import environkeys
from swift.http.body import BodyError
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.s3.call import Call
from swift.s3.errors import RefusedBody, S3Error, refusal
from swift.s3.xml import DECLARATION, escape


def as_s3_error(error: Exception) -> S3Error | None:
    """An exception that carries an answer as an error of the API; None for others."""
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
    """What is said of an error; nothing of it is markup of the client's."""
    txid = str(request.env.get(environkeys.TRANS_ID, ""))
    elements = [("Code", error.code), ("Message", error.text), ("RequestId", txid)]
    elements += [(name, str(value)) for name, value in error.details.items()]
    inner = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in elements)
    return DECLARATION + f"<Error>{inner}</Error>".encode("utf-8", "replace")


def explain(call: Call, error: Exception) -> bytes:
    """The document of an error that comes too late for a status."""
    known = as_s3_error(error)
    if known is None:
        txid = call.request.env.get(environkeys.TRANS_ID)
        call.log.exception(f"{call.endpoint.operation.name} failed", error, txid=txid)
        known = S3Error("InternalError")
    return error_document(call.request, known)

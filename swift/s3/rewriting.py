"""Writes of metadata that read the object before: what somebody else writes meanwhile is not lost."""

from __future__ import annotations

from collections.abc import Callable

from swift.base.timestamp import Timestamp
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.s3.call import Call
from swift.s3.errors import S3Error, refusal
from swift.s3.versions import missing_key

#: Conditions → the status of the write, which reads what it says again.
Write = Callable[[HeaderMap], int]


def rewrite(call: Call, write: Write) -> int:
    """The status of a write that is only made while the call's object is the one that ``write`` reads.

    Raises ``S3Error``, ``OperationAborted`` when it no longer is. Nodes of the peer's keep no conditions, and
    are asked without (decision 0011).
    """
    status = write(_unchanged(call))
    if status == 501:
        return write({})
    if status in (409, 412):
        raise S3Error("OperationAborted")
    return status


def just_above(found: HeaderMap) -> HeaderMap:
    """The time of a POST: right above what was read, so that an upload that began meanwhile is newer.

    With a later one its metadata would be that of the upload too, had this begun a moment before.
    """
    return {"x-timestamp": Timestamp(found[fields.BACKEND_TIMESTAMP]).above(1).internal}


def _unchanged(call: Call) -> HeaderMap:
    """The condition that nobody writes the object from now on; where it is a link to a version, the link."""
    found = call.account.head(call.bucket, call.key, headers={"x-newest": "true"}, query="symlink=get")
    if not found.is_success:
        raise missing_key(call, call.key) if found.status == 404 else refusal(found.status)
    return {fields.BACKEND_IF_PREDECESSOR: found.headers[fields.BACKEND_DATA_TIMESTAMP]}

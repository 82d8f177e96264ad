"""The markers of multipart uploads as the caller of an S3 request may reach them."""

from __future__ import annotations

from swift.base.entity import EntityPath
from swift.gateway.internal_client import UnexpectedAnswer
from swift.http.headers import HeaderMap
from swift.s3.account import Account
from swift.s3.call import Call
from swift.s3.errors import refusal
from swift.s3.lifecycle.references import references
from swift.s3.uploads import no_such_upload
from swift.s3.uploadstate import ObjectAnswer, UploadState, read_state

#: Answers that say something of a marker or an object; 501: nodes keep no conditions.
_MEANINGFUL = (404, 409, 412, 501)


class CallerObjects:
    """``Objects`` with the rights of the caller; raises ``S3Error`` for what says nothing."""

    def __init__(self, account: Account):
        self._account = account

    def send(
        self,
        method: str,
        container: str,
        name: str,
        headers: HeaderMap | None = None,
        body: bytes = b"",
        *,
        query: str = "",
    ) -> ObjectAnswer:
        """See ``Objects``."""
        asked = self._account.ask(method, container, name, headers=headers, body=body, query=query)
        with asked as response:
            if not response.is_success and response.status not in _MEANINGFUL:
                raise refusal(response.status)
            content = response.read_body() if method == "GET" and response.is_success else b""
            return ObjectAnswer(response.status, response.headers, content)


def find_state(call: Call, upload_id: str, *, is_newest: bool = True) -> UploadState | None:
    """Return the state of the upload of the call's key, None without a marker; raises ``S3Error``."""
    objects = CallerObjects(call.account)
    return read_state(objects, call.bucket, call.key, upload_id, is_newest=is_newest)


def find_upload(call: Call, upload_id: str, *, is_newest: bool = True) -> UploadState:
    """Return the state of an upload that has not ended; raises ``S3Error``."""
    state = find_state(call, upload_id, is_newest=is_newest)
    if state is None:
        call.account.bucket_info(call.bucket)
        raise no_such_upload(upload_id)
    return state


def find_open_upload(call: Call, upload_id: str, *, is_newest: bool = True) -> UploadState:
    """Return the state of an upload that takes parts and may be aborted; raises ``S3Error``."""
    state = find_upload(call, upload_id, is_newest=is_newest)
    if state.is_completing:
        raise no_such_upload(upload_id)
    return state


def named_by_objects(call: Call, upload_id: str) -> set[tuple[str, str]] | None:
    """Return the parts that the key's object and its versions name; None if that is in doubt."""
    try:
        bucket = EntityPath(call.account.name, call.bucket)
        return references(call.account.hidden.client(), bucket, call.key, upload_id)
    except UnexpectedAnswer:
        return None

"""Whether an operation may begin: what the rules of the bucket say, then with ``s3_acl`` its ACLs."""

from __future__ import annotations

from swift.middleware.s3api.access import check_access
from swift.middleware.s3api.call import Call
from swift.middleware.s3api.errors import S3Error
from swift.middleware.s3api.guard import guard

#: Which key these are about, and who asks for it, their bodies say.
_LATER = frozenset(("PostObject",))


def _check_owner(call: Call) -> None:
    """Raise ``S3Error`` when the bucket is not of the account that the caller expects.

    An account is named by its name; the caller's own also by the access key, as documents name owners.
    """
    expected = call.headers.get("x-amz-expected-bucket-owner")
    if expected is None or not call.bucket:
        return
    account = call.account
    account.identify()
    is_own = account.home == account.name and expected == account.owner
    if not is_own and expected != account.name:
        raise S3Error("AccessDenied")


def admit(call: Call, *, is_read: bool = False) -> None:
    """Raise ``S3Error`` when an operation may not be done; ``is_read``: the body of a form was read."""
    if call.endpoint.operation.name in _LATER and not is_read:
        return
    if call.account.is_foreign:
        call.account.identify()
    _check_owner(call)
    guard(call)
    if call.settings.s3_acl and not call.account.is_trusted:
        check_access(call)

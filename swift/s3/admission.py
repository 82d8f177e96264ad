"""Whether an operation may begin: what the rules of the bucket say, then with ``s3_acl`` its ACLs."""

from __future__ import annotations

from swift.s3.access import check_access
from swift.s3.call import Call
from swift.s3.guard import check_owner, guard

#: Which key these are about, and who asks for it, their bodies say.
_LATER = frozenset(("PostObject",))


def admit(call: Call, *, is_read: bool = False) -> None:
    """Raise ``S3Error`` when an operation may not be done; ``is_read``: the body of a form was read."""
    if call.endpoint.operation.name in _LATER and not is_read:
        return
    if call.account.is_foreign:
        call.account.identify()
    if call.bucket:
        check_owner(call.account, call.headers.get("x-amz-expected-bucket-owner"))
    guard(call)
    if call.settings.s3_acl and not call.account.trusted_bucket:
        check_access(call)

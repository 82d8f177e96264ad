"""What handlers share of documents that a bucket keeps: its owner reads, keeps and forgets them."""

from __future__ import annotations

from swift.s3.account import owners_settings
from swift.s3.call import Call
from swift.s3.errors import S3Error
from swift.s3.kept import kept_document, kept_headers


def owners_document(call: Call, name: str, missing: str) -> bytes:
    """The document under a header's name; raises ``S3Error``, ``missing`` when there is none."""
    document = kept_document(owners_settings(call.account, call.bucket), name)
    if not document:
        raise S3Error(missing, details={"BucketName": call.bucket})
    return document


def keep_document(call: Call, name: str, document: bytes) -> None:
    """Keep a document of the caller's bucket, or forget it when it is empty; raises ``S3Error``."""
    owners_settings(call.account, call.bucket)
    call.account.done("POST", call.bucket, headers=kept_headers(name, document))

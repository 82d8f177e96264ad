"""The source of CopyObject and UploadPartCopy: which object, under which conditions, opened (middleware.md
§21).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple
from urllib.parse import quote

from swift.base.entity import RESERVED, NotUTF8, decode_path
from swift.gateway.subrequest import drained
from swift.http.response import Response
from swift.s3.access import demand, object_acl
from swift.s3.account import trusted
from swift.s3.call import Call, invalid_argument
from swift.s3.conditions import source_conditions
from swift.s3.errors import S3Error, refusal
from swift.s3.guard import source_account
from swift.s3.names import is_bucket_name
from swift.s3.sse import SOURCE as CUSTOMER_SOURCE
from swift.s3.sse import Encrypted, decrypt
from swift.s3.versions import check_version_id, missing_key

#: CopyObject takes no more at once; larger objects are copied in parts.
COPY_BYTES_MAX = 5 << 30


class CopySource(NamedTuple):
    """What is to be copied."""

    bucket: str
    key: str
    version: str = ""

    @property
    def query(self) -> str:
        """The query that asks for the version."""
        return f"version-id={quote(self.version, safe='')}" if self.version else ""


def source_of(call: Call) -> CopySource:
    """From ``x-amz-copy-source``; raises ``S3Error``."""
    value = call.headers["x-amz-copy-source"]
    path, _, query = value.partition("?")
    version = ""
    if query:
        name, _, version = query.partition("=")
        if name != "versionId" or not version or "&" in version:
            raise invalid_argument("X-Amz-Copy-Source", value, "Unsupported copy source parameter.")
    try:
        path = decode_path(path)
    except NotUTF8:
        raise _bad(value)
    bucket, _, key = path.removeprefix("/").partition("/")
    if not bucket or not key or RESERVED in path:
        raise _bad(value)
    if not is_bucket_name(bucket, dns=call.settings.dns_compliant_bucket_names):
        raise S3Error("NoSuchBucket", details={"BucketName": bucket})
    if version:
        check_version_id(version)
    if version and not call.features.versioning:
        raise S3Error("NotImplemented", "There is no object versioning here.")
    return CopySource(bucket, key, version)


def _bad(value: str) -> S3Error:
    text = "Copy Source must mention the source bucket and key: sourcebucket/sourcekey"
    return invalid_argument("x-amz-copy-source", value, text)


def open_source(call: Call, source: CopySource, byte_range: str | None = None) -> Response:
    """The source's bytes and headers; raises ``S3Error``. The caller releases them."""
    account = source_account(call, source.bucket, source.key, source.version)
    if call.settings.s3_acl and not account.is_trusted_in(source.bucket):
        account.identify()
        acl = object_acl(replace(call, account=trusted(account, source.bucket)), source.bucket, source.key)
        demand(replace(call, account=account), acl, "READ")
        account = trusted(account, source.bucket)
    headers = {**source_conditions(call.headers), "x-newest": "true"}
    if byte_range:
        headers["range"] = byte_range
    sub = account.subrequest("GET", source.bucket, source.key, headers=headers, query=source.query)
    response = account.open(sub)
    if response.status in (200, 206):
        encrypted = Encrypted(account, source.bucket, source.key, source.query)
        decrypt(call, response, encrypted, CUSTOMER_SOURCE)
        return response
    drained(response)
    if response.status in (304, 412):
        raise S3Error("PreconditionFailed")
    if source.version and response.status in (400, 404):
        raise S3Error("NoSuchVersion", details={"Key": source.key, "VersionId": source.version})
    if response.status == 404:
        raise missing_key(call, source.key, source.bucket)
    raise refusal(response.status, conflict="BrokenMPU")

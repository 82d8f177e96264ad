"""Which version of an object is asked for, and what it means when it is not there."""

from __future__ import annotations

from urllib.parse import quote

from swift.base.entity import EntityPath
from swift.base.timestamp import InvalidTimestamp, Timestamp
from swift.http import fields
from swift.http.response import Response
from swift.middleware.versioned_writes.names import Version, name_of_stored
from swift.s3.call import Call, invalid_argument
from swift.s3.errors import S3Error


def version_query(call: Call) -> str:
    """The query that asks for the wanted version; raises ``S3Error``."""
    version = call.params.get("versionId")
    if version is None:
        return ""
    if not version:
        raise invalid_argument("versionId", "", "Version id cannot be the empty string")
    check_version_id(version)
    if not call.features.versioning:
        raise S3Error("NotImplemented", "There is no object versioning here.")
    return f"version-id={quote(version, safe='')}"


def check_version_id(version: str) -> None:
    """Raise ``S3Error`` for what no version is called; ``null`` is that from before versioning."""
    try:
        Timestamp("0" if version == "null" else version)
    except InvalidTimestamp:
        raise invalid_argument("versionId", version, "Invalid version id specified")


def version_place(call: Call, stamp: Timestamp) -> EntityPath:
    """Where a version of the call's object lies, by its time; raises ``S3Error``."""
    head = call.account.head(call.bucket).headers
    home = name_of_stored(head.get(fields.SYSMETA_VERSIONS_CONTAINER, ""))
    return EntityPath(call.account.name, home, Version(call.key, stamp).name)


def missing_key(call: Call, key: str, bucket: str = "") -> S3Error:
    """A 404 of an object: which of the two is not there."""
    name = bucket or call.bucket
    if not call.account.has_bucket(name):
        return S3Error("NoSuchBucket", details={"BucketName": name})
    return S3Error("NoSuchKey", details={"Key": key})


def refused_version(call: Call, response: Response, version: str) -> S3Error:
    """What a 404 or 400 of a version is."""
    if response.headers.get("content-type", "").startswith("application/x-deleted;"):
        headers = {"x-amz-delete-marker": "true", "x-amz-version-id": version}
        details = {"Method": call.request.method, "ResourceType": "DeleteMarker"}
        return S3Error("MethodNotAllowed", details=details, headers=headers)
    info = call.account.bucket_info(call.bucket)
    if response.status == 400 and "versions-container" in info.sysmeta:
        return invalid_argument("versionId", version, "Invalid version id specified")
    return S3Error("NoSuchVersion", details={"Key": call.key, "VersionId": version})

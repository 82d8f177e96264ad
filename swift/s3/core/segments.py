"""The containers of parts: ``<bucket>+segments``, and one for each other storage class (decision 0018)."""

from __future__ import annotations

from swift.base.entity import EntityPath
from swift.http import fields
from swift.s3.core.call import Call
from swift.s3.core.errors import S3Error, error_for_status
from swift.s3.core.names import segments_container


def segments_containers(call: Call) -> list[str]:
    """Return the names of all possible segments containers of the bucket."""
    classes = call.features.storage_classes
    kinds = () if classes.is_single else classes
    return [
        segments_container(call.bucket),
        *(segments_container(call.bucket, storage_class) for storage_class in kinds),
    ]


def make_segments_container(call: Call, storage_class: str = "") -> str:
    """Create a segments container with the bucket's ACLs and return its name; raise ``S3Error``.

    It has the bucket's policy, or that of the storage class. The bucket is registered for the lifecycle
    daemon, which deletes the unused parts of overwritten objects and uploads.
    """
    session, name = call.session, segments_container(call.bucket, storage_class)
    if storage_class and session.has_bucket(name):
        if not call.features.storage_classes.is_in_policy(
            storage_class, session.bucket_info(name).policy_index
        ):
            raise S3Error(
                "InvalidStorageClass", f"{storage_class} was another policy when the bucket used it."
            )
        return name
    bucket = session.head(call.bucket)
    if not bucket.is_success:
        error = error_for_status(bucket.status, missing="NoSuchBucket")
        error.details.setdefault("BucketName", call.bucket)
        raise error
    found = session.head(name)
    if found.is_success and fields.SYSMETA_S3_REGISTERED in found.headers:
        return name
    # The lifecycle daemon deletes unused parts of registered buckets.
    session.privileged.register_bucket(session.account, call.bucket)
    registered = {fields.SYSMETA_S3_REGISTERED: "true"}
    if found.is_success:
        session.privileged.send_change("POST", EntityPath(session.account, name), registered)
        return name
    copied = ("x-container-read", "x-container-write", "x-storage-policy")
    headers = {key: bucket.headers[key] for key in copied if key in bucket.headers} | registered
    if storage_class:
        headers["x-storage-policy"] = call.features.storage_classes.policy_of_class(storage_class) or ""
    if bucket.headers.get(fields.SYSMETA_S3_LOCK_RULE):
        # Parts are locked with their object.
        headers[fields.SYSMETA_S3_OBJECT_LOCK] = "true"
    session.require_success("PUT", name, headers=headers)
    return name


def enable_part_locks(call: Call) -> None:
    """Allow locks on existing and future parts of the bucket's objects; raise ``S3Error``."""
    make_segments_container(call)
    flag = {fields.SYSMETA_S3_OBJECT_LOCK: "true"}
    for name in segments_containers(call):
        if call.session.has_bucket(name):
            call.session.privileged.send_change("POST", EntityPath(call.session.account, name), flag)

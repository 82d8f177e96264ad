"""Operations on buckets: create, delete and list."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

from swift import green
from swift.base.entity import EntityPath
from swift.http import fields
from swift.http.headers import HeaderMap
from swift.http.objectlock import ENABLED
from swift.http.response import Response
from swift.http.storedtags import encode_tags
from swift.identity.policy.document import BUCKET_ARN_PREFIX
from swift.s3.api.listing import read_page, render_user, user_element
from swift.s3.api.retention import enable_lock
from swift.s3.core.call import Call, Handler, invalid_argument, no_content, xml_response
from swift.s3.core.errors import S3Error, error_for_status
from swift.s3.core.metadata import DELETE_MARKER_TYPE
from swift.s3.core.names import is_bucket_name, segments_container
from swift.s3.core.segments import segments_containers
from swift.s3.core.session import with_trusted_bucket
from swift.s3.core.tags import BUCKET_TAGS_MAX, parse_tag_elements
from swift.s3.core.uploadstate import (
    CallerObjectClient,
    SwapOutcome,
    all_segments,
    delete_marker,
    end_upload,
    marker_name,
    part_number_of_name,
    read_state,
)
from swift.s3.core.xml import Group, RepeatedGroup, Text, Value, parse, text_of, tree_of, trees_of
from swift.s3.policy.acls import parse_stored_acl
from swift.s3.policy.authorize import new_bucket_acl_headers, read_bucket_acl
from swift.s3.policy.context import OWNER_ENFORCED, OWNERSHIPS

CREATE_BUCKET = Group(
    "CreateBucketConfiguration",
    Text("LocationConstraint"),
    Group("Tags", RepeatedGroup("Tag", Text("Key", required=True), Text("Value", required=True))),
)
LOCATION = Text("LocationConstraint")
#: The region whose name is left out of documents.
UNNAMED_REGION = "us-east-1"


def create_bucket(call: Call) -> Response:
    """CreateBucket."""
    body = call.read_body()
    tree = parse(CREATE_BUCKET, body) if body else {}
    location = text_of(tree.get("LocationConstraint"))
    region, colon, kind = location.partition(":")
    policy = call.features.storage_classes.policy_of_class(kind)
    if region not in ("", call.settings.location) or (colon and policy is None):
        raise S3Error("InvalidLocationConstraint", details={"LocationConstraint": location})
    tags = parse_tag_elements(trees_of(tree_of(tree.get("Tags")).get("Tag")), BUCKET_TAGS_MAX)
    settings = {
        **new_bucket_acl_headers(call),
        **({fields.SYSMETA_S3_BUCKET_TAGGING: encode_tags(tags)} if tags else {}),
    }
    ownership = call.headers.get("x-amz-object-ownership")
    if ownership is not None:
        if ownership not in OWNERSHIPS:
            text = f"Invalid x-amz-object-ownership header: {ownership}"
            raise invalid_argument("x-amz-object-ownership", ownership, text)
        if ownership == OWNER_ENFORCED and call.headers.get("x-amz-acl", "private") != "private":
            raise S3Error("InvalidBucketAclWithObjectOwnership")
        settings[fields.SYSMETA_S3_BUCKET_OWNERSHIP] = ownership
    locks = call.headers.get("x-amz-bucket-object-lock-enabled", "").lower() == "true"
    if locks:
        if not call.features.versioning:
            raise S3Error("NotImplemented", "There is no object versioning here, which object lock needs.")
        settings["x-versions-enabled"] = "true"
    _create_container(call, settings, {} if policy is None else {"x-storage-policy": policy})
    if locks:
        enable_lock(call, ENABLED)
    return Response(
        200, {"location": f"/{call.bucket}", "x-amz-bucket-arn": f"{BUCKET_ARN_PREFIX}{call.bucket}"}
    )


def _create_container(call: Call, settings: HeaderMap, placement: HeaderMap) -> None:
    """Create a container, then store its settings; raise ``S3Error`` if it exists.

    Of concurrent requests one gets 201. A PUT with the settings would replace those of an existing bucket.
    """
    session = call.session
    with session.open_response("PUT", call.bucket, headers=placement) as response:
        status = response.status
    if status in (202, 409):
        # 409: the existing container has another storage policy.
        raise _bucket_exists_error(call)
    if not 200 <= status <= 299:
        raise error_for_status(status, missing="NoSuchBucket")
    if not settings:
        return
    try:
        session.require_success("POST", call.bucket, headers=settings)
    except S3Error:
        # Without its settings the bucket would have no owner.
        with session.open_response("DELETE", call.bucket):
            raise


def _bucket_exists_error(call: Call) -> S3Error:
    """Return the error for an existing bucket, which depends on its owner."""
    head = call.session.head(call.bucket)
    if not head.is_success:
        raise error_for_status(head.status, missing="OperationAborted")
    is_own = True
    if call.settings.s3_acl:
        acl = parse_stored_acl(head.headers.get(fields.SYSMETA_S3_BUCKET_ACL))
        is_own = acl is not None and acl.owner == call.session.user_id
    code = "BucketAlreadyOwnedByYou" if is_own else "BucketAlreadyExists"
    return S3Error(code, details={"BucketName": call.bucket})


def head_bucket(call: Call) -> Response:
    """HeadBucket."""
    response = call.session.head(call.bucket)
    if not response.is_success:
        raise _bucket_error(call, response.status)
    return Response(200, {"x-amz-bucket-region": call.settings.location, "content-type": "application/xml"})


def _bucket_error(call: Call, status: int) -> S3Error:
    error = error_for_status(status, missing="NoSuchBucket")
    if error.code == "NoSuchBucket":
        error.details["BucketName"] = call.bucket
    return error


def get_location(call: Call) -> Response:
    """GetBucketLocation."""
    response = call.session.head(call.bucket)
    if not response.is_success:
        raise _bucket_error(call, response.status)
    location = call.settings.location
    return xml_response(LOCATION, "" if location == UNNAMED_REGION else location)


#: Pauses before the deletion of a bucket is repeated, whose listed objects do not exist any more.
_LAG_PAUSES_S = (0.05, 0.1, 0.2, 0.4, 0.8)
#: Listed rows to look at.
_LAG_ROWS = 20


def delete_bucket(call: Call) -> Response:
    """DeleteBucket; then delete its segments containers, whose parts no object needs."""
    status = _delete_container(call)
    for pause_s in _LAG_PAUSES_S:
        if status != 409 or _has_objects(call):
            break
        green.sleep(pause_s)
        status = _delete_container(call)
    if status == 409:
        is_versioned = "x-versions-enabled" in call.session.head(call.bucket).headers
        raise _not_empty_error(call, is_versioned=is_versioned)
    if call.features.multipart and (status == 404 or 200 <= status <= 299):
        # Also for a bucket that is gone: its deletion may have broken off here.
        removable: dict[str, bool] = {}
        for name in segments_containers(call):
            _delete_segments_container(call, name, removable)
    if not 200 <= status <= 299:
        raise _bucket_error(call, status)
    return no_content()


def _delete_container(call: Call) -> int:
    """Delete the bucket's container and return the status; 409 if it is not empty."""
    head = call.session.head(call.bucket)
    if head.is_success and int(head.headers.get("x-container-object-count") or 0):
        return 409
    if not head.is_success:
        return head.status
    with call.session.open_response("DELETE", call.bucket) as response:
        return response.status


def _has_objects(call: Call) -> bool:
    """Return True if a listed object, version or delete marker exists.

    A replica of the listing may get the last deletions a moment after their responses.
    """
    trusted = replace(call, session=with_trusted_bucket(call.session, call.bucket))
    newest: HeaderMap = {"x-newest": "true"}
    places = [(row["name"], "symlink=get") for row in read_page(trusted, call.bucket, _LAG_ROWS, {}).rows]
    if call.features.versioning:
        page = read_page(trusted, call.bucket, _LAG_ROWS, {}, flags="&versions=true")
        places += [
            (row["name"], f"version-id={quote(str(row.get('version_id', 'null')), safe='')}")
            for row in page.rows
        ]
    for key, query in places:
        head = trusted.session.head(call.bucket, str(key), headers=newest, query=query)
        if head.status != 404 or head.headers.get("content-type") == DELETE_MARKER_TYPE:
            return True
    return False


def _not_empty_error(call: Call, *, is_versioned: bool) -> S3Error:
    text = "The bucket you tried to delete is not empty."
    if is_versioned:
        text += " You must delete all versions in the bucket."
    return S3Error("BucketNotEmpty", text, details={"BucketName": call.bucket})


def _delete_segments_container(call: Call, name: str, removable: dict[str, bool]) -> None:
    """Delete parts that no object needs, and their container if it exists.

    ``removable`` is shared by all segments containers of a bucket: marker → True if its parts may be
    deleted. The marker and parts of an upload that completes stay; the lifecycle daemon ends it.
    """
    session = call.session
    for row in all_segments(call, name):
        key = str(row["name"])
        start, _, last = key.rpartition("/")
        if start and part_number_of_name(last) is None and name == segments_container(call.bucket):
            _abort_upload(call, start, last, removable)
            continue
        if start not in removable:
            removable[start] = not _is_completed(call, start)
        if removable[start]:
            session.delete_object(name, key)
    with session.open_response("DELETE", name) as response:
        if not response.is_success and response.status not in (404, 409):
            raise error_for_status(response.status)


def _abort_upload(call: Call, key: str, upload_id: str, removable: dict[str, bool]) -> None:
    """Delete the marker of an upload unless it completes, and note if its parts may be deleted."""
    objects = CallerObjectClient(call.session)
    state = read_state(objects, call.bucket, key, upload_id)
    if state is None:
        return
    outcome = SwapOutcome.LOST if state.is_completing else end_upload(objects, state)
    if outcome is SwapOutcome.UNSUPPORTED:
        delete_marker(objects, state)
    removable[marker_name(key, upload_id)] = outcome is not SwapOutcome.LOST


def _is_completed(call: Call, start: str) -> bool:
    """Return True if an upload's object may have been stored while its bucket was deleted."""
    key, _, upload_id = start.rpartition("/")
    if not key:
        return False
    query = "multipart-manifest=get"
    head = call.session.head(call.bucket, key, headers={"x-newest": "true"}, query=query)
    if not head.is_success:
        # Only a missing object needs no parts.
        return head.status != 404
    return head.headers.get(fields.SYSMETA_S3_UPLOAD_ID) == upload_id


# --- ListBuckets --------------------------------------------------------------------------------------

LIST_BUCKETS_RESULT = Group(
    "ListAllMyBucketsResult",
    user_element("Owner"),
    Group("Buckets", RepeatedGroup("Bucket", Text("Name"), Text("CreationDate"))),
    Text("Prefix"),
    Text("ContinuationToken"),
)
#: Containers have no creation date; OpenStack Swift reports this one for all.
CREATION_DATE = "2009-02-03T16:45:09.000Z"
BUCKETS_MAX = 10000
#: Rows of an account that are read at least, since a bucket may have a container of parts beside it. From the
#: second number on a request reads as many as a listing has.
_ROWS_MIN, ROWS_MAX = 16, 1000


def list_buckets(call: Call) -> Response:
    """ListBuckets: the buckets of the caller's account, in pages if requested.

    With ``s3_acl`` a caller without rights in the account lists the buckets it owns.
    """
    prefix, marker = call.text_param("prefix"), call.text_param("continuation-token")
    most = call.count_param("max-buckets", BUCKETS_MAX)
    if most < 1:
        raise S3Error("InvalidArgument", "Argument max-buckets must be an integer between 1 and 10000.")
    found: list[str] = []
    only_own = call.settings.s3_acl and call.settings.check_bucket_owner
    size = _ROWS_MIN
    while len(found) <= most:
        size = max(size, 2 * (most + 1 - len(found)))
        limit = size if size < ROWS_MAX else 0
        names, has_rights = _list_containers(call, prefix, marker, limit)
        if not names:
            break
        size *= 2
        marker = names[-1]
        for name in names:
            if len(found) <= most and is_bucket_name(name, dns=call.settings.dns_compliant_bucket_names):
                found += [name] if not only_own and has_rights or _is_bucket_owner(call, name) else []
    value: dict[str, Value] = {
        "Owner": render_user(call.session.user_id),
        "Buckets": {"Bucket": [{"Name": name, "CreationDate": CREATION_DATE} for name in found[:most]]},
    }
    if prefix:
        value["Prefix"] = prefix
    if len(found) > most:
        value["ContinuationToken"] = found[most - 1]
    return xml_response(LIST_BUCKETS_RESULT, value)


def _list_containers(call: Call, prefix: str, marker: str, limit: int) -> tuple[list[str], bool]:
    """Return a page of the account's containers, and True if the caller may list it; raise ``S3Error``."""
    session, query = call.session, "format=json"
    if prefix:
        query += f"&prefix={quote(prefix, safe='')}"
    if marker:
        query += f"&marker={quote(marker, safe='')}"
    if limit:
        query += f"&limit={limit}"
    try:
        response, rows = session.read_rows(query=query)
        if not response.is_success:
            raise error_for_status(response.status, missing="AccessDenied")
        return [row["name"] for row in rows if "name" in row], True
    except S3Error as error:
        if error.code != "AccessDenied" or not (call.settings.s3_acl and session.own_account):
            raise
    return session.privileged.list_containers(EntityPath(session.account), query=query), False


def _is_bucket_owner(call: Call, bucket: str) -> bool:
    """Return True if the caller owns a bucket; raise ``S3Error`` if the owner cannot be read."""
    try:
        acl = read_bucket_acl(call, bucket)
    except S3Error as error:
        if error.code != "NoSuchBucket":
            raise
        return False
    return acl is not None and acl.owner == call.session.user_id


HANDLERS: dict[str, Handler] = {
    "CreateBucket": create_bucket,
    "HeadBucket": head_bucket,
    "GetBucketLocation": get_location,
    "DeleteBucket": delete_bucket,
    "ListBuckets": list_buckets,
}

"""Which operation a request is: AWS's whole list, and what nobody knows (s3/router.py)."""

import re

import botocore.session
import pytest

from swift.s3.core.errors import S3Error
from swift.s3.core.router import OPERATIONS, PathLevel, route
from swift.s3.filter import HANDLERS

#: AWS's description of its API, in a session of its own: a client's calls rewrite the paths of their model.
MODEL = botocore.session.Session().get_service_model("s3")
#: Two operations of AWS have two names.
SAME = {
    "GetBucketLifecycle": "GetBucketLifecycleConfiguration",
    "PutBucketLifecycle": "PutBucketLifecycleConfiguration",
    "GetBucketNotification": "GetBucketNotificationConfiguration",
    "PutBucketNotification": "PutBucketNotificationConfiguration",
}
#: Lists of configurations differ from one of them by the parameter ``id`` alone: one handler answers both.
LISTS = {
    f"ListBucket{noun}Configurations" for noun in ("Analytics", "IntelligentTiering", "Inventory", "Metrics")
}
#: Plain operations: no sub-resource may ever become one of these.
PLAIN = {
    "ListBuckets",
    *("CreateBucket", "HeadBucket", "DeleteBucket", "ListObjects"),
    *("PutObject", "GetObject", "HeadObject", "DeleteObject", "CopyObject", "PostObject"),
}


def request_of(name):
    """Method, bucket, key, parameters and headers of an operation as AWS describes it."""
    operation = MODEL.operation_model(name)
    path, _, query = operation.http["requestUri"].partition("?")
    params = {pair.partition("=")[0]: pair.partition("=")[2] for pair in query.split("&") if pair}
    shape = operation.input_shape
    for member in shape.required_members if shape else ():
        place = shape.members[member].serialization
        if place.get("location") == "querystring":
            params[place["name"]] = "1"
    headers = {}
    for member in shape.required_members if shape else ():
        place = shape.members[member].serialization
        if place.get("location") == "header":
            headers[place["name"].lower()] = "x"
    bucket = "bucket" if "{Bucket}" in path else "WriteGetObjectResponse" if len(path) > 1 else ""
    key = "key" if "{Key" in path else ""
    return operation.http["method"], bucket, key, params, headers


@pytest.mark.parametrize("name", MODEL.operation_names)
def test_every_operation_of_aws_is_known_by_its_own_name(name):
    if name == "ListDirectoryBuckets":
        # Of another endpoint; it cannot be told from ListBuckets but by a parameter.
        return
    found = route(*request_of(name)).operation.name
    assert name in OPERATIONS
    if name in LISTS:
        assert HANDLERS.get(found) is HANDLERS.get(name)
    else:
        assert found == name or SAME.get(found) == name or SAME.get(name) == found


@pytest.mark.parametrize("name", MODEL.operation_names)
def test_what_is_no_plain_operation_never_becomes_one(name):
    method, bucket, key, params, headers = request_of(name)
    if not params and not headers:
        assert name in PLAIN | {"ListDirectoryBuckets"}
        return
    for other in ("GET", "HEAD", "PUT", "POST", "DELETE"):
        # Whatever the method: the sub-resource decides.
        try:
            found = route(other, bucket, key, {**params, "foo": "bar"}, {}).operation.name
        except S3Error as error:
            assert error.status in (400, 405, 501)
            continue
        assert found not in PLAIN or not params or set(params) <= {"list-type", "partNumber"}


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
@pytest.mark.parametrize("key", ["", "key"])
@pytest.mark.parametrize("name", ["unheard-of", "Acl", "lifecycles", "polic\u00ff", "", "tagging "])
def test_a_write_with_an_unknown_sub_resource_is_not_implemented(method, key, name):
    with pytest.raises(S3Error) as caught:
        route(method, "bucket", key, {name: ""}, {})
    assert caught.value.code in ("NotImplemented", "MethodNotAllowed")
    if method in ("PUT", "DELETE"):
        assert caught.value.status == 501


@pytest.mark.parametrize(
    ("method", "key", "operation"),
    [
        ("PUT", "", "CreateBucket"),
        ("DELETE", "", "DeleteBucket"),
        ("PUT", "key", "PutObject"),
        ("DELETE", "key", "DeleteObject"),
        ("GET", "key", "GetObject"),
        ("GET", "", "ListObjects"),
    ],
)
def test_unknown_parameters_with_values_are_ignored(method, key, operation):
    for params in ({"foo": "bar"}, {"content-type": "text/x"}, {"Content-MD5": ""}, {"x-amz-new": ""}):
        assert route(method, "bucket", key, params, {}).operation.name == operation


@pytest.mark.parametrize("name", ["foo", "Acl", "polic\u00ff", ""])
def test_reads_ignore_unknown_parameters_without_values(name):
    assert route("GET", "bucket", "", {name: ""}, {}).operation.name == "ListObjects"
    assert route("HEAD", "bucket", "key", {name: ""}, {}).operation.name == "HeadObject"


@pytest.mark.parametrize("name", ["x-id", "X-Amz-Signature", "X-Amz-Expires", "AWSAccessKeyId"])
def test_what_belongs_to_every_request_changes_nothing(name):
    assert route("DELETE", "bucket", "key", {name: "v"}, {}).operation.name == "DeleteObject"


def test_two_sub_resources_are_none():
    with pytest.raises(S3Error, match="501"):
        route("PUT", "bucket", "", {"acl": "", "policy": ""}, {})


def test_the_copy_source_makes_a_copy():
    headers = {"x-amz-copy-source": "/b/k"}
    assert route("PUT", "bucket", "key", {}, headers).operation.name == "CopyObject"
    parts = {"partNumber": "1", "uploadId": "u"}
    assert route("PUT", "bucket", "key", parts, headers).operation.name == "UploadPartCopy"
    assert route("PUT", "bucket", "key", parts, {}).operation.name == "UploadPart"


def test_a_part_of_no_upload_is_not_stored_as_an_object():
    for params in ({"partNumber": "1"}, {"uploadId": "u"}):
        with pytest.raises(S3Error, match="400|405"):
            route("PUT", "bucket", "key", params, {})


def test_other_methods_are_not_allowed():
    for method, bucket, key in (
        ("PATCH", "b", "k"),
        ("OPTIONS", "b", ""),
        ("PUT", "", ""),
        ("POST", "b", "k"),
    ):
        with pytest.raises(S3Error, match="405"):
            route(method, bucket, key, {}, {})


def test_every_handler_is_of_an_operation():
    assert HANDLERS.keys() <= OPERATIONS.keys()
    assert all(
        re.fullmatch(r"[A-Z]\w+", name) and isinstance(o.level, PathLevel) for name, o in OPERATIONS.items()
    )

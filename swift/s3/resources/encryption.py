"""The default encryption of a bucket: what the cluster does with everything, so nothing is kept of it."""

from __future__ import annotations

from swift.http.response import Response
from swift.s3.call import Call, Handler, no_content, xml_response
from swift.s3.errors import S3Error
from swift.s3.objectlocks import require_owner
from swift.s3.sse import AES, check_algorithm
from swift.s3.xml import Group, Many, Text, Value, text_of, tree_of, trees_of

CONFIGURATION = Group(
    "ServerSideEncryptionConfiguration",
    Many(
        "Rule",
        Group("ApplyServerSideEncryptionByDefault", Text("SSEAlgorithm"), Text("KMSMasterKeyID")),
        Text("BucketKeyEnabled"),
        required=True,
    ),
)


def get_encryption(call: Call) -> Response:
    """GetBucketEncryption."""
    call.account.bucket_info(call.bucket)
    if not call.features.encryption:
        raise S3Error("ServerSideEncryptionConfigurationNotFoundError", details={"BucketName": call.bucket})
    rule: Value = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": AES}, "BucketKeyEnabled": "false"}
    return xml_response(CONFIGURATION, {"Rule": [rule]})


def put_encryption(call: Call) -> Response:
    """PutBucketEncryption: what the cluster does anyway is taken, everything else refused."""
    rules = trees_of(call.document(CONFIGURATION).get("Rule"))
    if len(rules) != 1 or "ApplyServerSideEncryptionByDefault" not in rules[0]:
        raise S3Error("MalformedXML")
    require_owner(call)
    default = tree_of(rules[0]["ApplyServerSideEncryptionByDefault"])
    algorithm = text_of(default.get("SSEAlgorithm"))
    if algorithm == AES and "KMSMasterKeyID" in default:
        text = "a KMSMasterKeyID is not applicable if the default sse algorithm is not aws:kms"
        raise S3Error("InvalidArgument", text)
    check_algorithm(call, algorithm)
    return Response(200)


def delete_encryption(call: Call) -> Response:
    """DeleteBucketEncryption: back to what the cluster does."""
    require_owner(call)
    return no_content()


HANDLERS: dict[str, Handler] = {
    "GetBucketEncryption": get_encryption,
    "PutBucketEncryption": put_encryption,
    "DeleteBucketEncryption": delete_encryption,
}

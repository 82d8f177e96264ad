"""The rules for other origins: GetBucketCors, PutBucketCors, DeleteBucketCors."""

from __future__ import annotations

from swift.http import fields
from swift.http.response import Response
from swift.middleware.s3api.account import owners_settings
from swift.middleware.s3api.call import Call, Handler, no_content, xml_response
from swift.middleware.s3api.cors import CORS, document_of_rules, parsed_rules, rules_of_document, stored_rules
from swift.middleware.s3api.errors import S3Error
from swift.middleware.s3api.kept import kept_document, kept_headers


def get_cors(call: Call) -> Response:
    """GetBucketCors."""
    document = kept_document(owners_settings(call.account, call.bucket), fields.SYSMETA_S3_BUCKET_CORS)
    if not document:
        raise S3Error("NoSuchCORSConfiguration", details={"BucketName": call.bucket})
    return xml_response(CORS, document_of_rules(parsed_rules(document)))


def put_cors(call: Call) -> Response:
    """PutBucketCors."""
    rules = rules_of_document(call.document(CORS))
    owners_settings(call.account, call.bucket)
    headers = kept_headers(fields.SYSMETA_S3_BUCKET_CORS, stored_rules(rules))
    call.account.done("POST", call.bucket, headers=headers)
    return Response(200)


def delete_cors(call: Call) -> Response:
    """DeleteBucketCors."""
    owners_settings(call.account, call.bucket)
    call.account.done("POST", call.bucket, headers=kept_headers(fields.SYSMETA_S3_BUCKET_CORS, b""))
    return no_content()


HANDLERS: dict[str, Handler] = {
    "GetBucketCors": get_cors,
    "PutBucketCors": put_cors,
    "DeleteBucketCors": delete_cors,
}

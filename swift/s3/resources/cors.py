"""The rules for other origins: GetBucketCors, PutBucketCors, DeleteBucketCors."""

from __future__ import annotations

from swift.http import fields
from swift.http.response import Response
from swift.s3.call import Call, Handler, no_content, xml_response
from swift.s3.cors import CORS, document_of_rules, parsed_rules, rules_of_document, stored_rules
from swift.s3.corsregistry import register, unregister
from swift.s3.resources.documents import keep_document, owners_document


def get_cors(call: Call) -> Response:
    """GetBucketCors."""
    document = owners_document(call, fields.SYSMETA_S3_BUCKET_CORS, "NoSuchCORSConfiguration")
    return xml_response(CORS, document_of_rules(parsed_rules(document)))


def put_cors(call: Call) -> Response:
    """PutBucketCors."""
    rules = rules_of_document(call.document(CORS))
    keep_document(call, fields.SYSMETA_S3_BUCKET_CORS, stored_rules(rules))
    register(call.account, call.request, call.bucket)
    return Response(200)


def delete_cors(call: Call) -> Response:
    """DeleteBucketCors."""
    keep_document(call, fields.SYSMETA_S3_BUCKET_CORS, b"")
    unregister(call.account, call.request, call.bucket)
    return no_content()


HANDLERS: dict[str, Handler] = {
    "GetBucketCors": get_cors,
    "PutBucketCors": put_cors,
    "DeleteBucketCors": delete_cors,
}

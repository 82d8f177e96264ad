"""Web sites: GetBucketWebsite, PutBucketWebsite, DeleteBucketWebsite."""

from __future__ import annotations

from swift.http import fields
from swift.http.response import Response
from swift.middleware.s3api.account import owners_settings
from swift.middleware.s3api.call import Call, Handler, no_content, xml_response
from swift.middleware.s3api.errors import S3Error
from swift.middleware.s3api.kept import kept_document, kept_headers
from swift.middleware.s3api.website import WEBSITE, parsed_tree, site_of_document, stored_tree


def get_website(call: Call) -> Response:
    """GetBucketWebsite."""
    document = kept_document(owners_settings(call.account, call.bucket), fields.SYSMETA_S3_BUCKET_WEBSITE)
    if not document:
        raise S3Error("NoSuchWebsiteConfiguration", details={"BucketName": call.bucket})
    return xml_response(WEBSITE, parsed_tree(document))


def put_website(call: Call) -> Response:
    """PutBucketWebsite."""
    tree = call.document(WEBSITE)
    site_of_document(tree)
    owners_settings(call.account, call.bucket)
    headers = kept_headers(fields.SYSMETA_S3_BUCKET_WEBSITE, stored_tree(tree))
    call.account.done("POST", call.bucket, headers=headers)
    return Response(200)


def delete_website(call: Call) -> Response:
    """DeleteBucketWebsite."""
    owners_settings(call.account, call.bucket)
    call.account.done("POST", call.bucket, headers=kept_headers(fields.SYSMETA_S3_BUCKET_WEBSITE, b""))
    return no_content()


HANDLERS: dict[str, Handler] = {
    "GetBucketWebsite": get_website,
    "PutBucketWebsite": put_website,
    "DeleteBucketWebsite": delete_website,
}

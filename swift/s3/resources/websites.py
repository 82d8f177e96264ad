"""Web sites: GetBucketWebsite, PutBucketWebsite, DeleteBucketWebsite."""

from __future__ import annotations

from swift.http import fields
from swift.http.response import Response
from swift.s3.call import Call, Handler, no_content, xml_response
from swift.s3.resources.documents import keep_document, owners_document
from swift.s3.website import WEBSITE, parsed_tree, site_of_document, stored_tree


def get_website(call: Call) -> Response:
    """GetBucketWebsite."""
    document = owners_document(call, fields.SYSMETA_S3_BUCKET_WEBSITE, "NoSuchWebsiteConfiguration")
    return xml_response(WEBSITE, parsed_tree(document))


def put_website(call: Call) -> Response:
    """PutBucketWebsite."""
    tree = call.document(WEBSITE)
    site_of_document(tree)
    keep_document(call, fields.SYSMETA_S3_BUCKET_WEBSITE, stored_tree(tree))
    return Response(200)


def delete_website(call: Call) -> Response:
    """DeleteBucketWebsite."""
    keep_document(call, fields.SYSMETA_S3_BUCKET_WEBSITE, b"")
    return no_content()


HANDLERS: dict[str, Handler] = {
    "GetBucketWebsite": get_website,
    "PutBucketWebsite": put_website,
    "DeleteBucketWebsite": delete_website,
}

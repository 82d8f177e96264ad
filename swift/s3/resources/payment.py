"""Who pays for requests. Nobody is charged; where it is the requester, others must say that they know it."""

from __future__ import annotations

from swift.http import fields
from swift.http.response import Response
from swift.s3.account import owners_settings
from swift.s3.call import Call, Handler, xml_response
from swift.s3.errors import S3Error
from swift.s3.rules import OWNER_PAYS, PAYER_KEY, REQUESTER_PAYS
from swift.s3.xml import Group, Text, text_of

PAYMENT = Group("RequestPaymentConfiguration", Text("Payer", required=True))


def get_payment(call: Call) -> Response:
    """GetBucketRequestPayment."""
    payer = owners_settings(call.account, call.bucket).get(PAYER_KEY) or OWNER_PAYS
    return xml_response(PAYMENT, {"Payer": payer})


def put_payment(call: Call) -> Response:
    """PutBucketRequestPayment."""
    payer = text_of(call.document(PAYMENT).get("Payer"))
    if payer not in (OWNER_PAYS, REQUESTER_PAYS):
        raise S3Error("MalformedXML")
    owners_settings(call.account, call.bucket)
    stored = payer if payer == REQUESTER_PAYS else ""
    call.account.done("POST", call.bucket, headers={fields.SYSMETA_S3_BUCKET_PAYER: stored})
    return Response(200)


HANDLERS: dict[str, Handler] = {
    "GetBucketRequestPayment": get_payment,
    "PutBucketRequestPayment": put_payment,
}

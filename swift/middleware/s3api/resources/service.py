"""ListBuckets."""

from __future__ import annotations

import json
from urllib.parse import quote

from swift.http.response import Response
from swift.middleware.s3api.call import Call, Handler, xml_response
from swift.middleware.s3api.documents import person, person_of
from swift.middleware.s3api.errors import S3Error, refusal
from swift.middleware.s3api.names import is_bucket_name
from swift.middleware.s3api.xml import Group, Many, Text, Value

BUCKETS = Group(
    "ListAllMyBucketsResult",
    person("Owner"),
    Group("Buckets", Many("Bucket", Text("Name"), Text("CreationDate"))),
    Text("Prefix"),
    Text("ContinuationToken"),
)
#: Containers do not tell when they were made; what the peer says of all.
CREATED = "2009-02-03T16:45:09.000Z"
BUCKETS_MAX = 10000


def list_buckets(call: Call) -> Response:
    """The buckets of the caller's account, in pages if that is asked for."""
    prefix, marker = call.text_param("prefix"), call.text_param("continuation-token")
    most = call.count_param("max-buckets", BUCKETS_MAX)
    if most < 1:
        raise S3Error("InvalidArgument", "Argument max-buckets must be an integer between 1 and 10000.")
    found: list[str] = []
    wanted = most + 1
    while len(found) < wanted:
        names = _containers(call, prefix, marker)
        if not names:
            break
        marker = names[-1]
        found += (n for n in names if is_bucket_name(n, dns=call.settings.dns_compliant_bucket_names))
    if call.settings.check_bucket_owner:
        found = [name for name in found if _may_read(call, name)]
    value: dict[str, Value] = {
        "Owner": person_of(call.account.owner),
        "Buckets": {"Bucket": [{"Name": name, "CreationDate": CREATED} for name in found[:most]]},
    }
    if prefix:
        value["Prefix"] = prefix
    if len(found) > most:
        value["ContinuationToken"] = found[most - 1]
    return xml_response(BUCKETS, value)


def _containers(call: Call, prefix: str, marker: str) -> list[str]:
    query = "format=json"
    if prefix:
        query += f"&prefix={quote(prefix, safe='')}"
    if marker:
        query += f"&marker={quote(marker, safe='')}"
    with call.account.ask("GET", query=query) as response:
        if not response.is_success:
            raise refusal(response.status, missing="AccessDenied")
        return [row["name"] for row in json.loads(response.read_body()) if "name" in row]


def _may_read(call: Call, bucket: str) -> bool:
    try:
        return call.account.head(bucket).is_success
    except S3Error:
        return False


HANDLERS: dict[str, Handler] = {"ListBuckets": list_buckets}

"""ListBuckets."""

from __future__ import annotations

import json
from urllib.parse import quote

from swift.http.response import Response
from swift.s3.access import bucket_acl
from swift.s3.call import Call, Handler, xml_response
from swift.s3.documents import person, person_of
from swift.s3.errors import S3Error, refusal
from swift.s3.names import is_bucket_name
from swift.s3.xml import Group, Many, Text, Value

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
#: Rows of an account that are read at least, since a bucket may have a container of parts beside it. From the
#: second number on a request reads as many as a listing has.
_ROWS_MIN, ROWS_MAX = 16, 1000


def list_buckets(call: Call) -> Response:
    """The buckets of the caller's account, in pages if that is asked for.

    With ``s3_acl`` a caller without rights in the account lists those that it owns.
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
        names, has_rights = _containers(call, prefix, marker, limit)
        if not names:
            break
        size *= 2
        marker = names[-1]
        for name in names:
            if len(found) <= most and is_bucket_name(name, dns=call.settings.dns_compliant_bucket_names):
                found += [name] if not only_own and has_rights or _owns(call, name) else []
    value: dict[str, Value] = {
        "Owner": person_of(call.account.owner),
        "Buckets": {"Bucket": [{"Name": name, "CreationDate": CREATED} for name in found[:most]]},
    }
    if prefix:
        value["Prefix"] = prefix
    if len(found) > most:
        value["ContinuationToken"] = found[most - 1]
    return xml_response(BUCKETS, value)


def _containers(call: Call, prefix: str, marker: str, limit: int) -> tuple[list[str], bool]:
    """Return a page of the account's containers, and whether the caller may list them; raises ``S3Error``."""
    account, query = call.account, "format=json"
    if prefix:
        query += f"&prefix={quote(prefix, safe='')}"
    if marker:
        query += f"&marker={quote(marker, safe='')}"
    if limit:
        query += f"&limit={limit}"
    try:
        with account.ask("GET", query=query) as response:
            if not response.is_success:
                raise refusal(response.status, missing="AccessDenied")
            rows = json.loads(response.read_body())
        return [row["name"] for row in rows if "name" in row], True
    except S3Error as error:
        if error.code != "AccessDenied" or not (call.settings.s3_acl and account.home):
            raise
    return account.hidden.containers(account.path(), query=query), False


def _owns(call: Call, bucket: str) -> bool:
    """Return True if a bucket is the caller's; raises ``S3Error`` if that cannot be known."""
    try:
        acl = bucket_acl(call, bucket)
    except S3Error as error:
        if error.code != "NoSuchBucket":
            raise
        return False
    return acl is not None and acl.owner == call.account.owner


HANDLERS: dict[str, Handler] = {"ListBuckets": list_buckets}

"""The inventories of a bucket: what is to be taken, when and where. The lifecycle daemon takes them."""

from __future__ import annotations

from dataclasses import replace

from swift.http.response import Response
from swift.s3.account import owners_settings
from swift.s3.call import Call, Handler, no_content, xml_response
from swift.s3.errors import S3Error, refusal
from swift.s3.inventory.document import (
    CONFIGURATIONS_MAX,
    INVENTORY,
    Inventory,
    checked_id,
    document_of_inventory,
    inventories_of,
    inventory_of_document,
    stored_inventories,
)
from swift.s3.lifecycle.registry import HOME, place_of
from swift.s3.objectlocks import require_target
from swift.s3.xml import Group, Many, Text

LIST = Group(
    "ListInventoryConfigurationsResult",
    Many("InventoryConfiguration", *(INVENTORY.children or {}).values()),
    Text("IsTruncated"),
)


def _kept(call: Call) -> dict[str, Inventory]:
    """The configurations of the caller's bucket; raises ``S3Error``."""
    owners_settings(call.account, call.bucket)
    head = call.account.head(call.bucket)
    if not head.is_success:
        raise refusal(head.status, missing="NoSuchBucket")
    return inventories_of(head.headers)


def get_inventory(call: Call) -> Response:
    """GetBucketInventoryConfiguration, and without an id ListBucketInventoryConfigurations."""
    if "id" not in call.params:
        kept = _kept(call).values()
        value = {"InventoryConfiguration": [document_of_inventory(inventory) for inventory in kept]}
        return xml_response(LIST, {**value, "IsTruncated": "false"})
    name = checked_id(call.text_param("id"))
    found = _kept(call).get(name)
    if found is None:
        raise S3Error("NoSuchConfiguration", details={"Id": name})
    return xml_response(INVENTORY, document_of_inventory(found))


def put_inventory(call: Call) -> Response:
    """PutBucketInventoryConfiguration."""
    name = checked_id(call.text_param("id"))
    tree = call.document(INVENTORY)
    found = inventory_of_document(tree, dns=call.settings.dns_compliant_bucket_names)
    if found.id != name:
        raise S3Error("InvalidArgument", "The id of the request is not that of the configuration.")
    kept = _kept(call)
    require_target(call, found.bucket, "InvalidS3DestinationBucket")
    kept[name] = replace(found, kind=call.storage_class)
    if len(kept) > CONFIGURATIONS_MAX:
        raise S3Error("TooManyConfigurations")
    call.account.done("POST", call.bucket, headers=stored_inventories(kept.values()))
    call.account.hidden.note("PUT", HOME)
    call.account.hidden.note("PUT", place_of(call.account.name, call.bucket))
    return no_content()


def delete_inventory(call: Call) -> Response:
    """DeleteBucketInventoryConfiguration."""
    name = checked_id(call.text_param("id"))
    kept = _kept(call)
    if kept.pop(name, None) is None:
        raise S3Error("NoSuchConfiguration", details={"Id": name})
    call.account.done("POST", call.bucket, headers=stored_inventories(kept.values()))
    return no_content()


HANDLERS: dict[str, Handler] = {
    "GetBucketInventoryConfiguration": get_inventory,
    "ListBucketInventoryConfigurations": get_inventory,
    "PutBucketInventoryConfiguration": put_inventory,
    "DeleteBucketInventoryConfiguration": delete_inventory,
}

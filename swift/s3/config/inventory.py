"""The inventory configurations of a bucket: document, stored form, operations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace

from swift.http.headers import HeaderMap
from swift.http.response import Response
from swift.s3.core import codec
from swift.s3.core.call import Call, Handler, invalid_argument, no_content, xml_response
from swift.s3.core.errors import S3Error
from swift.s3.core.metadata import STANDARD
from swift.s3.core.names import REGISTRY, is_bucket_name, registry_path
from swift.s3.core.session import owner_sysmeta
from swift.s3.core.xml import Element, Group, RepeatedGroup, RepeatedText, Text, Tree, Value, text_of, tree_of
from swift.s3.policy.authorize import require_owned_target
from swift.s3.policy.document import BUCKET_ARN_PREFIX

_CONFIGURATION_ELEMENTS: tuple[Element, ...] = (
    Group(
        "Destination",
        Group(
            "S3BucketDestination",
            Text("AccountId"),
            Text("Bucket", required=True),
            Text("Format", required=True),
            Text("Prefix"),
            Group("Encryption", Group("SSE-S3"), Group("SSE-KMS", Text("KeyId"))),
            required=True,
        ),
        required=True,
    ),
    Text("IsEnabled", required=True),
    Group("Filter", Text("Prefix", required=True)),
    Text("Id", required=True),
    Text("IncludedObjectVersions", required=True),
    Group("OptionalFields", RepeatedText("Field")),
    Group("Schedule", Text("Frequency", required=True), required=True),
)
INVENTORY = Group("InventoryConfiguration", *_CONFIGURATION_ELEMENTS)
#: Fields that listings provide; others would need a request for each object.
OPTIONAL_FIELDS = ("Size", "LastModifiedDate", "ETag", "StorageClass", "IsMultipartUploaded")
_UNSUPPORTED_FIELDS = frozenset(
    (
        *("ReplicationStatus", "EncryptionStatus", "ObjectLockRetainUntilDate", "ObjectLockMode"),
        *("ObjectLockLegalHoldStatus", "IntelligentTieringAccessTier", "BucketKeyStatus"),
        *("ChecksumAlgorithm", "ObjectAccessControlList", "ObjectOwner", "LifecycleExpirationDate"),
    )
)
CONFIGURATIONS_MAX, PREFIX_MAX = 10, 512
_is_id = re.compile(r"[A-Za-z0-9_.-]{1,64}").fullmatch
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Inventory:
    """One inventory configuration; its field names are part of the stored form."""

    id: str
    #: The destination bucket, of the same account, and the prefix of the files' keys.
    bucket: str
    prefix: str = ""
    #: Only keys with this beginning are listed.
    filter: str = ""
    fields: tuple[str, ...] = ()
    has_versions: bool = False
    is_weekly: bool = False
    is_enabled: bool = True
    #: The storage class of the bucket that is listed.
    kind: str = STANDARD

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its files, in order."""
        versions = ("VersionId", "IsLatest", "IsDeleteMarker") if self.has_versions else ()
        return ("Bucket", "Key", *versions, *(name for name in OPTIONAL_FIELDS if name in self.fields))


def parse_inventory_document(tree: Tree, *, dns: bool) -> Inventory:
    """Return the inventory in an ``InventoryConfiguration`` document; raise ``S3Error``."""
    target = tree_of(tree_of(tree["Destination"])["S3BucketDestination"])
    _validate_destination(target)
    arn = text_of(target["Bucket"])
    bucket = arn.removeprefix(BUCKET_ARN_PREFIX)
    if not arn.startswith(BUCKET_ARN_PREFIX) or not is_bucket_name(bucket, dns=dns):
        raise S3Error("InvalidS3DestinationBucket")
    return Inventory(
        id=validate_id(text_of(tree["Id"])),
        bucket=bucket,
        prefix=_validate_prefix(text_of(target.get("Prefix"))),
        filter=_validate_prefix(text_of(tree_of(tree.get("Filter")).get("Prefix"))),
        fields=_parse_fields(tree_of(tree.get("OptionalFields"))),
        has_versions=_parse_choice(tree["IncludedObjectVersions"], {"All": True, "Current": False}),
        is_weekly=_parse_choice(tree_of(tree["Schedule"])["Frequency"], {"Weekly": True, "Daily": False}),
        is_enabled=_parse_choice(tree["IsEnabled"], _BOOLEANS),
    )


def _validate_destination(target: Tree) -> None:
    kind = text_of(target["Format"])
    if kind in ("ORC", "Parquet"):
        raise S3Error("NotImplemented", details={"Format": kind})
    if kind != "CSV":
        raise S3Error("MalformedXML")
    if "SSE-KMS" in tree_of(target.get("Encryption")):
        raise S3Error("NotImplemented", details={"Encryption": "SSE-KMS"})


def _parse_choice(value: object, known: Mapping[str, bool]) -> bool:
    found = known.get(str(value))
    if found is None:
        raise S3Error("MalformedXML")
    return found


def validate_id(text: str) -> str:
    """Return the id of a configuration; raise ``S3Error`` if it is invalid."""
    if _is_id(text) is None:
        raise invalid_argument("id", text[:100], "The inventory id must have 1 to 64 of A-Z a-z 0-9 _ . -")
    return text


def _validate_prefix(text: str) -> str:
    if len(text.encode()) > PREFIX_MAX or "\x00" in text:
        raise invalid_argument("Prefix", text[:100], "The prefix is too long.")
    return text


def _parse_fields(tree: Tree) -> tuple[str, ...]:
    items = tree.get("Field")
    names = [text_of(item) for item in items] if isinstance(items, list) else []
    for name in names:
        if name in _UNSUPPORTED_FIELDS:
            raise S3Error("NotImplemented", details={"Field": name})
        if name not in OPTIONAL_FIELDS:
            raise S3Error("MalformedXML")
    return tuple(dict.fromkeys(names))


def render_inventory(inventory: Inventory) -> dict[str, Value]:
    """Return the value of an ``InventoryConfiguration`` document."""
    target: dict[str, Value] = {"Bucket": f"{BUCKET_ARN_PREFIX}{inventory.bucket}", "Format": "CSV"}
    if inventory.prefix:
        target["Prefix"] = inventory.prefix
    value: dict[str, Value] = {
        "Destination": {"S3BucketDestination": target},
        "IsEnabled": "true" if inventory.is_enabled else "false",
        "Id": inventory.id,
        "IncludedObjectVersions": "All" if inventory.has_versions else "Current",
        "Schedule": {"Frequency": "Weekly" if inventory.is_weekly else "Daily"},
    }
    if inventory.filter:
        value["Filter"] = {"Prefix": inventory.filter}
    if inventory.fields:
        value["OptionalFields"] = {"Field": list(inventory.fields)}
    return value


# --- the stored form ----------------------------------------------------------------------------------


def encode_inventories(inventories: Iterable[Inventory]) -> HeaderMap:
    """Return the headers that store all inventories of a bucket; raise ``S3Error`` if they are too large."""
    return codec.INVENTORY.encode_json([asdict(inventory) for inventory in inventories] or None)


def decode_inventories(sysmeta: Mapping[str, str]) -> dict[str, Inventory]:
    """Return the inventories in a bucket's system metadata, by id; raise ``DamagedConfiguration``."""
    items = codec.INVENTORY.unpack_list(codec.INVENTORY.read_packed(sysmeta))
    try:
        found = [Inventory(**item) for item in items]
        return {item.id: replace(item, fields=tuple(map(str, item.fields))) for item in found}
    except TypeError:
        raise codec.INVENTORY.damaged_error()


# --- operations ---------------------------------------------------------------------------------------

LIST_RESULT = Group(
    "ListInventoryConfigurationsResult",
    RepeatedGroup("InventoryConfiguration", *(INVENTORY.children or {}).values()),
    Text("IsTruncated"),
)


def _read_inventories(call: Call) -> dict[str, Inventory]:
    """Return the inventories of the caller's bucket; raise ``S3Error``."""
    return decode_inventories(owner_sysmeta(call.session, call.bucket))


def get_inventory(call: Call) -> Response:
    """GetBucketInventoryConfiguration, and without an id ListBucketInventoryConfigurations."""
    if "id" not in call.params:
        inventories = _read_inventories(call).values()
        value = {"InventoryConfiguration": [render_inventory(inventory) for inventory in inventories]}
        return xml_response(LIST_RESULT, {**value, "IsTruncated": "false"})
    name = validate_id(call.text_param("id"))
    found = _read_inventories(call).get(name)
    if found is None:
        raise S3Error("NoSuchConfiguration", details={"Id": name})
    return xml_response(INVENTORY, render_inventory(found))


def put_inventory(call: Call) -> Response:
    """PutBucketInventoryConfiguration."""
    name = validate_id(call.text_param("id"))
    tree = call.parse_body(INVENTORY)
    found = parse_inventory_document(tree, dns=call.settings.dns_compliant_bucket_names)
    if found.id != name:
        raise S3Error("InvalidArgument", "The id of the request is not that of the configuration.")
    try:
        inventories = _read_inventories(call)
    except codec.DamagedConfiguration:
        # Only a new configuration repairs it.
        inventories = {}
    require_owned_target(call, found.bucket, "InvalidS3DestinationBucket")
    inventories[name] = replace(found, kind=call.bucket_storage_class)
    if len(inventories) > CONFIGURATIONS_MAX:
        raise S3Error("TooManyConfigurations")
    call.session.require_success("POST", call.bucket, headers=encode_inventories(inventories.values()))
    call.session.privileged.send_change("PUT", REGISTRY)
    call.session.privileged.send_change("PUT", registry_path(call.session.account, call.bucket))
    return no_content()


def delete_inventory(call: Call) -> Response:
    """DeleteBucketInventoryConfiguration."""
    name = validate_id(call.text_param("id"))
    inventories = _read_inventories(call)
    if inventories.pop(name, None) is None:
        raise S3Error("NoSuchConfiguration", details={"Id": name})
    call.session.require_success("POST", call.bucket, headers=encode_inventories(inventories.values()))
    return no_content()


HANDLERS: dict[str, Handler] = {
    "GetBucketInventoryConfiguration": get_inventory,
    "ListBucketInventoryConfigurations": get_inventory,
    "PutBucketInventoryConfiguration": put_inventory,
    "DeleteBucketInventoryConfiguration": delete_inventory,
}

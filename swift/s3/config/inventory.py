"""The inventory configurations of a bucket: document, stored form, operations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace

from swift.base.documents import JsonObject
from swift.http.headers import HeaderMap
from swift.http.response import Response
from swift.identity.policy.document import BUCKET_ARN_PREFIX
from swift.s3.core import codec
from swift.s3.core.call import Call, Handler, invalid_argument, no_content, xml_response
from swift.s3.core.errors import S3Error
from swift.s3.core.metadata import STANDARD
from swift.s3.core.names import is_bucket_name
from swift.s3.core.schema import Fixed, Kind, Leaf, Record, Section, Texts, choice
from swift.s3.core.session import owner_sysmeta
from swift.s3.core.xml import Group, Parsed, RepeatedGroup, Text, Tree, Value, text_of, tree_of
from swift.s3.policy.authorize import require_owned_target

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


def validate_id(text: str) -> str:
    """Return the id of a configuration; raise ``S3Error`` if it is invalid."""
    if _is_id(text) is None:
        raise invalid_argument("id", text[:100], "The inventory id must have 1 to 64 of A-Z a-z 0-9 _ . -")
    return text


def _parse_arn(text: str) -> str:
    if not text.strip().startswith(BUCKET_ARN_PREFIX):
        raise S3Error("InvalidS3DestinationBucket")
    return text.strip().removeprefix(BUCKET_ARN_PREFIX)


def _validate_format(content: Parsed) -> None:
    kind = text_of(content)
    if kind != "CSV":
        is_known = kind in ("ORC", "Parquet")
        raise S3Error("NotImplemented", details={"Format": kind}) if is_known else S3Error("MalformedXML")


def _validate_encryption(content: Parsed) -> None:
    if "SSE-KMS" in tree_of(content):
        raise S3Error("NotImplemented", details={"Encryption": "SSE-KMS"})


def _parse_prefix(text: str) -> str:
    text = text.strip()
    if len(text.encode()) > PREFIX_MAX or "\x00" in text:
        raise invalid_argument("Prefix", text[:100], "The prefix is too long.")
    return text


def _parse_field(text: str) -> str:
    if text.strip() in _UNSUPPORTED_FIELDS:
        raise S3Error("NotImplemented", details={"Field": text.strip()})
    return str(choice({name: name for name in OPTIONAL_FIELDS}).parse(text))


_PREFIX = Kind(_parse_prefix)
_INVENTORY = Record(
    Inventory,
    Section(
        "Destination",
        Section(
            "S3BucketDestination",
            Fixed(Text("AccountId"), lambda _content: None),
            Leaf("Bucket", "bucket", Kind(_parse_arn, BUCKET_ARN_PREFIX.__add__), required=True),
            Fixed(Text("Format", required=True), _validate_format, "CSV"),
            Leaf("Prefix", "prefix", _PREFIX),
            Fixed(
                Group("Encryption", Group("SSE-S3"), Group("SSE-KMS", Text("KeyId"))), _validate_encryption
            ),
            required=True,
        ),
        required=True,
    ),
    Leaf("IsEnabled", "is_enabled", choice({"true": True, "false": False}), always=True),
    Section("Filter", Leaf("Prefix", "filter", _PREFIX, required=True)),
    Leaf("Id", "id", Kind(lambda text: validate_id(text.strip())), required=True),
    Leaf("IncludedObjectVersions", "has_versions", choice({"All": True, "Current": False}), always=True),
    Section("OptionalFields", Texts("Field", "fields", Kind(_parse_field))),
    Section(
        "Schedule",
        Leaf("Frequency", "is_weekly", choice({"Weekly": True, "Daily": False}), always=True),
        required=True,
    ),
)
INVENTORY = Group("InventoryConfiguration", *_INVENTORY.elements)


def parse_inventory_document(tree: Tree, *, dns: bool) -> Inventory:
    """Return the inventory in an ``InventoryConfiguration`` document; raise ``S3Error``."""
    inventory = _INVENTORY.read(tree)
    if not is_bucket_name(inventory.bucket, dns=dns):
        raise S3Error("InvalidS3DestinationBucket")
    return replace(inventory, fields=tuple(dict.fromkeys(inventory.fields)))


def render_inventory(inventory: Inventory) -> dict[str, Value]:
    """Return the value of an ``InventoryConfiguration`` document."""
    return _INVENTORY.write(inventory)


# --- the stored form ----------------------------------------------------------------------------------


def encode_inventories(inventories: Iterable[Inventory]) -> HeaderMap:
    """Return the headers that store all inventories of a bucket; raise ``S3Error`` if they are too large."""
    return codec.INVENTORY.encode_json([asdict(inventory) for inventory in inventories] or None)


def decode_inventories(sysmeta: Mapping[str, str]) -> dict[str, Inventory]:
    """Return the inventories in a bucket's system metadata, by id; raise ``DamagedConfiguration``."""
    return {item.id: item for item in codec.INVENTORY.decode_items(sysmeta, _decode_inventory)}


def _decode_inventory(item: JsonObject) -> Inventory:
    return Inventory(**{**item, "fields": tuple(map(str, item.get("fields", ())))})


# --- operations ---------------------------------------------------------------------------------------

LIST_RESULT = Group(
    "ListInventoryConfigurationsResult",
    RepeatedGroup("InventoryConfiguration", *_INVENTORY.elements),
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
    call.session.privileged.register_bucket(call.session.account, call.bucket)
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

"""What inventories are, as documents and in the metadata of buckets."""

import pytest

from swift.s3.config.inventory import (
    INVENTORY,
    Inventory,
    decode_inventories,
    encode_inventories,
    parse_inventory_document,
    render_inventory,
)
from swift.s3.core.codec import INVENTORY as INVENTORY_CODEC
from swift.s3.core.codec import DamagedConfiguration
from swift.s3.core.errors import S3Error
from swift.s3.core.session import sysmeta_of
from swift.s3.core.xml import parse, render


def document(**changes):
    parts = {
        "target": "<Bucket>arn:aws:s3:::stock</Bucket><Format>CSV</Format>",
        "enabled": "true",
        "id": "all",
        "versions": "Current",
        "frequency": "Daily",
        "more": "",
        **changes,
    }
    return (
        "<InventoryConfiguration><Destination><S3BucketDestination>{target}</S3BucketDestination></Destination>"
        "<IsEnabled>{enabled}</IsEnabled><Id>{id}</Id>"
        "<IncludedObjectVersions>{versions}</IncludedObjectVersions>"
        "<Schedule><Frequency>{frequency}</Frequency></Schedule>{more}</InventoryConfiguration>"
    ).format(**parts)


def parsed(text):
    return parse_inventory_document(parse(INVENTORY, text.encode()), dns=True)


@pytest.mark.parametrize(
    "changes, wanted",
    [
        ({}, Inventory("all", "stock")),
        ({"enabled": "false"}, Inventory("all", "stock", is_enabled=False)),
        (
            {"versions": "All", "frequency": "Weekly"},
            Inventory("all", "stock", has_versions=True, is_weekly=True),
        ),
        (
            {
                "more": "<Filter><Prefix>in/</Prefix></Filter>"
                "<OptionalFields><Field>ETag</Field><Field>Size</Field><Field>ETag</Field></OptionalFields>"
            },
            Inventory("all", "stock", filter="in/", fields=("ETag", "Size")),
        ),
        (
            {
                "target": "<AccountId>1</AccountId><Bucket>arn:aws:s3:::stock</Bucket><Format>CSV</Format>"
                "<Prefix>p</Prefix><Encryption><SSE-S3/></Encryption>"
            },
            Inventory("all", "stock", prefix="p"),
        ),
    ],
)
def test_a_document_is_read_and_written_again(changes, wanted):
    found = parsed(document(**changes))
    assert found == wanted
    assert parsed(render(INVENTORY, render_inventory(found)).decode()) == wanted
    assert decode_inventories(sysmeta_of(encode_inventories([found]))) == {found.id: found}


@pytest.mark.parametrize(
    "changes, code",
    [
        ({"target": "<Bucket>stock</Bucket><Format>CSV</Format>"}, "InvalidS3DestinationBucket"),
        ({"target": "<Bucket>arn:aws:s3:::../x</Bucket><Format>CSV</Format>"}, "InvalidS3DestinationBucket"),
        ({"target": "<Bucket>arn:aws:s3:::a/b</Bucket><Format>CSV</Format>"}, "InvalidS3DestinationBucket"),
        ({"target": "<Bucket>arn:aws:s3:::stock</Bucket><Format>Parquet</Format>"}, "NotImplemented"),
        ({"target": "<Bucket>arn:aws:s3:::stock</Bucket><Format>XLS</Format>"}, "MalformedXML"),
        (
            {
                "target": "<Bucket>arn:aws:s3:::stock</Bucket><Format>CSV</Format>"
                "<Encryption><SSE-KMS><KeyId>k</KeyId></SSE-KMS></Encryption>"
            },
            "NotImplemented",
        ),
        ({"target": "<Format>CSV</Format>"}, "MalformedXML"),
        ({"enabled": "yes"}, "MalformedXML"),
        ({"versions": ""}, "MalformedXML"),
        ({"frequency": "Hourly"}, "MalformedXML"),
        ({"id": "a/b"}, "InvalidArgument"),
        ({"id": ""}, "InvalidArgument"),
        ({"id": "x" * 65}, "InvalidArgument"),
        ({"more": "<OptionalFields><Field>Color</Field></OptionalFields>"}, "MalformedXML"),
        ({"more": "<OptionalFields><Field>ObjectOwner</Field></OptionalFields>"}, "NotImplemented"),
        ({"more": f"<Filter><Prefix>{'x' * 513}</Prefix></Filter>"}, "InvalidArgument"),
        ({"more": "<Surprise/>"}, "MalformedXML"),
    ],
)
def test_what_is_no_inventory_is_refused(changes, code):
    with pytest.raises(S3Error) as caught:
        parsed(document(**changes))
    assert caught.value.code == code


@pytest.mark.parametrize("broken", ["%%%", "eJw=", "x" * 100])
def test_inventories_that_cannot_be_read_are_an_error(broken):
    assert decode_inventories({}) == {}
    with pytest.raises(DamagedConfiguration, match="inventory configuration is damaged"):
        decode_inventories({"s3api-inventory-0": broken})


def test_strange_facts_of_others_are_an_error():
    for strange in ([{"id": "a"}], [{"id": "a", "bucket": "b", "more": 1}], {"id": 1}, [1], "x"):
        with pytest.raises(DamagedConfiguration):
            decode_inventories(sysmeta_of(INVENTORY_CODEC.encode_json(strange)))


def test_a_request_looks_at_the_bucket_once(s3):
    s3("PUT", "/stock")
    body = document(id="all").encode()
    assert s3("PUT", "/bucket?inventory&id=all", {}, body).status == 204
    # The caches know what the access check needs.
    s3("GET", "/bucket?inventory&id=all")
    seen = []

    def watch(request):
        if request.method == "HEAD" and request.entity.path.container == "bucket":
            seen.append(request)

    s3.bottom.instead = watch
    assert s3("GET", "/bucket?inventory&id=all").status == 200
    assert len(seen) == 1

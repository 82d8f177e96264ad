"""An inventory lists all that a bucket has, on its days, and is there as a whole or not at all."""

import csv
import gzip
import json
from hashlib import md5

import pytest

from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.gateway.internal_client import InternalClient, UnexpectedResponse
from swift.http.response import error_response
from swift.s3.config.inventory import Inventory, encode_inventories
from swift.s3.config.lifecyclerules import LifecycleRule
from swift.s3.core.metadata import DELETE_MARKER_TYPE
from swift.s3.core.names import REGISTRY, registry_path
from swift.s3.daemons.inventories import DueInventories, InventoryRun, columns_of, is_due
from swift.s3.daemons.walk import RegisteredBucket
from test.support.filters import Listed, row
from test.support.s3_fixtures import BUCKET

SUNDAY_S, MONDAY_S = 3 * 86400, 4 * 86400


def inventory_of(bench, **options):
    """Take an inventory of the bucket; the manifest and the rows of its files."""
    bench.client.create(BUCKET, encode_inventories([Inventory("all", "stock", prefix="p", **options)]))
    bench.client.create(STOCK)
    bench.sim.cache.values.clear()
    bench.client.create(REGISTRY)
    bench.client.put(registry_path("a", "b"), b"")
    return bench.run_once(), lambda: manifest_of(bench)


def manifest_of(bench):
    names = [name for name in bench.names(STOCK) if name.endswith("/manifest.json")]
    with bench.client.get(STOCK._replace(obj=names[-1])) as response:
        manifest = json.loads(response.read_body())
    rows = []
    for file in manifest["files"]:
        with bench.client.get(STOCK._replace(obj=file["key"])) as response:
            packed = response.read_body()
        assert md5(packed).hexdigest() == file["MD5checksum"] and len(packed) == file["size"]
        rows += csv.reader(gzip.decompress(packed).decode().splitlines())
    return manifest, rows


STOCK = EntityPath("a", "stock")


def test_a_weekly_one_is_due_on_sundays():
    weekly, daily = Inventory("w", "b", is_weekly=True), Inventory("d", "b")
    assert [is_due(weekly, now) for now in (SUNDAY_S, MONDAY_S)] == [True, False]
    assert is_due(daily, MONDAY_S) and not is_due(Inventory("d", "b", is_enabled=False), MONDAY_S)


def test_a_multipart_object_is_known_by_its_etag():
    row = {"name": "k", "bytes": 5, "hash": "x; s3_etag=abc-2", "last_modified": "2026-01-02T03:04:05.000000"}
    facts = columns_of("b", row, "COLD")
    assert (facts["ETag"], facts["IsMultipartUploaded"], facts["StorageClass"]) == ("abc-2", "true", "COLD")
    assert facts["LastModifiedDate"] == "2026-01-02T03:04:05.000Z"


def test_an_inventory_lists_what_a_bucket_has(bench):
    bench.set_rules()
    bench.put('a b,"c"/ü', b"xx")
    bench.put("other", b"x")
    counts, read = inventory_of(bench, fields=("Size", "ETag", "IsMultipartUploaded"))
    assert counts == {"buckets": 1, "inventories.taken": 1}
    manifest, rows = read()
    assert manifest["fileSchema"] == "Bucket, Key, Size, ETag, IsMultipartUploaded"
    assert manifest["destinationBucket"] == "arn:aws:s3:::stock" and manifest["fileFormat"] == "CSV"
    assert rows == [
        ["b", "a%20b%2C%22c%22/%C3%BC", "2", md5(b"xx").hexdigest(), "false"],
        ["b", "other", "1", md5(b"x").hexdigest(), "false"],
    ]
    assert all(name.startswith("p/b/all/") for name in bench.names(STOCK))


def test_an_inventory_is_taken_once_a_day(bench):
    bench.set_rules()
    inventory_of(bench)
    assert len(bench.names(STOCK)) == 3
    assert bench.run_once(bench.daemon()) == {"buckets": 1, "inventories.there": 1}
    assert len(bench.names(STOCK)) == 3


def test_an_inventory_has_versions_and_delete_markers_when_they_are_wanted(bench):
    bench.set_rules(versions="true")
    first, second = bench.put("k", b"1"), bench.put("k", b"22")
    bench.client.delete(BUCKET._replace(obj="k"))
    bench.put("kept")
    _counts, read = inventory_of(bench, has_versions=True, fields=("Size",))
    _manifest, rows = read()
    assert [(row[1], row[3], row[4], row[5]) for row in rows] == [
        ("k", "true", "true", ""),
        ("k", "false", "false", "2"),
        ("k", "false", "false", "1"),
        ("kept", "true", "false", "1"),
    ]
    assert [row[2] for row in rows[1:3]] == [second, first]


def test_an_inventory_of_many_pages_is_whole(bench):
    bench.set_rules()
    names = [f"{n:02}" for n in range(7)]
    for name in names:
        bench.put(f"in/{name}")
    bench.put("out")
    bench.task = bench.daemon(page_size=2)
    _counts, read = inventory_of(bench, filter="in/")
    assert [row[1] for row in read()[1]] == [f"in/{name}" for name in names]


def test_an_inventory_of_nothing_says_so(bench):
    bench.set_rules()
    _counts, read = inventory_of(bench)
    manifest, rows = read()
    assert len(manifest["files"]) == 1 and rows == []


def test_an_inventory_without_a_place_to_go_is_told_of_and_hinders_no_other(bench):
    bench.set_rules(LifecycleRule("r", days=1))
    bench.put("ended")
    gone = Inventory("gone", "nowhere")
    bench.client.create(BUCKET, encode_inventories([gone, Inventory("off", "b", is_enabled=False)]))
    bench.sim.cache.values.clear()
    counts = bench.run_once()
    assert counts == {"buckets": 1, "objects.ended": 1, "inventories.refused": 1}
    assert bench.names() == []


# --- what is not whole ----------------------------------------------------------------------------------


def taken(listed, stops=lambda: False, **options):
    [(_, outcome)] = taken_all(listed, [Inventory("all", "stock", **options)], stops)
    return outcome


def taken_all(listed, inventories, stops=lambda: False):
    due = DueInventories(RegisteredBucket("a", "b", Timestamp(0)), inventories, is_versioned=False)
    return InventoryRun(listed.client, lambda: 1.5 * 86400, stops, 2).take(due)


def stocked(*names):
    listed = Listed(b=[row(name, 1) for name in names])
    listed.heads["/v1/a/stock"] = {}
    return listed


def test_the_manifest_comes_last_and_is_of_the_midnight_before():
    listed = stocked("k")
    assert taken(listed, prefix="p") == "taken"
    files, checksum, manifest = listed.methods("PUT")
    assert files.startswith("/v1/a/stock/p/b/all/data/")
    assert checksum.endswith("/manifest.checksum")
    assert manifest == "/v1/a/stock/p/b/all/1970-01-02T00-00Z/manifest.json"


def test_one_that_is_there_is_not_taken_again():
    listed = stocked("k")
    listed.heads["/v1/a/stock/b/all/1970-01-02T00-00Z/manifest.json"] = {}
    assert taken(listed) == "there"
    assert listed.methods("PUT") == []


def test_without_its_bucket_nothing_is_taken():
    assert taken(Listed(b=[row("k", 1)])) == "refused"


def test_one_that_was_stopped_has_no_manifest():
    listed = stocked("a", "b", "c", "d", "e")
    assert taken(listed, stops=lambda: len(listed.methods("GET")) > 1) == "broken-off"
    assert not [path for path in listed.methods("PUT") if "manifest" in path]


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_one_that_cannot_be_read_or_stored_has_no_manifest(method):
    listed = stocked("k")
    handle = listed.handle
    listed.client = InternalClient(
        lambda request: error_response(503) if request.method == method else handle(request), "test", tries=1
    )
    assert isinstance(taken(listed), UnexpectedResponse)
    assert listed.methods("PUT") == []


def test_inventories_of_a_bucket_share_its_listing_and_the_look_at_their_destination():
    listed = stocked("a", "b", "c")
    inventories = [Inventory(name, "stock") for name in ("one", "two", "three")]
    assert [outcome for _, outcome in taken_all(listed, inventories)] == ["taken"] * 3
    # Two pages of rows and the empty one behind them.
    assert len(listed.methods("GET")) == 3
    assert [path for path in listed.methods("HEAD") if not path.endswith("manifest.json")] == ["/v1/a/stock"]
    manifests = [path for path in listed.methods("PUT") if path.endswith("manifest.json")]
    assert [path.split("/")[5] for path in manifests] == ["one", "two", "three"]


def test_an_inventory_that_cannot_be_stored_hinders_no_other_of_its_bucket():
    listed = stocked("k")
    handle = listed.handle
    listed.client = InternalClient(
        lambda request: (
            error_response(503)
            if "/one/" in request.raw_path and request.method == "PUT"
            else handle(request)
        ),
        "test",
        tries=1,
    )
    first, second = taken_all(listed, [Inventory(name, "stock") for name in ("one", "two")])
    assert isinstance(first[1], UnexpectedResponse) and second[1] == "taken"


def test_a_delete_marker_has_a_name_and_a_time_only():
    marker = row("k", 1, version_id="7", is_latest=False, content_type=DELETE_MARKER_TYPE)
    assert columns_of("b", marker, "STANDARD") == {
        "Bucket": "b",
        "Key": "k",
        "VersionId": "7",
        "IsLatest": "false",
        "IsDeleteMarker": "true",
        "Size": "",
        "LastModifiedDate": "1970-01-02T00:00:00.000Z",
        "ETag": "",
        "StorageClass": "",
        "IsMultipartUploaded": "",
    }


@pytest.mark.parametrize(
    ("name", "key"), [('a,"b"\n=1+1', "a%2C%22b%22%0A%3D1%2B1"), ("é/\u2028", "%C3%A9/%E2%80%A8")]
)
def test_a_key_breaks_no_line_and_is_no_formula(name, key):
    assert columns_of("b", row(name, 1), "STANDARD")["Key"] == key

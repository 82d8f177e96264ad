"""The account server: status, headers and effects of every verb (account-container.md §11)."""

import json

import pytest

from test.unit.account.conftest import stamp


def test_an_account_is_created_once(bench):
    assert bench("PUT", at=1).status == 201
    assert bench("PUT", at=2).status == 202


def test_head_tells_the_facts(bench):
    bench("PUT", at=1, x_account_meta_color="blue", x_account_sysmeta_x="y", x_account_access_control="no")
    bench.put_container("c1", 2, objects=3, size=30)
    bench.put_container("c2", 2, objects=4, size=40, x_backend_storage_policy_index="1")
    head = bench("HEAD")
    assert head.status == 204
    assert head.headers == {
        "x-account-container-count": "2",
        "x-account-object-count": "7",
        "x-account-bytes-used": "70",
        "x-timestamp": "1700000000.00000",
        "x-put-timestamp": stamp(1),
        "x-account-storage-policy-gold-container-count": "1",
        "x-account-storage-policy-gold-object-count": "3",
        "x-account-storage-policy-gold-bytes-used": "30",
        "x-account-storage-policy-silver-container-count": "1",
        "x-account-storage-policy-silver-object-count": "4",
        "x-account-storage-policy-silver-bytes-used": "40",
        "x-account-meta-color": "blue",
        "x-account-sysmeta-x": "y",
        "content-type": "text/plain; charset=utf-8",
    }


@pytest.mark.parametrize("method", ["HEAD", "GET", "POST", "DELETE"])
def test_a_missing_account(bench, method):
    response = bench(method, at=1)
    assert (response.status, response.read_body()) == (404, b"")
    assert not {"x-account-status", "x-backend-timestamp"} & response.headers.keys()


def test_a_deleted_account_stays_deleted(bench):
    bench("PUT", at=1, x_account_meta_color="blue")
    gone = bench("DELETE", at=2)
    assert (gone.status, gone.headers["x-account-status"]) == (204, "Deleted")
    for method in ("HEAD", "GET", "POST", "DELETE"):
        response = bench(method, at=3)
        assert (response.status, response.headers["x-account-status"]) == (404, "Deleted")
        assert response.headers["x-backend-timestamp"] == stamp(2)
    refused = bench("PUT", at=4)
    assert (refused.status, refused.read_body()) == (403, b"Recently deleted")
    assert refused.headers["x-account-status"] == "Deleted"


def test_an_account_with_containers_can_be_deleted(bench):
    bench("PUT", at=1)
    bench.put_container("c", 2, objects=1)
    assert bench("DELETE", at=3).status == 204
    assert bench("HEAD").status == 404


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_writes_need_a_timestamp(bench, method):
    missing = bench(method)
    assert (missing.status, missing.read_body()) == (400, b"Missing X-Timestamp header")
    assert bench(method, x_timestamp="x").read_body() == b"Invalid X-Timestamp header"


def test_metadata_is_merged_and_limited(bench):
    bench("PUT", at=1, x_account_meta_a="1")
    assert bench("POST", at=3, x_account_meta_a="", x_account_meta_b="2").status == 204
    headers = bench("HEAD").headers
    assert "x-account-meta-a" not in headers and headers["x-account-meta-b"] == "2"
    many = {f"x_account_meta_k{n}": "v" for n in range(90)}
    refused = bench("POST", at=4, **many)
    assert (refused.status, refused.read_body()) == (400, b"Too many metadata items; max 90")
    assert bench("POST", at=4, x_account_meta_a="\xff").read_body() == b"Metadata must be valid UTF-8"


# --- container rows -----------------------------------------------------------------------------------


def test_containers_are_listed(bench):
    bench("PUT", at=1)
    assert bench.put_container("c1", 2, objects=1, size=5).status == 201
    bench.put_container("c%C3%A9", 3, x_backend_storage_policy_index="7")
    rows = bench("GET", query="format=json").read_body()
    assert rows == (
        b'[{"name": "c1", "count": 1, "bytes": 5, "last_modified": "2023-11-14T22:13:22.000000", '
        b'"storage_policy": "gold"}, '
        b'{"name": "c\\u00e9", "count": 0, "bytes": 0, "last_modified": "2023-11-14T22:13:23.000000"}]'
    )


def test_a_row_is_kept_once_whatever_its_policy(bench):
    bench("PUT", at=1)
    bench.put_container("c", 2, objects=1)
    bench.put_container("c", 3, objects=2, x_backend_storage_policy_index="1")
    rows = json.loads(bench("GET", query="format=json").read_body())
    assert [(row["name"], row["count"], row["storage_policy"]) for row in rows] == [("c", 2, "silver")]


def test_deleted_containers_vanish(bench):
    bench("PUT", at=1)
    bench.put_container("c", 2)
    assert bench.put_container("c", 2, deleted_at=3).status == 204
    assert bench("GET").status == 204
    assert bench("HEAD").headers["x-account-container-count"] == "0"


def test_containers_need_a_living_account(bench):
    assert bench.put_container("c", 1).status == 404
    bench("PUT", at=1)
    bench("DELETE", at=2)
    assert bench.put_container("c", 3).status == 404
    assert bench.put_container("c", 3, x_account_override_deleted="yes").status == 201


def test_internal_accounts_make_themselves(bench):
    bench.path = "/sda/1/.misplaced_objects"
    assert bench.put_container("1700000000", 5).status == 201
    assert bench("HEAD").headers["x-put-timestamp"] == stamp(5)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x_put_timestamp": "x"},
        {"x_put_timestamp": stamp(1), "x_delete_timestamp": "y"},
        {"x_put_timestamp": stamp(1), "x_object_count": "z"},
        {"x_put_timestamp": stamp(1), "x_bytes_used": str(1 << 70)},
        {"x_put_timestamp": stamp(1), "x_backend_storage_policy_index": "-3"},
        {"x_put_timestamp": stamp(1), "x_backend_storage_policy_index": "x"},
    ],
    ids=str,
)
def test_bad_row_headers_are_bad_requests(bench, headers):
    bench("PUT", at=1)
    assert bench("PUT", f"{bench.path}/c", **headers).status == 400
    assert bench("GET").status == 204


# --- listings and paths -------------------------------------------------------------------------------


def test_formats(bench):
    bench("PUT", at=1)
    for name in ("c1", "y-1", "y-2"):
        bench.put_container(name, 2)
    xml = bench("GET", query="format=xml&delimiter=-").read_body()
    assert xml == (
        b'<?xml version="1.0" encoding="UTF-8"?>\n<account name="AUTH_a">\n'
        b"<container><name>c1</name><count>0</count><bytes>0</bytes>"
        b"<last_modified>2023-11-14T22:13:22.000000</last_modified><storage_policy>gold</storage_policy>"
        b'</container>\n<subdir name="y-" />\n</account>'
    )
    assert bench("GET", query="limit=1&reverse=true").read_body() == b"y-2\n"
    assert bench("GET", query="path=x").read_body() == b"c1\ny-1\ny-2\n"
    assert bench("GET", query="limit=10001").status == 412
    assert bench("GET", query="marker=%ff").status == 400
    assert bench("GET", accept="image/png").status == 406


def test_empty_listings(bench):
    bench("PUT", at=1)
    assert bench("GET").status == 204
    assert bench("GET", query="format=json").read_body() == b"[]"


@pytest.mark.parametrize(
    "path, status",
    [
        ("/sda/1", 400),
        ("/sda/1/a/c/o", 400),
        ("/sda/1/%ff", 412),
        ("/sda/1/a%00", 400),
        ("/../1/a", 400),
        ("/nodevice/1/a", 507),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "DELETE"])
def test_bad_paths(bench, method, path, status):
    assert bench(method, path, at=1, x_put_timestamp=stamp(1)).status == status


def test_only_put_knows_containers(bench):
    for method in ("GET", "HEAD", "POST", "DELETE"):
        assert bench(method, f"{bench.path}/c", at=1).status == 400


def test_a_broken_database_is_quarantined(bench):
    bench("PUT", at=1)
    found = next(bench.root.rglob("*.db"))
    bench.server.brokers.close()
    found.write_bytes(b"rubbish" * 1000)
    assert bench("HEAD").status == 503
    assert (bench.root / "sda" / "quarantined" / "accounts" / found.stem / found.name).exists()
    assert bench("PUT", at=2).status == 201


@pytest.mark.parametrize("name", ["x_container_sync_key", "x_container_sync_auth"])
def test_container_sync_writes_no_rows(bench, name):
    bench("PUT", at=1)
    assert bench("PUT", f"{bench.path}/c", at=2, x_put_timestamp=stamp(2), **{name: "k"}).status == 403
    assert bench("HEAD").headers["x-account-container-count"] == "0"

"""Shard ranges through the server: records, fillers, redirects (account-container.md §12)."""

import json

import pytest

from test.unit.container.conftest import stamp

SHARD = {"x_backend_record_type": "shard"}


def shard(name, lower, upper, state=40, **changes):
    return {
        "name": name if "/" in name else f".shards_AUTH_a/{name}",
        "timestamp": stamp(10),
        "lower": lower,
        "upper": upper,
        "object_count": 1,
        "bytes_used": 2,
        "meta_timestamp": stamp(10),
        "deleted": 0,
        "state": state,
        "state_timestamp": stamp(10),
        "epoch": None,
        "reported": 0,
        "tombstones": 0,
        **changes,
    }


@pytest.fixture()
def sharded(bench):
    bench("PUT", at=1)
    rows = [
        shard("AUTH_a/c", "", "", 60),
        shard("c-1", "", "g"),
        shard("c-2", "g", "p"),
        shard("c-3", "p", "t", 10),
    ]
    assert bench("PUT", at=2, body=json.dumps(rows).encode(), **SHARD).status == 202
    return bench


def ranges(bench, query="", **headers):
    response = bench("GET", query=f"format=json&{query}", **{**SHARD, **headers})
    assert response.status == 200, response.read_body()
    return [(r["name"].rpartition("/")[2], r["lower"], r["upper"]) for r in json.loads(response.read_body())]


def test_all_other_ranges_in_order(sharded):
    assert ranges(sharded) == [("c-1", "", "g"), ("c-2", "g", "p"), ("c-3", "p", "t")]
    assert ranges(sharded, "reverse=1") == [("c-3", "p", "t"), ("c-2", "g", "p"), ("c-1", "", "g")]


def test_the_full_row_has_every_field_in_order(sharded):
    response = sharded("GET", query="format=json&includes=a", **SHARD)
    assert response.headers["x-backend-record-type"] == "shard"
    assert response.headers["x-backend-record-shard-format"] == "full"
    expected = {**shard("c-1", "", "g"), "last_modified": "2023-11-14T22:13:30.000000"}
    assert json.loads(response.read_body()) == [expected]
    assert list(json.loads(response.read_body())[0]) == list(expected)


def test_namespaces_are_short(sharded):
    response = sharded(
        "GET", query="format=json&includes=h", x_backend_record_shard_format="namespace", **SHARD
    )
    assert response.read_body() == b'[{"name": ".shards_AUTH_a/c-2", "lower": "g", "upper": "p"}]'


def test_an_open_end_is_filled_with_the_containers_own_range(sharded):
    assert ranges(sharded, "states=updating") == [("c-1", "", "g"), ("c-2", "g", "p"), ("c", "p", "")]
    assert ranges(sharded, "states=listing&end_marker=r") == [
        ("c-1", "", "g"),
        ("c-2", "g", "p"),
        ("c", "p", "r"),
    ]
    assert ranges(sharded, "states=listing&marker=q") == [("c", "q", "")]
    assert ranges(sharded, "states=updating&includes=q") == []
    assert ranges(sharded, "states=found") == [("c-3", "p", "t")]


def test_auditing_shows_the_own_range_too(sharded):
    assert ("c", "", "") in ranges(sharded, "states=auditing")


def test_markers_select_what_overlaps(sharded):
    assert ranges(sharded, "marker=a&end_marker=g") == [("c-1", "", "g")]
    assert ranges(sharded, "marker=g&end_marker=h") == [("c-2", "g", "p")]
    assert ranges(sharded, "marker=q&end_marker=a") == []


def test_a_cache_gets_all_ranges_of_a_split_container_in_ascending_order(sharded):
    epoch = stamp(30)
    own = shard("AUTH_a/c", "", "", 70, epoch=epoch, state_timestamp=epoch, meta_timestamp=epoch)
    sharded("PUT", at=4, body=json.dumps([own]).encode(), **SHARD)
    sharded.server.brokers.close()
    (database,) = sharded.root.glob("sda/containers/*/*/*/*.db")
    database.rename(database.with_name(f"{database.stem}_{epoch}.db"))
    every = [("c-1", "", "g"), ("c-2", "g", "p"), ("c-3", "p", "t")]
    override = {"x_backend_override_shard_name_filter": "sharded"}
    for query in ("reverse=true", "reverse=true&marker=q&end_marker=h", "marker=h", "includes=h"):
        assert ranges(sharded, query, **override) == every
    assert ranges(sharded, "reverse=true") == every[::-1]


def test_deleted_ranges_are_shown_when_asked_for(sharded):
    gone = [shard("c-1", "", "g", timestamp=stamp(20), deleted=1)]
    sharded("PUT", at=3, body=json.dumps(gone).encode(), **SHARD)
    assert ("c-1", "", "g") not in ranges(sharded)
    assert ("c-1", "", "g") in ranges(sharded, x_backend_include_deleted="true")


@pytest.mark.parametrize(
    "query, headers, text",
    [
        ("states=nonsense", {}, "Bad state"),
        (
            "",
            {"x_backend_record_shard_format": "namespace", "x_backend_include_deleted": "true"},
            "No include_deleted for namespace GET",
        ),
        (
            "states=auditing",
            {"x_backend_record_shard_format": "namespace"},
            "No auditing state for namespace GET",
        ),
    ],
)
def test_questions_that_make_no_sense(sharded, query, headers, text):
    refused = sharded("GET", query=query, **headers, **SHARD)
    assert (refused.status, refused.read_body().decode()) == (400, text)


def test_other_formats(sharded):
    assert sharded("GET", query="includes=a", **SHARD).read_body() == b".shards_AUTH_a/c-1\n"
    assert b"<name>.shards_AUTH_a/c-1</name>" in sharded("GET", query="format=xml", **SHARD).read_body()


def test_auto_means_objects_until_the_container_is_split(sharded):
    assert sharded("GET", x_backend_record_type="auto").headers["x-backend-record-type"] == "object"


@pytest.mark.parametrize(
    "body", [b"xx", b"7", b"[1]", b'[{"name": "x"}]', b'[{"name": "a/b", "timestamp": "x"}]', b"[" * 9999]
)
def test_bad_ranges_are_refused(bench, body):
    bench("PUT", at=1)
    refused = bench("PUT", at=2, body=body, **SHARD)
    assert refused.status == 400
    assert refused.read_body().startswith(b"Invalid body: ")


def test_ranges_need_a_container_or_the_order_to_make_it(bench):
    body = json.dumps([shard("c-1", "", "g")]).encode()
    assert bench("PUT", at=1, body=body, **SHARD).status == 404
    auto = {"x_backend_auto_create": "true", **SHARD}
    refused = bench("PUT", at=1, body=body, **auto)
    assert refused.status == 400
    assert refused.read_body() == b"X-Backend-Storage-Policy-Index header is required"
    made = bench(
        "PUT",
        at=1,
        body=body,
        x_backend_storage_policy_index="1",
        x_container_sysmeta_sharding="True",
        **auto,
    )
    assert (made.status, made.headers["x-backend-storage-policy-index"]) == (201, "1")
    assert bench("HEAD").headers["x-container-sysmeta-sharding"] == "True"


# --- redirects ----------------------------------------------------------------------------------------


def test_a_row_of_a_shard_is_redirected(sharded):
    response = sharded.put_object("a", 20, x_backend_accept_redirect="true")
    assert response.status == 301
    assert response.headers["location"] == "/.shards_AUTH_a/c-1/a"
    assert response.headers["x-backend-location-is-quoted"] == "true"
    assert response.headers["x-backend-redirect-timestamp"] == stamp(10)
    assert json.loads(sharded.listing()) == []
    deleted = sharded("DELETE", f"{sharded.path}/a", at=20, x_backend_accept_redirect="true")
    assert deleted.status == 301


def test_a_caller_that_does_not_follow_keeps_its_row_here(sharded):
    assert sharded.put_object("a", 20).status == 201
    assert sharded.put_object("z", 20, x_backend_accept_redirect="true").status == 201
    assert len(json.loads(sharded.listing())) == 2


def test_quoted_locations_only_to_callers_that_know_them(sharded):
    assert sharded.put_object("a%20b", 20, x_backend_accept_redirect="true").status == 201
    response = sharded.put_object(
        "a%20b", 20, x_backend_accept_redirect="true", x_backend_accept_quoted_location="true"
    )
    assert response.headers["location"] == "/.shards_AUTH_a/c-1/a%20b"

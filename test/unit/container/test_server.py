"""The container server: status, headers and effects of every verb (account-container.md §12)."""

import json
import os

import pytest

from swift.cluster.outbound import Outbound
from swift.cluster.syncrealms import Realm, Realms
from swift.cluster.transport import TransportError
from swift.container.accounts import ContainerSettings
from swift.container.server import ContainerServer
from swift.runtime.backendapp import RingPartitions
from test.support.peer import make_rings
from test.unit.container.conftest import stamp

ALWAYS = (
    "x-backend-timestamp",
    "x-backend-put-timestamp",
    "x-backend-delete-timestamp",
    "x-backend-status-changed-at",
    "x-backend-storage-policy-index",
)


# --- the container itself -----------------------------------------------------------------------------


def test_a_container_is_created_once(bench):
    assert bench("PUT", at=1).status == 201
    again = bench("PUT", at=2)
    assert again.status == 202
    assert len(again.read_body()) == 76
    assert again.headers["x-backend-storage-policy-index"] == "0"


def test_head_tells_the_facts(bench):
    bench("PUT", at=1, x_container_meta_color="blue", x_container_read=".r:*", x_container_sysmeta_x="y")
    bench.put_object("o", 2)
    head = bench("HEAD")
    assert head.status == 204
    expected = {
        "x-container-object-count": "1",
        "x-container-bytes-used": "5",
        "x-timestamp": "1700000000.00000",
        "x-put-timestamp": stamp(1),
        "x-backend-timestamp": "1700000000.00000",
        "x-backend-put-timestamp": stamp(1),
        "x-backend-delete-timestamp": "0000000000.00000",
        "x-backend-status-changed-at": stamp(1),
        "x-backend-sharding-state": "unsharded",
        "x-backend-storage-policy-index": "0",
        "x-container-meta-color": "blue",
        "x-container-read": ".r:*",
        "x-container-sysmeta-x": "y",
        "last-modified": "Tue, 14 Nov 2023 22:13:21 GMT",
        "content-type": "text/plain; charset=utf-8",
    }
    assert expected.items() <= head.headers.items()


@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_a_missing_container_still_says_its_zero_times(bench, method):
    response = bench(method)
    assert response.status == 404
    assert [response.headers[name] for name in ALWAYS] == ["0000000000.00000"] * 4 + ["0"]


def test_deleting_an_empty_container_and_putting_it_again(bench):
    bench("PUT", at=1, x_container_meta_color="blue", x_container_sysmeta_shard_root="a/c")
    assert bench("DELETE", at=3).status == 204
    gone = bench("HEAD")
    assert gone.status == 404
    assert gone.headers["x-backend-delete-timestamp"] == stamp(3)
    assert bench("DELETE", at=4).status == 404
    assert bench("POST", at=5).status == 404
    assert bench("PUT", at=2).status == 409
    assert bench("PUT", at=6).status == 201
    alive = bench("HEAD").headers
    assert "x-container-meta-color" not in alive
    assert alive["x-container-sysmeta-shard-root"] == "a/c"
    assert alive["x-backend-status-changed-at"] == stamp(6)


def test_a_container_with_objects_is_not_deleted(bench):
    bench("PUT", at=1)
    bench.put_object("o", 2)
    assert bench("DELETE", at=3).status == 409
    bench("DELETE", f"{bench.path}/o", at=4)
    assert bench("DELETE", at=5).status == 204


def test_a_container_with_objects_of_another_policy_is_not_deleted(bench):
    bench("PUT", at=1)
    bench.put_object("o", 2, x_backend_storage_policy_index="1")
    assert bench("DELETE", at=3).status == 409


def test_a_deletion_older_than_the_put_is_refused_but_remembered(bench):
    bench("PUT", at=5)
    assert bench("DELETE", at=3).status == 409
    assert bench("HEAD").headers["x-backend-delete-timestamp"] == stamp(3)


def test_deleting_what_never_was(bench):
    assert bench("DELETE", at=1).status == 404


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "UPDATE"])
def test_writes_need_a_timestamp(bench, method):
    missing = bench(method)
    assert (missing.status, missing.read_body()) == (400, b"Missing X-Timestamp header")
    wrong = bench(method, x_timestamp="soon")
    assert (wrong.status, wrong.read_body()) == (400, b"Invalid X-Timestamp header")


def test_policies_are_chosen_at_creation_and_kept(bench):
    assert bench("PUT", at=1, x_backend_storage_policy_index="1").status == 201
    assert bench("PUT", at=2).headers["x-backend-storage-policy-index"] == "1"
    conflict = bench("PUT", at=3, x_backend_storage_policy_index="0")
    assert (conflict.status, conflict.headers["x-backend-storage-policy-index"]) == (409, "1")
    bench("DELETE", at=4)
    again = bench("PUT", at=5, x_backend_storage_policy_index="0")
    assert (again.status, again.headers["x-backend-storage-policy-index"]) == (201, "0")


def test_the_proxys_default_policy_is_used_for_new_containers(bench):
    created = bench("PUT", at=1, x_backend_storage_policy_default="1")
    assert created.headers["x-backend-storage-policy-index"] == "1"


@pytest.mark.parametrize("method", ["PUT", "GET"])
@pytest.mark.parametrize("index, shown", [("9", "9"), ("x", "'x'"), ("-1", "-1"), ("", "''")])
def test_an_unknown_policy_is_refused(bench, method, index, shown):
    refused = bench(method, at=1, x_backend_storage_policy_index=index)
    assert refused.status == 400
    assert refused.read_body().decode() == f"Invalid X-Backend-Storage-Policy-Index {shown}"


# --- metadata -----------------------------------------------------------------------------------------


def test_metadata_is_merged_by_time(bench):
    bench("PUT", at=1, x_container_meta_a="1", x_container_meta_b="1")
    bench("POST", at=3, x_container_meta_a="3", x_container_meta_b="")
    bench("POST", at=2, x_container_meta_a="2", x_container_meta_c="2")
    headers = bench("HEAD").headers
    found = {n: v for n, v in headers.items() if n.startswith("x-container-meta-")}
    assert found == {"x-container-meta-a": "3", "x-container-meta-c": "2"}


def test_post_moves_the_put_timestamp_unless_told_not_to(bench):
    bench("PUT", at=1)
    assert bench("POST", at=2, x_container_meta_a="1").status == 204
    assert bench("HEAD").headers["x-put-timestamp"] == stamp(2)
    bench("POST", at=3, x_container_meta_a="2", x_backend_no_timestamp_update="true")
    headers = bench("HEAD").headers
    assert (headers["x-put-timestamp"], headers["x-container-meta-a"]) == (stamp(2), "2")


def test_utf8_metadata_comes_back_as_the_same_bytes(bench):
    value = "naïve".encode().decode("latin-1")
    name = "x-container-meta-" + "café".encode().decode("latin-1")
    bench("PUT", at=1)
    bench("POST", at=2, **{name.replace("-", "_"): value})
    assert bench("HEAD").headers[name] == value


def test_metadata_that_is_not_text_is_refused(bench):
    bench("PUT", at=1)
    assert bench("POST", at=2, x_container_meta_a="\xff").read_body() == b"Metadata must be valid UTF-8"
    assert bench("POST", at=2, x_container_meta_a="a\x00b").status == 400


def test_the_stored_total_is_limited(bench):
    bench("PUT", at=1)
    for start in (0, 30, 60):
        names = {f"x_container_meta_k{n}": "v" for n in range(start, start + 30)}
        assert bench("POST", at=2, **names).status == 204
    refused = bench("POST", at=3, x_container_meta_one_more="v")
    assert (refused.status, refused.read_body()) == (400, b"Too many metadata items; max 90")
    assert "x-container-meta-one-more" not in bench("HEAD").headers
    assert bench("POST", at=3, x_container_meta_k0="", x_container_meta_one_more="v").status == 204
    big = {f"x_container_meta_k{n}": "v" * 200 for n in range(1, 25)}
    assert bench("POST", at=4, **big).read_body() == b"Total metadata too large; max 4096"


@pytest.mark.parametrize(
    "value, text",
    [
        ("//foo/bar", "Invalid X-Container-Sync-To format '//foo/bar'"),
        ("http://foo/bar", "Invalid host 'foo' in X-Container-Sync-To"),
        ("//nope/name1/a/c", "No realm key for 'nope'"),
        ("//realm1/nope/a/c", "No cluster endpoint for 'realm1' 'nope'"),
        ("http://127.0.0.1", "Path required in X-Container-Sync-To"),
        ("http://127.0.0.1/a?b", "Params, queries, and fragments not allowed in X-Container-Sync-To"),
        ("http://127.0.0.1/v1/a/c", "Invalid host and port in X-Container-Sync-To"),
        ("http://10.0.0.5:8080/v1/a/c", "Invalid host and port in X-Container-Sync-To"),
        ("http://far/sda/77/a/c", "Invalid path in X-Container-Sync-To, must be /v1/account/container"),
    ],
)
def test_sync_targets_are_checked(bench, value, text):
    settings = ContainerSettings(allowed_sync_hosts=("127.0.0.1", "10.0.0.5", "far"))
    outbound = Outbound(lambda: frozenset({("10.0.0.5", 6200)}))
    realms = Realms({"REALM1": Realm("key", clusters={"NAME1": "http://127.0.0.1:16080/v1/"})})
    bench.server = ContainerServer(bench.context, settings, realms=realms, outbound=outbound)
    bench("PUT", at=1)
    for method in ("PUT", "POST"):
        refused = bench(method, at=2, x_container_sync_to=value)
        assert (refused.status, refused.read_body().decode()) == (400, text)


@pytest.mark.parametrize("name", ["x_container_sync_key", "x_container_sync_auth"])
@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_container_sync_writes_no_rows(bench, method, name):
    bench("PUT", at=1)
    bench.put_object("o", 2)
    row = {"x_size": "0", "x_content_type": "x", "x_etag": "e", name: "k"}
    assert bench(method, f"{bench.path}/o", at=3, **row).status == 403
    assert json.loads(bench("GET", query="format=json").read_body())[0]["bytes"] == 5


def test_a_container_is_kept_in_its_own_partition_only(bench, tmp_path):
    make_rings(tmp_path, [("127.0.0.1", 6200, "sda")], replicas=1, names=["container"])
    bench.context.partitions = RingPartitions(str(tmp_path))
    own = int(bench.context.hasher.hexdigest("AUTH_a", "c")[0], 16)
    for number in range(16):
        bench.path = f"/sda/{number}/AUTH_a/c"
        assert bench("PUT", at=1).status == (201 if number == own else 400)


def test_a_changed_sync_target_starts_anew(bench):
    bench("PUT", at=1, x_container_sync_to="//realm1/name1/a/c")
    target = bench.server.target(_request(bench), 4, 5)
    broker = bench.server._broker(target)
    broker.write(lambda c: c.execute("UPDATE container_info SET x_container_sync_point1 = 7"))
    bench("POST", at=2, x_container_sync_to="//realm1/name1/a/c")
    assert broker.info().x_container_sync_point1 == 7
    bench("POST", at=3, x_container_sync_to="//realm1/name1/a/d")
    assert broker.info().x_container_sync_point1 == -1


def _request(bench):
    from swift.http.request import Request

    return Request("GET", bench.path)


# --- object rows --------------------------------------------------------------------------------------


def test_object_rows_come_and_go(bench):
    bench("PUT", at=1)
    assert bench.put_object("o%C3%A9", 2).status == 201
    assert bench.listing() == (
        b'[{"bytes": 5, "hash": "e", "name": "o\\u00e9", "content_type": "text/plain", '
        b'"last_modified": "2023-11-14T22:13:22.000000"}]'
    )
    assert bench("DELETE", f"{bench.path}/o%C3%A9", at=3).status == 204
    assert bench.listing() == b"[]"
    assert bench.put_object("o%C3%A9", 2).status == 201
    assert bench.listing() == b"[]"


def test_names_of_rows_are_what_follows_the_container(bench):
    bench("PUT", at=1)
    paths = ("plain", "with/slash", "with/slash/", "a%20space", "%C3%A9", "%2F", "plain")
    for n, path in enumerate(paths, 2):
        assert bench.put_object(path, n).status == 201
    found = [entry["name"] for entry in json.loads(bench.listing())]
    assert found == ["/", "a space", "plain", "with/slash", "with/slash/", "\u00e9"]
    assert bench("DELETE", f"{bench.path}/with/slash", at=20).status == 204
    assert len(json.loads(bench.listing())) == 5
    # The slash after a container begins no name.
    assert bench("PUT", f"{bench.path}/", at=21).status == 202
    assert bench("PUT", f"{bench.path}//", at=21, x_size="0", x_etag="e", x_content_type="t").status == 201


def test_rows_need_a_container(bench):
    assert bench.put_object("o", 1).status == 404
    assert bench("DELETE", f"{bench.path}/o", at=1).status == 404
    assert bench.put_object("o", 1, x_backend_auto_create="true").status == 201


def test_internal_accounts_make_their_containers(bench):
    bench.path = "/sda/1/.expiring_objects/1700000000"
    assert bench.put_object("o", 1).status == 201
    bench.path = "/sda/1/.expiring_objects/1700000001"
    assert bench.put_object("o", 1, x_backend_auto_create="false").status == 404
    assert bench("DELETE", f"{bench.path}/o", at=1).status == 204
    bench.path = "/sda/1/.shards_a/c"
    assert bench.put_object("o", 1).status == 404
    assert bench.put_object("o", 1, x_backend_auto_create="true").status == 201


def test_separate_times_of_type_and_metadata(bench):
    bench("PUT", at=1)
    bench.put_object("o", 2)
    bench.put_object(
        "o", 2, x_content_type="image/png", x_content_type_timestamp=stamp(4), x_meta_timestamp=stamp(5)
    )
    row = json.loads(bench.listing())[0]
    assert (row["content_type"], row["last_modified"]) == ("image/png", "2023-11-14T22:13:25.000000")


def test_policies_have_their_own_rows(bench):
    bench("PUT", at=1)
    bench.put_object("o", 2, x_backend_storage_policy_index="1")
    assert bench.listing() == b"[]"
    response = bench("GET", query="format=json", x_backend_storage_policy_index="1")
    assert len(json.loads(response.read_body())) == 1
    assert response.headers["x-backend-record-storage-policy-index"] == "1"
    assert response.headers["x-backend-storage-policy-index"] == "0"


@pytest.mark.parametrize(
    "headers",
    [
        {"x_size": "abc"},
        {"x_size": str(1 << 70)},
        {"x_size": ""},
        {"x_meta_timestamp": "x"},
        {"x_content_type_timestamp": ""},
        {"x_backend_storage_policy_index": "7"},
    ],
    ids=str,
)
def test_bad_row_headers_are_bad_requests(bench, headers):
    bench("PUT", at=1)
    assert bench.put_object("o", 2, **headers).status == 400
    assert bench.listing() == b"[]"


def test_missing_row_headers_are_bad_requests(bench):
    bench("PUT", at=1)
    for headers in ({}, {"x_size": "1"}, {"x_size": "1", "x_etag": "e"}):
        assert bench("PUT", f"{bench.path}/o", at=2, **headers).status == 400


def test_a_content_type_that_is_not_text_is_kept_readable(bench):
    bench("PUT", at=1)
    assert bench.put_object("o", 2, x_content_type="text/\xff").status == 201
    assert json.loads(bench.listing())[0]["content_type"] == "text/\ufffd"


def test_update_merges_many_rows(bench):
    bench("PUT", at=1)
    rows = [
        {"name": f"o{n}", "created_at": stamp(n), "size": n, "content_type": "t", "etag": "e", "deleted": 0}
        for n in range(3)
    ]
    assert bench("UPDATE", at=2, body=json.dumps(rows).encode()).status == 202
    assert [row["name"] for row in json.loads(bench.listing())] == ["o0", "o1", "o2"]


@pytest.mark.parametrize(
    "body", [b"xx", b"", b"7", b'"text"', b"[1]", b"[{}]", b'[{"name": "o", "created_at": "x"}]', b"[" * 9999]
)
def test_update_with_a_bad_body_changes_nothing(bench, body):
    bench("PUT", at=1)
    assert bench("UPDATE", at=2, body=body).status == 400
    assert bench.listing() == b"[]"


def test_update_needs_a_container(bench):
    assert bench("UPDATE", at=2, body=b"[]").status == 404


# --- paths, methods, devices ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path, status",
    [
        ("/sda/1", 400),
        ("/sda/1/a", 400),
        ("/sda/1//c", 400),
        ("/../1/a/c", 400),
        ("/sda/../a/c", 400),
        ("/nodevice/1/a/c", 507),
        ("/sda/1/%ff/c", 412),
        ("/sda/1/a/c%00x", 400),
        ("/sda/1/a%00/c", 400),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
def test_bad_paths(bench, method, path, status):
    assert bench(method, path, at=1).status == status


def test_reserved_objects_need_reserved_containers(bench):
    row = {"x_size": "1", "x_etag": "e", "x_content_type": "t"}
    bench("PUT", at=1)
    bench("PUT", "/sda/1/AUTH_a/%00r", at=1)
    assert bench("PUT", f"{bench.path}/%00o", at=1, **row).status == 400
    assert bench("PUT", "/sda/1/AUTH_a/%00r/o", at=1, **row).status == 400
    assert bench("PUT", "/sda/1/AUTH_a/%00r/%00o", at=1, **row).status == 201
    assert bench("GET", "/sda/1/AUTH_a/%00r").status == 204
    shown = bench("GET", "/sda/1/AUTH_a/%00r", x_backend_allow_reserved_names="true")
    assert shown.read_body() == b"\x00o\n"


def test_options_and_unknown_methods(bench):
    options = bench("OPTIONS")
    assert options.status == 200
    assert options.headers["allow"] == "BATCH, DELETE, GET, HEAD, OPTIONS, POST, PUT, REPLICATE, UPDATE"
    assert options.headers["server"].startswith("container-server/")
    assert bench("BREW").status == 405


def test_posts_to_objects_are_refused(bench):
    assert bench("POST", f"{bench.path}/o", at=1).status == 400


# --- listings -----------------------------------------------------------------------------------------


def test_formats(bench):
    bench("PUT", at=1)
    bench.put_object("a/b", 2)
    plain = bench("GET")
    assert (plain.status, plain.read_body()) == (200, b"a/b\n")
    xml = bench("GET", accept="application/xml", query="delimiter=/").read_body()
    assert xml == (
        b'<?xml version="1.0" encoding="UTF-8"?>\n'
        b'<container name="c"><subdir name="a/"><name>a/</name></subdir></container>'
    )
    assert bench("GET", accept="image/png").status == 406
    assert bench("GET", accept="rubbish").status == 400


def test_empty_listings(bench):
    bench("PUT", at=1)
    assert (bench("GET").status, bench("GET").read_body()) == (204, b"")
    assert bench.listing() == b"[]"
    xml = bench("GET", query="format=xml").read_body()
    assert xml == b'<?xml version="1.0" encoding="UTF-8"?>\n<container name="c" />'


def test_limits(bench):
    bench("PUT", at=1)
    for n in range(3):
        bench.put_object(f"o{n}", 2)
    assert bench("GET", query="limit=2").read_body() == b"o0\no1\n"
    assert bench("GET", query="limit=0").status == 204
    assert bench("GET", query="limit=abc").read_body() == b"o0\no1\no2\n"
    too_many = bench("GET", query="limit=10001")
    assert (too_many.status, too_many.read_body()) == (412, b"Maximum limit is 10000")
    assert bench("GET", query="limit=" + "9" * 40).status == 412


@pytest.mark.parametrize("name", ["prefix", "delimiter", "marker", "end_marker", "path", "reverse", "states"])
def test_parameters_must_be_utf8(bench, name):
    bench("PUT", at=1)
    refused = bench("GET", query=f"{name}=%ff")
    assert refused.status == 400
    assert refused.read_body().decode() == f'"{name}" parameter not valid UTF-8'


# --- account updates ----------------------------------------------------------------------------------

ACCOUNTS = {
    "x_account_host": "10.0.0.1:6202,10.0.0.2:6203",
    "x_account_device": "sdb,sdc",
    "x_account_partition": "77",
}


def test_account_servers_hear_of_puts_and_deletes(bench):
    bench("PUT", at=1, x_trans_id="tx1", **ACCOUNTS)
    ip, port, method, path, headers, timeouts = bench.accounts.requests[0]
    assert (ip, port, method, path) == ("10.0.0.1", 6202, "PUT", "/sdb/77/AUTH_a/c")
    assert (timeouts.conn_timeout, timeouts.node_timeout) == (0.5, 3.0)
    expected = {
        "x-put-timestamp": stamp(1),
        "x-delete-timestamp": "0",
        "x-object-count": "0",
        "x-bytes-used": "0",
        "x-backend-storage-policy-index": "0",
        "x-trans-id": "tx1",
    }
    assert expected.items() <= headers.items()
    assert headers["user-agent"] == f"container-server {os.getpid()}"
    assert bench.accounts.requests[1][:4] == ("10.0.0.2", 6203, "PUT", "/sdc/77/AUTH_a/c")
    bench("DELETE", at=2, x_account_override_deleted="yes", **ACCOUNTS)
    headers = bench.accounts.requests[2][4]
    assert headers["x-delete-timestamp"] == stamp(2)
    assert headers["x-account-override-deleted"] == "yes"


def test_failing_account_servers_do_not_fail_the_request(bench):
    bench.accounts.answers = {6202: TransportError("refused"), 6203: 503}
    assert bench("PUT", at=1, **ACCOUNTS).status == 201
    bench.accounts.answers = {6202: 404}
    assert bench("PUT", at=2, **ACCOUNTS).status == 202


def test_an_account_that_no_server_knows_is_404(bench):
    bench.accounts.answers = {6202: 404, 6203: 404}
    assert bench("PUT", at=1, **ACCOUNTS).status == 404


def test_lists_that_do_not_match_are_refused_before_anything_is_done(bench):
    bad = {**ACCOUNTS, "x_account_device": "sdb"}
    assert bench("PUT", at=1, **bad).status == 400
    assert bench("HEAD").status == 404
    garbled = {**ACCOUNTS, "x_account_host": "nowhere,10.0.0.2:x"}
    assert bench("PUT", at=1, **garbled).status == 201


# --- trouble below ------------------------------------------------------------------------------------


def test_a_broken_database_is_quarantined(bench):
    bench("PUT", at=1)
    found = next(bench.root.rglob("*.db"))
    bench.server.brokers.close()
    found.write_bytes(b"rubbish" * 1000)
    assert bench("HEAD").status == 503
    assert not found.parent.exists()
    assert (bench.root / "sda" / "quarantined" / "containers" / found.stem / found.name).exists()
    assert bench("HEAD").status == 404


@pytest.mark.parametrize("method", ["HEAD", "GET", "POST", "DELETE"])
def test_a_database_that_is_emptied_while_it_is_open_is_given_up(bench, capfd, method):
    bench("PUT", at=1)
    bench("HEAD")
    found = next(bench.root.rglob("*.db"))
    found.write_bytes(b"")
    statuses = [bench(method, at=2).status for _ in range(2)]
    assert set(statuses) <= {503, 404} and statuses[-1] == 404
    assert "Traceback" not in capfd.readouterr().err
    assert bench("PUT", at=3).status == 201


def test_a_device_that_went_read_only_is_507(bench, monkeypatch):
    import errno

    bench("PUT", at=1)

    def refuse(*_args):
        raise OSError(errno.EROFS, "read-only")

    bench.server.disk.write = refuse
    assert bench.put_object("o", 2).status == 507


def test_what_cannot_be_synced_is_not_acknowledged(bench):
    import errno

    bench("PUT", at=1)

    def fail(_fd):
        raise OSError(errno.EIO, "no flush")

    bench.server.disk.fdatasync = fail
    assert bench.put_object("o", 2).status == 507
    del bench.server.disk.fdatasync
    assert bench.listing() == b"[]"


def test_a_full_device_refuses_writes_before_they_start(bench):
    from swift.base.errors import NoSpace

    class Full:
        enabled = True

        def check(self, path, size):
            raise NoSpace(path)

    bench("PUT", at=1)
    bench.server.space = Full()
    assert bench("PUT", at=2).status == 507
    assert bench("POST", at=2).status == 507
    assert bench("HEAD").status == 204
    assert bench("DELETE", at=3).status == 204

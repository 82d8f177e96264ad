"""Hidden segments of one large object: uploaded, read and deleted through its path."""

import json
from urllib.parse import quote

import pytest

from test.support.cluster import LiveCluster

OPTIONS = """
[filter:slo]
use = egg:swift#slo
hidden_segments = true
unfinished_upload_seconds = 1000

[filter:gatekeeper]
use = egg:swift#gatekeeper
allow_reserved_names_header = true
"""
PARTS = (b"first part", b"2", b"and the end")
WHOLE = b"".join(PARTS)


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    live = LiveCluster(
        tmp_path_factory.mktemp("hidden") / "data", options=OPTIONS, rest_s=LiveCluster.AT_REST_S
    )
    live.start()
    try:
        live.request("PUT", "hs")
        yield live
        assert "Traceback" not in live.log_text()
    finally:
        live.stop()


def upload(live, path, upload_id, parts=PARTS, **options):
    for number, part in enumerate(parts, 1):
        response = live.request(
            "PUT", f"{path}?upload-id={upload_id}&upload-part={number}", body=part, **options
        )
        assert response.status == 201, response
    return finish(live, path, upload_id, [{"part": n} for n in range(1, len(parts) + 1)], **options)


def finish(live, path, upload_id, entries, headers=None, **options):
    query = f"?multipart-manifest=put&upload-id={upload_id}"
    return live.request("PUT", path + query, headers, json.dumps(entries).encode(), **options)


def parts_of(live, container, name=""):
    """Return the stored segments with their expiry."""
    prefix = quote(f"\0{name}") if name else ""
    home = f"/v1/AUTH_test/%00segments%00{container}"
    token = {"X-Auth-Token": live.token(), "X-Allow-Reserved-Names": "true"}
    response = live.raw("GET", f"{home}?format=json&prefix={prefix}", token)
    found = {}
    for row in response.json() if response.status == 200 else ():
        head = live.raw("HEAD", f"{home}/{quote(row['name'])}", token)
        found[row["name"].rpartition("\0")[2]] = head.headers.get("x-delete-at")
    return found


def test_an_object_with_hidden_segments_reads_as_its_bytes(live):
    response = upload(live, "hs/read", "one")
    assert response.status == 201, response
    assert live.request("GET", "hs/read").body == WHOLE
    assert live.request("GET", "hs/read", {"Range": "bytes=8-12"}).body == WHOLE[8:13]
    assert live.request("GET", "hs/read?part-number=2").body == PARTS[1]
    assert live.request("HEAD", "hs/read").headers["content-length"] == str(len(WHOLE))
    assert [row["name"] for row in live.request("GET", "hs?format=json&prefix=read").json()] == ["read"]
    names = [row["name"] for row in live.request("GET", "?format=json").json()]
    assert not any("segments" in name for name in names)
    assert parts_of(live, "hs", "read") == {"00001": None, "00002": None, "00003": None}


def test_other_readers_tempurls_and_copies_read_it(live):
    upload(live, "hs/shared", "one")
    live.request("POST", "hs", {"X-Container-Read": "test2:tester2"})
    live.request("PUT", "hs/link", {"X-Symlink-Target": "hs/shared"})
    live.request("COPY", "hs/shared", {"Destination": "hs/copy"})
    for name in ("shared", "link", "copy"):
        assert live.request("GET", f"hs/{name}", user="test2:tester2").body == WHOLE
    live.request("POST", "hs", {"X-Container-Read": ""})
    assert live.request("GET", "hs/shared", user="test2:tester2").status == 403
    live.request("DELETE", "hs/shared")
    assert live.request("GET", "hs/copy").body == WHOLE


@pytest.mark.parametrize("query", ("", "?multipart-manifest=delete", "?multipart-manifest=delete&async=on"))
def test_deleting_an_object_deletes_its_segments(live, query):
    upload(live, "hs/deleted", "one")
    response = live.request("DELETE", f"hs/deleted{query}")
    assert response.status == (200 if query else 204)
    assert not query or b"Number Deleted: 4" in response.body
    assert parts_of(live, "hs", "deleted") == {}


def test_overwriting_an_object_deletes_its_segments(live):
    upload(live, "hs/over", "one")
    upload(live, "hs/over", "two", (b"new", b"parts"))
    assert live.request("GET", "hs/over").body == b"newparts"
    assert parts_of(live, "hs", "over") == {"00001": None, "00002": None}
    live.request("PUT", "hs/over", body=b"plain")
    assert live.request("GET", "hs/over").body == b"plain"
    assert parts_of(live, "hs", "over") == {}


def test_a_refused_overwrite_or_deletion_keeps_the_object(live):
    upload(live, "hs/whole", "one")
    assert live.request("PUT", "hs/whole", {"If-None-Match": "*"}, b"x").status == 412
    assert live.request("PUT", "hs/whole", {"ETag": "bad"}, b"x").status == 422
    assert live.request("DELETE", "hs/whole", user="test2:tester2").status == 403
    assert finish(live, "hs/whole", "none", [{"part": 1}]).status == 400
    assert finish(live, "hs/whole", "one", [{"part": 1}]).status == 409
    assert live.request("PUT", "hs/whole?upload-id=one&upload-part=1", body=b"x").status == 409
    assert live.request("DELETE", "hs/whole?upload-id=one").status == 409
    assert live.request("GET", "hs/whole").body == WHOLE


def test_an_incomplete_upload_expires(live):
    for number in (1, 2):
        live.request("PUT", f"hs/never?upload-id=a&upload-part={number}", body=b"x")
    assert live.request("GET", "hs/never").status == 404
    assert all(parts_of(live, "hs", "never").values())
    assert finish(live, "hs/never", "a", [{"part": 1}, {"part": 7}]).status == 400
    assert finish(live, "hs/never", "a", [{"part": 1, "etag": "0" * 32}]).status == 400
    assert all(parts_of(live, "hs", "never").values())
    assert live.request("DELETE", "hs/never?upload-id=a").status == 204
    assert parts_of(live, "hs", "never") == {}


def test_an_objects_segments_expire_with_it(live):
    upload(live, "hs/ends", "one")
    for headers, ends in (
        ({"X-Delete-At": "9999999999"}, "9999999999"),
        ({"X-Object-Meta-A": "b"}, None),
    ):
        assert live.request("POST", "hs/ends", headers).status == 202
        assert set(parts_of(live, "hs", "ends").values()) == {ends}
    live.request("PUT", "hs/ends2?upload-id=a&upload-part=1", body=b"x")
    assert finish(live, "hs/ends2", "a", [{"part": 1}], {"X-Delete-At": "9999999999"}).status == 201
    assert set(parts_of(live, "hs", "ends2").values()) == {"9999999999"}


def test_info_announces_hidden_segments(live):
    assert live.raw("GET", "/info").json()["slo"]["hidden_segments"] is True


def test_hidden_segments_are_not_accessible_directly(live):
    upload(live, "hs/mine", "one")
    for path in ("hs/mine?upload-id=b&upload-part=1", "hs/mine?upload-id=one"):
        for method in ("PUT", "DELETE"):
            assert live.request(method, path, body=b"x", user="test2:tester2").status in (400, 403)
    stolen = [{"path": "/\0segments\0hs/\0mine\0one\x0000001"}]
    for name in ("thief", "mine"):
        response = live.request("PUT", f"hs/{name}?multipart-manifest=put", body=json.dumps(stolen).encode())
        assert response.status == 400
    response = live.request("COPY", "hs/mine?multipart-manifest=get", {"Destination": "hs/thief"})
    assert response.status == 400
    assert live.request("GET", "hs/mine").body == WHOLE


@pytest.mark.parametrize(
    "query, status",
    (
        ("upload-id=&upload-part=1", 400),
        ("upload-id=a/b&upload-part=1", 400),
        ("upload-id=%00&upload-part=1", 400),
        (f"upload-id={'x' * 65}&upload-part=1", 400),
        ("upload-id=a&upload-part=0", 400),
        ("upload-id=a&upload-part=10001", 400),
        ("upload-id=a&upload-part=x", 400),
        ("upload-id=a", 400),
        ("upload-id=a&multipart-manifest=put", 400),
    ),
)
def test_bad_requests_are_refused(live, query, status):
    assert live.request("PUT", f"hs/bad?{query}", body=b"[1]").status == status


@pytest.mark.parametrize("mode", ("X-Versions-Location", "X-History-Location", "X-Versions-Enabled"))
def test_versioned_containers_accept_no_hidden_segments(live, mode):
    live.request("PUT", f"v{mode}", {mode: "true" if "Enabled" in mode else "hs"})
    response = live.request("PUT", f"v{mode}/o?upload-id=a&upload-part=1", body=b"x")
    assert response.status == 409 and b"versions" in response.body


def test_hidden_segments_count_towards_the_quota(live):
    live.request("PUT", "hq", {"X-Container-Meta-Quota-Bytes": "10"})
    assert live.request("PUT", "hq/o?upload-id=a&upload-part=1", body=b"12345678").status == 201
    hidden = {"X-Auth-Token": live.token(), "X-Allow-Reserved-Names": "true"}
    live.raw("HEAD", "/v1/AUTH_test/%00segments%00hq", hidden)
    assert live.request("PUT", "hq/o?upload-id=a&upload-part=2", body=b"12345678").status == 413


def test_deleting_a_container_deletes_its_segments_container(live):
    live.request("PUT", "hd")
    upload(live, "hd/o", "one")
    assert live.request("DELETE", "hd").status == 409
    live.request("DELETE", "hd/o")
    assert live.request("DELETE", "hd").status == 204
    hidden = {"X-Auth-Token": live.token(), "X-Allow-Reserved-Names": "true"}
    assert live.raw("HEAD", "/v1/AUTH_test/%00segments%00hd", hidden).status == 404

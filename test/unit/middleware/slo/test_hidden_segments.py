"""Parts that belong to one object come through it, are read through it and go after it (decision 0014)."""

import json

import pytest

from swift.http.body import RequestBody

PARTS = (b"first part", b"2", b"and the end")
WHOLE = b"".join(PARTS)
FINISH = "/a/c/o?multipart-manifest=put&upload-id="


class Slowly(RequestBody):
    """A body that arrives in small pieces."""

    received = 0

    def __init__(self, data):
        self.length, self.data = len(data), data

    def read(self, size=-1):
        piece, self.data = self.data[:10], self.data[10:]
        return piece


@pytest.fixture
def front(make_slo):
    return make_slo(hidden_segments="true", unfinished_upload_seconds="1000")


def put_parts(front, upload_id, parts=PARTS):
    for number, part in enumerate(parts, 1):
        answer = front("PUT", f"/a/c/o?upload-id={upload_id}&upload-part={number}", {}, part)
        assert answer.status == 201, answer


def finish(front, upload_id, count=3, **headers):
    entries = [{"part": n} for n in range(1, count + 1)]
    return front("PUT", FINISH + upload_id, headers, json.dumps(entries).encode())


def stored(front, path="/a/%00segments%00c"):
    """The hidden parts that there are: upload, number and whether they end by themselves."""
    allowed = {"x-backend-allow-reserved-names": "true"}
    answer = front.sim("GET", f"{path}?format=json", allowed)
    names = [row["name"] for row in json.loads(answer.body)] if answer.status == 200 else []
    found = []
    for name in names:
        head = front.sim("HEAD", f"{path}/{name.replace(chr(0), '%00')}", allowed)
        found.append((name.split("\0")[2], int(name.split("\0")[3]), "x-delete-at" in head.headers))
    return found


def test_parts_end_by_themselves_until_they_are_used(front):
    put_parts(front, "u")
    assert stored(front) == [("u", n, True) for n in (1, 2, 3)]
    assert front("GET", "/a/c/o").status == 404
    assert finish(front, "u").status == 201
    assert stored(front) == [("u", n, False) for n in (1, 2, 3)]
    assert front("GET", "/a/c/o").body == WHOLE
    assert front("GET", "/a/c/o", {"range": "bytes=8-12"}).body == WHOLE[8:13]


def test_a_manifest_may_arrive_slowly(front):
    put_parts(front, "u")
    body = Slowly(json.dumps([{"part": n} for n in (1, 2, 3)]).encode())
    assert front("PUT", FINISH + "u", {}, body).status == 201
    assert front("GET", "/a/c/o").body == WHOLE


def test_what_an_upload_replaces_goes_and_so_does_what_is_deleted(front):
    put_parts(front, "one")
    finish(front, "one")
    put_parts(front, "two", (b"new",))
    assert finish(front, "two", 1).status == 201
    assert stored(front) == [("two", 1, False)]
    assert front("PUT", "/a/c/o", {}, b"plain").status == 201
    assert stored(front) == []
    put_parts(front, "three", (b"x",))
    finish(front, "three", 1)
    assert front("DELETE", "/a/c/o").status == 204
    assert stored(front) == []


def test_a_deletion_with_its_parts_counts_them(front):
    put_parts(front, "u")
    finish(front, "u")
    answer = front("DELETE", "/a/c/o?multipart-manifest=delete", {"accept": "application/json"})
    assert json.loads(answer.body)["Number Deleted"] == 4
    assert (stored(front), front("GET", "/a/c/o").status) == ([], 404)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "POST"])
def test_a_refused_change_leaves_the_object_whole(front, method):
    put_parts(front, "u")
    finish(front, "u")
    front.denied.add((method, "/a/c/o"))
    assert front(method, "/a/c/o", {}, b"").status == 403
    assert front("GET", "/a/c/o").body == WHOLE
    assert stored(front) == [("u", n, False) for n in (1, 2, 3)]


def test_an_upload_is_finished_once_and_given_up_before_that(front):
    put_parts(front, "u")
    assert finish(front, "u").status == 201
    for method, query in (("PUT", "&upload-part=1"), ("DELETE", "")):
        assert front(method, f"/a/c/o?upload-id=u{query}", {}, b"").status == 409
    put_parts(front, "v")
    assert front("DELETE", "/a/c/o?upload-id=v").status == 204
    assert [part[0] for part in stored(front)] == ["u"] * 3
    assert front("GET", "/a/c/o").body == WHOLE


NO_MANIFESTS = [
    b"",
    b"{}",
    b'""',
    b"[1]",
    b"[[]]",
    b'["part"]',
    b"[{}]",
    b'[{"part": "1"}]',
    b'[{"part": 1.0}]',
    b'[{"part": true}]',
    b'[{"part": 0}]',
    b'[{"part": 10001}]',
    b'[{"part": null, "path": "/c/x"}]',
    b'[{"part": 1, "odd": 1}]',
    b'[{"part": 1, "etag": "0"}]',
    b'[{"part": 1, "size_bytes": 3}]',
    b'[{"part": 4}]',
    b"[" * 100_000,
    b"\xff",
    b'[{"part": 1}',
]


def test_what_is_no_manifest_of_its_parts_is_refused_and_they_end(front):
    put_parts(front, "u")
    for text in NO_MANIFESTS:
        assert front("PUT", FINISH + "u", {}, text).status == 400, text
    assert stored(front) == [("u", n, True) for n in (1, 2, 3)]
    assert front("GET", "/a/c/o").status == 404


def test_a_manifest_that_is_too_large_is_told_as_such(make_slo):
    front = make_slo(hidden_segments="true", max_manifest_size="100")
    put_parts(front, "u", (b"x",))
    assert front("PUT", FINISH + "u", {}, b" " * 200 + b'[{"part": 1}]').status == 413


def test_only_what_the_client_sends_is_measured_not_the_names_that_its_numbers_stand_for(make_slo):
    front = make_slo(hidden_segments="true", max_manifest_size="100")
    put_parts(front, "u")
    assert finish(front, "u").status == 201
    assert front("GET", "/a/c/o").body == WHOLE
    assert len(front("GET", "/a/c/o?multipart-manifest=get").body) > 100


BAD = ("upload-part=0", "upload-part=10001", "upload-part=x", f"upload-part={'9' * 5000}", "upload-part=", "")


def test_what_is_no_part_of_an_upload_stores_nothing(front):
    for query in BAD:
        assert front("PUT", f"/a/c/o?upload-id=u&{query}", {}, b"x").status == 400, query
    for upload_id in ("", "a/b", "%00", "x" * 65, "%C3%A9", "a%0A"):
        assert front("PUT", f"/a/c/o?upload-id={upload_id}&upload-part=1", {}, b"x").status == 400, upload_id
    assert front("PUT", "/a/none/o?upload-id=u&upload-part=1", {}, b"x").status == 404
    assert stored(front) == []


def test_where_nodes_do_not_answer_nothing_is_decided(front):
    put_parts(front, "u")
    finish(front, "u")
    with front.sim.responding("object", 503, *range(1, 7)):
        for method in ("PUT", "DELETE", "POST"):
            assert front(method, "/a/c/o", {}, b"").status == 503
    assert front("GET", "/a/c/o").body == WHOLE


def test_a_container_takes_that_of_its_parts_along(front):
    put_parts(front, "u", (b"x",))
    finish(front, "u", 1)
    front("DELETE", "/a/c/o")
    assert front("DELETE", "/a/c").status == 204
    allowed = {"x-backend-allow-reserved-names": "true"}
    assert front.sim("HEAD", "/a/%00segments%00c", allowed).status == 404


def test_an_upload_that_meets_a_newer_object_leaves_that_one_its_parts(front):
    put_parts(front, "one")
    assert finish(front, "one").status == 201
    put_parts(front, "late", (b"new",))
    assert finish(front, "late", 1, **{"x-timestamp": "1700000000.00000"}).status == 202
    assert front("GET", "/a/c/o").body == WHOLE
    assert stored(front) == [("late", 1, True), *(("one", n, False) for n in (1, 2, 3))]

"""Rows of several requests in one request to the container server (doc/formats/row-batches.md)."""

import json

import pytest

from swift.http.request import Request
from swift.wire.rowbatch import BatchedRow, decode_answers, encode_rows
from test.unit.container.conftest import Bench, stamp


def row(method, name, at, **headers):
    put = {"x-size": "5", "x-etag": "e", "x-content-type": "text/plain"} if method == "PUT" else {}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return BatchedRow(method, name, {"x-timestamp": stamp(at), **put, **named})


def batch(bench, *rows, path=None):
    answer = bench("BATCH", path or bench.path, body=encode_rows(rows))
    assert answer.status == 200, answer
    return decode_answers(answer.read_body(), len(rows))


def test_a_batch_stores_rows_and_answers_each(bench):
    bench("PUT", at=1)
    answers = batch(
        bench,
        row("PUT", "one", 2),
        row("PUT", "%C3%BC", 2, x_content_type="text/\xc3\xbc"),
        row("PUT", "with/slash", 2),
        row("DELETE", "one", 3),
    )
    assert [answer.status for answer in answers] == [201, 201, 201, 204]
    listed = [(each["name"], each["content_type"]) for each in json.loads(bench.listing())]
    assert listed == [("with/slash", "text/plain"), ("ü", "text/ü")]


def test_each_row_of_a_container_that_is_not_there_is_refused_unless_it_may_create_it(bench):
    created = row("PUT", "p", 2, x_backend_auto_create="true")
    statuses = [answer.status for answer in batch(bench, row("PUT", "o", 2), created, row("DELETE", "p", 1))]
    assert statuses == [404, 201, 204]
    assert [each["name"] for each in json.loads(bench.listing())] == ["p"]


def test_a_bad_row_of_a_batch_hurts_no_other(bench):
    bench("PUT", at=1)
    answers = batch(
        bench,
        row("PUT", "o", 2),
        row("GET", "o", 2),
        row("PUT", "%00", 2),
        row("PUT", "p", 2, x_size="many"),
        row("PUT", "p", 2, x_timestamp="never"),
        row("PUT", "p", 2, x_container_sync_key="k"),
        row("DELETE", "p", 2, x_backend_storage_policy_index="99"),
    )
    assert [answer.status for answer in answers] == [201, 405, 400, 400, 400, 403, 400]
    assert [each["name"] for each in json.loads(bench.listing())] == ["o"]


def test_rows_of_a_batch_are_redirected_to_shards(bench):
    bench("PUT", at=1)
    shard = {"name": ".shards_a/c-1", "timestamp": stamp(2), "lower": "", "upper": "", "state": "created"}
    more = {"object_count": 0, "bytes_used": 0, "state_timestamp": stamp(2), "meta_timestamp": stamp(2)}
    body = json.dumps([{**shard, **more}]).encode()
    assert bench("PUT", at=2, body=body, x_backend_record_type="shard").status == 202
    redirected, stored = batch(
        bench,
        row("PUT", "a", 3, x_backend_accept_redirect="true"),
        row("PUT", "a", 3),
    )
    assert (redirected.status, stored.status) == (301, 201)
    assert redirected.headers["location"] == "/.shards_a/c-1/a"


def test_a_batch_for_a_device_that_is_gone_or_for_no_container(bench):
    gone = batch(bench, row("PUT", "o", 2), row("DELETE", "p", 2), path="/sdz/1/AUTH_a/c")
    assert [answer.status for answer in gone] == [507, 507]
    for path in ("/sda", "/sda/1/AUTH_a", "/sda/1/AUTH_a/c/o", "/sda/x/AUTH_a/c", "/../1/AUTH_a/c"):
        assert bench("BATCH", path, body=encode_rows([row("PUT", "o", 2)])).status == 400
    assert bench("BATCH", body=b"x").status == 400


#: Headers and names of rows, each of which has to mean the same alone and in a batch.
_ROW_CASES = [
    ("PUT", "/1/AUTH_a/c/plain", {}),
    ("PUT", "/1/AUTH_a/c/ty%20pe", {"x-content-type": "text/\xc3\xbc; a=\xff\x80"}),
    ("PUT", "/1/AUTH_a/c/empty", {"x-content-type": "", "x-etag": ""}),
    ("PUT", "/1/AUTH_a/c/times", {"x-content-type-timestamp": stamp(4), "x-meta-timestamp": stamp(5)}),
    ("PUT", "/1/AUTH_a/c/times", {"x-meta-timestamp": "soon"}),
    ("PUT", "/1/AUTH_a/c/negative", {"x-size": "-1"}),
    ("PUT", "/1/AUTH_a/c/huge", {"x-size": str(1 << 63)}),
    ("PUT", "/1/AUTH_a/c/policy", {"x-backend-storage-policy-index": "1"}),
    ("PUT", "/1/AUTH_a/c/policy", {"x-backend-storage-policy-index": "7"}),
    ("PUT", "/1/AUTH_a/c/realm", {"x-container-sync-to": "//NONE/NAME1/a/c"}),
    ("PUT", "/1/AUTH_a/c/key", {"x-container-sync-auth": "k"}),
    ("PUT", "/1/AUTH_a/c/a/b//c/", {}),
    ("PUT", "/1/AUTH_a/c/%FF", {}),
    ("PUT", "/1/AUTH_a/c/%00reserved", {}),
    ("PUT", "/1/AUTH_a/%00x/%00reserved", {}),
    ("PUT", "/1/AUTH_a/c/question?limit=1", {}),
    ("PUT", "/01/AUTH_a/c/o", {}),
    ("PUT", "/x/AUTH_a/c/o", {}),
    ("PUT", "/1/AUTH_a//o", {}),
    ("PUT", "/1/.internal/made/o", {}),
    ("PUT", "/1/.internal/made/o", {"x-timestamp": ""}),
    ("PUT", "/1/.shards_a/c-1/o", {}),
    ("PUT", "/1/.shards_a/c-1/o", {"x-backend-auto-create": "true"}),
    ("PUT", "/1/AUTH_a/made/o", {"x-backend-auto-create": "true"}),
    ("PUT", "/1/AUTH_a/sharded/\u00fc", {"x-backend-accept-redirect": "true"}),
    (
        "PUT",
        "/1/AUTH_a/sharded/%C3%BC",
        {"x-backend-accept-redirect": "true", "x-backend-accept-quoted-location": "true"},
    ),
    ("PUT", "/1/AUTH_a/sharded/%C3%BC", {"x-backend-accept-redirect": "true"}),
    ("DELETE", "/1/AUTH_a/c/plain", {"x-timestamp": stamp(1)}),
    ("DELETE", "/1/AUTH_a/c/times", {"x-container-sync-to": "//NONE/NAME1/a/c"}),
    ("DELETE", "/1/AUTH_a/none/o", {}),
    ("DELETE", "/1/.internal/other/o", {}),
]


@pytest.fixture
def benches(tmp_path):
    """Two servers with the same containers."""
    both = []
    for name in ("single", "batch"):
        (tmp_path / name).mkdir()
        made = Bench(tmp_path / name)
        for container in ("c", "sharded"):
            made("PUT", f"/sda/1/AUTH_a/{container}", at=1)
        times = {"timestamp": stamp(2), "state_timestamp": stamp(2), "meta_timestamp": stamp(2)}
        shard = {
            "name": ".shards_a/s-\u00fc",
            "lower": "",
            "upper": "",
            "state": "created",
            "object_count": 0,
        }
        body = json.dumps([{**shard, **times, "bytes_used": 0}]).encode()
        path = "/sda/1/AUTH_a/sharded"
        assert made("PUT", path, at=2, body=body, x_backend_record_type="shard").status == 202
        both.append(made)
    return both


def test_rows_have_the_same_fate_alone_and_in_a_batch(benches):
    single, together = benches
    by_container = {}
    for number, (method, path, headers) in enumerate(_ROW_CASES):
        _, partition, account, container, name = path.split("/", 4)
        plain = row(method, name, 3 + number)
        rows = by_container.setdefault(f"/sda/{partition}/{account}/{container}", [])
        rows.append(plain._replace(headers={**plain.headers, **headers}))
    seen = set()
    for container, rows in by_container.items():
        requests = [Request(each.method, f"{container}/{each.name}", each.headers) for each in rows]
        alone = [fate(single.server.handle(request)) for request in requests]
        answer = together("BATCH", container, body=encode_rows(rows))
        if answer.status == 200:
            assert list(map(fate, decode_answers(answer.read_body(), len(rows)))) == alone
        else:
            assert {status for status, _redirect in alone} == {answer.status}
        seen.update(status for status, _redirect in alone)
        for policy in ("0", "1"):
            shown = {"x_backend_storage_policy_index": policy, "x_backend_record_type": "object"}
            listings = [made("GET", container, query="format=json", **shown).read_body() for made in benches]
            assert listings[0] == listings[1], container
    assert {201, 204, 301, 400, 403, 404} <= seen


def fate(answer):
    """Return the status, and what leads to a shard."""
    return answer.status, {name: value for name, value in answer.headers.items() if "location" in name}

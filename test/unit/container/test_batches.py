"""Rows of several requests in one request to the container server (doc/formats/row-batches.md)."""

import json

from swift.wire.rowbatch import BatchedRow, decode_answers, encode_rows
from test.unit.container.conftest import stamp


def row(method, path, at, **headers):
    put = {"x-size": "5", "x-etag": "e", "x-content-type": "text/plain"} if method == "PUT" else {}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return BatchedRow(method, path, {"x-timestamp": stamp(at), **put, **named})


def batch(bench, *rows, path="/sda"):
    answer = bench("BATCH", path, body=encode_rows(rows))
    assert answer.status == 200, answer
    return decode_answers(answer.read_body(), len(rows))


def test_a_batch_stores_rows_of_several_containers_and_answers_each(bench):
    for container in ("c", "d"):
        bench("PUT", f"/sda/1/AUTH_a/{container}", at=1)
    answers = batch(
        bench,
        row("PUT", "/1/AUTH_a/c/one", 2),
        row("PUT", "/1/AUTH_a/d/one", 2),
        row("PUT", "/1/AUTH_a/none/one", 2),
        row("PUT", "/1/AUTH_a/c/%C3%BC", 2, x_content_type="text/\xc3\xbc"),
        row("DELETE", "/1/AUTH_a/c/one", 3),
    )
    assert [answer.status for answer in answers] == [201, 201, 404, 201, 204]
    listed = json.loads(bench.listing())
    assert [(each["name"], each["content_type"]) for each in listed] == [("ü", "text/ü")]
    assert bench("GET", "/sda/1/AUTH_a/d").read_body() == b"one\n"


def test_a_bad_row_of_a_batch_hurts_no_other(bench):
    bench("PUT", at=1)
    answers = batch(
        bench,
        row("PUT", "/1/AUTH_a/c/o", 2),
        row("PUT", "/1/AUTH_a/c", 2),
        row("GET", "/1/AUTH_a/c/o", 2),
        row("PUT", "/../AUTH_a/c/o", 2),
        row("PUT", "/1/AUTH_a/c/%00", 2),
        row("PUT", "/1/AUTH_a/c/p", 2, x_size="many"),
        row("PUT", "/1/AUTH_a/c/p", 2, x_timestamp="never"),
        row("PUT", "/1/AUTH_a/c/p", 2, x_container_sync_key="k"),
        row("DELETE", "/1/AUTH_a/c/p", 2, x_backend_storage_policy_index="99"),
    )
    assert [answer.status for answer in answers] == [201, 400, 405, 400, 400, 400, 400, 403, 400]
    assert [each["name"] for each in json.loads(bench.listing())] == ["o"]


def test_rows_of_a_batch_are_redirected_to_shards(bench):
    bench("PUT", at=1)
    shard = {"name": ".shards_a/c-1", "timestamp": stamp(2), "lower": "", "upper": "", "state": "created"}
    more = {"object_count": 0, "bytes_used": 0, "state_timestamp": stamp(2), "meta_timestamp": stamp(2)}
    body = json.dumps([{**shard, **more}]).encode()
    assert bench("PUT", at=2, body=body, x_backend_record_type="shard").status == 202
    redirected, stored = batch(
        bench,
        row("PUT", "/1/AUTH_a/c/a", 3, x_backend_accept_redirect="true"),
        row("PUT", "/1/AUTH_a/c/a", 3),
    )
    assert (redirected.status, stored.status) == (301, 201)
    assert redirected.headers["location"] == "/.shards_a/c-1/a"


def test_a_batch_for_a_device_that_is_gone_or_for_no_device(bench):
    assert [answer.status for answer in batch(bench, row("PUT", "/1/AUTH_a/c/o", 2), path="/sdz")] == [507]
    assert bench("BATCH", "/sda/1", body=encode_rows([row("PUT", "/AUTH_a/c/o", 2)])).status == 400
    assert bench("BATCH", "/sda", body=b"x").status == 400

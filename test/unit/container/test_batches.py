"""Rows of several requests in one request to the container server (doc/formats/row-batches.md)."""

import json

from swift.wire.rowbatch import BatchedRow, decode_answers, encode_rows
from test.unit.container.conftest import stamp


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

"""Batches of rows on the wire: what is sent arrives, and nothing else is taken."""

from __future__ import annotations

import json

import pytest

from swift.base.errors import InvalidValue
from swift.wire.rowbatch import (
    ROWS_MAX,
    BatchedRow,
    RowAnswer,
    decode_answers,
    decode_rows,
    encode_answers,
    encode_rows,
)

ROW = BatchedRow("PUT", "%C3%BC", {"x-content-type": "text/\xfc"})


def test_rows_and_answers_arrive_as_they_are():
    rows = [ROW, BatchedRow("DELETE", "o/p", {})]
    assert decode_rows(encode_rows(rows)) == rows
    responses = [RowAnswer(201, {}), RowAnswer(301, {"location": "/.shards_a/c"})]
    assert decode_answers(encode_answers(responses), 2) == responses


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"[" * 100_000,
        b"{}",
        b"[]",
        b"[1]",
        b'[["PUT", "o"]]',
        b'[["PUT", 1, {}]]',
        b'[[1, "o", {}]]',
        b'[["PUT", "", {}]]',
        b'[["PUT", "o", []]]',
        b'[["PUT", "o", {"x-size": 1}]]',
        json.dumps([ROW] * (ROWS_MAX + 1)).encode(),
    ],
)
def test_what_is_no_batch_is_refused(body):
    with pytest.raises(InvalidValue):
        decode_rows(body)


@pytest.mark.parametrize("body", [b"", b"[]", b"[[201, {}], [201, {}]]", b'[["201", {}]]', b"[[201, {}, 1]]"])
def test_what_does_not_answer_each_row_is_refused(body):
    with pytest.raises(InvalidValue):
        decode_answers(body, 1)

"""Rows of several object requests in one request to a container server (doc/formats/row-batches.md).

The body of ``BATCH /<device>/<partition>/<account>/<container>`` is a JSON list of ``[method, object,
headers]``, that of its answer a list of ``[status, headers]`` in the same order.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from swift.base.errors import InvalidValue
from swift.http.headers import HeaderMap

METHOD = "BATCH"
#: Rows of one request at most.
ROWS_MAX = 64
#: Bytes of such a request at most: rows of the longest names and types that there can be.
BYTES_MAX = 4 << 20


class BatchedRow(NamedTuple):
    """A request for the row of an object; the name is quoted."""

    method: str
    name: str
    headers: HeaderMap


class RowAnswer(NamedTuple):
    """The response to one row."""

    status: int
    headers: HeaderMap


def encode_rows(rows: Sequence[BatchedRow]) -> bytes:
    """Return the body of a request."""
    return json.dumps(rows, separators=(",", ":")).encode()


def decode_rows(body: bytes) -> list[BatchedRow]:
    """Return the rows of a request; raises ``InvalidValue``."""
    rows = [BatchedRow(*_checked(each, 3)) for each in _items(body)]
    if not 1 <= len(rows) <= ROWS_MAX:
        raise InvalidValue(f"{len(rows)} rows in a batch; there may be 1 to {ROWS_MAX}")
    for row in rows:
        if not isinstance(row.method, str) or not isinstance(row.name, str) or not row.name:
            raise InvalidValue("a row of a batch has no method or no name")
        _check_headers(row.headers)
    return rows


def encode_answers(answers: Sequence[RowAnswer]) -> bytes:
    """Return the body of an answer."""
    return json.dumps(answers, separators=(",", ":")).encode()


def decode_answers(body: bytes, count: int) -> list[RowAnswer]:
    """Return the answers to so many rows; raises ``InvalidValue``."""
    answers = [RowAnswer(*_checked(each, 2)) for each in _items(body)]
    if len(answers) != count:
        raise InvalidValue(f"{len(answers)} answers to {count} rows")
    for answer in answers:
        if type(answer.status) is not int:
            raise InvalidValue("an answer to a batch has no status")
        _check_headers(answer.headers)
    return answers


def _items(body: bytes) -> list[object]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"a batch of rows is no JSON: {error}")
    if not isinstance(found, list):
        raise InvalidValue("a batch of rows is no list")
    return found


def _checked(item: object, length: int) -> list[Any]:
    if not isinstance(item, list) or len(item) != length:
        raise InvalidValue(f"a member of a batch is no list of {length}")
    return item


def _check_headers(headers: object) -> None:
    if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
        raise InvalidValue("the headers of a row are no texts")

"""The reconciler's queue: the newest hour first, an entry is one process's, what is no entry is told of."""

from __future__ import annotations

import json
from urllib.parse import parse_qs

import pytest

from swift.base.entity import EntityPath
from swift.base.errors import InvalidValue
from swift.base.timestamp import Timestamp
from swift.container.misplaced import QUEUE_ACCOUNT, entry
from swift.container.reconciler.queue import ReconcilerQueue, parse_entry
from swift.container.rows import ObjectRow
from swift.gateway.internal_client import InternalClient
from swift.http.response import Response
from test.support.checks import every

#: Half an hour after the beginning of an hour.
NOW_S = 1_700_000_000.0 // 3600 * 3600 + 1800
HOUR = str(int(NOW_S) - 1800)
STAMP = "1700000000.00000"


def row(name="2:/a/c/o", **changes):
    return {
        "name": name,
        "hash": STAMP,
        "content_type": "application/x-put",
        "last_modified": "2023-11-14T22:13:21.500000",
        **changes,
    }


class Listings:
    """A pipeline that lists what a test says, two rows a page."""

    def __init__(self, containers=(), **rows):
        self.rows = {"": [{"name": name} for name in containers]}
        self.rows |= {name.strip("_"): list(found) for name, found in rows.items()}

    def handle(self, request):
        after = parse_qs(request.query).get("marker", [""])[0]
        _, _, account, *container = request.raw_path.split("/")
        assert account == QUEUE_ACCOUNT
        found = self.rows.get("/".join(container))
        if found is None:
            return Response(404)
        names = [each["name"] for each in found]
        start = names.index(after) + 1 if after else 0
        return Response(200, {}, json.dumps(found[start : start + 2]).encode())


def queue_of(listings, **more):
    return ReconcilerQueue(InternalClient(listings.handle, "test", tries=1), **more)


def test_what_was_put_into_the_queue_is_read_from_it():
    put = ObjectRow("o/ü%2F", f"{STAMP}+5+5", 3, "t/p", "e", 0, 2)
    hour, queued = entry(put, "a/c")
    found = parse_entry(hour, row(queued.name, hash=queued.etag, content_type=queued.content_type))
    assert (found.policy_index, found.path, found.is_delete) == (2, EntityPath("a", "c", "o/ü%2F"), False)
    assert found.timestamp == Timestamp.from_raw(Timestamp(STAMP).raw + 10), "the newest of the three times"
    assert found.recorded == Timestamp("1700000001.50000")
    gone = entry(put._replace(deleted=1), "a/c")[1]
    assert parse_entry(hour, row(gone.name, content_type=gone.content_type)).is_delete


@every(
    "changes",
    [
        *({"name": name} for name in ("", "2", "2/a/c/o", ":/a/c/o", "-1:/a/c/o", "²:/a/c/o", " 2:/a/c/o")),
        *({"name": name} for name in ("2:", "2:a/c/o", "2:/a/c", "2:/a/c/", "2://c/o", "2:/a//o")),
        {"name": None},
        *({"name": f"2:/a/c/{odd}"} for odd in ("\ud800", "\udcff")),
        *({"content_type": kind} for kind in (None, "", "application/x-post", "application/x-put;a=b")),
        *(
            {"hash": text}
            for text in (None, "", "never", "-1", f"{STAMP}+", f"{STAMP}-zz", "9" * 400, STAMP + "_g")
        ),
        *({"last_modified": text} for text in (None, "", "today", "1969-12-31T23:59:59", "9" * 400)),
    ],
)
def test_what_is_no_entry_is_refused_with_a_reason(changes):
    with pytest.raises(InvalidValue):
        parse_entry(HOUR, row(**changes))


def test_this_hour_comes_first_even_where_nobody_lists_it_then_the_newest():
    listings = Listings(["3600", "7200", "10800", "odd", "²", HOUR])
    assert queue_of(listings).containers(NOW_S) == [HOUR, "10800", "7200", "3600"]
    assert queue_of(Listings(["3600"])).containers(NOW_S) == [HOUR, "3600"]
    assert queue_of(Listings()).containers(NOW_S) == [HOUR]


def test_rows_that_are_no_entries_are_told_of_and_passed_over():
    told = []
    listings = Listings(_7200=[row("1:/a/c/o"), row("2:/a/c/o", hash="x"), row("3:/a/c/o"), row("odd")])
    queue = queue_of(listings, warn=told.append)
    assert [each.policy_index for each in queue.entries("7200")] == [1, 3]
    assert len(told) == 2
    assert all(line.startswith(".misplaced_objects/7200/") and "left alone" in line for line in told)


def test_every_entry_is_one_process_s_of_those_that_share_the_queue():
    rows = [row(f"2:/a/c/ö{number:02}") for number in range(30)]
    shares = [
        [each.name for each in queue_of(Listings(_7200=rows), processes=3, process=n).entries("7200")]
        for n in range(3)
    ]
    assert sorted(name for share in shares for name in share) == [each["name"] for each in rows]
    assert all(shares)


def test_a_container_is_empty_when_it_has_no_row_of_any_kind():
    queue = queue_of(Listings(_7200=[], _3600=[row("odd")]))
    assert queue.is_empty("7200")
    assert not queue.is_empty("3600")
    assert queue.is_empty("1"), "what is not there has nothing in it"

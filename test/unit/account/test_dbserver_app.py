"""What account and container servers answer when a database, a device or a request is not as it should."""

from __future__ import annotations

import errno

import pytest

from swift.base.entity import NotUTF8
from swift.base.errors import LockTimeout
from swift.base.timestamp import Timestamp
from swift.db.connection import DatabaseBroken, DatabaseFailing, DatabaseMissing, DatabaseUnwritable
from swift.dbserver.app import (
    check_metadata_text,
    header_int,
    header_time,
    listing_query,
    metadata_headers,
    metadata_of,
    stored_name,
    whole_body,
)
from swift.http.body import BytesBody
from swift.http.request import Request
from swift.http.response import HTTPError, Response

#: Largest limit of a listing.
LIMIT = 10_000


def ask(query):
    return listing_query(Request("GET", "/sda/1/a", {}, query=query), LIMIT)


# --- errors of databases


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (DatabaseMissing("/srv/x.db", "gone"), 404),
        (DatabaseUnwritable("/srv/x.db", "read-only"), 507),
        (OSError(errno.ENOSPC, "full"), 507),
        (OSError(errno.EIO, "rot"), 503),
        (DatabaseFailing("/srv/x.db", "disk I/O error", is_device_error=True), 503),
        (MemoryError(), 503),
        (OSError(errno.EROFS, "read-only"), 507),
        (FileNotFoundError(errno.ENOENT, "gone"), 503),
        (OSError(errno.EMFILE, "too many"), 503),
        (LockTimeout("/srv/x", 10), 503),
    ],
)
def test_an_error_of_a_database_or_its_device_is_a_status(bench, error, status):
    def fail(_request):
        raise error

    bench.server._table["HEAD"]._handler = fail
    assert bench("HEAD").status == status


def test_a_directory_that_is_gone_with_its_device_is_507(bench):
    def fail(_request):
        (bench.root / "sda").rmdir()
        raise FileNotFoundError(errno.ENOENT, "gone")

    bench.server._table["HEAD"]._handler = fail
    assert bench("HEAD").status == 507


def test_a_broken_database_is_moved_away_so_that_a_good_copy_can_come(bench):
    bench("PUT", at=1)
    (path,) = bench.root.glob("sda/accounts/*/*/*/*.db")
    path.write_bytes(b"\xff" * 8192)
    statuses = {bench("HEAD").status for _ in range(2)}
    assert statuses <= {503, 404} and 404 in {bench("HEAD").status}
    assert list(bench.root.glob("sda/quarantined/accounts/*/*.db")) and not path.exists()


def test_one_that_cannot_be_moved_is_said_to_be(bench):
    def fail(_request):
        raise DatabaseBroken(str(bench.root / "sda/accounts/1/abc/none/none.db"), "rot")

    bench.server._table["HEAD"]._handler = fail
    assert bench("HEAD").status == 503


# --- requests


@pytest.mark.parametrize("path", ["/sda/1/a%2Fb", "/sda/x/a", "/sda/-1/a", "/sda/1", "/../1/a"])
def test_paths_that_name_no_account_are_refused(bench, path):
    assert bench("HEAD", path).status == 400


def test_an_unmounted_device_is_507(bench):
    assert bench("HEAD", "/sdz/1/AUTH_a").status == 507


def test_a_body_is_read_whole_up_to_a_limit():
    assert whole_body(Request("PUT", "/", {}, BytesBody(b"x" * 10)), 10) == b"x" * 10
    with pytest.raises(HTTPError) as caught:
        whole_body(Request("PUT", "/", {}, BytesBody(b"x" * 11)), 10)
    assert caught.value.response.status == 413


@pytest.mark.parametrize(
    ("query", "limit"),
    [
        ("", LIMIT),
        ("limit=5", 5),
        ("limit=0", 0),
        ("limit=x", LIMIT),
        ("limit=%C2%B2", LIMIT),
    ],
)
def test_a_limit_is_a_number_or_the_default(query, limit):
    assert ask(query).limit == limit


@pytest.mark.parametrize("text", [str(LIMIT + 1), "9" * 5000])
def test_a_limit_beyond_the_constraint_is_refused(text):
    with pytest.raises(HTTPError) as caught:
        ask(f"limit={text}")
    assert caught.value.response.status == 412


def test_parameters_are_decoded_and_bad_ones_refused():
    query = ask("marker=a%2Fb&end_marker=%C3%B6&prefix=p&delimiter=%2F&reverse=on")
    assert (query.marker, query.end_marker, query.prefix) == ("a/b", "ö", "p")
    assert (query.delimiter, query.reverse) == ("/", True)
    with pytest.raises((HTTPError, NotUTF8)):
        ask("prefix=%FF")


# --- headers


def test_metadata_is_kept_by_name_and_time_and_shown_again():
    kept = metadata_of(
        {"x-account-meta-a": "1", "x-other": "2", "x-exact": "3"},
        ("x-account-meta-",),
        frozenset(["x-exact"]),
        Timestamp(5),
    )
    assert kept == {"X-Account-Meta-A": ("1", Timestamp(5).internal), "X-Exact": ("3", Timestamp(5).internal)}
    assert metadata_headers({**kept, "X-Gone": ("", "1")}) == {"x-account-meta-a": "1", "x-exact": "3"}
    assert stored_name("x-account-meta-ab") == "X-Account-Meta-Ab"


@pytest.mark.parametrize("text", ["a\x00b", "\udcff"])
def test_metadata_that_is_no_text_is_refused(text):
    check_metadata_text({"X-A": ("fine ö", "1")})
    for metadata in ({"X-A": (text, "1")}, {text: ("x", "1")}):
        with pytest.raises(HTTPError):
            check_metadata_text(metadata)


def test_numbers_in_headers_have_bounds_and_names():
    assert header_int({"x-size": "-5"}, "x-size") == -5
    assert header_int({}, "x-size", 7) == 7
    for value in ("", "x", "1" * 30, "1" * 5000, "1.5"):
        with pytest.raises(HTTPError) as caught:
            header_int({"x-size": value}, "x-size")
        assert b"Invalid X-Size header" in caught.value.response.read_body()
    with pytest.raises(HTTPError) as caught:
        header_int({}, "x-size")
    assert b"Missing X-Size header" in caught.value.response.read_body()


def test_times_in_headers_have_names():
    assert header_time({"x-put-timestamp": "5"}, "x-put-timestamp") == Timestamp(5)
    assert header_time({}, "x-put-timestamp", "0") == Timestamp(0)
    with pytest.raises(HTTPError) as caught:
        header_time({"x-put-timestamp": "soon"}, "x-put-timestamp")
    assert b"Invalid X-Put-Timestamp header" in caught.value.response.read_body()


def test_an_answer_that_is_not_of_a_database_goes_through(bench):
    bench.server._table["HEAD"]._handler = lambda _request: Response(218)
    assert bench("HEAD").status == 218

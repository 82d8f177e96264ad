"""Files of archives become objects with their sender's rights, within limits (middleware.md §7)."""

import tarfile
import time

import pytest

from swift.base.timestamp import Timestamp
from swift.http.body import ClientDisconnected, RequestBody
from test.functional.api_cases_bulk import archive, special
from test.support.filters import extract


class Dying(RequestBody):
    """A client that goes away."""

    length, received = 1000, 0

    def read(self, size=-1):
        raise ClientDisconnected("gone")


def test_files_become_objects_with_the_senders_token(app):
    found = extract(app, archive(("d/a", b"1"), special("d", tarfile.DIRTYPE), ("b", b"22")))
    assert found == {
        "Response Status": "201 Created",
        "Response Body": "",
        "Number Files Created": 2,
        "Errors": [],
    }
    assert {name: data for name, (_, data) in app.objects.items()} == {"c/d/a": b"1", "c/b": b"22"}
    for request in app.asked:
        assert request.headers["x-auth-token"] == "t"
        assert "swift.authorize" not in request.env
        assert "swift.authorize_override" not in request.env


@pytest.mark.parametrize("name", ["/etc/passwd", "../../x", "a/../../x", "./a", "//a", "%2e%2e/x", "a?b#c"])
def test_a_name_is_only_a_name(app, name):
    extract(app, archive((name, b"1")))
    (stored,) = app.objects
    assert stored.startswith("c/")
    assert stored[2:] == name.lstrip("/").removeprefix("./")


def test_only_what_is_a_file_is_stored(app):
    kinds = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE)
    links = [special(f"x{n}", kind, "/etc/passwd") for n, kind in enumerate(kinds)]
    found = extract(app, archive(*links))
    assert found["Response Body"] == "Invalid Tar File: No Valid Files"
    assert app.objects == {}


def test_sparse_files_are_not_blown_up(app):
    found = extract(app, archive(("s", b"1", {"GNU.sparse.size": str(1 << 50)}), ("a", b"1")))
    assert found["Errors"] == [["c/s", "400 Bad Request"]]
    assert list(app.objects) == ["c/a"]


def test_attributes_become_metadata_and_never_anything_else(app):
    marks = {
        "SCHILY.xattr.user.mime_type": "text/x\r\nX-Evil: 1",
        "SCHILY.xattr.user.meta.color": "red",
        "SCHILY.xattr.user.meta.a\r\nX-Evil": "1",
        "SCHILY.xattr.user.x-backend-timestamp": "1",
        "SCHILY.xattr.trusted.x": "1",
    }
    sent = {
        "x-object-meta-all": "1",
        "x-delete-at": "9",
        "x-backend-timestamp": "1",
        "x-object-manifest": "a/b",
    }
    extract(app, archive(("a", b"1", marks)), headers=sent)
    headers, _ = app.objects["c/a"]
    assert headers == {
        "content-length": "1",
        "content-type": "text/x  X-Evil: 1",
        "user-agent": "BulkExtract",
        "x-auth-token": "t",
        "x-delete-at": "9",
        "x-object-meta-all": "1",
        "x-object-meta-color": "red",
        "x-object-meta-a  x-evil": "1",
    }


@pytest.mark.parametrize(
    ("answers", "status", "created"),
    [
        ({"PUT": 401}, "401 Unauthorized", 0),
        ({"PUT": 403}, "400 Bad Request", 0),
        ({"PUT": 503}, "502 Bad Gateway", 0),
        ({("PUT", "c/f1"): 413}, "400 Bad Request", 2),
        ({"HEAD": 401}, "401 Unauthorized", 0),
    ],
)
def test_failures_are_told_one_by_one(app, answers, status, created):
    app.answers = answers
    found = extract(app, archive(*((f"f{n}", b"1") for n in range(3))))
    assert (found["Response Status"], found["Number Files Created"]) == (status, created)


def test_many_failures_end_it(app):
    app.answers = {"PUT": 403}
    found = extract(app, archive(*((f"f{n}", b"1") for n in range(9))), max_failed_extractions="3")
    assert len(found["Errors"]) == 3
    assert [r.method for r in app.asked].count("PUT") == 3


def test_only_so_many_containers_are_made(app):
    files = [(f"new{n}/a", b"1") for n in range(5)] + [("c/a", b"1")]
    found = extract(app, archive(*files), "/v1/a", max_containers_per_extraction="2")
    assert found["Response Body"] == "More than 2 containers to create from tar."
    assert app.containers == {"c", "new0", "new1"}
    again = extract(app, archive(("c/a", b"1"), ("new1/b", b"1")), "/v1/a", max_containers_per_extraction="0")
    assert again["Response Status"] == "201 Created"


def test_a_client_that_goes_away_stores_nothing(app):
    assert extract(app, Dying())["Response Status"] == "499 Client Disconnect"
    assert app.objects == {}


def test_a_file_that_is_cut_is_not_stored(app):
    found = extract(app, archive(("a", b"1" * 700))[:900])
    assert found["Response Body"] == "Invalid Tar File: unexpected end of data"
    assert app.objects == {}


@pytest.mark.parametrize(
    ("off_s", "created", "errors"), [(-1, 1, []), (30, 0, [["c/a", "503 Service Unavailable"]])]
)
def test_a_file_that_meets_a_newer_object_is_created_only_if_it_was_overtaken(app, off_s, created, errors):
    app.answers["PUT", "c/a"] = 202
    app.times["c/a"] = Timestamp(time.time() + off_s).internal
    found = extract(app, archive(("a", b"1")))
    assert (found["Number Files Created"], found["Errors"]) == (created, errors)


class Unread(RequestBody):
    """An archive that must not be looked at."""

    length, received = 1000, 0

    def read(self, size=-1):
        raise AssertionError("the archive was read")


@pytest.mark.parametrize("path", ["/v1/a", "/v1/a/c", "/v1/a/c/folder"])
def test_the_archive_of_an_unknown_sender_is_not_unpacked(app, path):
    app.answers["HEAD"] = 401
    found = extract(app, Unread(), path)
    assert (found["Response Status"], found["Errors"]) == ("401 Unauthorized", [])
    (asked,) = app.asked
    assert (asked.method, asked.raw_path) == ("HEAD", path.removesuffix("/folder"))
    assert asked.headers["x-auth-token"] == "t"


@pytest.mark.parametrize("status", [204, 403, 404])
def test_a_sender_without_rights_to_the_account_may_still_store(app, status):
    app.answers["HEAD", None] = status
    assert extract(app, archive(("c/a", b"1")), "/v1/a")["Number Files Created"] == 1

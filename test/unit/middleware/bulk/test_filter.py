"""Archives and lists are worked on with their sender's rights, within limits (middleware.md §7)."""

import json
import tarfile

import pytest

from swift import green
from swift.http.body import BytesBody, ClientDisconnected, RequestBody, chunks_of
from swift.http.request import Request
from swift.http.response import Response, error_response
from swift.middleware.bulk.filter import Bulk, BulkSettings
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry
from test.functional.api_cases_bulk import archive, special


class App:
    """A store in memory that answers as it is told."""

    def __init__(self):
        self.objects = {}
        self.containers = {"c"}
        self.answers = {}
        self.asked = []
        self.wait = None
        self.running = self.most = 0

    def handle(self, request):
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            return self.answer(request)
        finally:
            self.running -= 1

    def answer(self, request):
        self.asked.append(request)
        green.sleep()
        if self.wait is not None:
            self.wait.wait(10)
        path = request.entity.path
        name = f"{path.container}/{path.obj}" if path.obj else path.container
        status = self.answers.get((request.method, name)) or self.answers.get(request.method)
        if status is not None:
            return error_response(status)
        if path.obj is None:
            known = name in self.containers
            if request.method == "PUT":
                self.containers.add(name)
            elif request.method == "DELETE":
                self.containers.discard(name)
            return Response(204 if known else 201 if request.method == "PUT" else 404)
        if request.method == "PUT":
            self.objects[name] = request.headers, request.body.read()
            return Response(201)
        return Response(204 if self.objects.pop(name, None) else 404)


def make(app, **options):
    return Bulk(app, BulkSettings.parse(options), 5000, Telemetry(silent_log()))


def report(response):
    assert response.status == 200
    return json.loads(b"".join(chunks_of(response.body)))


def extract(app, data, path="/v1/a/c", *, kind="tar", headers=None, **options):
    sent = {"content-length": "1", "accept": "application/json", "x-auth-token": "t", **(headers or {})}
    body = data if isinstance(data, RequestBody) else BytesBody(data)
    request = Request("PUT", path, sent, body, query=f"extract-archive={kind}")
    return report(make(app, **options).handle(request))


def delete(app, data, *, method="POST", headers=None, **options):
    sent = {"content-length": "1", "accept": "application/json", "x-auth-token": "t", **(headers or {})}
    request = Request(method, "/v1/a", sent, BytesBody(data), query="bulk-delete")
    return report(make(app, **options).handle(request))


@pytest.fixture
def app():
    return App()


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


class Dying(RequestBody):
    """A client that goes away."""

    length, received = 1000, 0

    def read(self, size=-1):
        raise ClientDisconnected("gone")


def test_a_client_that_goes_away_stores_nothing(app):
    assert extract(app, Dying())["Response Status"] == "499 Client Disconnect"
    assert app.objects == {}


def test_a_file_that_is_cut_is_not_stored(app):
    found = extract(app, archive(("a", b"1" * 700))[:900])
    assert found["Response Body"] == "Invalid Tar File: unexpected end of data"
    assert app.objects == {}


@pytest.mark.parametrize("kind", ["zip", "tgz", "", "tar.xz"])
def test_other_archives_are_refused_at_once(app, kind):
    request = Request("PUT", "/v1/a/c", {"content-length": "1"}, b"x", query=f"extract-archive={kind}")
    response = make(app).handle(request)
    assert (response.status, response.body) == (400, b"Unsupported archive format")


def test_objects_go_before_their_containers(app):
    app.objects = {"c/a b": 1, "c/\xe9": 1}
    found = delete(app, b"c\n/c/a%20b\n  c/%C3%A9  \n\nc/none\r\n")
    assert (found["Number Deleted"], found["Number Not Found"], found["Errors"]) == (3, 1, [])
    assert app.objects == {} and app.containers == set()
    assert {r.headers["x-auth-token"] for r in app.asked} == {"t"}


@pytest.mark.parametrize("method", ["POST", "DELETE"])
@pytest.mark.parametrize("line", [b"/", b"//", b"///", b"%2F", b"%2f%2F"])
def test_a_list_never_deletes_the_account(app, method, line):
    found = delete(app, line, method=method)
    assert [status for _, status in found["Errors"]] == ["403 Forbidden"]
    assert app.asked == []


@pytest.mark.parametrize(
    ("data", "headers", "status", "body"),
    [
        (b"", {}, "400 Bad Request", "Invalid bulk delete."),
        (b"c/a\n" * 7, {}, "413 Request Entity Too Large", "Maximum Bulk Deletes: 6 per request"),
        (b"x" * 5001, {}, "400 Bad Request", "Invalid File Name"),
        (b"x" * 10_000_000, {}, "400 Bad Request", "Invalid File Name"),
        (b"c/a", {"content-type": "application/json"}, "406 Not Acceptable", ""),
    ],
)
def test_a_list_that_is_not_good_deletes_nothing(app, data, headers, status, body):
    found = delete(app, data, headers=headers, max_deletes_per_request="6")
    assert (found["Response Status"], found["Response Body"]) == (status, body)
    assert app.asked == []


def test_deletions_run_side_by_side_and_failures_end_them(app):
    app.answers = {"DELETE": 403}
    found = delete(
        app, b"\n".join(b"c/%d" % n for n in range(20)), delete_concurrency="4", max_failed_deletes="6"
    )
    assert found["Response Body"] == "Max delete failures exceeded"
    assert len(found["Errors"]) == 6
    assert app.most == 4
    assert len(app.asked) == 8


def test_a_client_that_waits_is_shown_that_something_happens(app):
    app.wait = green.Event()
    sent = {"content-length": "3", "accept": "text/xml"}
    request = Request("POST", "/v1/a", sent, b"c/a", query="bulk-delete")
    pieces = chunks_of(make(app, yield_frequency="0.02").handle(request).body)
    assert next(pieces) == b'<?xml version="1.0" encoding="UTF-8"?>\n'
    assert next(pieces) == b" "
    app.wait.set()
    rest = b"".join(pieces).lstrip(b" ")
    assert rest.startswith(b"\r\n\r\n<delete>\n<number_deleted>0</number_deleted>")


def test_work_ends_with_its_client(app):
    app.wait = green.Event()
    request = Request("POST", "/v1/a", {"content-length": "3"}, b"c/a\nc/b\nc/c", query="bulk-delete")
    response = make(app, yield_frequency="0.02", delete_concurrency="1").handle(request)
    response.discard()
    app.wait.set()
    green.sleep(0.05)
    assert len(app.asked) == 1


def test_xml_shows_names_as_text(app):
    app.answers = {"DELETE": 403}
    request = Request(
        "POST", "/v1/a", {"content-length": "1", "accept": "text/xml"}, b"c/<&>", query="bulk-delete"
    )
    body = b"".join(chunks_of(make(app).handle(request).body))
    assert b"<name>c/%3C%26%3E</name><status>403 Forbidden</status>" in body


@pytest.mark.parametrize("accept", ["image/png", "junk"])
def test_an_answer_nobody_can_read_is_not_worked_for(app, accept):
    request = Request("POST", "/v1/a", {"content-length": "1", "accept": accept}, b"c/a", query="bulk-delete")
    assert b"406 Not Acceptable" in b"".join(chunks_of(make(app).handle(request).body))
    assert app.asked == []

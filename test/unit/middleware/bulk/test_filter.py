"""Archives and lists are worked on with their sender's rights, within limits (middleware.md §7)."""

import pytest

from swift import green
from swift.http.body import iter_body_bytes
from swift.http.request import Request
from test.support.filters import delete, make


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
    pieces = iter_body_bytes(make(app, yield_frequency="0.02").handle(request).body)
    assert next(pieces) == b'<?xml version="1.0" encoding="UTF-8"?>\n'
    assert next(pieces) == b" "
    app.wait.set()
    rest = b"".join(pieces).lstrip(b" ")
    assert rest.startswith(b"\r\n\r\n<delete>\n<number_deleted>0</number_deleted>")


@pytest.mark.parametrize(
    ("data", "headers", "status"),
    [
        (b"c/a", {}, 200),
        (b"c/forbidden", {}, 400),
        (b"", {}, 400),
        (b"c/a", {"content-type": "application/json"}, 406),
        (b"c/a", {"accept": "x/y"}, 406),
    ],
)
def test_a_status_line_that_waits_is_that_of_the_report(app, data, headers, status):
    app.objects = {"c/a": 1}
    app.answers = {"DELETE": 403} if b"forbidden" in data else {}
    sent = {"content-length": str(len(data)), **headers}
    for query, shown in (("bulk-delete&heartbeat=off", status), ("bulk-delete", 200)):
        response = make(app, yield_frequency="0.01").handle(Request("POST", "/v1/a", sent, data, query=query))
        assert response.status == shown
    response = make(app).handle(Request("POST", "/v1/a", sent, data, query="bulk-delete&heartbeat=off"))
    assert str(status).encode() in b"".join(iter_body_bytes(response.body))


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
    body = b"".join(iter_body_bytes(make(app).handle(request).body))
    assert b"<name>c/%3C%26%3E</name><status>403 Forbidden</status>" in body


@pytest.mark.parametrize("accept", ["image/png", "junk"])
def test_an_answer_nobody_can_read_is_not_worked_for(app, accept):
    request = Request("POST", "/v1/a", {"content-length": "1", "accept": accept}, b"c/a", query="bulk-delete")
    assert b"406 Not Acceptable" in b"".join(iter_body_bytes(make(app).handle(request).body))
    assert app.asked == []

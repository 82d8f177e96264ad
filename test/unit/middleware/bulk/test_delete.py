"""Lists of names become deletions, each name no more than a name, within limits (middleware.md §7)."""

import pytest

from swift.http.body import ClientDisconnected, RequestBody
from test.support.filters import delete


class Slowly(RequestBody):
    """A list that comes in these pieces; an error among them is raised."""

    length, received = None, 0

    def __init__(self, *pieces):
        self.pieces = list(pieces)

    def read(self, size=-1):
        piece = self.pieces.pop(0) if self.pieces else b""
        if isinstance(piece, Exception):
            raise piece
        return piece


def asked(app):
    return [request.raw_path for request in app.asked]


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b" \t\n\n \n"])
def test_lines_may_be_cut_anywhere(app, ending):
    text = ending.join((b"c/one", b"/c/two", b"  c/three")) + ending
    for cut in range(0, len(text), 3):
        app.asked.clear()
        delete(app, Slowly(text[:cut] or b"\n", text[cut:]))
        assert asked(app) == ["/v1/a/c/one", "/v1/a/c/two", "/v1/a/c/three"]


@pytest.mark.parametrize(
    ("line", "path"),
    [
        (b"c/a%20b", "/v1/a/c/a%20b"),
        (b"c/a+b", "/v1/a/c/a%2Bb"),
        (b"c/a%252Fb", "/v1/a/c/a%252Fb"),
        (b"c/o?multipart-manifest=delete", "/v1/a/c/o%3Fmultipart-manifest%3Ddelete"),
        (b"c/o#x", "/v1/a/c/o%23x"),
        (b"c/../../other/c/o", "/v1/a/c/../../other/c/o"),
        (b"c/a\r\x00b", "/v1/a/c/a%0D%00b"),
        (b"c/\xc3\xa9%C3%A9", "/v1/a/c/%C3%A9%C3%A9"),
        (b"c/o/", "/v1/a/c/o/"),
        (b"c/", "/v1/a/c/"),
        (b"//c//o", "/v1/a/c//o"),
        (b"c/%zz", "/v1/a/c/%25zz"),
    ],
)
def test_a_name_is_only_a_name(app, line, path):
    app.answers = {"DELETE": 204}
    delete(app, line)
    assert asked(app) == [path]


@pytest.mark.parametrize("filler", [b" ", b"\t", b"x", b"\r"])
def test_a_line_that_does_not_end_is_not_waited_for(app, filler):
    body = Slowly(b"c/o\n", *[filler * 65536] * 100)
    found = delete(app, body)
    assert (found["Response Status"], found["Response Body"]) == ("400 Bad Request", "Invalid File Name")
    assert len(body.pieces) > 95
    assert app.asked == []


def test_a_list_that_breaks_off_deletes_nothing(app):
    found = delete(app, Slowly(b"c/o\nc/p\n", ClientDisconnected("gone")))
    assert (found["Response Status"], app.asked) == ("499 Client Disconnect", [])


def test_as_many_names_as_there_may_be_are_taken(app):
    names = [b"c/%d" % n for n in range(5)]
    assert delete(app, b"\n".join(names), max_deletes_per_request="5")["Number Not Found"] == 5
    found = delete(app, b"\n".join(names), max_deletes_per_request="4")
    assert found["Response Body"] == "Maximum Bulk Deletes: 4 per request"


def test_a_name_has_a_length_when_it_is_unquoted(app):
    assert delete(app, b"c/" + b"%61" * 4998)["Number Not Found"] == 1
    assert delete(app, b"c/" + b"%61" * 4999)["Response Body"] == "Invalid File Name"


def test_a_container_that_is_not_empty_is_tried_again_if_that_is_wanted(app):
    app.answers = {"DELETE": 409}
    found = delete(app, b"c", delete_container_retry_count="0")
    assert (found["Errors"], len(app.asked)) == ([["c", "409 Conflict"]], 1)


def test_failures_are_told_by_quoted_names_and_what_was_not_there_is_none(app):
    app.objects = {"c/gone": 1}
    app.answers = {("DELETE", "c/a b\n"): 403}
    found = delete(app, b"c/a%20b%0A\nc/gone\nc/none")
    assert found == {
        "Response Status": "400 Bad Request",
        "Response Body": "",
        "Number Deleted": 1,
        "Number Not Found": 1,
        "Errors": [["c/a%20b%0A", "403 Forbidden"]],
    }

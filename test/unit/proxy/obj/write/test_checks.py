"""What an upload may say (public-api.md §8, §11)."""

import pytest

from swift.http.request import Request
from swift.http.response import HTTPError
from swift.proxy.obj.write.checks import TypeGuesser, convert_delete_after, refuse_copy, refuse_part


def test_types_come_from_the_systems_files_and_the_own_one_wins(tmp_path):
    system = tmp_path / "system"
    system.write_text("x/system  aaa bbb\n")
    (tmp_path / "mime.types").write_text("x/own  bbb\n")
    guesser = TypeGuesser(str(tmp_path), (str(system), str(tmp_path / "missing")))
    names = ("f.aaa", "f.bbb", "f.txt", "f.unknown", "f")
    unknown = "application/octet-stream"
    assert [guesser.guess(n) for n in names] == ["x/system", "x/own", "text/plain", unknown, unknown]


@pytest.mark.parametrize(
    ("value", "kept"),
    [("+9999999999", "9999999999"), ("9_999_999_999", "9999999999"), (" 9999999999 ", "9999999999")],
)
def test_times_are_read_as_the_peer_reads_them(value, kept):
    request = Request("PUT", "/v1/a/c/o", {"x-delete-at": value, "x-timestamp": "0000000001.00000"})
    convert_delete_after(request)
    assert request.headers["x-delete-at"] == kept
    assert request.env["swift.log_info"] == [f"x-delete-at:{kept}"], "the access line tells it"


@pytest.mark.parametrize("value", ["--5", "+", "1_", "1e10", "0x10", "\u0663\xb2", "9" * 5000, ""])
@pytest.mark.parametrize("name", ["x-delete-at", "x-delete-after"])
def test_what_is_no_number_is_a_bad_request(name, value):
    request = Request("PUT", "/v1/a/c/o", {name: value, "x-timestamp": "0000000001.00000"})
    with pytest.raises(HTTPError) as caught:
        convert_delete_after(request)
    assert caught.value.response.status == 400


@pytest.mark.parametrize(
    ("source", "body", "status"),
    [("/c/o", b"", 501), ("c/o", b"", 501), ("c", b"", 412), ("/c/", b"", 412), ("/c/o", b"x", 400)],
)
def test_copies_are_refused(source, body, status):
    with pytest.raises(HTTPError) as caught:
        refuse_copy(Request("PUT", "/v1/a/c/p", {"x-copy-from": source}, body))
    assert caught.value.response.status == status


@pytest.mark.parametrize("value", ["bytes 0-4/10", "bytes 5-9/10", "bytes 0-4/*", "bytes */5", "x", ""])
def test_a_part_does_not_replace_an_object(value):
    with pytest.raises(HTTPError) as caught:
        refuse_part(Request("PUT", "/v1/a/c/o", {"content-range": value}, b"hello"))
    assert caught.value.response.status == 400


def test_a_range_of_the_whole_body_is_an_upload():
    refuse_part(Request("PUT", "/v1/a/c/o", {"content-range": "bytes 0-4/5"}, b"hello"))
    refuse_part(Request("PUT", "/v1/a/c/o", {}, b"hello"))

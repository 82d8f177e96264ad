"""The form of a browser as it arrives: its fields are kept, its file passes through."""

import pytest

from swift.http.body import BytesBody
from swift.http.request import Request
from swift.middleware.formpost.form import Form
from swift.middleware.s3api.errors import RefusedBody, S3Error
from swift.middleware.s3api.posted import FIELDS_BYTES_MAX, FIELDS_MAX, PostedForm, boundary_of, is_form


def part(name, data, more=""):
    return f'--B\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'.encode() + data + b"\r\n"


FILE = part("file", b"0123456789", '; filename="C:\\\\x\\\\a b.txt"') + b"--B--\r\n"


def read(data):
    form = PostedForm(Form(BytesBody(data), "B"))
    form.read_fields()
    return form


def test_fields_before_the_file_are_kept_with_their_names_in_lower_case():
    form = read(part("Key", "ü".encode()) + part("x-amz-meta-A", b"") + FILE)
    assert form.fields == {"key": "ü", "x-amz-meta-a": ""}
    assert form.file(0, 10).read() == b"0123456789"


def test_of_a_path_only_the_files_own_name_counts():
    assert read(FILE).file_name == "a b.txt"


def test_what_is_behind_the_file_is_not_believed():
    assert read(FILE.replace(b"--B--\r\n", b"") + part("key", b"late") + b"--B--\r\n").fields == {}


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (part("key", b"a") + part("KEY", b"b") + FILE, "InvalidArgument"),
        (part("key", b"\xff") + FILE, "InvalidArgument"),
        (part("key", b"a") + b"--B--\r\n", "InvalidArgument"),
        (part("key", b"x" * (FIELDS_BYTES_MAX + 1)) + FILE, "MaxPostPreDataLengthExceededError"),
        (b"".join(part(f"k{n}", b"") for n in range(FIELDS_MAX + 1)) + FILE, "InvalidArgument"),
    ],
)
def test_fields_that_are_too_many_too_much_or_no_text_are_refused(data, code):
    with pytest.raises(S3Error) as refused:
        read(data)
    assert refused.value.code == code


@pytest.mark.parametrize(("least", "most", "code"), [(11, 99, "EntityTooSmall"), (0, 9, "EntityTooLarge")])
def test_a_file_of_another_size_is_refused_and_remembers_why(least, most, code):
    file = read(FILE).file(least, most)
    with pytest.raises(RefusedBody):
        while file.read(3):
            pass
    assert file.problem.code == code


def test_a_file_is_read_in_pieces_of_any_size():
    file = read(FILE).file(10, 10)
    assert b"".join(iter(lambda: file.read(3), b"")) == b"0123456789"
    assert file.received == 10 and file.problem is None


@pytest.mark.parametrize(
    ("method", "path", "kind", "is_one"),
    [
        ("POST", "/bucket", "multipart/form-data; boundary=B", True),
        ("POST", "/bucket/", 'Multipart/Form-Data; boundary="B"', True),
        ("POST", "/v1/AUTH_a", "multipart/form-data; boundary=B", False),
        ("PUT", "/bucket", "multipart/form-data; boundary=B", False),
        ("POST", "/bucket", "multipart/form-data", False),
        ("POST", "/bucket", "application/xml; boundary=B", False),
        ("POST", "/bucket", "", False),
    ],
)
def test_a_form_is_known_by_its_type_and_place(method, path, kind, is_one):
    request = Request(method, path, {"content-type": kind})
    assert is_form(request) is is_one
    assert (boundary_of(request) == "B") or not is_one

"""Forms are read part by part, in any cut (middleware.md §4)."""

import pytest

from swift.http.body import BytesBody, RequestBody
from swift.middleware.formpost.form import (
    FileTooLarge,
    Form,
    InvalidForm,
    SizeLimitedFileBody,
    parse_parameters,
)
from test.support.checks import every

FORM = (
    b'--B\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
    b'--B\r\nContent-Disposition: form-data; name="f"; filename="x"\r\n\r\nhello\r\n-B-\r\n'
    b"\r\n--B--\r\n"
)


class Drips(RequestBody):
    """A body that comes in pieces of one size."""

    def __init__(self, data, size):
        self.length, self.received = len(data), 0
        self._data, self._size = data, size

    def read(self, size=-1):
        start = self.received
        self.received = min(start + self._size, self.length)
        return self._data[start : self.received]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("lead", [b"", b"\r\n", b"\r\n\r\n"])
def test_a_form_reads_the_same_in_every_cut(size, lead):
    form = Form(Drips(lead + FORM, size), "B")
    assert form.next_part() == {"content-disposition": 'form-data; name="a"'}
    assert form.read_value() == "1"
    assert form.next_part() == {"content-disposition": 'form-data; name="f"; filename="x"'}
    assert SizeLimitedFileBody(form, 100).read() == b"hello\r\n-B-\r\n"
    assert form.next_part() is None
    assert form.next_part() is None


@every("cut", range(len(FORM) - len(b"--\r\n")))
def test_a_form_that_ends_early_is_an_error_and_never_a_shorter_file(cut):
    form = Form(BytesBody(FORM[:cut]), "B")
    with pytest.raises(InvalidForm):
        while form.next_part() is not None:
            SizeLimitedFileBody(form, 100).read()


@pytest.mark.parametrize(
    "data", [b"", b"--", b"preamble\r\n--B\r\n", b"--C\r\n\r\n", b"--B--\r\n", b"--Bx\r\n\r\n"]
)
def test_a_form_begins_with_its_boundary(data):
    with pytest.raises(InvalidForm, match="invalid starting boundary"):
        Form(BytesBody(data), "B").next_part()


def test_the_value_of_a_field_is_cut():
    data = b'--B\r\nContent-Disposition: form-data; name="a"\r\n\r\n' + b"x" * 10_000 + b"\r\n--B--"
    form = Form(BytesBody(data), "B")
    form.next_part()
    assert form.read_value() == "x" * 4096
    assert form.next_part() is None


def test_endless_headers_of_a_part_are_refused():
    form = Form(BytesBody(b"--B\r\n\r\n\r\n--B\r\n" + b"x: y\r\n" * 50_000), "B")
    form.next_part()
    form.read_value()
    with pytest.raises(InvalidForm, match="too long"):
        form.next_part()


def test_a_file_has_a_largest_size():
    for size_max, fits in ((11, False), (12, True)):
        form = Form(BytesBody(FORM), "B")
        form.next_part()
        form.read_value()
        form.next_part()
        body = SizeLimitedFileBody(form, size_max)
        if fits:
            assert len(body.read()) == 12
            continue
        with pytest.raises(FileTooLarge):
            body.read()
        assert body.is_too_large


@pytest.mark.parametrize(
    ("value", "kind", "parameters"),
    [
        ("form-data", "form-data", {}),
        ('form-data; name="a;b"; filename="q\\"u"', "form-data", {"name": "a;b", "filename": 'q\\"u'}),
        ("a/b; charset=x; boundary=B; y=z", "a/b", {"charset": "x", "boundary": "B", "y": "z"}),
        ('x;filename=""', "x", {"filename": ""}),
        ("x; filename*=UTF-8''a", "x", {"filename*": "UTF-8''a"}),
        ("", "", {}),
    ],
)  # fmt: skip
def test_parameters_of_header_values(value, kind, parameters):
    assert parse_parameters(value) == (kind, parameters)

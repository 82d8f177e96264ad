"""Forms of browsers: fields are few, small and said once; the file is as large as the policy allows."""

import json
from base64 import b64encode

import pytest

from swift.http.body import BytesBody
from swift.http.request import Request
from swift.middleware.formpost.form import Form, InvalidForm
from swift.s3.api.forms import (
    FIELDS_BYTES_MAX,
    FIELDS_MAX,
    FormUpload,
    boundary_of,
    is_form,
    parse_post_policy,
    validate_form,
)
from swift.s3.core.errors import RejectedBody, S3Error


def part(name, value, *, more=b"", file_name=None):
    about = f'form-data; name="{name}"' + (f'; filename="{file_name}"' if file_name is not None else "")
    return b"--B\r\nContent-Disposition: " + about.encode() + b"\r\n" + more + b"\r\n" + value + b"\r\n"


def posted(*parts, end=b"--B--\r\n"):
    return FormUpload(Form(BytesBody(b"".join(parts) + end), "B"))


def code_of(form):
    with pytest.raises(S3Error) as caught:
        form.read_fields()
    return caught.value.code


FILE = part("file", b"0123456789", more=b"Content-Type: text/x\r\n", file_name="a.txt")


def test_fields_before_the_file_are_kept_and_those_behind_it_are_not():
    form = posted(part("Key", b"k"), part("", b"nameless"), FILE, part("acl", b"public-read"))
    form.read_fields()
    assert form.fields == {"key": "k"}
    assert form.file_name == "a.txt"
    assert form.file_body(0, 100).read() == b"0123456789"


@pytest.mark.parametrize(
    "sent, name",
    [("C:\\\\Users\\\\me\\\\a.txt", "a.txt"), ("/home/me/b", "b"), ("\u00fc", "\u00fc"), ("", "")],
)
def test_a_file_has_the_last_part_of_its_path_as_name(sent, name):
    form = posted(part("file", b"x", file_name=sent))
    form.read_fields()
    assert form.file_name == name


@pytest.mark.parametrize(
    "parts, code",
    [
        ([part("key", b"k")], "InvalidArgument"),
        ([part("key", b"k"), part("KEY", b"l"), FILE], "InvalidArgument"),
        ([part("key", b"\xff"), FILE], "InvalidArgument"),
        ([part(f"f{n}", b"") for n in range(FIELDS_MAX + 1)] + [FILE], "InvalidArgument"),
        ([part("key", b"k" * (FIELDS_BYTES_MAX + 1)), FILE], "MaxPostPreDataLengthExceededError"),
        ([part(f"f{n}", b"k" * 4000) for n in range(17)] + [FILE], "MaxPostPreDataLengthExceededError"),
    ],
    ids=["no file", "twice", "no text", "too many", "too long", "too long together"],
)
def test_a_form_that_is_none_is_refused(parts, code):
    assert code_of(posted(*parts)) == code


@pytest.mark.parametrize("least, most, code", [(11, 20, "EntityTooSmall"), (0, 9, "EntityTooLarge")])
@pytest.mark.parametrize("step", [1, 4, -1])
def test_a_file_of_another_size_than_it_may_have_is_refused_while_it_is_read(least, most, code, step):
    form = posted(FILE)
    form.read_fields()
    body = form.file_body(least, most)
    with pytest.raises(RejectedBody):
        while body.read(step):
            pass
    assert body.s3_error.code == code


@pytest.mark.parametrize("least, most", [(10, 10), (0, 10), (10, 99)])
def test_a_file_of_a_size_that_it_may_have_is_read(least, most):
    form = posted(FILE)
    form.read_fields()
    body = form.file_body(least, most)
    assert b"".join(iter(lambda: body.read(3), b"")) == b"0123456789"
    assert (body.read(3), body.received, body.s3_error) == (b"", 10, None)


def test_a_file_that_breaks_off_is_no_file():
    form = posted(FILE[:-4], end=b"")
    form.read_fields()
    with pytest.raises(InvalidForm):
        form.file_body(0, 100).read()


@pytest.mark.parametrize(
    "method, path, kind, wanted",
    [
        ("POST", "/bucket", "multipart/form-data; boundary=B", True),
        ("POST", "/bucket/", 'Multipart/Form-Data; boundary="B"', True),
        ("POST", "/v1/AUTH_a", "multipart/form-data; boundary=B", False),
        ("PUT", "/bucket", "multipart/form-data; boundary=B", False),
        ("POST", "/bucket", "multipart/form-data", False),
        ("POST", "/bucket", "application/x-www-form-urlencoded; boundary=B", False),
        ("POST", "/bucket", "", False),
    ],
)
def test_only_forms_for_buckets_are_forms(method, path, kind, wanted):
    request = Request(method, path, {"content-type": kind})
    assert is_form(request) is wanted
    assert not wanted or boundary_of(request) == "B"


# --- what the policy of a form lets it say ------------------------------------------------------------


END = "2026-12-01T12:00:00.000Z"
NOW = 1_780_000_000.0


def encoded(tree):
    text = tree if isinstance(tree, str) else json.dumps(tree)
    return b64encode(text.encode()).decode()


def policy(*conditions, expiration=END):
    return parse_post_policy(encoded({"expiration": expiration, "conditions": list(conditions)}))


@pytest.mark.parametrize(
    ("conditions", "fields", "good"),
    [
        ([{"key": "a"}], {"key": "a"}, True),
        ([{"key": "a"}], {"key": "b"}, False),
        ([{"key": "a"}], {}, False),
        ([["eq", "$Key", "a"]], {"key": "a"}, True),
        ([["starts-with", "$key", "user/"]], {"key": "user/x"}, True),
        ([["starts-with", "$key", "user/"]], {"key": "other"}, False),
        ([["starts-with", "$key", ""]], {"key": "anything"}, True),
        ([["starts-with", "$content-type", "image/"]], {"content-type": "image/png,image/gif"}, True),
        ([["starts-with", "$content-type", "image/"]], {"content-type": "image/png,text/html"}, False),
        ([{"key": "a"}], {"key": "a", "acl": "public-read"}, False),
        ([{"key": "a", "acl": "private"}], {"key": "a", "acl": "private"}, True),
        ([{"key": "a"}], {"key": "a", "x-ignore-me": "x", "policy": "p", "x-amz-signature": "s"}, True),
        ([{"key": "a"}], {"key": "a", "x-amz-meta-a": "x"}, False),
        ([{"key": "a"}, {"bucket": "b"}], {"key": "a", "bucket": "b"}, True),
        ([{"key": "a"}, {"bucket": "b"}], {"key": "a", "bucket": "c"}, False),
        ([{"key": "a"}], {"key": "a", "bucket": "b"}, False),
        ([{"key": "a"}, ["starts-with", "$bucket", ""]], {"key": "a", "bucket": "b"}, True),
    ],
)
def test_every_field_needs_a_condition_that_holds(conditions, fields, good):
    found = policy(*conditions)
    if good:
        validate_form(found, fields, fields, NOW)
        return
    with pytest.raises(S3Error) as caught:
        validate_form(found, fields, fields, NOW)
    assert caught.value.code == "AccessDenied"


def test_the_name_of_the_file_is_put_in_before_the_key_is_compared():
    starts = policy(["starts-with", "$key", "user/"])
    with pytest.raises(S3Error):
        validate_form(starts, {"key": "../x"}, {"key": "${filename}"}, NOW)
    literally = policy({"key": "user/${filename}"})
    validate_form(literally, {"key": "user/x"}, {"key": "user/${filename}"}, NOW)
    with pytest.raises(S3Error):
        validate_form(literally, {"key": "user/x"}, {"key": "user/x"}, NOW)


def test_a_policy_ends():
    found = policy({"key": "a"})
    validate_form(found, {"key": "a"}, {"key": "a"}, found.expires - 1)
    with pytest.raises(S3Error, match="expired"):
        validate_form(found, {"key": "a"}, {"key": "a"}, found.expires)


def test_the_narrowest_of_sizes_counts():
    found = policy(["content-length-range", 1, 100], ["content-length-range", "5", "1000"])
    assert (found.size_min, found.size_max) == (5, 100)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "%%%",
        encoded("x"),
        encoded("[]"),
        encoded("[" * 9000),
        encoded({}),
        encoded({"expiration": END}),
        encoded({"expiration": END, "conditions": {}}),
        encoded({"expiration": "soon", "conditions": []}),
        encoded({"expiration": "2099-01-01 00:00:00.000000+00:00", "conditions": []}),
        encoded({"expiration": "2099-01-01", "conditions": []}),
        encoded({"expiration": "20990101T000000Z", "conditions": []}),
        encoded({"expiration": "2099-W01-1T00:00:00Z", "conditions": []}),
        encoded({"expiration": 5, "conditions": []}),
        encoded({"expiration": END, "conditions": [], "more": 1}),
        encoded({"expiration": END, "conditions": [5]}),
        encoded({"expiration": END, "conditions": [{}]}),
        encoded({"expiration": END, "conditions": [{"key": 5}]}),
        encoded({"expiration": END, "conditions": [["eq", "$key"]]}),
        encoded({"expiration": END, "conditions": [["eq", "key", "a"]]}),
        encoded({"expiration": END, "conditions": [["ends-with", "$key", "a"]]}),
        encoded({"expiration": END, "conditions": [["content-length-range", -1, 5]]}),
        encoded({"expiration": END, "conditions": [["content-length-range", True, 5]]}),
        encoded({"expiration": END, "conditions": [["content-length-range", "x", 5]]}),
        b64encode(b"\xff\xfe{}").decode(),
        "A" * 50_000,
    ],
)
def test_what_is_no_policy_is_told_so(text):
    with pytest.raises(S3Error) as caught:
        parse_post_policy(text)
    assert caught.value.code == "InvalidPolicyDocument"

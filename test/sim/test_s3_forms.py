"""Form uploads by browsers: their fields, and errors before anything is stored."""

import hmac
import json
from base64 import b64encode

import pytest
from botocore.config import Config
from botocore.session import Session

CLIENT = {"aws_access_key_id": "test:tester", "aws_secret_access_key": "testing", "region_name": "us-east-1"}


@pytest.fixture(scope="module")
def signer():
    return Session().create_client(
        "s3", endpoint_url="http://h", config=Config(signature_version="s3v4"), **CLIENT
    )


def form_of(fields, data, *, name="a b.txt", repeat="", kind=""):
    parts = [
        f'--B\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{text}\r\n'
        for field, text in [*fields.items(), *([(repeat, "again")] if repeat else [])]
    ]
    parts.append(f'--B\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n{kind}\r\n')
    return "".join(parts).encode() + data + b"\r\n--B--\r\n"


@pytest.fixture
def send(s3, signer):
    def post(data=b"data", *, key="k", conditions=(), change=None, name="a b.txt", repeat="", **fields):
        named = {field.replace("_", "-") if "amz" in field else field: text for field, text in fields.items()}
        every = [*({field: text} for field, text in named.items()), *conditions]
        made = signer.generate_presigned_post("bucket", key, Fields=dict(named), Conditions=every)
        body = form_of({**made["fields"], **(change or {})}, data, name=name, repeat=repeat)
        return s3.raw("POST", "/bucket", {"content-type": "multipart/form-data; boundary=B"}, body)

    return post


def test_the_file_of_a_form_becomes_an_object_with_its_fields(s3, send):
    response = send(key="in/${filename}", name="C:\\x\\a b.txt", x_amz_meta_m="1")
    assert response.status == 204
    assert response.headers["location"] == "http://h/bucket/in/a%20b.txt"
    found = s3("GET", "/bucket/in/a%20b.txt")
    assert (found.body, found.headers["x-amz-meta-m"]) == (b"data", "1")


def test_the_file_name_is_substituted_in_every_field(s3, send):
    fields = {
        "x_amz_meta_m": "<${filename}> ${filename}",
        "Cache-Control": "${filename}",
    }
    redirect = "http://done.example/${filename}"
    response = send(key="in/${filename}", name="x.txt", success_action_redirect=redirect, **fields)
    assert response.headers["location"].startswith("http://done.example/x.txt?bucket=bucket&")
    found = s3("GET", "/bucket/in/x.txt")
    assert found.headers["x-amz-meta-m"] == "<x.txt> x.txt"
    assert found.headers["cache-control"] == "x.txt"


def test_the_file_name_cannot_exceed_the_size_limit_of_a_form(send):
    name, value = "n" * 4000, "${filename}" * 100
    assert send(name=name, x_amz_meta_m=value).code == "MaxPostPreDataLengthExceededError"


def test_the_file_name_cannot_violate_a_condition(send):
    conditions = [["starts-with", "$x-amz-meta-o", "in/"]]
    assert send(name="a", change={"x-amz-meta-o": "in/${filename}"}, conditions=conditions).status == 204
    assert (
        send(name="in/a", change={"x-amz-meta-o": "${filename}"}, conditions=conditions).code
        == "AccessDenied"
    )


def test_a_form_chooses_the_status_of_its_response(send):
    assert send(success_action_status="200").status == 200
    assert send(success_action_status="201").texts("Key") == ["k"]
    assert send(success_action_status="500").status == 204
    response = send(success_action_redirect="http://done.example/?a=b#part")
    assert response.status == 303
    assert response.headers["location"].startswith("http://done.example/?a=b&bucket=bucket&key=k&etag=")


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "//x", "http://", "http://[", "http://a b", "http://\u00e9"]
)
def test_an_unsafe_redirect_is_ignored(send, url):
    response = send(success_action_redirect=url)
    assert "javascript" not in response.headers.get("location", "") and response.status == 204


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"key": "other"}, "AccessDenied"),
        ({"acl": "public-read"}, "AccessDenied"),
        ({"x-amz-signature": "0" * 64}, "SignatureDoesNotMatch"),
        ({"x-amz-credential": "x/y"}, "InvalidArgument"),
        ({"bucket": "other"}, "InvalidArgument"),
        ({"key": ""}, "UserKeyMustBeSpecified"),
        ({"key": "k" * 1025}, "KeyTooLongError"),
        ({"key": "a\x00b"}, "InvalidURI"),
        ({"policy": "e30="}, "SignatureDoesNotMatch"),
    ],
)
def test_a_modified_form_stores_nothing(s3, send, change, code):
    assert send(change=change).code == code
    assert s3.names("bucket") == []


@pytest.mark.parametrize(("size", "code"), [(0, "EntityTooSmall"), (11, "EntityTooLarge")])
def test_a_file_must_have_the_signed_size(s3, send, size, code):
    assert send(b"x" * size, conditions=[["content-length-range", 1, 10]]).code == code
    assert s3.names("bucket") == []


def test_a_field_with_an_invalid_header_name_is_refused(s3, send):
    assert send(x_amz_meta_m="a\nb").code in ("InvalidArgument", "AccessDenied")
    assert s3.names("bucket") == []


def test_a_form_without_a_policy_is_anonymous(s3):
    head = {"content-type": "multipart/form-data; boundary=B"}
    assert s3.raw("POST", "/bucket", head, form_of({"key": "k"}, b"x")).status in (403, 404)
    assert s3.names("bucket") == []


def test_a_repeated_field_is_refused(s3, send):
    assert send(repeat="key").code == "InvalidArgument"
    assert s3.names("bucket") == []


def test_a_file_has_the_signed_content_type(s3, signer):
    kind = "Content-Type: text/html\r\n"
    sent = {"content-type": "multipart/form-data; boundary=B"}
    for fields, stored in (({}, "binary/octet-stream"), ({"Content-Type": "text/plain"}, "text/plain")):
        conditions = [fields] if fields else []
        made = signer.generate_presigned_post("bucket", "k", Fields=dict(fields), Conditions=conditions)
        body = form_of(made["fields"], b"<script>", kind=kind)
        assert s3.raw("POST", "/bucket", sent, body).status == 204
        assert s3("HEAD", "/bucket/k").headers["content-type"] == stored


def test_a_policy_must_name_the_bucket(s3):
    conditions = [{"key": "k"}, {"AWSAccessKeyId": "test:tester"}]
    for more, status in (([], 403), ([{"bucket": "other"}], 403), ([{"bucket": "bucket"}], 204)):
        document = {"expiration": "2099-01-01T00:00:00Z", "conditions": conditions + more}
        policy = b64encode(json.dumps(document).encode()).decode()
        signature = b64encode(hmac.digest(b"testing", policy.encode(), "sha1")).decode()
        fields = {"key": "k", "AWSAccessKeyId": "test:tester", "policy": policy, "signature": signature}
        sent = {"content-type": "multipart/form-data; boundary=B"}
        assert s3.raw("POST", "/bucket", sent, form_of(fields, b"x")).status == status

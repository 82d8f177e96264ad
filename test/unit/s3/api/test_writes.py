"""What is stored with an object, and which wishes are refused rather than ignored."""

import pytest

from swift.http import fields
from swift.http.response import Response
from swift.s3.api.writes import parse_source_conditions, parse_write_conditions, precondition_error
from swift.s3.core.errors import S3Error
from test.support.s3_fixtures import code_of


@pytest.mark.parametrize(
    "headers",
    [
        {"x-amz-server-side-encryption": "aws:kms"},
        {"x-amz-server-side-encryption-aws-kms-key-id": "k"},
        {"x-amz-mfa": "1"},
        {"x-amz-if-match-size": "1"},
        {"if-match": '"a"', "if-none-match": "*"},
    ],
)
def test_wishes_that_cannot_be_met_are_not_ignored(front, headers):
    assert code_of(front("PUT", "/bucket/key", headers, b"x")) == "NotImplemented"
    assert not front.store.objects


@pytest.mark.parametrize("name", ["standard", "", "GLACIER", " "])
def test_a_storage_class_is_named_exactly(front, name):
    assert code_of(front("PUT", "/bucket/key", {"x-amz-storage-class": name}, b"x")) == "InvalidStorageClass"
    assert not front.store.objects


@pytest.mark.parametrize(
    "headers",
    [
        {"x-amz-server-side-encryption-customer-algorithm": "AES256"},
        {"x-amz-object-lock-mode": "GOVERNANCE"},
        {"x-amz-object-lock-legal-hold": "MAYBE"},
    ],
)
def test_wishes_that_are_half_said_are_refused(front, headers):
    assert code_of(front("PUT", "/bucket/key", headers, b"x")) == "InvalidArgument"
    assert not front.store.objects
    assert front.store.objects == {}


@pytest.mark.parametrize("place", ["/elsewhere", "http://a.test/", "https://a.test/b"])
def test_where_a_web_site_sends_its_visitors_is_kept_with_the_object(front, place):
    assert front("PUT", "/bucket/key", {"x-amz-website-redirect-location": place}, b"x").status == 200
    kept = front.store.objects["bucket", "key"][1]
    assert kept[fields.SYSMETA_S3_REDIRECT] == place


@pytest.mark.parametrize("place", ["ftp://a.test/", "", "a.test", "/" + "x" * 2048, "javascript:x"])
def test_visitors_are_sent_to_no_other_kind_of_place(front, place):
    headers = {"x-amz-website-redirect-location": place}
    assert code_of(front("PUT", "/bucket/key", headers, b"x")) == "InvalidRedirectLocation"
    assert front.store.objects == {}


@pytest.mark.parametrize(
    "text", ["=", "key%", "key%zz", "a=1&a=2", "&".join(f"k{n}=" for n in range(21)), "k=%ff"]
)
def test_a_header_of_tags_that_is_no_query_is_an_invalid_argument(front, text):
    assert code_of(front("PUT", "/bucket/key", {"x-amz-tagging": text}, b"x")) == "InvalidArgument"
    assert front.store.objects == {}


# --- conditions of writes and copies: handed on, or refused where nobody would judge them -------------


class Account:
    """An account that has the object, or not."""

    def __init__(self, status):
        self.status = status
        self.asked = []

    def head(self, bucket, key):
        self.asked.append((bucket, key))
        return Response(self.status)


@pytest.mark.parametrize(
    "headers",
    [{"if-match": '"e"'}, {"if-match": "*"}, {"if-none-match": "*"}, {"if-none-match": " * "}],
    ids=str,
)
def test_what_the_store_can_judge_is_handed_on(headers):
    found = parse_write_conditions({**headers, "x-other": "1"})
    places = found.pop(fields.BACKEND_ETAG_IS_AT).split(",")
    assert found == headers
    assert fields.SYSMETA_S3_ETAG in places and fields.SYSMETA_SLO_ETAG in places


def test_without_conditions_nothing_is_said():
    assert parse_write_conditions({"content-type": "t/x"}) == {}


@pytest.mark.parametrize(
    "headers",
    [
        {"if-none-match": '"e"'},
        {"if-none-match": ""},
        {"if-match": '"e"', "if-none-match": "*"},
        {"if-modified-since": "Thu, 01 Jan 2009 00:00:00 GMT"},
        {"if-unmodified-since": "whenever"},
        {"if-match": '"e"', "x-amz-if-match-size": "5"},
        {"x-amz-if-match-last-modified-time": "x"},
    ],
    ids=str,
)
def test_what_nobody_judges_is_refused_and_not_passed_over(headers):
    with pytest.raises(S3Error) as refused:
        parse_write_conditions(headers)
    assert refused.value.code == "NotImplemented"


def test_a_copy_has_conditions_on_its_source_and_its_target():
    headers = {"x-amz-copy-source-if-match": '"s"', "if-match": '"t"'}
    assert parse_source_conditions(headers) == {
        "if-match": '"s"',
        fields.BACKEND_ETAG_IS_AT: fields.SYSMETA_S3_ETAG,
    }


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (("if-match", "if-unmodified-since"), ("if-match",)),
        (("if-none-match", "if-modified-since"), ("if-none-match",)),
        (("if-match", "if-modified-since"), ("if-match", "if-modified-since")),
        (("if-modified-since", "if-unmodified-since"), ("if-modified-since", "if-unmodified-since")),
    ],
)
def test_an_etag_says_more_than_its_date(given, left):
    found = parse_source_conditions({f"x-amz-copy-source-{name}": "x" for name in given})
    assert found.keys() - {fields.BACKEND_ETAG_IS_AT} == set(left)


@pytest.mark.parametrize(
    ("conditions", "status", "code", "told"),
    [
        ({"if-match": '"e"'}, 404, "NoSuchKey", None),
        ({"if-match": '"e"'}, 200, "PreconditionFailed", "If-Match"),
        ({"if-match": '"e"'}, 503, "PreconditionFailed", "If-Match"),
        ({"if-none-match": "*"}, 404, "PreconditionFailed", "If-None-Match"),
        ({}, 404, "PreconditionFailed", "If-None-Match"),
    ],
)
def test_a_condition_that_is_not_met_is_named(conditions, status, code, told):
    account = Account(status)
    error = precondition_error(account, "bucket", "key", conditions)
    assert (error.code, error.details.get("Condition")) == (code, told)
    assert account.asked == ([("bucket", "key")] if "if-match" in conditions else [])


# --- names of versions --------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["odd", "1e999", "..", "%00", "-1.5", "1700000000.00000_x"])
def test_what_no_version_is_called_is_an_invalid_argument(front, version):
    front("PUT", "/bucket/key", {}, b"x")
    for method, path in (
        ("GET", "/bucket/key?"),
        ("DELETE", "/bucket/key?"),
        ("GET", "/bucket/key?tagging&"),
    ):
        answer = front(method, f"{path}versionId={version}")
        assert code_of(answer) == "InvalidArgument"
    source = {"x-amz-copy-source": f"/bucket/key?versionId={version}"}
    assert code_of(front("PUT", "/bucket/copy", source)) == "InvalidArgument"
    assert set(front.store.objects) == {("bucket", "key")}

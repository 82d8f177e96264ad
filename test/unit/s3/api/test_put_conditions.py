"""Conditions of writes and copies: handed on, or refused where nobody would judge them."""

import pytest

from swift.http import fields
from swift.http.response import Response
from swift.s3.api.put import source_conditions, unmet, writing_conditions
from swift.s3.errors import S3Error


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
    found = writing_conditions({**headers, "x-other": "1"})
    places = found.pop(fields.BACKEND_ETAG_IS_AT).split(",")
    assert found == headers
    assert fields.SYSMETA_S3_ETAG in places and fields.SYSMETA_SLO_ETAG in places


def test_without_conditions_nothing_is_said():
    assert writing_conditions({"content-type": "t/x"}) == {}


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
        writing_conditions(headers)
    assert refused.value.code == "NotImplemented"


def test_a_copy_has_conditions_on_its_source_and_its_target():
    headers = {"x-amz-copy-source-if-match": '"s"', "if-match": '"t"'}
    assert source_conditions(headers) == {
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
    found = source_conditions({f"x-amz-copy-source-{name}": "x" for name in given})
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
    error = unmet(account, "bucket", "key", conditions)
    assert (error.code, error.details.get("Condition")) == (code, told)
    assert account.asked == ([("bucket", "key")] if "if-match" in conditions else [])

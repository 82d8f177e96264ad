"""One request as handlers see it: parameters, small bodies, and the times of answers."""

from types import SimpleNamespace

import pytest

from swift.http.request import Request
from swift.s3.core.call import Call, Features, invalid_argument, iso_time, iso_time_of_row
from swift.s3.core.claim import anonymous_claim
from swift.s3.core.errors import S3Error
from test.support.s3_fixtures import code_of


def call(query="", headers=None, body=b""):
    request = Request("GET", "/bucket", dict(headers or {}), body, query=query)
    return Call(request, None, SimpleNamespace(claim=anonymous_claim()), None, Features(), None, None)


@pytest.mark.parametrize(
    ("query", "count"),
    [("", 1000), ("n=%2B7", 7), ("n=%207 ", 7), ("n=7", 7), ("n=1000", 1000), ("n=5000", 1000), ("n=0", 0)],
)
def test_a_number_is_at_most_what_is_allowed(query, count):
    assert call(query).count_param("n", 1000) == count


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "%D9%A1", "9" * 5000, "--1", "-"])
def test_what_is_no_number_is_an_invalid_argument(text):
    with pytest.raises(S3Error) as refused:
        call(f"n={text}").count_param("n", 1000)
    assert refused.value.code == "InvalidArgument"
    assert refused.value.details["ArgumentName"] == "n"


def test_a_parameter_is_text():
    assert call("p=%C3%BC").text_param("p") == "ü"
    assert call().text_param("p") == ""
    with pytest.raises(S3Error) as refused:
        call("p=%ff").text_param("p")
    assert refused.value.code == "InvalidArgument"
    assert refused.value.details == {"ArgumentName": "p", "ArgumentValue": "%FF"}


@pytest.mark.parametrize("body", [b"", b"x"])
def test_a_body_where_none_belongs_is_refused(body):
    made = call(body=body)
    if body:
        with pytest.raises(S3Error) as refused:
            made.require_no_body()
        assert refused.value.code == "UnexpectedContent"
    else:
        made.require_no_body()


def test_times_are_rounded_down_alike():
    assert (
        iso_time(1_700_000_000.0)
        == iso_time_of_row("2023-11-14T22:13:20.000000")
        == "2023-11-14T22:13:20.000Z"
    )
    assert (
        iso_time(1_700_000_000.99999)
        == iso_time_of_row("2023-11-14T22:13:20.999990")
        == "2023-11-14T22:13:20.000Z"
    )


def test_an_argument_is_told_as_text():
    details = invalid_argument("a", "\xc3\xbc").details
    assert details == {"ArgumentName": "a", "ArgumentValue": "ü"}


def test_a_document_that_is_missing_is_told_as_such(front):
    assert code_of(front("PUT", "/bucket?tagging")) == "MissingRequestBodyError"


def test_a_document_that_is_too_large_is_read_by_nobody(front):
    assert code_of(front("PUT", "/bucket?tagging", {}, b"<" * 200_000)) == "MalformedXML"

"""Which format a listing is answered in (public-api.md §7.1)."""

import pytest

from swift.http.negotiate import ListingFormat, add_vary, choose_format
from swift.http.request import Request
from swift.http.response import HTTPError

PLAIN, JSON, XML, TEXT_XML = ListingFormat


def request(accept=None, query=""):
    return Request("GET", "/v1/a/c", {} if accept is None else {"accept": accept}, query=query)


@pytest.mark.parametrize(
    "query, chosen",
    [
        ("format=json", JSON),
        ("format=JSON", JSON),
        ("format=xml", XML),
        ("format=plain", PLAIN),
        ("format=bogus", PLAIN),
        ("format=", TEXT_XML),
    ],
)
def test_the_query_decides_before_accept(query, chosen):
    assert choose_format(request("text/xml", query)) is chosen


@pytest.mark.parametrize(
    "accept, chosen",
    [
        (None, PLAIN),
        ("", PLAIN),
        ("text/plain", PLAIN),
        ("application/json", JSON),
        ("application/xml", XML),
        ("text/xml", TEXT_XML),
        ("text/*", PLAIN),
        ("*/*", PLAIN),
        ("application/*", JSON),
        ("*/xml", XML),
        ("application/json;q=0.5, text/xml", TEXT_XML),
        ("application/json ; q=0.5 , application/xml ; q=0.4", JSON),
        ("application/json;charset=utf8", JSON),
        ("*/*;q=0.1,application/json;q=0.1", JSON),
        ("application/json;q=0, */*", PLAIN),
        ("text/html, */*;q=0.2", PLAIN),
        ('text/html;level="1;2", application/json', JSON),
    ],
)
def test_accept_is_matched_by_quality_then_specificity(accept, chosen):
    assert choose_format(request(accept)) is chosen


@pytest.mark.parametrize(
    "accept",
    [
        "foo",
        "text/plain;q=x",
        "text/plain,",
        ", text/xml",
        "*",
        "a b/c",
        "/",
        "a/b;",
        "a/b;c",
    ],
)
def test_a_header_that_does_not_parse_is_a_bad_request(accept):
    with pytest.raises(HTTPError) as caught:
        choose_format(request(accept))
    assert caught.value.response.status == 400
    assert caught.value.response.body == b"Invalid Accept header"


@pytest.mark.parametrize("accept", ["image/png", "Application/JSON", "TEXT/*"])
def test_nothing_acceptable_is_406_and_types_are_compared_as_written(accept):
    with pytest.raises(HTTPError) as caught:
        choose_format(request(accept))
    assert caught.value.response.status == 406


def test_a_format_that_is_not_utf_8_is_a_bad_request():
    with pytest.raises(HTTPError) as caught:
        choose_format(request(query="format=%ff"))
    assert caught.value.response.body == b'"format" parameter not valid UTF-8'


def test_vary_is_added_unless_the_query_fixed_the_format():
    headers = {"vary": "Origin"}
    add_vary(request(), headers)
    add_vary(request(), headers)
    assert headers == {"vary": "Origin, Accept"}
    headers = {}
    add_vary(request(query="format=json"), headers)
    assert headers == {}


def test_types_carry_their_charset():
    assert JSON.content_type == "application/json; charset=utf-8"
    assert XML.is_xml and TEXT_XML.is_xml and not JSON.is_xml

"""Query strings of listing requests to backends."""

import pytest

from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.proxy.query import listing_query


def query(text, kind="container", method="GET", **env):
    return listing_query(Request(method, "/v1/a/c", {}, query=text, env=env), kind)


@pytest.mark.parametrize(
    ("asked", "kind", "sent"),
    [
        ("", "container", "format=json"),
        ("prefix=a%2Fb&limit=3", "container", "prefix=a%2Fb&limit=3&format=json"),
        ("format=xml", "container", "format=xml"),
        ("path=a", "container", "path=a&format=json"),
        ("path=a&marker=b", "account", "marker=b&format=json"),
        ("marker=%C5%82", "container", "marker=%C5%82&format=json"),
        ("marker=a%26b%3Dc", "container", "marker=a%26b%3Dc&format=json"),
    ],
)
def test_what_a_client_asks_is_passed_on_as_json(asked, kind, sent):
    assert query(asked, kind) == sent


def test_text_is_asked_for_where_it_is_wanted():
    assert query("format=json", **{environkeys.LISTING_TEXT: True}) == "format=plain"
    assert query("format=json", method="HEAD", **{environkeys.LISTING_TEXT: True}) == "format=json"


@pytest.mark.parametrize(
    ("name", "kind"), [("marker", "account"), ("prefix", "container"), ("path", "container")]
)
def test_a_parameter_that_is_no_utf8_is_refused(name, kind):
    with pytest.raises(HTTPError, match="400"):
        query(f"{name}=%ff", kind)


def test_nobody_minds_what_does_not_count():
    assert query("path=%ff", "account") == "format=json"
    assert query("marker=%ff", method="HEAD") == "marker=%FF&format=json"

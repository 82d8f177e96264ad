"""Where the paths of a web site lead."""

import pytest

from swift.http.request import Request
from swift.http.response import Response
from swift.s3.config.website import (
    WEBSITE,
    decode_document,
    decode_site,
    encode_document,
    parse_site_document,
    serve_site,
)
from swift.s3.core.errors import S3Error
from swift.s3.core.xml import parse, render


def site(text):
    return parse_site_document(
        parse(WEBSITE, f"<WebsiteConfiguration>{text}</WebsiteConfiguration>".encode())
    )


INDEX = "<IndexDocument><Suffix>i.html</Suffix></IndexDocument>"
ERROR = "<ErrorDocument><Key>e.html</Key></ErrorDocument>"


def rules(*pairs):
    items = ""
    for when, then in pairs:
        condition = f"<Condition>{when}</Condition>" if when else ""
        items += f"<RoutingRule>{condition}<Redirect>{then}</Redirect></RoutingRule>"
    return f"<RoutingRules>{items}</RoutingRules>"


class Pages:
    def __init__(self, **pages):
        self.pages = {name.replace("__", "/").replace("_", "."): data for name, data in pages.items()}

    def read(self, key):
        if key not in self.pages:
            raise S3Error("NoSuchKey")
        return Response(200, {}, self.pages[key])


def go(found, path, method="GET", **pages):
    request = Request(method, "/" + path, {"host": "b.web.test"})
    response = serve_site(request, found, path, Pages(**pages).read)
    return response.status, response.headers.get("location") or response.read_body()


def test_pages_are_found():
    found = site(INDEX)
    assert go(found, "", i_html=b"home") == (200, b"home")
    assert go(found, "a/", a__i_html=b"a") == (200, b"a")
    assert go(found, "a", a__i_html=b"a") == (302, "http://b.web.test/a/")
    assert go(found, "a", a=b"file", a__i_html=b"a") == (200, b"file")
    assert go(found, "a")[0] == 404
    assert go(found, "a", "HEAD") == (404, b"")
    assert go(found, "", "DELETE", i_html=b"home")[0] == 405


def test_an_object_may_send_its_visitors_elsewhere():
    class Moved(Pages):
        def read(self, key):
            page = super().read(key)
            page.headers["x-amz-website-redirect-location"] = "https://a.test/new"
            return page

    request = Request("GET", "/old", {"host": "b.web.test"})
    response = serve_site(request, site(INDEX), "old", Moved(old=b"x").read)
    assert (response.status, response.headers["location"]) == (301, "https://a.test/new")
    assert response.read_body() == b""


def test_an_error_page_is_shown_with_the_status_of_the_error():
    assert go(site(INDEX + ERROR), "x", e_html=b"sorry") == (404, b"sorry")
    assert go(site(INDEX + ERROR), "x")[0] == 404


@pytest.mark.parametrize(
    ("when", "then", "path", "answer"),
    [
        ("<KeyPrefixEquals>a/</KeyPrefixEquals>", "<HostName>o</HostName>", "a/x", (301, "http://o/a/x")),
        ("", "<ReplaceKeyWith>k</ReplaceKeyWith>", "a/x", (301, "http://b.web.test/k")),
        (
            "<KeyPrefixEquals>a/</KeyPrefixEquals>",
            "<ReplaceKeyPrefixWith>b/</ReplaceKeyPrefixWith><HttpRedirectCode>307</HttpRedirectCode>",
            "a/x?",
            (307, "http://b.web.test/b/x%3F"),
        ),
        (
            "<HttpErrorCodeReturnedEquals>404</HttpErrorCodeReturnedEquals>",
            "<Protocol>https</Protocol><ReplaceKeyPrefixWith>?q=</ReplaceKeyPrefixWith>",
            "x",
            (301, "https://b.web.test/%3Fq%3Dx"),
        ),
    ],
)
def test_redirections_lead_where_they_say(when, then, path, answer):
    assert go(site(INDEX + rules((when, then))), path) == answer


def test_a_redirection_after_an_error_waits_for_it():
    when = "<HttpErrorCodeReturnedEquals>404</HttpErrorCodeReturnedEquals>"
    found = site(INDEX + rules((when, "<HostName>o</HostName>")))
    assert go(found, "x", x=b"here") == (200, b"here")
    assert go(found, "y") == (301, "http://o/y")


def test_a_configuration_comes_back_as_it_went():
    for text in (
        INDEX + ERROR + rules(("", "<HostName>o</HostName>")),
        "<RedirectAllRequestsTo><HostName>h</HostName></RedirectAllRequestsTo>",
    ):
        tree = parse(WEBSITE, f"<WebsiteConfiguration>{text}</WebsiteConfiguration>".encode())
        again = decode_document(encode_document(tree))
        assert parse(WEBSITE, render(WEBSITE, again)) == tree
        assert decode_site(encode_document(tree)) == parse_site_document(tree)
    assert decode_site(b"x") is None and decode_site(b"[" * 100_000) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<IndexDocument><Suffix/></IndexDocument>",
        "<IndexDocument><Suffix>a/b</Suffix></IndexDocument>",
        ERROR,
        INDEX + "<ErrorDocument><Key/></ErrorDocument>",
        INDEX + f"<ErrorDocument><Key>{'k' * 1025}</Key></ErrorDocument>",
        INDEX + "<RedirectAllRequestsTo><HostName>h</HostName></RedirectAllRequestsTo>",
        "<RedirectAllRequestsTo><HostName/></RedirectAllRequestsTo>",
        "<RedirectAllRequestsTo><HostName>h/x</HostName></RedirectAllRequestsTo>",
        "<RedirectAllRequestsTo><HostName>h&#10;X: y</HostName></RedirectAllRequestsTo>",
        "<RedirectAllRequestsTo><HostName>h</HostName><Protocol>ftp</Protocol></RedirectAllRequestsTo>",
        INDEX + rules(("", "")),
        INDEX + rules(("<KeyPrefixEquals>a</KeyPrefixEquals>", "<HttpRedirectCode>200</HttpRedirectCode>")),
        INDEX + rules(("", "<HttpRedirectCode>300</HttpRedirectCode>")),
        INDEX
        + rules(("", "<ReplaceKeyWith>a</ReplaceKeyWith><ReplaceKeyPrefixWith>b</ReplaceKeyPrefixWith>")),
        INDEX
        + rules(("<HttpErrorCodeReturnedEquals>200</HttpErrorCodeReturnedEquals>", "<HostName>h</HostName>")),
        INDEX + rules(*[("", "<HostName>h</HostName>")] * 51),
    ],
)
def test_what_is_no_web_site_is_refused(text):
    with pytest.raises(S3Error) as caught:
        site(text)
    assert caught.value.status == 400

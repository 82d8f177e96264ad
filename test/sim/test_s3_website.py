"""The documents of web sites: kept as they were sent, or refused."""

import pytest

SITE = (
    "<WebsiteConfiguration><IndexDocument><Suffix>index.html</Suffix></IndexDocument>"
    "<ErrorDocument><Key>e&lt;.html</Key></ErrorDocument></WebsiteConfiguration>"
)


def put(s3, document, bucket="bucket"):
    return s3("PUT", f"/{bucket}?website", {}, document.encode())


def test_a_site_comes_back_as_it_was_said(s3):
    assert s3("GET", "/bucket?website").code == "NoSuchWebsiteConfiguration"
    assert put(s3, SITE).status == 200
    answer = s3("GET", "/bucket?website")
    assert (answer.texts("Suffix"), answer.texts("Key")) == (["index.html"], ["e<.html"])
    assert s3("DELETE", "/bucket?website").status == 204
    assert s3("GET", "/bucket?website").code == "NoSuchWebsiteConfiguration"
    assert s3("DELETE", "/bucket?website").status == 204


@pytest.mark.parametrize(
    "document",
    [
        "",
        "<WebsiteConfiguration/>",
        SITE.replace("index.html", ""),
        SITE.replace("index.html", "a/b"),
        SITE.replace("</WebsiteConfiguration>", ""),
        "<WebsiteConfiguration><RedirectAllRequestsTo/></WebsiteConfiguration>",
        SITE.replace(
            "<ErrorDocument>",
            "<RedirectAllRequestsTo><HostName>h</HostName></RedirectAllRequestsTo><ErrorDocument>",
        ),
    ],
)
def test_what_is_no_site_leaves_the_one_that_was(s3, document):
    put(s3, SITE)
    assert put(s3, document).status == 400
    assert s3("GET", "/bucket?website").texts("Suffix") == ["index.html"]


def test_a_bucket_that_there_is_not_has_no_site(s3):
    assert put(s3, SITE, "no-bucket").code == "NoSuchBucket"
    for method in ("GET", "DELETE"):
        assert s3(method, "/no-bucket?website").code == "NoSuchBucket"

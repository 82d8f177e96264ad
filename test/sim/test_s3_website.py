"""Website configurations: stored as they were sent, or refused."""

import pytest

SITE = (
    "<WebsiteConfiguration><IndexDocument><Suffix>index.html</Suffix></IndexDocument>"
    "<ErrorDocument><Key>e&lt;.html</Key></ErrorDocument></WebsiteConfiguration>"
)


def put(s3, document, bucket="bucket"):
    return s3("PUT", f"/{bucket}?website", {}, document.encode())


def test_a_website_configuration_is_returned_as_it_was_sent(s3):
    assert s3("GET", "/bucket?website").code == "NoSuchWebsiteConfiguration"
    assert put(s3, SITE).status == 200
    response = s3("GET", "/bucket?website")
    assert (response.texts("Suffix"), response.texts("Key")) == (["index.html"], ["e<.html"])
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
def test_an_invalid_website_configuration_changes_nothing(s3, document):
    put(s3, SITE)
    assert put(s3, document).status == 400
    assert s3("GET", "/bucket?website").texts("Suffix") == ["index.html"]


def test_a_missing_bucket_has_no_website(s3):
    assert put(s3, SITE, "no-bucket").code == "NoSuchBucket"
    for method in ("GET", "DELETE"):
        assert s3(method, "/no-bucket?website").code == "NoSuchBucket"

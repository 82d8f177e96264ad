"""Requests that products of parameters, kinds and users found: what is refused first, and empty values.

Like ``api_cases_pages``; the cases run after those.
"""

from itertools import product

from test.functional.api_cases_pages import LISTED, PUBLIC, SITE, by_link
from test.functional.api_cases_signed import form_body, form_fields

A = "/v1/AUTH_test"
ADMIN = "admin:admin"
OTHER = "test2:tester2"
#: What a listing of versions refuses, and what any listing does.
_BAD_VERSION_QUERIES = ("version_marker=1", "marker=a&version_marker=x", "delimiter=1")
_BAD_QUERIES = (
    *_BAD_VERSION_QUERIES,
    *("limit=10001", "prefix=%ff", "limit=x", "marker=%ff"),
    *("version_marker=1&limit=10001", "version_marker=1&prefix=%ff"),
)
#: As in ``test_filter_answers``.
DIFFERENT = {
    f"GET {A}/rv?versions&format={shape}&limit=10001 [] as {user}": (403, "who may not list is told so")
    for shape in ("json", "xml", "plain")
    for user in (OTHER, "test:tester3")
}


def send_refusals(both):
    """Send every case."""
    for part in (
        versions_listed,
        empty_ranges,
        unlisted_pages,
        empty_origins,
        shards_of_nothing,
        dates_of_forms,
    ):
        part(both)


def versions_listed(both):
    """Listings of versions: the container and the rights come before formats and parameters."""
    both("PUT", A + "/rv", {"X-Versions-Enabled": "true"})
    both("PUT", A + "/rv/o", body=b"one")
    for container, shape, query in product(("rv", "rnone"), ("json", "xml", "plain"), ("", *_BAD_QUERIES)):
        if shape == "json" or container == "rnone" or query not in _BAD_VERSION_QUERIES:
            both("GET", f"{A}/{container}?versions&format={shape}&{query}")
    for container, accept in product(("rv", "rnone"), ("text/xml", "text/plain", "image/x", "bad", "*/*")):
        both("GET", f"{A}/{container}?versions", {"Accept": accept})
        both("GET", f"{A}/{container}?versions&limit=10001", {"Accept": accept})
    for user, shape in product((None, OTHER, "test:tester3"), ("json", "xml", "plain")):
        for query in ("", "&version_marker=1", "&delimiter=1", "&limit=10001"):
            both("GET", f"{A}/rv?versions&format={shape}{query}", user=user)


def empty_ranges(both):
    """A range of addresses that is empty is none."""
    both("PUT", A + "/rt")
    both("PUT", A + "/rt/o", {"Content-Type": "a/b"}, b"hello")
    for method, more in product(("GET", "HEAD", "PUT", "POST"), ("", "=", "=x", "=127.0.0.1")):
        body = b"hello" if method == "PUT" else None
        by_link(both, method, "/rt/o", more=f"&temp_url_ip_range{more}", body=body)


def unlisted_pages(both):
    """The page of a web site that has neither a listing nor an index, with and without a style sheet."""
    both("PUT", A + "/rw", {**PUBLIC, **SITE})
    both("PUT", A + "/rw/a/b/c", body=b"c")
    for css in ("", "style.css", "/abs.css", "https://h/x.css", 'x"y.css'):
        for settings in ({}, LISTED, {"X-Container-Meta-Web-Listings": "no"}):
            both("POST", A + "/rw", {"X-Container-Meta-Web-Listings-Css": css, **settings})
            for path in ("/", "/a/", "/a/b/", "/none/"):
                both("GET", A + "/rw" + path, user=None)
                both("GET", A + "/rw" + path, {"X-Web-Mode": "true"})


def empty_origins(both):
    """An Origin without a value is none."""
    for origins in ("*", "http://a.com", ""):
        both("PUT", A + "/ro", {"X-Container-Meta-Access-Control-Allow-Origin": origins})
        both("PUT", A + "/ro/o", body=b"hello")
        for method, path in product(("GET", "HEAD", "POST"), ("/ro/o", "/ro", "/ro/none")):
            both(method, A + path, {"Origin": ""})


def shards_of_nothing(both):
    """Resellers are told that a container that is not there is not sharded."""
    for method, query, user in product(("GET", "HEAD"), ("", "?format=json", "?versions"), (ADMIN, None)):
        both(method, f"{A}/rnone{query}", user=user)


def dates_of_forms(both):
    """Dates of forms that are empty or none."""
    both("PUT", A + "/rf")
    file = ('name="file"; filename="a"', b"", b"hello")
    for name, value in product(
        ("x_delete_at", "x_delete_after"), ("", " ", "x", "-1", "0", "1.0", "9999999999")
    ):
        body = form_body(form_fields(A + "/rf/", fields=[(name, value)]), (file,))
        both("POST", A + "/rf/", {"Content-Type": "multipart/form-data; boundary=B"}, body, user=None)

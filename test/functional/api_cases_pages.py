"""Requests by link, by host name and for pages of containers that are websites, and these together."""

from test.functional.api_cases_signed import END, signature

A = "/v1/AUTH_test"
PUBLIC = {"X-Container-Read": ".r:*,.rlistings"}
SITE = {"X-Container-Meta-Web-Index": "index.html", "X-Container-Meta-Web-Error": "error.html"}
LISTED = {"X-Container-Meta-Web-Listings": "true"}
#: The filter stands left of those that sign or check paths.
PLACES = {"domain_remap": "bulk"}

_WHOLE = f"{signature('GET', A + '/pp/', prefix='')}&temp_url_expires={END}&temp_url_prefix= "
_EXPLAINED = {
    "the domain of a host has no case": tuple(
        (404 if path.startswith(A) else 200, f"{request} [('Host', '{host}')]")
        for request in ("GET /o", "HEAD /o", "GET /", f"GET {A}/pag/o")
        for host in ("Pag.AUTH_test.EXAMPLE.com", "pag.auth-test.Example.Com:80")
        for path in (request.split(" ")[1],)
    ),
    "the peer fails at it": (
        (404, f"HEAD {A}/ps/none [] as None"),
        *((301, f"{method} {A}/pp/dir [] as None") for method in ("GET", "HEAD")),
        *((401, f"{method} {A}/pp/dir/ [] as None") for method in ("GET", "HEAD")),
        *((301, f"{method} /dir [('Host', 'pp.") for method in ("GET", "HEAD")),
        *((404, f"HEAD /{name} [('Host', 'ps.") for name in ("dir", "none", "real.html")),
    ),
    "a link for a whole container opens its page": (
        (200, f"GET {A}/pp/?temp_url_sig={_WHOLE}"),
        (301, f"GET {A}/pp?temp_url_sig={_WHOLE}"),
    ),
}
#: As in ``test_filter_answers``.
DIFFERENT = {start: (status, why) for why, cases in _EXPLAINED.items() for status, start in cases}


def send_pages(both):
    """Send every case."""
    both("POST", A, {"X-Account-Meta-Temp-URL-Key": "mykey"})
    for part in (hosts, links_to_kinds, links_to_versions, conditions, sites, linked_pages, hosted_sites):
        part(both)


def hosts(both):
    """Names of containers and accounts in the host."""
    for name in ("Pag", "pag", "caf%C3%A9"):
        both("PUT", f"{A}/{name}")
        both("PUT", f"{A}/{name}/o", {"Content-Type": "a/b"}, name.encode())
    for host in (
        *("Pag.AUTH_test.EXAMPLE.com", "pag.auth-test.Example.Com:80", "PAG.AUTH_test.example.com"),
        *("Pag.AUTH_test.example.com", "pag.auth-test.example.com:80", "Pag.auth_TEST.example.com"),
        *("caf\xc3\xa9.AUTH_test.example.com", "CAF\xc3\x89.AUTH_test.example.com"),
        *("caf\xe9.AUTH_test.example.com", "caf%C3%A9.AUTH_test.example.com", "\xff.AUTH_test.example.com"),
        *(".AUTH_test.example.com", "AUTH_test.example.com", "c..example.com", "a.b.AUTH_test.example.com"),
        *("Pag.authtest.example.com", "Pag.auth.example.com", "Pag.AUTH_t\xc3\xa9st.example.com"),
        *("Pag.AUTH_test.example.com.", "x y.AUTH_test.example.com"),
    ):
        for method, path in (("GET", "/o"), ("HEAD", "/o"), ("GET", "/"), ("GET", A + "/pag/o")):
            both(method, path, {"Host": host})
    both("PUT", "/new", {"Host": "Pag.AUTH_test.example.com"}, b"new")
    both("DELETE", "/new", {"Host": "Pag.AUTH_test.example.com"})
    for name in ("Pag", "pag"):
        both("GET", f"{A}/{name}?format=json")


def by_link(both, method, path, *, verb=None, more="", headers=None, body=None, prefix=None):
    """Send a signed request for a path without characters that are quoted."""
    signed = A + path if prefix is None else f"{A}/{path.split('/')[1]}/{prefix}"
    query = f"temp_url_sig={signature(verb or method, signed, prefix=prefix)}&temp_url_expires={END}"
    if prefix is not None:
        query += f"&temp_url_prefix={prefix}"
    both(method, f"{A}{path}?{query}{more}", headers, body, user=None)


def links_to_kinds(both):
    """Signed links to large objects and symbolic links."""
    both("PUT", A + "/pk")
    both("PUT", A + "/pk/seg/1", {"Content-Type": "a/b"}, b"segment")
    both("PUT", A + "/pk/slo?multipart-manifest=put", {"Content-Type": "v/x"}, b'[{"path": "/pk/seg/1"}]')
    both("PUT", A + "/pk/dlo", {"X-Object-Manifest": "pk/seg/", "Content-Type": "v/y"}, b"")
    both("PUT", A + "/pk/link", {"X-Symlink-Target": "pk/seg/1"})
    both("PUT", A + "/pk/linkslo", {"X-Symlink-Target": "pk/slo"})
    both("PUT", A + "/pq")
    both("PUT", A + "/pq/link", {"X-Symlink-Target": "pk/seg/1"})
    for name in ("/pk/slo", "/pk/dlo", "/pk/link", "/pk/linkslo", "/pq/link"):
        for method in ("GET", "HEAD"):
            by_link(both, method, name)
            by_link(both, method, name, prefix="")
        by_link(both, "GET", name, headers={"Range": "bytes=2-3"})
        by_link(both, "GET", name, more="&inline&filename=x.y")
    for name in ("/pk/slo", "/pk/link"):
        by_link(both, "POST", name, headers={"X-Object-Meta-A": "1"})
        by_link(both, "PUT", name, body=b"now plain")
        by_link(both, "GET", name)
        by_link(both, "DELETE", name)
        by_link(both, "GET", name)


def links_to_versions(both):
    """Signed links where former objects are kept."""
    both("PUT", A + "/po", {"X-Versions-Enabled": "true"})
    both("PUT", A + "/pw-old")
    both("PUT", A + "/pw", {"X-Versions-Location": "pw-old"})
    both("PUT", A + "/ph", {"X-History-Location": "pw-old"})
    for container in ("po", "pw", "ph"):
        for number in range(2):
            by_link(both, "PUT", f"/{container}/o", body=b"v%d" % number)
        for method in ("GET", "HEAD"):
            by_link(both, method, f"/{container}/o")
        by_link(both, "DELETE", f"/{container}/o")
        by_link(both, "GET", f"/{container}/o")
        both("GET", f"{A}/{container}?format=json")
        both("HEAD", f"{A}/{container}")
    both("HEAD", A + "/pw-old")


def conditions(both):
    """Conditions and ranges of signed requests."""
    both("PUT", A + "/pc")
    both("PUT", A + "/pc/o", {"Content-Type": "a/b", "X-Object-Meta-Public-A": "1"}, b"0123456789")
    etag = "781e5e245d69b566979b86e28d23f2c7"
    for headers in (
        {"If-Match": etag},
        {"If-Match": "x"},
        {"If-Match": "*"},
        {"If-None-Match": f'"{etag}"'},
        {"If-None-Match": "*"},
        {"If-Modified-Since": "Sat, 21 Nov 2099 00:00:00 GMT"},
        {"If-Unmodified-Since": "Sat, 21 Nov 2009 00:00:00 GMT"},
        {"Range": "bytes=0-2,5-6"},
        {"Range": "bytes=-3"},
        {"Range": "bytes=10-"},
        {"Range": "bytes=0-2", "If-Match": "x"},
        {"Origin": "http://x"},
        {"X-Newest": "true"},
    ):
        for method in ("GET", "HEAD"):
            by_link(both, method, "/pc/o", headers=headers)
    for headers in ({"If-None-Match": "*"}, {"ETag": etag}, {"ETag": "x"}, {"X-Delete-At": "1"}):
        by_link(both, "PUT", "/pc/o", headers=headers, body=b"0123456789")
    for path in ("/pc/o/", "/pc/o%20", "/pc/%6f", "/pc//o", "/pc/o?", "/PC/o"):
        by_link(both, "GET", path)


def sites(both):
    """Websites by and by: what each setting changes."""
    both("PUT", A + "/ps", PUBLIC)
    for name, kind, body in (
        ("index.html", "text/html", b"index"),
        ("sub/index.html", "text/html", b"sub index"),
        ("sub/page", "text/plain", b"page"),
        ("error.html", "text/html", b"any error"),
        ("404error.html", "text/html", b"not found"),
        ("nodir/a", "text/plain", b"a"),
        ("marker", "application/directory", b""),
        ("a%20b%3C/c%26", "text/plain", b"odd"),
    ):
        both("PUT", f"{A}/ps/{name}", {"Content-Type": kind}, body)
    for settings in (
        {},
        {"X-Container-Meta-Web-Index": "index.html"},
        {"X-Container-Meta-Web-Error": "error.html"},
        LISTED,
        {"X-Container-Meta-Web-Listings-Css": "style.css", "X-Container-Meta-Web-Listings-Label": "L<&>"},
        {"X-Container-Meta-Web-Directory-Type": "text/directory"},
        {"X-Container-Meta-Web-Index": ""},
    ):
        both("POST", A + "/ps", settings)
        for path in (
            "",
            "/",
            "/sub",
            "/sub/",
            "/nodir",
            "/nodir/",
            "/marker",
            "/none",
            "/none/",
            "/a%20b%3C/",
        ):
            both("GET", A + "/ps" + path, user=None)
    for path in ("/", "/sub", "/none", "/nodir/"):
        both("HEAD", A + "/ps" + path, user=None)
        both("GET", A + "/ps" + path, {"X-Web-Mode": "true"})
        both("GET", A + "/ps" + path + "?format=json", user=None)
    for headers in (
        {"If-None-Match": "*"},
        {"Range": "bytes=1-2"},
        {"If-Match": "x"},
        {"Origin": "http://x"},
    ):
        both("GET", A + "/ps/sub/page", headers, user=None)
        both("GET", A + "/ps/none", headers, user=None)


def linked_pages(both):
    """Pages that are links, large or versions."""
    both("PUT", A + "/pp", {**PUBLIC, **SITE, **LISTED})
    both("PUT", A + "/pp/real.html", {"Content-Type": "text/html"}, b"real")
    both("PUT", A + "/pp/index.html", {"X-Symlink-Target": "pp/real.html"})
    both("PUT", A + "/pp/404error.html", {"X-Symlink-Target": "pp/none"})
    both("PUT", A + "/pp/dir/index.html", {"X-Symlink-Target": "pk/seg/1"})
    both("PUT", A + "/pp/big/index.html?multipart-manifest=put", None, b'[{"path": "/pp/real.html"}]')
    for path in ("/", "/none", "/dir", "/dir/", "/big/", "/index.html", "/none/"):
        for method in ("GET", "HEAD"):
            both(method, A + "/pp" + path, user=None)
    both("PUT", A + "/pv", {**PUBLIC, **SITE, **LISTED, "X-Versions-Enabled": "true"})
    for number in range(2):
        both("PUT", A + "/pv/index.html", {"Content-Type": "text/html"}, b"page %d" % number)
        both("GET", A + "/pv/", user=None)
    both("DELETE", A + "/pv/index.html")
    both("GET", A + "/pv/", user=None)
    both("GET", A + "/pv/none", user=None)
    for prefix in ("", "dir/", "none"):
        for path in ("/pp/", "/pp", "/pp/dir/", "/pp/real.html"):
            by_link(both, "GET", path, prefix=prefix)


def hosted_sites(both):
    """Websites and links of a host's container."""
    for host in ("pp.AUTH_test.example.com", "PS.auth-test.example.com", "ps.auth-test.example.com"):
        for path in ("/", "", "/sub", "/dir", "/none", "/real.html"):
            if path:
                both("GET", path, {"Host": host}, user=None)
                both("HEAD", path, {"Host": host}, user=None)
    sig = signature("GET", A + "/pp/real.html")
    for path in ("/real.html", A + "/pp/real.html"):
        for host in ("pp.AUTH_test.example.com", "AUTH_test.example.com"):
            both("GET", f"{path}?temp_url_sig={sig}&temp_url_expires={END}", {"Host": host}, user=None)

"""Requests to containers that are web sites."""

A = "/v1/AUTH_test"
NAMES = ("Index", "Error", "Listings", "Listings-CSS", "Listings-Label", "Directory-Type")
OBJECTS = (
    ("index.html", "text/html", b"INDEX"),
    ("404err.html", "text/html", b"E404"),
    ("401err.html", "text/html", b"E401"),
    ("sub/index.html", "text/html", b"SUB"),
    ("list/a.txt", "text/plain", b"x" * 1500),
    ("list/b%20%26%3C%3E%22'.js", "application/javascript", b"x" * 2560),
    ("list/deep/c", "image/svg+xml; charset=utf-8", b""),
    ("list/deep/%22%0a%2e%3fx", 'a b/c"<', b"x" * 1536),
    ("dir", "application/directory", b""),
    ("dir/x", "A/B", b"1"),
    ("dir2", "application/directory", b"12"),
    ("dir3", "text/directory", b""),
    ("%C3%A9/x", "x", b"1"),
    ("plain.txt", "text/plain", b"P"),
)
PATHS = (
    *("", "/", "/sub", "/sub/", "/none", "/none/", "/list", "/list/", "/list/deep/", "/list//", "/dir"),
    *("/dir/", "/dir2", "/dir3", "/plain.txt", "/plain.txt/", "/index.html", "/%C3%A9", "/%C3%A9/"),
    *("/sub?x=y", "?x=y", "/?format=json&limit=1", "/s%75b", "/none%20%22b", "/404err.html"),
)


def send_web(both):
    """Send every case."""
    both("PUT", A + "/web", {"X-Container-Read": ".r:*,.rlistings"})
    both("PUT", A + "/webe", {"X-Container-Read": ".r:*,.rlistings"})
    for name, kind, body in OBJECTS:
        both("PUT", A + "/web/" + name, {"Content-Type": kind}, body)
    for site in (
        {},
        {"Error": "err.html"},
        {"Index": "index.html"},
        {"Index": "index.html", "Error": "err.html"},
        {"Listings": "true"},
        {"Listings": "false"},
        {"Listings": "true", "Index": "nothere"},
        {"Listings": "false", "Index": "nothere", "Listings-Label": "label"},
        {"Listings": "t", "Listings-CSS": "style.css", "Listings-Label": "L<b>&/"},
        {"Listings": "true", "Listings-CSS": 'http://x/"><s>?a.css', "Directory-Type": "text/directory"},
        {"Listings": "true", "Listings-CSS": "/abs.css", "Error": "none", "Index": "index.html"},
    ):
        for container in ("web", "webe"):
            sent = {f"X-Container-Meta-Web-{name}": site.get(name, "") for name in NAMES}
            both("POST", f"{A}/{container}", sent)
        for path in PATHS:
            both("GET", A + "/web" + path, user=None)
        both("GET", A + "/webe/", user=None)
        for path in ("", "/", "/list/", "/sub", "/plain.txt"):
            both("HEAD", A + "/web" + path, user=None)
            both("GET", A + "/web" + path)
            both("GET", A + "/web" + path, {"X-Web-Mode": "true", "Accept": "application/json"})
    for headers in ({"Range": "bytes=0-0"}, {"If-None-Match": "*"}, {"Origin": "http://x"}):
        for path in ("/", "/plain.txt", ""):
            both("GET", A + "/web" + path, headers, user=None)
    for path in ("/webnone/", "", "/webnone/o"):
        both("GET", A + path, user=None)
        both("GET", A + path, {"X-Web-Mode": "1"})
    both("GET", "/v1.0/AUTH_test/web", user=None)
    both("GET", A + "%2Fweb", user=None)
    both("PUT", A + "/web/list/new", body=b"", user=None)
    for acl in (".r:*", "", "test:tester3"):
        sent = {"X-Container-Read": acl, "X-Container-Meta-Web-Error": "err.html"}
        both("POST", A + "/web", sent)
        for path in ("", "/", "/list", "/list/", "/none", "/plain.txt"):
            for user in (None, "test:tester3"):
                both("GET", A + "/web" + path, {"X-Web-Mode": "true"}, user=user)

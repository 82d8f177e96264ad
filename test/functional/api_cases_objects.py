"""Requests for objects made of small tables, each in a replicated and in an erasure coded container.

Like ``api_cases``; they run after those, in containers of their own.
"""

from itertools import product

from test.functional.api_cases_tables import METADATA

A = "/v1/AUTH_test"
TEXT = {"Content-Type": "text/plain"}
ETAG = "5d41402abc4b2a76b9719d911017c592"
POLICIES = {"gold": {}, "ec": {"X-Storage-Policy": "ec"}}
PAST = "Sat, 21 Nov 2009 00:00:00 GMT"
FUTURE = "Sat, 21 Nov 2099 00:00:00 GMT"


def send_objects(both):
    """Send every case."""
    for name, headers in POLICIES.items():
        base = f"{A}/p{name}"
        both("PUT", base, headers)
        for part in (
            bodies,
            object_metadata,
            content_types,
            conditions,
            dates,
            ranges,
            expiry,
            manifests,
            refusals,
        ):
            part(both, base)
        both("GET", base + "?format=json")


def bodies(both, base):
    """Sizes, checksums and framing of uploads, and what is read back."""
    for number, (headers, body) in enumerate(
        (
            ({}, b""),
            ({}, b"hello"),
            ({"ETag": ETAG}, b"hello"),
            ({"ETag": f'"{ETAG}"'}, b"hello"),
            ({"ETag": ETAG.upper()}, b"hello"),
            ({"ETag": ETAG}, b"hellO"),
            ({"ETag": ""}, b"hello"),
            ({}, [b"he", b"llo"]),
            ({"ETag": ETAG}, [b"he", b"llo"]),
            ({"ETag": ETAG}, [b"he", b"llO"]),
            ({}, []),
            ({"Content-Length": "x"}, b"hello"),
            ({"Content-Length": "-1"}, b"hello"),
            ({"Content-Length": "5368709123"}, None),
            ({"Transfer-Encoding": "gzip"}, None),
            ({"Content-MD5": "x"}, b"hello"),
            ({"Content-Encoding": "gzip"}, b"hello"),
            ({"Content-Encoding": ""}, b"hello"),
            ({"Content-Disposition": 'attachment; filename="a b"'}, b"hello"),
            ({"Content-Disposition": ""}, b"hello"),
            ({"X-Object-Manifest": ""}, b"hello"),
            ({"X-Static-Large-Object": "true"}, b"hello"),
            ({"Content-Language": "de"}, b"hello"),
            ({"Cache-Control": "no-cache"}, b"hello"),
            ({"Expires": PAST}, b"hello"),
            ({"X-Robots-Tag": "none"}, b"hello"),
            ({"Last-Modified": PAST}, b"hello"),
            ({"Accept-Ranges": "none"}, b"hello"),
            ({"Range": "bytes=0-1"}, b"hello"),
            ({"X-Storage-Policy": "gold"}, b"hello"),
            ({"If-None-Match": "*"}, b"hello"),
            ({"If-None-Match": ETAG}, b"hello"),
            ({"If-Modified-Since": FUTURE}, b"hello"),
            ({"If-Unmodified-Since": PAST}, b"hello"),
        )
    ):
        path = f"{base}/b{number}"
        both("PUT", path, {**TEXT, **headers}, body)
        both("GET", path)
        both("HEAD", path)
    for tag in ("*", "x"):
        # The peer stores it all the same.
        both("PUT", base + "/if-match", {**TEXT, "If-Match": tag}, b"hello")
        both("DELETE", base + "/if-match")
    both("PUT", base + "/b1", {**TEXT, "If-None-Match": "*"}, b"again")
    both("GET", base + "/b1")
    for method in ("POST", "DELETE"):
        for headers in (
            {"If-Match": "x"},
            {"If-None-Match": "*"},
            {"If-Unmodified-Since": PAST},
            {"Range": "bytes=9-"},
        ):
            both(method, base + "/b2", headers)
    both("POST", base + "/b3", {"Content-Encoding": "x", "Content-Disposition": "y", "Cache-Control": "z"})
    both("HEAD", base + "/b3")
    both("POST", base + "/b3")
    both("HEAD", base + "/b3")


def object_metadata(both, base):
    """Metadata of objects: a POST replaces all of it."""
    both("PUT", base + "/m", {**TEXT, "X-Object-Meta-Old": "1"}, b"x")
    for name, value in METADATA:
        name = name if isinstance(name, bytes) else name.encode()
        both("PUT", base + "/mp", {**TEXT, b"X-Object-Meta-" + name: value}, b"x")
        both("GET", base + "/mp")
        both("POST", base + "/m", {b"X-Object-Meta-" + name: value})
        both("HEAD", base + "/m")
    both("POST", base + "/m", {"X-Object-Meta-A": "1", "X-Remove-Object-Meta-A": "x"})
    both("HEAD", base + "/m")


def content_types(both, base):
    """Content types as they are stored, listed and changed."""
    for number, text in enumerate(
        (
            "text/plain", "TEXT/Plain", "text/plain;charset=utf-8", "text/plain ; charset = utf-8",
            'a/b; c="d;e"', "a", "/", ";",
            "a/b;swift_bytes=5", "a/b;x=y;swift_bytes=7;z=w", "\xc3\xa9/x", "a/b, c/d",
            "multipart/byteranges", " a/b ", "a/b;",
            "application/x-www-form-urlencoded", "application/json", "a" * 300, "text/html;charset",
            "a b/c d", "*/*", "%41/b",
        )
    ):  # fmt: skip
        for path, method in ((f"{base}/t{number}", "PUT"), (f"{base}/t", "PUT"), (f"{base}/t", "POST")):
            # The peer takes from a POST what it refuses in a PUT; what comes after would differ.
            refused = method == "POST" and "swift_" in text
            path = f"{base}/none" if refused else path
            both(method, path, {"Content-Type": text}, b"x" if method == "PUT" else None)
        both("HEAD", f"{base}/t{number}")
        both("GET", f"{base}/t")
        both("GET", f"{base}?prefix=t&format=json&limit=1")
    for name in (
        "x.txt",
        "x.png",
        "x.tar.gz",
        "x.HTML",
        "x.unknown",
        "x.json",
        "noext",
        "x.jpg.txt",
        ".css",
        "x.mp4",
    ):
        both("PUT", f"{base}/{name}", {}, b"x")
        both("HEAD", f"{base}/{name}")
    for value in ("true", "no", "x"):
        both("PUT", f"{base}/x.css", {"Content-Type": "a/b", "X-Detect-Content-Type": value}, b"x")
        both("HEAD", f"{base}/x.css")


def conditions(both, base):
    """Pairs of conditions on an object, an empty one and one that is not there."""
    both("PUT", base + "/c", TEXT, b"hello")
    both("PUT", base + "/c0", TEXT, b"")
    tags = (
        {}, {"If-Match": ETAG}, {"If-Match": '"x"'}, {"If-Match": "*"}, {"If-None-Match": f'"{ETAG}"'},
        {"If-None-Match": "x"},
        {"If-None-Match": "*"}, {"If-Match": ETAG, "If-None-Match": ETAG}, {"If-Match": "x",
        "If-None-Match": ETAG},
    )  # fmt: skip
    times = (
        {}, {"If-Modified-Since": PAST}, {"If-Modified-Since": FUTURE}, {"If-Unmodified-Since": PAST},
        {"If-Unmodified-Since": FUTURE},
    )  # fmt: skip
    for number, (tag, time) in enumerate(product(tags, times)):
        method = ("GET", "HEAD")[number % 2]
        both(method, base + "/c", {**tag, **time})
        both(method, base + "/c0", {**tag, **time})
        both("GET", base + "/c", {**tag, **time, "Range": "bytes=1-2"})
        if not number % 3:
            both(method, base + "/none", {**tag, **time})
    for condition, spec in product(
        (ETAG, f'"{ETAG}"', "x", PAST, FUTURE, "*", ""), ("bytes=0-1", "bytes=9-", "junk")
    ):
        both("GET", base + "/c", {"If-Range": condition, "Range": spec})


def dates(both, base):
    """Which texts are dates."""
    for text in (
        "Sat, 21 Nov 2009 00:00:00 GMT", "Saturday, 21-Nov-09 00:00:00 GMT", "Sat Nov 21 00:00:00 2009",
        "21 Nov 2009 00:00:00 GMT",
        "Sat, 21 Nov 2009 00:00:00 +0100", "Sat, 21 Nov 2009 00:00:00", "Sat, 21 Nov 2009",
        "2009-11-21T00:00:00", "1258761600",
        "Mon, 21 Nov 2009 00:00:00 GMT", "Sat, 31 Feb 2009 00:00:00 GMT", "Sat, 21 Nov 1009 00:00:00 GMT",
        "x", "",
        "Thu, 01 Jan 1970 00:00:00 GMT", "Wed, 31 Dec 1969 23:59:59 GMT", "sat, 21 nov 2099 00:00:00 gmt",
        "Fri, 31 Dec 9999 23:59:59 GMT",
    ):  # fmt: skip
        for name in ("If-Modified-Since", "If-Unmodified-Since"):
            both("GET", base + "/c", {name: text})


def ranges(both, base):
    """Ranges of a short object."""
    both("PUT", base + "/r", TEXT, b"0123456789")
    for spec in (
        "0-", "0-0", "9-9", "9-", "10-", "-1", "-10", "-11", "-0", "0-100", "5-4", "0-0,9-9", "0-0,-1",
        "0-4,5-9", "0-5,3-9", "9-,0-0",
        "0-0,20-30", "20-30,40-", "0-0,1-1,2-2", "0-0,2-2,4-4,6-6,8-8", "-1,-2,-3", "3-3,2-2,1-1",
        "0-9,0-9", "0-9,0-9,0-9",
        " 0-1", "0-1 ", "0 - 1", "0-1, 3-4", "a-b", "1", "", ",", "0-1,", "=0-1", "0-1;", "--1", "1--2",
        "0-\t1", "00-01", "1e1-",
    ):  # fmt: skip
        both("GET", base + "/r", {"Range": "bytes=" + spec})
        both("HEAD", base + "/r", {"Range": "bytes=" + spec})
    for spec in ("0-", "0-3", "3-9", "12-", "-5", "-0", "0-0,-1", "5-4", "0-0,2-2"):
        both("GET", base + "/b0", {"Range": "bytes=" + spec})
        both("HEAD", base + "/b0", {"Range": "bytes=" + spec})
    both("GET", base + "/r", {"Range": "bytes=0-1", "If-None-Match": "*"})
    both("GET", base + "/none", {"Range": "bytes=0-1"})


def expiry(both, base):
    """Objects that end: which headers say so, which take it back."""
    both("PUT", base + "/e", TEXT, b"x")
    for headers in (
        {"X-Delete-At": "9999999999"},
        {"X-Delete-At": "9999999999", "X-Delete-After": "x"},
        {"X-Delete-At": "9999999999", "X-Remove-Delete-At": "x"},
        {"X-Remove-Delete-At": "x"},
        {"X-Remove-Delete-After": "x"},
        {"X-Delete-At": ""},
        {"X-Delete-After": ""},
        {"X-Delete-After": "-1"},
        {"X-Delete-After": "1.5"},
        {"X-Delete-After": "1e9"},
        {"X-Delete-At": "0"},
        {"X-Delete-At": "-1"},
        {"X-Delete-At": "9999999999.9"},
        {"X-Delete-At": "1258761600"},
        {"X-Delete-At": "9999999999 "},
        {"X-Delete-At": "0b1"},
        {"X-Delete-At": "1,2"},
        {"X-Delete-At": "None"},
        {"X-Delete-At": "nan"},
        {"X-Delete-At": "inf"},
    ):
        both("PUT", base + "/e1", {**TEXT, **headers}, b"x")
        if "X-Delete-After" not in headers or "x" in headers.values():
            both("HEAD", base + "/e1")
        both("POST", base + "/e", headers)
        both("HEAD", base + "/e")
        both("DELETE", base + "/e1")


def manifests(both, base):
    """Dynamic large objects whose manifest and segments are of one policy."""
    for number in range(3):
        both("PUT", f"{base}/s/{number}", TEXT, bytes(str(number), "ascii") * 4)
    container = base.rpartition("/")[2]
    both("PUT", base + "/dlo", {**TEXT, "X-Object-Manifest": f"{container}/s/", "X-Object-Meta-A": "b"}, b"")
    for method, headers in product(
        ("GET", "HEAD"),
        (
            {}, {"Range": "bytes=0-3"}, {"Range": "bytes=2-9"}, {"Range": "bytes=-5"},
            {"Range": "bytes=12-"}, {"Range": "bytes=0-0,11-11"},
            {"If-None-Match": "*"}, {"If-Match": "x"}, {"If-Modified-Since": FUTURE}, {"X-Newest": "true"},
        ),
    ):  # fmt: skip
        both(method, base + "/dlo", headers)
        both(method, base + "/dlo?multipart-manifest=get", headers)
    both("DELETE", base + "/s/1")
    both("GET", base + "/dlo")
    both("POST", base + "/dlo", {"X-Object-Manifest": f"{container}/s/0"})
    both("GET", base + "/dlo")
    both("POST", base + "/dlo", {"X-Object-Meta-A": "c"})
    both("GET", base + "/dlo")
    both("HEAD", base + "/dlo?multipart-manifest=get")


def refusals(both, base):
    """What cannot be found or done, with and without a body of the answer."""
    for method, path in product(
        ("GET", "HEAD", "POST", "DELETE"), ("/none", "/b1/none", "/" + "n" * 1025, "/%ff", "/%00")
    ):
        both(method, base + path)
    for user in ("test2:tester2", None):
        for method, path in product(("GET", "HEAD", "PUT", "POST", "DELETE"), ("/b1", "/none")):
            both(method, base + path, body=b"" if method == "PUT" else None, user=user)
    for name in ("deleted",):
        both("PUT", f"{base}/{name}", TEXT, b"x")
        both("DELETE", f"{base}/{name}")
        for method in ("GET", "HEAD", "POST", "DELETE"):
            both(method, f"{base}/{name}")
        both("PUT", f"{base}/{name}", {**TEXT, "If-None-Match": "*"}, b"new")
        both("GET", f"{base}/{name}")
        both("DELETE", f"{base}/{name}")

"""Requests about the front door: how paths, numbers, conditions, ranges and log-ins are read.

Like ``api_cases``; the cases run after those, on accounts and containers of their own.
"""

A = "/v1/AUTH_test"
ADMIN = "admin:admin"
ETAG = "5d41402abc4b2a76b9719d911017c592"
WHOLE = "18860aa59c2ab5d24e2f75e37cb385fb"


def send_front(both):
    """Send every case."""
    for part in (paths, logins, deleted_account, expiry, etags, accepts, listings, ranges, manifests, heads):
        part(both)
    copies(both)


def paths(both):
    """Where a path is cut, and what is too long."""
    both("PUT", A + "/fd")
    both("PUT", A + "/fd/o", body=b"hello")
    both("PUT", A + "/fd/a%2Fb", body=b"hello2")
    long = "/v1/AUTH_" + "x" * 252
    for method in ("GET", "HEAD", "PUT", "POST", "DELETE"):
        body = b"x" if method == "PUT" else None
        for path in (
            A + "/fd%2Fo",
            A + "/fd%2fo",
            "/v1/AUTH_test%2Ffd%2Fo",
            "/v1/AUTH_test%2Ffd",
            "/v1%2FAUTH_test/fd",
            "/v1%2FAUTH_test%2Ffd%2Fo",
            A + "/%2F",
            A + "/%2Fo",
            A + "/fd%2F",
            A + "/fd/%2F",
            A + "/fd/%2Fx",
            A + "/fd/x%2F",
            A + "//fd",
            A + "//",
            A + "/fd//",
            A + "/fd//x",
            A + "/" + "x" * 257 + "/o",
            A + "/" + "x" * 257,
        ):
            both(method, path, body=body)
        for path in ("/v1/A//", "/v1//", "/v1//c", long, long + "/c", long + "/c/o"):
            # The peer makes such an account before it refuses its container, so there is one to delete.
            if (method, path) != ("DELETE", long):
                both(method, path, body=body, user=ADMIN)
    both("GET", A + "/fd")


def logins(both):
    """Paths of the server's own pages and of log-ins, and what a refusal names."""
    for path in (
        "/%68ealthcheck",
        "/healthchec%6B",
        "//healthcheck",
        "/healthcheck/",
        "/healthcheck%2F",
        "/info/",
        "/%61uth/v1.0",
        "/auth/v1%2E0",
        "/auth%2Fv1.0",
        "/auth",
        "/auth/",
        "/auth//v1.0",
        "/auth/v1.0/",
        "/auth/v1",
        "/auth/v1/",
        "/auth/v1/test",
        "/auth/v1/test/auth",
        "/auth/v1/test/auth/",
        "/auth/v1/te%73t/auth",
        "/auth/v1/test/auth/x",
        "/auth/auth",
        "/auth/v1.0/x",
        "/auth/v2",
        "/auth/%2F",
        "/v1/%41UTH_test/fd",
        "/v1/AUTH_%C3%A9%20%22",
        "/foo/bar",
    ):
        for method in ("GET", "HEAD", "PUT", "POST", "OPTIONS"):
            both(method, path, user=None)
        both("GET", path)
    both("PUT", "/inf%6f")
    both("OPTIONS", "/%69nfo")
    for headers in (
        {"X-Auth-User": "te/st:tester", "X-Auth-Key": "bad"},
        {"X-Auth-User": "te%20st:tester", "X-Auth-Key": "bad"},
        {"X-Auth-User": "t\xe9:tester", "X-Auth-Key": "bad"},
        {"X-Auth-User": "tester", "X-Auth-Key": "bad"},
        {"X-Auth-User": "test:tester"},
        {"X-Auth-Key": "x"},
        {"X-Storage-User": "test:tester", "X-Storage-Pass": "x"},
        {"X-Auth-User": ":", "X-Auth-Key": "x"},
    ):
        for path in (
            "/auth/v1.0",
            "/auth/v1/test/auth",
            "/auth/v1/other/auth",
            "/auth/v1/t%20t/auth",
            "/auth/auth",
        ):
            both("GET", path, headers, user=None)


def deleted_account(both):
    """What can still be done to an account that was deleted."""
    both("PUT", "/v1/AUTH_gone", user=ADMIN)
    both("DELETE", "/v1/AUTH_gone", user=ADMIN)
    for method in ("GET", "HEAD", "POST", "PUT", "DELETE"):
        both(method, "/v1/AUTH_gone", {"X-Account-Meta-A": "b"}, user=ADMIN)
        both(method, "/v1/AUTH_gone/c", user=ADMIN)
        both(method, "/v1/AUTH_gone/c/o", body=b"" if method == "PUT" else None, user=ADMIN)


def expiry(both):
    """Which texts are times."""
    both("PUT", A + "/fe")
    both("PUT", A + "/fe/o", body=b"x")
    for value in (
        "10000000000",
        "999999999999999",
        "99999999999999999999",
        "+9999999999",
        "-9999999999",
        "9_999_999_999",
        " 9999999999 ",
        "9999999999.5",
        "1e10",
        "0x10",
        "",
        "-0",
        "00009999999999",
        "+",
        "--5",
        "1_",
    ):
        both("PUT", A + "/fe/d", {"X-Delete-At": value}, b"x")
        both("HEAD", A + "/fe/d")
        both("POST", A + "/fe/o", {"X-Delete-At": value})
        both("HEAD", A + "/fe/o")
        both("PUT", A + "/fe/d2", {"X-Delete-After": value}, b"x")


def etags(both):
    """Quotes around entity tags."""
    both("PUT", A + "/ff")
    both("PUT", A + "/ff/o", {"Content-Type": "text/plain"}, b"hello")
    for tag in (
        f'"{ETAG}',
        f'{ETAG}"',
        f'"{ETAG}"',
        f'W/"{ETAG}"',
        '""',
        f"'{ETAG}'",
        f'""{ETAG}""',
        ETAG.upper(),
        '"*"',
        f'"{ETAG}", ',
        "*,x",
        f'"x","{ETAG}"',
        f'"x,{ETAG}"',
        f", ,{ETAG}",
        f'"{ETAG}"\t',
    ):
        both("GET", A + "/ff/o", {"If-Match": tag})
        both("GET", A + "/ff/o", {"If-None-Match": tag})
        both("GET", A + "/ff/o", {"Range": "bytes=0-1", "If-Range": tag})
        if not tag.startswith('""'):
            both("PUT", A + "/ff/e", {"ETag": tag}, b"hello")


def accepts(both):
    """Media types as clients write them."""
    for accept in (
        "Application/JSON",
        "TEXT/XML",
        "text/PLAIN",
        "*/*",
        "Text/*",
        "application/json;Q=0.5, text/xml;q=0.9",
        "application/json;q=0.5, text/xml;q=0.9",
        "application/json;q=",
        "text/plain;q=0",
        "*/*;q=0",
        "application/json; charset=utf-8",
        "*",
        "text",
        "application/*",
        "a/b, application/json",
        "text/html, */*;q=0.1",
        ",",
        "application/json,",
        "application/json;;q=1",
        "application/json;q=1.5",
        "application/json;q=-1",
        "text/xml;level=1",
    ):
        both("GET", A + "/ff?limit=1", {"Accept": accept})
        both("HEAD", A + "/ff", {"Accept": accept})


def listings(both):
    """Parameters of listings."""
    both("PUT", A + "/fl")
    for name in ("a", "a/b", "a/c", "a/c/d", "%200", "z"):
        both("PUT", f"{A}/fl/{name}", {"Content-Type": "text/plain"}, b"x")
    for query in (
        "path=a",
        "path=a/",
        "path=",
        "path",
        "path=a&delimiter=/",
        "path=a&prefix=z",
        "path=a/c&reverse=on",
        "limit=%D9%A1",
        "limit=%D9%A1%D9%A2",
        "limit=1%D9%A1",
        "limit=" + "%D9%A1" * 6,
        "limit=1_0",
        "limit=+1",
        "limit=-1",
        "limit=%201",
        "limit=00",
        "limit=",
        "limit=99999999999999999999999",
        "limit=0x1",
        "format=JSON",
        "format=Xml",
        "format=",
        *(f"{name}=%ff" for name in ("prefix", "limit", "format", "reverse", "x", "marker", "delimiter")),
        "end_marker=%ff",
        "%ff=x",
        "prefix=%00",
        "limit=%00",
    ):
        both("GET", A + "/fl?" + query)
        both("HEAD", A + "/fl?" + query)
    for query in ("prefix", "limit", "format", "reverse", "x", "marker", "delimiter", "end_marker", "path"):
        for method in ("GET", "HEAD"):
            both(method, f"{A}?{query}=%ff&prefix=nothing" if query in ("x", "path") else f"{A}?{query}=%ff")


def ranges(both):
    """Signs, white space and sizes in ranges."""
    both("PUT", A + "/fr")
    both("PUT", A + "/fr/o", {"Content-Type": "text/plain"}, b"hello")
    both("PUT", A + "/fr/0", {"Content-Type": "text/plain"}, b"")
    for spec in (
        "+1-2",
        "1-+2",
        "\t1-2",
        "1-\t2",
        "1\t-2",
        "0-0\t,2-3",
        "0-0,\t2-3",
        " 1 - 2 ",
        "1-2,",
        ",1-2",
        "",
        "-",
        "--2",
        "-+2",
        "+-2",
        "1-2-3",
        "1_0-",
        "0_0-1",
        "0-1_0",
        "+0_1-",
        "+4-,0-0",
        "0-0,+2-3",
        "0-99999999999999999999999",
        "99999999999999999999999-",
        "-99999999999999999999999",
        "9-",
        "9-,0-1",
        "-0,0-1",
        "0x0-1",
        "1-0,0-1",
        "1.0-2",
        "1\t1-",
        "0-\xb2",
        "9" * 4000 + "-",
        "1-" + "9" * 5000,
    ):
        both("GET", A + "/fr/o", {"Range": "bytes=" + spec})
        both("HEAD", A + "/fr/o", {"Range": "bytes=" + spec})
        both("GET", A + "/fr/0", {"Range": "bytes=" + spec})
    for value in ("Bytes=1-2", "bytes =1-2", "bytes\t=1-2", "bytes"):
        both("GET", A + "/fr/o", {"Range": value})


def manifests(both):
    """Dynamic large objects: how the manifest is read, and ranges and refusals of the whole."""
    both("PUT", A + "/fm")
    both("PUT", A + "/fs")
    both("PUT", A + "/f%20s")
    for number, data in enumerate((b"0000", b"1111", b"2222")):
        for base in ("fs/p/", "fs/a%20b/", "fs/%C3%A9/", "f%20s/p/", "fs/a%2520b/"):
            both("PUT", f"{A}/{base}{number}", body=data)
    for number, manifest in enumerate(
        (
            "fs/p/",
            "fs/a%20b/",
            "fs/%C3%A9/",
            "f%20s/p/",
            "fs/a b/",
            "fs/a%2520b/",
            "fs/\xc3\xa9/",
            "fs/a+b/",
            "fs/p%2F",
            "fs%2Fp/",
            "/fs/p/",
            "fs/",
            "fs",
            "fs//p",
            "fs/p?x",
            "fs/p&x",
            "fs/p%3Fx",
            "fs/p%26x",
            "fs/%zz",
            "noc/p",
            "fs/none",
        )
    ):
        path = f"{A}/fm/d{number}"
        both("PUT", path, {"X-Object-Manifest": manifest, "Content-Type": "text/plain"}, b"")
        for method in ("HEAD", "GET"):
            both(method, path)
            both(method, path + "?multipart-manifest=get")
    both(
        "PUT", A + "/fm/body", {"X-Object-Manifest": "fs/p/", "Content-Type": "text/plain"}, b"manifest body"
    )
    for name in ("d0", "d20", "d19", "body"):
        for method in ("GET", "HEAD"):
            for spec in (
                "0-1",
                "3-6",
                "-3",
                "30-",
                "0-1,3-4",
                "0-1,30-",
                "12-",
                "11-",
                "5-3",
                "0-100",
                "-3,-1",
            ):
                both(method, f"{A}/fm/{name}", {"Range": f"bytes={spec}"})
            for headers in (
                {"If-Match": "x"},
                {"If-None-Match": "*"},
                {"If-None-Match": WHOLE},
                {"If-Modified-Since": "Sat, 21 Nov 2099 00:00:00 GMT"},
                {"If-Unmodified-Since": "Sat, 21 Nov 2009 00:00:00 GMT"},
                {"If-Range": "x", "Range": "bytes=0-1"},
            ):
                both(method, f"{A}/fm/{name}", headers)
    both("POST", A + "/fm/body", {"X-Object-Manifest": "nothing"})
    both("POST", A + "/fm", {"X-Container-Read": ".r:*"})
    both("GET", A + "/fm/d0", user=None)
    both("HEAD", A + "/fm/d0", user=None)
    both("GET", A + "/fm/d0", user="test2:tester2")
    both("POST", A + "/fs", {"X-Container-Read": ".r:*"})
    both("GET", A + "/fm/d0", user=None)
    both("POST", A + "/fs", {"X-Container-Read": ".r:*,.rlistings"})
    both("GET", A + "/fm/d0", user=None)


def heads(both):
    """HEAD of what is refused, and who keeps the connection."""
    for path in (
        "/",
        "/v1",
        "/v2/x",
        A + "/fr/nope",
        A + "/nope",
        A + "/fr?limit=10001",
        A + "/%ff",
        A + "/fr/" + "n" * 1025,
        A + "/" + "n" * 257,
    ):
        both("HEAD", path)
        both("GET", path)
    both("HEAD", A + "/fr", {"Accept": "bad"})
    both("HEAD", A, {"Accept": "image/png"})
    both("GET", A + "/fr/o", {"Connection": "keep-alive"})
    both("GET", A + "/fr/o", {"Connection": "close"})


def copies(both):
    """What is wrong with a request for a copy."""
    both("PUT", A + "/fr/cp", {"X-Copy-From": "/fr/o"}, b"xx")
    both("PUT", A + "/fr/cp", {"X-Copy-From": "nope"}, b"")
    both("PUT", A + "/fr/cp", {"X-Copy-From": "nope"}, b"xx")
    both("HEAD", A + "/fr/cp")
    both("COPY", A + "/fr")
    both("COPY", A)

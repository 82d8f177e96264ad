"""Requests whose answers were recorded from the peer; they run against one fresh account in order.

``both(method, path, headers, body, user=..., token=...)`` is one request; user None sends no token.
"""

A = "/v1/AUTH_test"
ETAG = "5d41402abc4b2a76b9719d911017c592"


def send_all(both):
    """Send every case."""
    both("GET", "/info", user=None)
    both("HEAD", "/info", user=None)
    both("POST", "/info", user=None)
    both("OPTIONS", "/info", user=None)
    both("GET", "/healthcheck", user=None)
    both("GET", "/", user=None)
    both("GET", "/v1", user=None)
    both("GET", "/v1/", user=None)
    both("GET", "/v2/AUTH_test")
    both("GET", "/v1//c")
    both("GET", "/v1/AUTH_test//o")
    both("GET", "/auth/v1.0", user=None)
    both("POST", "/auth/v1.0", user=None)
    both("GET", "/auth/xx", user=None)
    both("GET", "/auth/v1.0", {"X-Auth-User": "test:tester", "X-Auth-Key": "bad"}, user=None)
    both("GET", "/auth/v1/test/auth", {"X-Auth-User": "test:tester", "X-Auth-Key": "bad"}, user=None)
    both("HEAD", A)
    both("GET", A)
    both("GET", A + "?format=json")
    both("GET", A + "?format=xml")
    both("HEAD", A, user=None)
    both("GET", A, user="test2:tester2")
    both("GET", A, user="test:tester3")
    both("GET", A, token="AUTH_tkbogus")
    both("GET", A, token="zzz")
    both("PUT", A)
    both("PUT", "/v1/AUTH_test9", user="admin:admin")
    both("PUT", "/v1/AUTH_test9", user="admin:admin")
    both("DELETE", "/v1/AUTH_test9", user="admin:admin")
    both("DELETE", "/v1/AUTH_test9", user="admin:admin")
    both("GET", "/v1/AUTH_test9", user="admin:admin")
    both("PUT", "/v1/AUTH_test9", user="admin:admin")
    both("PUT", "/v1/AUTH_test9/c", user="admin:admin")
    both("GET", "/v1/AUTH_test9/c", user="admin:admin")
    both("PUT", A + "/c")
    both("PUT", A + "/c")
    both("HEAD", A + "/c")
    both("GET", A + "/c")
    both("GET", A + "/c?format=json")
    both("GET", A + "/c?format=xml")
    both("GET", A + "/c/")
    both("GET", A + "/nope")
    both("HEAD", A + "/nope")
    both("DELETE", A + "/nope")
    both("POST", A + "/nope", {"X-Container-Meta-A": "b"})
    both("POST", A + "/c", {"X-Container-Meta-A": "b", "X-Container-Meta-B1b": "c"})
    both("HEAD", A + "/c")
    both("POST", A + "/c", {"X-Remove-Container-Meta-A": "x"})
    both("HEAD", A + "/c")
    both("POST", A, {"X-Account-Meta-Foo": "bar"})
    both("HEAD", A)
    both("PUT", A + "/c", {"X-Storage-Policy": "nope"})
    both("PUT", A + "/c", {"X-Container-Read": ".r:*, .rlistings ,test2"})
    both("HEAD", A + "/c")
    both("PUT", A + "/c", {"X-Container-Write": ".r:*"})
    both("PUT", A + "/c", {"X-Container-Read": ".r:"})
    both("PUT", A + "/c", {"X-Container-Read": ".x:foo"})
    both("GET", A + "/c", user=None)
    both("GET", A + "/c", user="test2:tester2")
    both("HEAD", A + "/c", user=None)
    both("PUT", A + "/" + "x" * 257)
    both("PUT", A + "/c", {"X-Container-Meta-": "x"})
    both("PUT", A + "/c", {"X-Container-Meta-A": "y" * 257})
    both("PUT", A + "/c", {"X-Container-Meta-" + "a" * 129: "y"})
    both("PUT", A + "/c/o", body=b"hello")
    both("HEAD", A + "/c/o")
    both("GET", A + "/c/o")
    both("GET", A + "/c/o", user=None)
    both("GET", A + "/c/nope")
    both("HEAD", A + "/c/nope")
    both("DELETE", A + "/c/nope")
    both("POST", A + "/c/nope", {"X-Object-Meta-A": "b"})
    both("GET", A + "/nope/o")
    both("PUT", A + "/nope/o", body=b"x")
    both("DELETE", A + "/nope/o")
    both("POST", A + "/nope/o")
    both("HEAD", A + "/nope/o")
    both("GET", A + "/c?format=json")
    both("GET", A + "/c")
    both("GET", A + "/c", {"Accept": "application/json"})
    both("GET", A + "/c", {"Accept": "text/xml"})
    both("GET", A + "/c", {"Accept": "image/png"})
    both("GET", A + "/c", {"Accept": "bad accept"})
    both("HEAD", A + "/c", {"Accept": "application/xml"})
    both("GET", A + "/c?format=bogus")
    for q in (
        "limit=10001",
        "limit=abc",
        "limit=0",
        "prefix=o",
        "delimiter=/",
        "reverse=true",
        "prefix=%ff",
        "marker=%00",
        "path=",
        "path=o",
    ):
        both("GET", A + "/c?" + q)
    for r in (
        "bytes=0-1",
        "bytes=1-",
        "bytes=-2",
        "bytes=9-",
        "bytes=-0",
        "bytes=0-0,2-3",
        "bytes=a",
        "bytes=3-1",
        "bytes=0-1,9-10",
        "bytes=0-0,0-0,0-0,0-0",
        "items=0-1",
        "bytes=-100",
        "bytes=4-4,3-3,2-2,1-1,0-0,4-4,3-3,2-2",
        "bytes=0-3,1-4,2-4",
    ):
        both("GET", A + "/c/o", {"Range": r})
    both("HEAD", A + "/c/o", {"Range": "bytes=0-1"})
    both("GET", A + "/c/o", {"Range": "bytes=0-1", "If-Range": '"x"'})
    for h in (
        {"If-Match": ETAG},
        {"If-Match": '"x"'},
        {"If-None-Match": ETAG},
        {"If-None-Match": "*"},
        {"If-Match": "*"},
        {"If-Modified-Since": "Sat, 21 Nov 2099 00:00:00 GMT"},
        {"If-Unmodified-Since": "Sat, 21 Nov 2009 00:00:00 GMT"},
        {"If-Modified-Since": "junk"},
        {"If-None-Match": 'x, "' + ETAG + '"'},
    ):
        both("GET", A + "/c/o", h)
    both("HEAD", A + "/c/o", h)
    both("GET", A + "/c/nope", {"If-Match": "*"})
    both("GET", A + "/c/nope", {"If-None-Match": "*"})
    both("PUT", A + "/c/o", {"If-None-Match": "*"}, b"x")
    both("PUT", A + "/c/o", {"If-None-Match": "x"}, b"x")
    both("PUT", A + "/c/o2", {"If-None-Match": "*"}, b"x")
    both("PUT", A + "/c/o2", {"ETag": '"' + ETAG + '"'}, b"hello")
    both("PUT", A + "/c/o2", {"ETag": "bad"}, b"hello")
    both(
        "PUT",
        A + "/c/meta",
        {
            "X-Object-Meta-Foo": "bar",
            "X-Object-Meta-a1b": "x",
            "Content-Type": "text/plain; charset=utf8; foo=bar",
            "Content-Encoding": "gzip",
            "Content-Disposition": "attachment",
            "X-Foo": "no",
            "Cache-Control": "c",
            "Content-Language": "en",
            "Expires": "x",
            "X-Robots-Tag": "y",
        },
        b"abc",
    )
    both("HEAD", A + "/c/meta")
    both("GET", A + "/c?format=json&prefix=meta")
    both("POST", A + "/c/meta", {"X-Object-Meta-New": "1"})
    both("HEAD", A + "/c/meta")
    both("POST", A + "/c/meta", {"Content-Type": "image/png", "X-Object-Meta-Empty": ""})
    both("HEAD", A + "/c/meta")
    both("GET", A + "/c?format=json&prefix=meta")
    both("PUT", A + "/c/e", body=b"")
    both("GET", A + "/c/e")
    both("GET", A + "/c/e", {"Range": "bytes=0-"})
    both("GET", A + "/c/e", {"Range": "bytes=-3"})
    both("HEAD", A + "/c/e")
    both("PUT", A + "/c/x.html", body=b"x")
    both("HEAD", A + "/c/x.html")
    both("PUT", A + "/c/x.html", {"Content-Type": "a/b", "X-Detect-Content-Type": "yes"}, b"x")
    both("HEAD", A + "/c/x.html")
    both("PUT", A + "/c/x", {"Content-Type": "a/b;swift_x=1"}, b"x")
    both("PUT", A + "/c/x", {"Content-Type": ""}, b"x")
    both("PUT", A + "/c/exp", {"X-Delete-At": "1"}, b"x")
    both("PUT", A + "/c/exp", {"X-Delete-At": "abc"}, b"x")
    both("PUT", A + "/c/exp", {"X-Delete-After": "0"}, b"x")
    both("PUT", A + "/c/exp", {"X-Delete-After": "x"}, b"x")
    both("PUT", A + "/c/exp", {"X-Delete-At": "9999999999"}, b"x")
    both("HEAD", A + "/c/exp")
    both("POST", A + "/c/exp", {"X-Remove-Delete-At": "x"})
    both("HEAD", A + "/c/exp")
    both("POST", A + "/c/exp", {"X-Delete-At": "12"})
    both("PUT", A + "/c/" + "n" * 1025, body=b"x")
    both("PUT", A + "/c/m", {"X-Object-Meta-" + "a" * 129: "x"}, b"x")
    both("PUT", A + "/c/m", {"X-Object-Meta-A": "x" * 257}, b"x")
    both("PUT", A + "/c/m", {f"X-Object-Meta-{i}": "x" for i in range(91)}, b"x")
    both("PUT", A + "/c/m", {"X-Object-Meta-": "x"}, b"x")
    both("PUT", A + "/c/m", {f"X-Object-Meta-{i}": "x" * 200 for i in range(30)}, b"x")
    both("PUT", A + "/c/%C3%A9%20sp/a?b", body=b"x")
    both("GET", A + "/c/%C3%A9%20sp/a")
    both("PUT", A + "/c/%00x", body=b"x")
    both("PUT", A + "/c/%ff", body=b"x")
    both("GET", A + "/c?format=xml")
    both("GET", A + "/c?format=json")
    both("GET", A + "/c")
    both("GET", A + "/c?delimiter=/&format=xml")
    both("GET", A + "?format=xml")
    both("GET", A + "?format=json")
    both("DELETE", A + "/c")
    both("DELETE", A + "/c/o")
    both("DELETE", A + "/c/o")
    both("GET", A + "/c/o")
    both("PATCH", A + "/c/o")
    both("FOO", A + "/c/o")
    both("FOO", A + "/c")
    both("FOO", A)
    both("UPDATE", A + "/c")
    both("REPLICATE", A + "/c")
    both("OPTIONS", A + "/c", user=None)
    both("OPTIONS", A + "/c/o", user=None)
    both("OPTIONS", A, user=None)
    both("OPTIONS", A + "/c/o", {"Origin": "http://a.com", "Access-Control-Request-Method": "GET"}, user=None)
    both(
        "POST",
        A + "/c",
        {
            "X-Container-Meta-Access-Control-Allow-Origin": "http://a.com",
            "X-Container-Meta-Access-Control-Expose-Headers": "X-Foo",
            "X-Container-Meta-Access-Control-Max-Age": "5",
        },
    )
    both("OPTIONS", A + "/c/o", {"Origin": "http://a.com", "Access-Control-Request-Method": "GET"}, user=None)
    both("OPTIONS", A + "/c/o", {"Origin": "http://a.com", "Access-Control-Request-Method": "FOO"}, user=None)
    both(
        "OPTIONS",
        A + "/c/o",
        {
            "Origin": "http://a.com",
            "Access-Control-Request-Method": "PUT",
            "Access-Control-Request-Headers": "X-A, X-B",
        },
        user=None,
    )
    both("OPTIONS", A + "/c/o", {"Origin": "http://b.com", "Access-Control-Request-Method": "GET"}, user=None)
    both("GET", A + "/c/e", {"Origin": "http://a.com"})
    both("GET", A + "/c/e", {"Origin": "http://b.com"})
    both("GET", A + "/c?limit=1", {"Origin": "http://a.com"})
    both("GET", A + "/c/nope", {"Origin": "http://a.com"})
    both("POST", A, {"X-Account-Access-Control": '{"read-only":["test2:tester2"]}'})
    both("HEAD", A)
    both("GET", A, user="test2:tester2")
    both("GET", A + "/c/e", user="test2:tester2")
    both("PUT", A + "/c/zz", user="test2:tester2", body=b"x")
    both("POST", A, {"X-Account-Access-Control": '{"bad":[]}'})
    both("POST", A, {"X-Account-Access-Control": "junk"})
    both("POST", A, {"X-Account-Access-Control": '{"admin":"x"}'})
    both("POST", A, {"X-Account-Access-Control": '{"admin":["test2:tester2"],"read-write":["ü"]}'.encode()})
    both("HEAD", A)
    both("PUT", A + "/c/zz", user="test2:tester2", body=b"x")
    both("HEAD", A, user="test2:tester2")
    both("POST", A, {"X-Account-Access-Control": "{}"})
    both("GET", A, user="test2:tester2")
    both(
        "POST",
        A + "/c",
        {"X-Container-Read": ".r:.ok.com,.r:-bad.ok.com", "X-Container-Write": "test:tester3"},
    )
    both("GET", A + "/c/e", {"Referer": "http://x.ok.com/a"}, user=None)
    both("GET", A + "/c/e", {"Referer": "http://bad.ok.com/a"}, user=None)
    both("GET", A + "/c", {"Referer": "http://x.ok.com/a"}, user=None)
    both("PUT", A + "/c/by3", user="test:tester3", body=b"x")
    both("GET", A + "/c/by3", user="test:tester3")
    both("DELETE", A + "/c/by3", user="test:tester3")
    both("POST", A + "/c", {"X-Container-Meta-Q": "1"}, user="test:tester3")
    both("HEAD", A + "/c", user="admin:admin")
    both("PUT", A + "/seg")
    for i, s in enumerate((b"0000", b"1111", b"2222")):
        both("PUT", f"{A}/seg/p/{i}", body=s)
    both("PUT", A + "/c/dlo", {"X-Object-Manifest": "seg/p/", "Content-Type": "text/plain"}, b"")
    both("GET", A + "/c/dlo")
    both("HEAD", A + "/c/dlo")
    both("GET", A + "/c/dlo", {"Range": "bytes=3-6"})
    both("GET", A + "/c/dlo", {"Range": "bytes=-3"})
    both("GET", A + "/c/dlo", {"Range": "bytes=30-"})
    both("GET", A + "/c/dlo", {"Range": "bytes=0-1,3-4"})
    both("GET", A + "/c/dlo?multipart-manifest=get")
    both("GET", A + "/c/dlo", {"If-None-Match": "18860aa59c2ab5d24e2f75e37cb385fb"})
    both("GET", A + "/c/dlo", {"If-Match": "x"})
    both("PUT", A + "/c/dlo2", {"X-Object-Manifest": "bad"}, b"")
    both("PUT", A + "/c/dlo3", {"X-Object-Manifest": "seg/none/"}, b"")
    both("GET", A + "/c/dlo3")
    both("PUT", A + "/c/dlo4", {"X-Object-Manifest": "noc/x"}, b"")
    both("GET", A + "/c/dlo4")
    both("POST", A + "/c/dlo", {"X-Object-Meta-A": "1"})
    both("GET", A + "/c/dlo")
    both("DELETE", A + "/c/dlo")
    both("PUT", A + "/c/ch", {}, [b"abc", b"def"])
    both("GET", A + "/c/ch")
    both("GET", A + "/c/ch", {"X-Newest": "true"})
    both("PUT", A + "/c/big", body=b"z" * 300000)
    both("GET", A + "/c/big", {"Range": "bytes=1000-1009,200000-200009"})
    both("HEAD", A + "/c/big")
    both("GET", "/v1.0/AUTH_test/c?limit=1")
    both("GET", A + "/c/e?format=json")
    both("DELETE", A + "?x=1", user="admin:admin")

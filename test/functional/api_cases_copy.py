"""Requests for copies: both ways to ask, what is copied and what is changed on the way, whose rights count.

Like ``api_cases``; the cases run on containers of their own, after those about static large objects.
"""

import json

A = "/v1/AUTH_test"
B = "/v1/AUTH_test2"
OTHER = "test2:tester2"
META = {
    "Content-Type": "text/plain",
    "X-Object-Meta-Color": "red",
    "X-Object-Meta-Shape": "round",
    "Content-Encoding": "x",
    "Content-Disposition": "y",
    "Cache-Control": "z",
}


def send_copies(both):
    """Send every case."""
    for container in ("ca", "cb", "c%20c"):
        both("PUT", f"{A}/{container}")
    both("PUT", B + "/cx", user=OTHER)
    both("PUT", A + "/ca/o", META, b"hello world")
    both("PUT", A + "/ca/empty", {"Content-Type": "a/b"}, b"")
    both("PUT", A + "/c%20c/%C3%A9%20%26", {"X-Object-Meta-N": "\xc3\xa9"}, b"odd")
    for part in (asking, metadata, conditions, large, accounts, hearts, others):
        part(both)


def looked_at(both, path, **who):
    both("GET", path, **who)
    both("HEAD", path, **who)


def asking(both):
    """How a copy is asked for, and what is wrong with it."""
    for headers in (
        {"X-Copy-From": "ca/o"},
        {"X-Copy-From": "/ca/o"},
        {"X-Copy-From": "//ca/o"},
        {"X-Copy-From": "/c%20c/%C3%A9%20%26"},
        {"X-Copy-From": "/c c/\xc3\xa9 &"},
        {"X-Copy-From": "/ca%2Fo"},
        {"X-Copy-From": "/ca/o", "Content-Length": "0"},
        {"X-Copy-From": "ca"},
        {"X-Copy-From": "/ca/"},
        {"X-Copy-From": "/"},
        {"X-Copy-From": "/ca/none"},
        {"X-Copy-From": "/none/o"},
        {"X-Copy-From": "/ca/o?x=y"},
        {"X-Copy-From": "/%FF/o"},
        {"X-Copy-From": "/ca/" + "n" * 1100},
        {"X-Copy-From": ""},
        {"X-Copy-From-Account": "AUTH_test"},
    ):
        both("PUT", A + "/cb/new", headers)
        looked_at(both, A + "/cb/new")
        both("DELETE", A + "/cb/new")
    for headers in (
        {"Destination": "cb/new"},
        {"Destination": "/cb/new"},
        {"Destination": "cb/a%20b"},
        {"Destination": "cb/a b"},
        {"Destination": "cb/x/y/z"},
        {"Destination": "cb"},
        {"Destination": "cb/"},
        {"Destination": "/"},
        {"Destination": ""},
        {},
        {"Destination": "none/new"},
        {"Destination": "cb/" + "n" * 1100},
        {"Destination": "cb/%FF"},
        {"Destination": "cb/new", "X-Copy-From": "/ca/none"},
        {"Destination-Account": "AUTH_test"},
    ):
        both("COPY", A + "/ca/o", headers)
    both("COPY", A + "/ca/none", {"Destination": "cb/new2"})
    both("HEAD", A + "/cb/new2")
    both("COPY", A + "/none/o", {"Destination": "cb/new2"})
    both("COPY", A + "/ca", {"Destination": "cb/new2"})
    both("COPY", A, {"Destination": "cb/new2"})
    both("COPY", A + "/ca/o", {"Destination": "cb/new3"}, b"body")
    both("PUT", A + "/cb/new3", {"X-Copy-From": "/ca/o"}, b"body")
    both("PUT", A + "/cb/new3", {"X-Copy-From": "/ca/o"}, [])
    both("PUT", A + "/cb/new3", {"X-Copy-From": "/ca/o"}, [b"body"])
    both("PUT", A + "/cb", {"X-Copy-From": "/ca/o"})
    both("POST", A + "/cb/new", {"X-Copy-From": "/ca/o", "X-Object-Meta-A": "b"})
    both("GET", A + "/cb/new", {"X-Copy-From": "/ca/none"})
    both("DELETE", A + "/cb/new", {"Destination": "/ca/none"})
    for account in ("AUTH_test", "AUTH_none", "a/b", "", "/", "AUTH%5Ftest", "AUTH_test2"):
        both("PUT", A + "/cb/acc", {"X-Copy-From": "/ca/o", "X-Copy-From-Account": account})
        both("COPY", A + "/ca/o", {"Destination": "cb/acc", "Destination-Account": account})
    both("OPTIONS", A + "/ca/o")
    both("OPTIONS", A + "/ca")


def metadata(both):
    """What goes along with the bytes."""
    both("COPY", A + "/ca/o", {"Destination": "cb/m1"})
    looked_at(both, A + "/cb/m1")
    both("COPY", A + "/ca/o", {"Destination": "cb/m2", "X-Object-Meta-Color": "blue", "X-Object-Meta-N": "n"})
    looked_at(both, A + "/cb/m2")
    both("COPY", A + "/ca/o", {"Destination": "cb/m3", "Content-Type": "new/type", "Content-Encoding": "n"})
    looked_at(both, A + "/cb/m3")
    for fresh in ("true", "yes", "false", "x"):
        both("COPY", A + "/ca/o", {"Destination": "cb/m4", "X-Fresh-Metadata": fresh, "X-Object-Meta-N": "n"})
        looked_at(both, A + "/cb/m4")
    both("PUT", A + "/cb/m5", {"X-Copy-From": "/ca/o", "X-Fresh-Metadata": "true", "Content-Type": "f/m"})
    looked_at(both, A + "/cb/m5")
    both("PUT", A + "/cb/m5", {"X-Copy-From": "/ca/o", "Content-Type": ""})
    looked_at(both, A + "/cb/m5")
    both("PUT", A + "/cb/m5.txt", {"X-Copy-From": "/ca/empty", "X-Detect-Content-Type": "true"})
    looked_at(both, A + "/cb/m5.txt")
    both("COPY", A + "/ca/o", {"Destination": "cb/m6", "X-Object-Meta-Color": ""})
    looked_at(both, A + "/cb/m6")
    both("COPY", A + "/ca/o", {"Destination": "cb/m6", "X-Remove-Object-Meta-Color": "x"})
    looked_at(both, A + "/cb/m6")
    both("COPY", A + "/ca/o", {"Destination": "ca/o", "X-Object-Meta-S": "1", "Content-Type": "self/copied"})
    looked_at(both, A + "/ca/o")
    both("POST", A + "/ca/o", {"X-Object-Meta-Posted": "1"})
    both("COPY", A + "/ca/o", {"Destination": "cb/m7"})
    looked_at(both, A + "/cb/m7")
    both("PUT", A + "/ca/exp", {"X-Delete-At": "9999999999", "X-Object-Meta-A": "b"}, b"x")
    both("COPY", A + "/ca/exp", {"Destination": "cb/e1"})
    looked_at(both, A + "/cb/e1")
    both("COPY", A + "/ca/exp", {"Destination": "cb/e2", "X-Fresh-Metadata": "true"})
    looked_at(both, A + "/cb/e2")
    both("COPY", A + "/ca/exp", {"Destination": "cb/e3", "X-Delete-At": "9999999998"})
    looked_at(both, A + "/cb/e3")
    both("COPY", A + "/ca/o", {"Destination": "cb/e4", "X-Delete-At": "1"})
    both("COPY", A + "/ca/o", {"Destination": "cb/e4", "X-Delete-After": "x"})
    both("HEAD", A + "/cb/e4")
    both("COPY", A + "/ca/o", {"Destination": "cb/big", **{f"X-Object-Meta-{n}": "v" for n in range(91)}})
    both("COPY", A + "/ca/o", {"Destination": "cb/big", "X-Object-Meta-Long": "v" * 257})
    both("COPY", A + "/ca/o", {"Destination": "cb/ec", "Content-Type": "a/b; swift_bytes=3"})
    both("COPY", A + "/ca/empty", {"Destination": "cb/empty"})
    looked_at(both, A + "/cb/empty")
    both("COPY", A + "/c%20c/%C3%A9%20%26", {"Destination": "cb/odd"})
    looked_at(both, A + "/cb/odd")


def conditions(both):
    """Ranges and conditions are about the source."""
    for spec in ("0-4", "6-", "-5", "11-", "x", "5-3"):
        both("COPY", A + "/ca/o", {"Destination": "cb/r", "Range": f"bytes={spec}"})
        looked_at(both, A + "/cb/r")
    both("PUT", A + "/cb/r", {"X-Copy-From": "/ca/o", "Range": "bytes=0-4"})
    etag = "5eb63bbbe01eeed093cb22bb8f5acdc3"
    for headers in (
        {"If-Match": etag},
        {"If-Match": "x"},
        {"If-None-Match": etag},
        {"If-None-Match": "x"},
        {"If-None-Match": "*"},
        {"If-Modified-Since": "Sat, 21 Nov 2099 00:00:00 GMT"},
        {"If-Unmodified-Since": "Sat, 21 Nov 2009 00:00:00 GMT"},
        {"ETag": etag},
        {"ETag": "x"},
        {"X-Newest": "false"},
    ):
        both("COPY", A + "/ca/o", {"Destination": "cb/cond", **headers})
        both("PUT", A + "/cb/cond", {"X-Copy-From": "/ca/o", **headers})
        both("DELETE", A + "/cb/cond")


def large(both):
    """Large objects are flattened, or copied as what they are."""
    for name, content in (("s0", b"0000"), ("s1", b"11111")):
        both("PUT", f"{A}/ca/seg/{name}", {"Content-Type": "text/x-piece"}, content)
    manifest = json.dumps([{"path": "/ca/seg/s0"}, {"path": "/ca/seg/s1"}, {"data": "ZW5k"}]).encode()
    both(
        "PUT", A + "/ca/slo?multipart-manifest=put", {"Content-Type": "v/x", "X-Object-Meta-A": "b"}, manifest
    )
    both("PUT", A + "/ca/dlo", {"X-Object-Manifest": "ca/seg/", "Content-Type": "v/y"}, b"")
    for source in ("slo", "dlo"):
        for query in ("", "?multipart-manifest=get", "?multipart-manifest=get&format=raw"):
            both("COPY", f"{A}/ca/{source}{query}", {"Destination": f"cb/{source}1"})
            looked_at(both, f"{A}/cb/{source}1")
            both("GET", f"{A}/cb/{source}1?multipart-manifest=get")
            both("PUT", f"{A}/cb/{source}2{query}", {"X-Copy-From": f"ca/{source}", "X-Object-Meta-C": "d"})
            looked_at(both, f"{A}/cb/{source}2")
        both("COPY", f"{A}/ca/{source}", {"Destination": f"cb/{source}3", "Range": "bytes=2-5"})
        looked_at(both, f"{A}/cb/{source}3")
        both(
            "COPY",
            f"{A}/ca/{source}?multipart-manifest=get",
            {"Destination": f"cb/{source}4", "X-Fresh-Metadata": "true", "Content-Type": "f/m"},
        )
        looked_at(both, f"{A}/cb/{source}4")
    both("COPY", f"{A}/ca/slo?part-number=2", {"Destination": "cb/part"})
    looked_at(both, f"{A}/cb/part")
    both("PUT", A + "/cb/put?multipart-manifest=put", {"X-Copy-From": "ca/slo"})
    looked_at(both, f"{A}/cb/put")
    both("COPY", f"{A}/ca/o?multipart-manifest=get", {"Destination": "cb/plain"})
    looked_at(both, f"{A}/cb/plain")
    both("GET", A + "/cb?format=json&prefix=slo")
    both("DELETE", A + "/ca/seg/s1")
    both("COPY", A + "/ca/slo", {"Destination": "cb/halfway"})
    both("HEAD", A + "/cb/halfway")
    both("DELETE", A + "/ca/seg/s0")
    both("COPY", A + "/ca/slo", {"Destination": "cb/broken"})
    both("HEAD", A + "/cb/broken")
    both("COPY", A + "/ca/slo?multipart-manifest=get", {"Destination": "cb/broken"})


def accounts(both):
    """Whose rights count at either end."""
    to_b = {"Destination": "cx/n", "Destination-Account": "AUTH_test2"}
    from_b = {"X-Copy-From": "/cx/src", "X-Copy-From-Account": "AUTH_test2"}
    both("PUT", B + "/cx/src", None, b"theirs", user=OTHER)
    both("COPY", A + "/ca/o", to_b)
    both("PUT", A + "/cb/fromb", from_b)
    both("COPY", A + "/ca/o", to_b, user=OTHER)
    both("PUT", A + "/cb/fromb", from_b, user=OTHER)
    both("COPY", A + "/ca/o", to_b, user=None)
    both("POST", B + "/cx", {"X-Container-Write": "test:tester"}, user=OTHER)
    both("COPY", A + "/ca/o", to_b)
    looked_at(both, B + "/cx/n", user=OTHER)
    both("POST", B + "/cx", {"X-Container-Read": "test:tester", "X-Container-Write": ""}, user=OTHER)
    both("COPY", A + "/ca/o", to_b)
    both("PUT", A + "/cb/fromb", from_b)
    looked_at(both, A + "/cb/fromb")
    both("COPY", B + "/cx/src", {"Destination": "cb/fromb2", "Destination-Account": "AUTH_test"})
    looked_at(both, A + "/cb/fromb2")
    both("POST", A + "/ca", {"X-Container-Read": OTHER})
    both("COPY", A + "/ca/o", to_b, user=OTHER)
    both("COPY", A + "/ca/o", {"Destination": "cb/n"}, user=OTHER)
    both("PUT", A + "/cb/n", {"X-Copy-From": "/ca/o"}, user=OTHER)
    both("POST", A + "/cb", {"X-Container-Write": OTHER})
    both("COPY", A + "/ca/o", {"Destination": "cb/n"}, user=OTHER)
    both("COPY", A + "/cb/m1", {"Destination": "cb/n"}, user=OTHER)
    both("POST", A + "/ca", {"X-Container-Read": ""})
    both("COPY", A + "/ca/o", {"Destination": "cb/n"}, user=OTHER)
    both("POST", A + "/ca", {"X-Container-Read": ".r:*"})
    both("COPY", A + "/ca/o", {"Destination": "cb/n"}, user=None)
    both("COPY", A + "/ca/o", {"Destination": "cb/n"}, user=OTHER)
    both("POST", A + "/cb", {"X-Container-Write": ""})
    both("POST", A + "/ca", {"X-Container-Read": ""})


def hearts(both):
    """Copies that answer before they are done."""
    for accept in ("text/plain", "application/json", "application/xml", "text/xml", "image/png"):
        both("COPY", A + "/ca/o?heartbeat=on", {"Destination": "cb/h", "Accept": accept})
        both("COPY", A + "/ca/none?heartbeat=on", {"Destination": "cb/h", "Accept": accept})
        both("COPY", A + "/ca/o?heartbeat=on", {"Destination": "none/h", "Accept": accept})
    both("PUT", A + "/cb/h?heartbeat=yes", {"X-Copy-From": "/ca/o"})
    both("PUT", A + "/cb/h?heartbeat=no", {"X-Copy-From": "/ca/o"})
    both("PUT", A + "/cb/h?heartbeat=yes", {"X-Copy-From": "/c%20c/%C3%A9%20%26", "X-Object-Meta-A": "b"})
    both("COPY", A + "/ca/o?heartbeat=on", {"Destination": "cb/h"}, user=OTHER)
    both("PUT", A + "/cb/h?heartbeat=yes", None, b"x")


def others(both):
    """What else a copy meets."""
    both("PUT", A + "/cec", {"X-Storage-Policy": "ec"})
    both("COPY", A + "/ca/o", {"Destination": "cec/o"})
    looked_at(both, A + "/cec/o")
    both("COPY", A + "/cec/o", {"Destination": "cec/o2", "Range": "bytes=0-4"})
    looked_at(both, A + "/cec/o2")
    both("COPY", A + "/cec/o", {"Destination": "cb/fromec"})
    looked_at(both, A + "/cb/fromec")
    both("POST", A + "/ca", {"X-Container-Meta-Access-Control-Allow-Origin": "http://x"})
    preflight = {"Origin": "http://x", "Access-Control-Request-Method": "COPY"}
    both("OPTIONS", A + "/ca/o", preflight, user=None)
    both("COPY", A + "/ca/o", {"Destination": "cb/cors", "Origin": "http://x"})
    both("COPY", A + "/ca/o", {"Destination": "cb/symlinkget"})
    both("COPY", A + "/ca/o?symlink=get", {"Destination": "cb/symlinkget"})

"""Requests about static large objects: manifests, what is wrong with them, and how they are read.

Like ``api_cases``; the cases run on containers of their own.
"""

import base64
import hashlib
import json

A = "/v1/AUTH_test"
PIECES = {"s0": b"0000", "s1": b"11111", "s2": b"222222", "e": b"", "b c": b"spaced", "\xc3\xa9": b"accent"}
PUT = "?multipart-manifest=put"
GET = "?multipart-manifest=get"
DELETE = "?multipart-manifest=delete"


def md5(data):
    return hashlib.md5(data).hexdigest()


def quoted(name):
    return name.replace(" ", "%20").replace("\xc3\xa9", "%C3%A9")


def text_of(name):
    return name.encode("latin-1").decode()


def entry(name, **more):
    return {"path": f"/ls/{text_of(name)}", **more}


def full(name):
    return entry(name, etag=md5(PIECES[name]), size_bytes=len(PIECES[name]))


def data(content):
    return {"data": base64.b64encode(content).decode()}


def send_slo(both):
    """Send every case."""
    both("PUT", A + "/ls")
    both("PUT", A + "/lm")
    for name, content in PIECES.items():
        both("PUT", f"{A}/ls/{quoted(name)}", {"Content-Type": "text/x-piece"}, content)
    for part in (
        malformed,
        wrong_segments,
        good,
        reading,
        conditions,
        parts,
        nested,
        changed,
        rights,
        hearts,
        deleting,
    ):
        part(both)


def upload(both, name, manifest, headers=None, query=PUT, **who):
    body = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    both("PUT", f"{A}/lm/{name}{query}", {"Content-Type": "video/x", **(headers or {})}, body, **who)


def malformed(both):
    """Manifests that are none."""
    for body in (
        b"",
        b"{",
        b"{}",
        b"[1]",
        b"\xff",
        b"null",
        b'"x"',
        b"[null, [], {}]",
        b"[" * 2000,
        b'[{"path": "/ls/s0", "path": 3}]',
        b'[{"path": "/ls/s0", "size_bytes": NaN}]',
        b'[{"path": "/ls/s0", "size_bytes": Infinity}]',
        b'[{"path": "/ls/s0", "size_bytes": ' + b"9" * 5000 + b"}]",
        b'[{"path": "/ls/\\ud800"}]',
        b'[{"path": "/ls/\\u0000x"}]',
    ):
        upload(both, "bad", body)
    for item in (
        {"path": "/ls/s0", "foo": 1},
        {"path": "/ls/s0", "foo": 1, "bar": 2},
        {"path": "/ls/s0", "data": "YQ=="},
        {"path": 3},
        {"path": None},
        {"path": ""},
        {"path": "/"},
        {"path": "/ls"},
        {"path": "/ls/"},
        {"path": "ls"},
        {"path": "//ls/s0"},
        {"path": "ls//s0"},
        {"path": "/lm/bad"},
        {"path": "lm/bad"},
        {"path": "/ls/s0", "etag": 3},
        {"path": "/ls/s0", "etag": ""},
        {"path": "/ls/s0", "etag": md5(b"0000").upper()},
        {"path": "/ls/s0", "etag": f'"{md5(b"0000")}"'},
        {"path": "/ls/s0", "size_bytes": "x"},
        {"path": "/ls/s0", "size_bytes": "4"},
        {"path": "/ls/s0", "size_bytes": 4.0},
        {"path": "/ls/s0", "size_bytes": 4.5},
        {"path": "/ls/s0", "size_bytes": -1},
        {"path": "/ls/s0", "size_bytes": 0},
        {"path": "/ls/s0", "size_bytes": True},
        {"path": "/ls/s0", "size_bytes": []},
        {"path": "/ls/s0", "size_bytes": ""},
        {"path": "/ls/s0", "range": 3},
        {"path": "/ls/s0", "range": None},
        {"path": "/ls/s0", "range": ""},
        {"path": "/ls/s0", "range": "x"},
        {"path": "/ls/s0", "range": "1"},
        {"path": "/ls/s0", "range": "-"},
        {"path": "/ls/s0", "range": "3-1"},
        {"path": "/ls/s0", "range": "0-0,2-2"},
        {"path": "/ls/s0", "range": "bytes=0-1"},
        {"path": "/ls/s0", "range": "-0"},
        {"path": "/ls/s0", "range": "4-"},
        {"path": "/ls/s0", "range": "4-", "size_bytes": 4},
        {"path": "/ls/s0", "range": "-0", "size_bytes": 4},
        {"path": "/ls/s0", "range": "0-99", "size_bytes": 4},
        {"path": "/ls/s0", "range": "-99", "size_bytes": 4},
        {"path": "/ls/s0", "range": "0-3", "size_bytes": 4},
        {"path": "/ls/s0", "range": "99999999999999999999-"},
        {"path": "/ls/s0", "range": " 1 - 2 "},
        {"data": "!"},
        {"data": ""},
        {"data": 3},
        {"data": None},
        {"data": "YQ"},
        {"data": "YQ==\n"},
        {"data": "YQ==", "size_bytes": 1},
        {"data": "YQ=="},
    ):
        upload(both, "bad", [item])
    upload(both, "bad", [{"path": 3}, {"path": "/ls/s0", "foo": 1}, [], {"path": "/lm/bad"}])
    upload(both, "bad", [])
    both("GET", A + "/lm/bad")
    both("GET", A + "/lm/bad" + GET)
    for query in ("?multipart-manifest=", "?multipart-manifest=PUT", "?multipart-manifest=x"):
        upload(both, "notput", [full("s0")], query=query)
    both("PUT", A + "/lm/flag", {"X-Static-Large-Object": "true"}, b"x")
    both("PUT", A + "/lm/flag" + PUT, {"X-Static-Large-Object": "true"}, json.dumps([full("s0")]).encode())
    both("POST", A + "/lm/notput", {"X-Static-Large-Object": "true"})
    both("HEAD", A + "/lm/notput")
    upload(both, "etag", [full("s0"), full("s1")], {"ETag": "x"})
    upload(both, "etag", [full("s0"), full("s1")], {"ETag": md5((md5(b"0000") + md5(b"11111")).encode())})
    upload(
        both, "etag", [full("s0"), full("s1")], {"ETag": f'"{md5((md5(b"0000") + md5(b"11111")).encode())}"'}
    )
    upload(both, "inm", [full("s0")], {"If-None-Match": "*"})
    upload(both, "inm", [full("s0")], {"If-None-Match": "*"})
    upload(both, "inm", [full("s0")], {"If-None-Match": "x"})
    both("PUT", A + PUT, None, b"[]")
    both("PUT", A + "/lm" + PUT, None, b"[]")
    both("PUT", A + "/nocont/x" + PUT, None, json.dumps([full("s0")]).encode())
    both("PUT", A + "/lm/ch" + PUT, {"Content-Type": "a/b"}, [json.dumps([full("s0")]).encode()])
    both("PUT", A + "/lm/cf" + PUT, {"X-Copy-From": "/ls/s0"}, json.dumps([full("s0")]).encode())
    both("PUT", A + "/lm/guess.txt" + PUT, None, json.dumps([full("s0")]).encode())
    both("HEAD", A + "/lm/guess.txt")
    upload(both, "ct", [full("s0")], {"Content-Type": "a/b; swift_bytes=5"})
    upload(both, "ct", [full("s0")], {"Content-Type": "a/b; charset=x"})
    both("HEAD", A + "/lm/ct")
    both("GET", A + "/lm?format=json")


def wrong_segments(both):
    """Segments that are not what the manifest says."""
    # Several at once come in any order.
    wrong = [entry("s0", etag="<&>", size_bytes=9), full("s1")]
    for item in (
        entry("none"),
        entry("s0", etag="x"),
        entry("s1", size_bytes=4),
        entry("s2", range="9-"),
        entry("b c", etag="<&>"),
        entry("\xc3\xa9", size_bytes=1),
    ):
        upload(both, "wrong", [item])
    for accept in (
        None,
        "text/plain",
        "application/json",
        "application/xml",
        "text/xml",
        "image/png",
        "*/*",
        "bad",
    ):
        upload(both, "wrong", wrong, {"Accept": accept} if accept else None)
    upload(both, "wrong", wrong, {"Accept": "text/plain"}, PUT + "&format=json")
    upload(both, "wrong", [entry("e"), full("s0")])
    upload(both, "wrong", [{"path": "/nocont/x"}])
    upload(both, "wrong", [{"path": "/ls/" + "n" * 2000}])
    upload(
        both,
        "wrong",
        [entry("s0", range="0-1"), entry("s0", etag="bad", range="2-3"), entry("s0", etag="bad")],
    )
    both("HEAD", A + "/lm/wrong")


def good(both):
    """Manifests that are stored."""
    upload(both, "one", [full("s0")])
    upload(both, "paths", [entry("s0"), entry("s1"), entry("s2")], {"X-Object-Meta-Color": "red"})
    upload(both, "full", [full("s0"), full("s1"), full("s2")], {"Content-Type": "text/x; a=b"})
    upload(
        both,
        "ranges",
        [
            entry("s1", range="1-3"),
            entry("s2", range="-2"),
            entry("s2", range="4-"),
            entry("s0", range="0-3"),
        ],
    )
    upload(both, "data", [data(b"head"), full("s0"), data(b"tail")])
    upload(both, "data2", [full("s0"), data(b"a"), data(b"b"), entry("s1", range="2-2")])
    upload(both, "emptylast", [full("s0"), entry("e")])
    upload(both, "odd", [entry("b c"), entry("\xc3\xa9"), entry("s0")])
    upload(both, "twice", [full("s0"), full("s0"), full("s0")])
    upload(both, "noslash", [{"path": "ls/s0"}, {"path": "ls/s1", "etag": None, "size_bytes": None}])
    for name in ("one", "paths", "full", "ranges", "data", "data2", "emptylast", "odd", "twice", "noslash"):
        both("HEAD", f"{A}/lm/{name}")
        both("GET", f"{A}/lm/{name}")
        both("GET", f"{A}/lm/{name}{GET}")
        both("HEAD", f"{A}/lm/{name}{GET}")
        both("GET", f"{A}/lm/{name}{GET}&format=raw")
        both("HEAD", f"{A}/lm/{name}{GET}&format=raw")
    both("GET", A + "/lm?format=json")
    both("GET", A + "/lm?format=xml")
    both("GET", A + "/lm?format=json&delimiter=a")
    both("GET", A + "/lm?prefix=o")
    both("HEAD", A + "/lm")
    both("GET", A + "/ls/s0" + GET)
    both("GET", A + "/ls/s0" + GET + "&format=raw")
    both("GET", A + "/ls/none" + GET + "&format=raw")
    both("GET", A + "/lm/one?multipart-manifest=x")
    both("GET", A + "/lm/one?format=raw")
    both("POST", A + "/lm/one", {"X-Object-Meta-Shade": "dark"})
    both("HEAD", A + "/lm/one")
    both("POST", A + "/lm/one", {"Content-Type": "new/type"})
    both("HEAD", A + "/lm/one")
    both("GET", A + "/lm/one")
    both("GET", A + "/lm?format=json&prefix=one")


def reading(both):
    """Ranges of the whole."""
    for name in ("full", "data", "ranges", "twice", "bad"):
        for spec in (
            "0-0",
            "3-4",
            "0-",
            "-1",
            "-100",
            "4-8",
            "14-",
            "15-",
            "100-",
            "0-1,3-5",
            "0-3,8-9,-1",
            "0-1,100-",
            "100-,200-",
            "5-3",
            "x",
            "-0",
            "0-14,0-14",
            ",".join(f"{n}-{n}" for n in range(9, 0, -1)),
        ):
            both("GET", f"{A}/lm/{name}", {"Range": f"bytes={spec}"})
    for spec in ("0-0", "14-", "15-", "0-1,3-4"):
        both("HEAD", f"{A}/lm/full", {"Range": f"bytes={spec}"})
        both("GET", f"{A}/lm/full{GET}", {"Range": f"bytes={spec}"})
        both("GET", f"{A}/lm/full{GET}&format=raw", {"Range": f"bytes={spec}"})


def conditions(both):
    """Conditions are about the whole, or about the manifest when that is asked for."""
    etag = md5((md5(b"0000") + md5(b"11111") + md5(b"222222")).encode())
    for method in ("GET", "HEAD"):
        for headers in (
            {"If-Match": etag},
            {"If-Match": f'"{etag}"'},
            {"If-Match": "x"},
            {"If-Match": "*"},
            {"If-None-Match": etag},
            {"If-None-Match": f'"{etag}"'},
            {"If-None-Match": "x"},
            {"If-None-Match": "*"},
            {"If-Match": etag, "Range": "bytes=3-4"},
            {"If-Match": "x", "Range": "bytes=3-4"},
            {"If-None-Match": etag, "Range": "bytes=300-"},
            {"If-Modified-Since": "Sat, 21 Nov 2099 00:00:00 GMT"},
            {"If-Unmodified-Since": "Sat, 21 Nov 2009 00:00:00 GMT"},
            {"If-Range": "x", "Range": "bytes=3-4"},
        ):
            both(method, f"{A}/lm/full", headers)
            both(method, f"{A}/lm/full{GET}", headers)
    both("GET", f"{A}/lm/full{GET}&format=raw", {"If-Match": etag})
    both("GET", f"{A}/lm/full{GET}&format=raw", {"If-None-Match": "*"})
    both("GET", f"{A}/lm/full", {"X-Newest": "true"})
    both("GET", f"{A}/lm/full", {"X-Newest": "true", "Range": "bytes=2-5"})
    both("GET", f"{A}/lm/full", {"Origin": "http://x"})


def parts(both):
    """Single parts."""
    for name in ("full", "data", "ranges"):
        for number in ("1", "2", "3", "4", "5", "0", "-1", "x", "", "1.0", "01", "99999999999999999999"):
            both("GET", f"{A}/lm/{name}?part-number={number}")
        both("HEAD", f"{A}/lm/{name}?part-number=2")
        both("HEAD", f"{A}/lm/{name}?part-number=9")
    both("GET", A + "/lm/full?part-number=1", {"Range": "bytes=0-1"})
    both("GET", A + "/lm/full?part-number=x", {"Range": "bytes=0-1"})
    both("GET", A + "/lm/full?part-number=1&multipart-manifest=get")
    both("GET", A + "/lm/full?part-number=1", {"If-None-Match": "*"})
    both("GET", A + "/lm/full?part-number=9", {"If-Match": "x"})
    both("GET", A + "/ls/s0?part-number=1")
    both("GET", A + "/ls/s0?part-number=x")
    both("GET", A + "/ls/s0?part-number=1", {"Range": "bytes=0-1"})
    both("GET", A + "/ls/none?part-number=x")
    both("PUT", A + "/lm/pn?part-number=x", None, b"x")


def nested(both):
    """Manifests as segments."""
    upload(both, "sub", [{"path": "/lm/full"}, full("s0"), {"path": "/lm/data"}])
    upload(both, "subranges", [{"path": "/lm/full", "range": "3-5"}, {"path": "/lm/sub", "range": "-6"}])
    upload(both, "subbad", [{"path": "/lm/full", "etag": "x"}, {"path": "/lm/full", "size_bytes": 3}])
    upload(both, "subsize", [{"path": "/lm/full", "size_bytes": 15}])
    for name in ("sub", "subranges", "subsize"):
        for method in ("HEAD", "GET"):
            both(method, f"{A}/lm/{name}")
        both("GET", f"{A}/lm/{name}{GET}")
        both("GET", f"{A}/lm/{name}{GET}&format=raw")
        both("GET", f"{A}/lm/{name}", {"Range": "bytes=2-4"})
        both("GET", f"{A}/lm/{name}", {"Range": "bytes=1-2,4-5"})
        both("GET", f"{A}/lm/{name}?part-number=1")
    upload(both, "deep0", [full("s0")])
    for depth in range(1, 14):
        upload(both, f"deep{depth}", [{"path": f"/lm/deep{depth - 1}"}])
        both("HEAD", f"{A}/lm/deep{depth}")
        both("GET", f"{A}/lm/deep{depth}")
    upload(both, "deep11", [full("s1")])
    both("GET", A + "/lm/deep13")
    both("PUT", A + "/lm/dlo", {"X-Object-Manifest": "ls/s", "Content-Type": "a/b"}, b"")
    upload(both, "ofdlo", [{"path": "/lm/dlo"}])
    both("GET", A + "/lm/ofdlo")
    both("PUT", A + "/lm/dloofslo", {"X-Object-Manifest": "lm/fu", "Content-Type": "a/b"}, b"")
    both("HEAD", A + "/lm/dloofslo")
    both("GET", A + "/lm/dloofslo")
    upload(both, "both", [full("s0")], {"X-Object-Manifest": "ls/s"})
    both("HEAD", A + "/lm/both")
    both("GET", A + "/lm/both")
    both("GET", A + "/lm/both" + GET)


def changed(both):
    """Segments that changed or went away."""
    for name in ("c0", "c1", "c2"):
        both("PUT", f"{A}/ls/{name}", None, name.encode() * 2)
    upload(both, "ch", [entry("c0"), entry("c1"), entry("c2")])
    upload(both, "chlast", [entry("c2"), entry("c2")])
    upload(both, "chsub", [{"path": "/lm/ch"}])
    both("PUT", A + "/ls/c0", None, b"other")
    both("GET", A + "/lm/ch")
    both("HEAD", A + "/lm/ch")
    both("GET", A + "/lm/chsub")
    both("GET", A + "/lm/ch", {"Range": "bytes=4-7"})
    both("GET", A + "/lm/ch", {"Range": "bytes=3-7"})
    both("GET", A + "/lm/ch", {"Range": "bytes=0-1,5-6"})
    both("DELETE", A + "/ls/c2")
    both("GET", A + "/lm/chlast")
    both("GET", A + "/lm/chlast", {"Range": "bytes=2-3"})
    both("HEAD", A + "/lm/chlast")
    both("PUT", A + "/lm/chx", None, b"was")
    upload(both, "chparent", [{"path": "/lm/chx"}])
    upload(both, "chx", [full("s0")])
    both("GET", A + "/lm/chparent")
    upload(both, "chparent2", [{"path": "/lm/chx"}])
    both("PUT", A + "/lm/chx", None, b"plain again")
    both("GET", A + "/lm/chparent2")
    both("DELETE", A + "/lm/chx")
    both("GET", A + "/lm/chparent2")


def rights(both):
    """Whose segments may be named and read."""
    both("POST", A + "/lm", {"X-Container-Read": "test2:tester2", "X-Container-Write": "test2:tester2"})
    both("GET", A + "/lm/full", user="test2:tester2")
    both("HEAD", A + "/lm/full", user="test2:tester2")
    both("GET", A + "/lm/full" + GET, user="test2:tester2")
    upload(both, "foreign", [full("s0")], user="test2:tester2")
    both("POST", A + "/ls", {"X-Container-Read": "test2:tester2"})
    both("GET", A + "/lm/full", user="test2:tester2")
    upload(both, "foreign", [full("s0")], user="test2:tester2")
    both("POST", A + "/ls", {"X-Container-Read": ".r:*"})
    both("GET", A + "/lm/full", user=None)
    both("POST", A + "/lm", {"X-Container-Read": ".r:*"})
    both("GET", A + "/lm/full", user=None)
    both("HEAD", A + "/lm/full", user=None)
    both("POST", A + "/ls", {"X-Container-Read": ""})
    both("GET", A + "/lm/full", user=None)
    both("POST", A + "/lm", {"X-Container-Read": "", "X-Container-Write": ""})
    upload(both, "full2", [full("s0")], user="test2:tester2")
    upload(both, "full2", [full("s0")], user=None)
    upload(both, "full2", [{"path": "/../AUTH_test2/x"}])
    upload(both, "full2", [{"path": "ls%2Fs0"}, {"path": "/ls/%73"}])


def hearts(both):
    """Uploads that answer before they are done."""
    for value in ("on", "yes", "true", "off", "x"):
        upload(both, "heart", [full("s0")], query=f"{PUT}&heartbeat={value}")
    for accept in ("text/plain", "application/json", "application/xml", "text/xml", "image/png"):
        upload(both, "heart", [full("s0")], {"Accept": accept}, f"{PUT}&heartbeat=on")
        upload(both, "heart", [entry("s0", etag="x"), full("s1")], {"Accept": accept}, f"{PUT}&heartbeat=on")
        upload(both, "heart", [full("s0")], {"Accept": accept, "ETag": "x"}, f"{PUT}&heartbeat=on")
    upload(both, "heart", b"[", query=f"{PUT}&heartbeat=on")
    both("PUT", f"{A}/nocont/x{PUT}&heartbeat=on", None, json.dumps([full("s0")]).encode())
    upload(both, "heart", [full("s0")], query=f"{PUT}&heartbeat=on", user="test2:tester2")


def deleting(both):
    """Manifests that go with their segments."""
    for name in ("d0", "d1", "d2", "d3"):
        both("PUT", f"{A}/ls/{name}", None, name.encode())
    both("PUT", A + "/lx")
    both("PUT", A + "/lx/d0", None, b"x")
    both("DELETE", A + "/ls/s0" + DELETE)
    both("DELETE", A + "/ls/nothere" + DELETE)
    both("DELETE", A + "/lm" + DELETE)
    for accept in ("text/plain", "application/json", "application/xml", "text/xml", "image/png", "*/*"):
        upload(both, "del", [entry("d0"), entry("d1", range="0-0"), data(b"x")])
        both("DELETE", A + "/lm/del" + DELETE, {"Accept": accept})
        both("PUT", A + "/ls/d0", None, b"d0")
        both("PUT", A + "/ls/d1", None, b"d1")
        both("DELETE", A + "/lm/del" + DELETE, {"Accept": accept})
    upload(both, "del", [entry("d1"), {"path": "/lm/full"}])
    both("PUT", A + "/lm/delsub", None, b"")
    upload(both, "delsub", [entry("d2"), entry("d3")])
    upload(both, "deltop", [{"path": "/lm/delsub"}, entry("d1"), {"path": "/lx/d0"}])
    both("DELETE", A + "/ls/d2")
    both("DELETE", A + "/lm/deltop" + DELETE, user="test2:tester2")
    both("DELETE", A + "/lm/deltop" + DELETE, user=None)
    both("DELETE", A + "/lm/deltop" + DELETE, {"Accept": "application/json"})
    for path in ("ls/d1", "ls/d2", "ls/d3", "lx/d0", "lm/delsub", "lm/deltop"):
        both("HEAD", f"{A}/{path}")
    both("PUT", A + "/ls/d1", None, b"x")
    both("PUT", A + "/ls/d2", None, b"x")
    upload(both, "as", [entry("d1"), {"path": "/lx/none"}])
    both("PUT", A + "/lx/d0", None, b"x")
    upload(both, "as", [entry("d1"), {"path": "/lx/d0"}])
    both("DELETE", A + "/lm/as" + DELETE + "&async=on")
    upload(both, "as2", [{"path": "/lm/as"}])
    both("DELETE", A + "/lm/as2" + DELETE + "&async=on")
    upload(both, "as3", [entry("d1"), entry("d2"), data(b"x")])
    both("DELETE", A + "/lm/as3" + DELETE + "&async=yes", user="test2:tester2")
    both("DELETE", A + "/lm/as3" + DELETE + "&async=yes")
    both("HEAD", A + "/lm/as3")
    both("HEAD", A + "/ls/d1")
    both("DELETE", A + "/lm/as3" + DELETE + "&async=on")
    both("DELETE", A + "/ls/s0" + DELETE + "&async=on")
    upload(both, "as4", [entry("d1"), entry("d2")])
    both("DELETE", A + "/lm/as4" + DELETE + "&async=off")
    both("DELETE", A + "/lm/one")
    both("HEAD", A + "/ls/s0")
    both("POST", A + "/lm", {"X-Container-Write": "test2:tester2"})
    both("PUT", A + "/ls/d1", None, b"x")
    upload(both, "acl", [entry("d1")])
    both("DELETE", A + "/lm/acl" + DELETE, {"Accept": "application/json"}, user="test2:tester2")
    both("POST", A + "/lm", {"X-Container-Read": "test2:tester2"})
    both("DELETE", A + "/lm/acl" + DELETE, {"Accept": "application/json"}, user="test2:tester2")
    both("HEAD", A + "/ls/d1")
    both("HEAD", A + "/lm/acl")

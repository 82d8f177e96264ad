"""Requests about symbolic links: what is one, where it leads, whose rights count.

Like ``api_cases``; the cases run on containers of their own, after those about copies.
"""

import hashlib
import json

A = "/v1/AUTH_test"
B = "/v1/AUTH_test2"
OTHER = "test2:tester2"
DATA = b"target data"
ETAG = hashlib.md5(DATA).hexdigest()


def send_symlinks(both):
    """Send every case."""
    for container in ("ya", "yb"):
        both("PUT", f"{A}/{container}")
    both("PUT", B + "/yx", user=OTHER)
    both("PUT", A + "/ya/t", {"Content-Type": "text/plain", "X-Object-Meta-Color": "red"}, DATA)
    both("PUT", A + "/ya/a%20b%C3%A9", {"Content-Type": "text/plain"}, b"odd")
    for part in (making, dynamic, static, chains, posts, accounts, copies, large, listed):
        part(both)


def link(both, name, target, headers=None, **who):
    both("PUT", f"{A}/yb/{name}", {"X-Symlink-Target": target, **(headers or {})}, **who)


def looked_at(both, path, **who):
    for method in ("GET", "HEAD"):
        both(method, path, **who)
        both(method, path + "?symlink=get", **who)


def making(both):
    """What is wrong with a link."""
    for target in (
        "ya",
        "/ya/t",
        "ya/",
        "/",
        "",
        "//t",
        "ya//t",
        "ya%2Ft",
        "yb/bad",
        "yb%2Fbad",
        "none/t",
        "ya/none",
        "ya/" + "n" * 1100,
        "n" * 300 + "/t",
        "ya/t?x=y",
        "ya/a b\xc3\xa9",
        "ya/a%20b%C3%A9",
        "ya/%00x",
    ):
        link(both, "bad", target)
        both("GET", A + "/yb/bad?symlink=get")
        both("DELETE", A + "/yb/bad")
    link(both, "bad", "ya/t", {"Content-Length": "0"})
    both("PUT", A + "/yb/bad2", {"X-Symlink-Target": "ya/t"}, b"body")
    both("PUT", A + "/yb/bad2", {"X-Symlink-Target": "ya/t"}, [b"body"])
    both("PUT", A + "/yb/bad2", {"X-Symlink-Target": "ya/t"}, [])
    for account in ("a/b", "", "AUTH_test", "AUTH%5Ftest", "/"):
        link(both, "bad3", "ya/t", {"X-Symlink-Target-Account": account})
        both("HEAD", A + "/yb/bad3?symlink=get")
    link(both, "bad3", "yb/bad3", {"X-Symlink-Target-Account": "AUTH_test2"})
    both("PUT", A + "/yb/bad4", {"X-Symlink-Target-Account": "AUTH_test"}, b"")
    both("PUT", A + "/yb/bad4", {"X-Symlink-Target-Etag": ETAG}, b"")
    both("PUT", A + "/yb/bad4", {"X-Symlink-Target-Bytes": "5", "X-Symlink-Target": "ya/t"}, b"")
    both("HEAD", A + "/yb/bad4?symlink=get")
    both("PUT", A + "/yb", {"X-Symlink-Target": "ya/t"})
    both("PUT", A + "/none/l", {"X-Symlink-Target": "ya/t"})
    both("POST", A + "/ya/t", {"X-Symlink-Target": "ya/t"})
    both("POST", A + "/yb/none", {"X-Symlink-Target": "ya/t"})
    both("GET", A + "/ya/t?symlink=get")
    both("GET", A + "/ya/t", {"X-Symlink-Target": "ya/t"})


def dynamic(both):
    """Links that lead to whatever is there."""
    link(both, "dyn", "ya/t")
    link(both, "meta", "ya/t", {"X-Object-Meta-Own": "1", "Content-Type": "own/type"})
    link(both, "odd", "ya/a%20b%C3%A9")
    link(both, "gone", "ya/none")
    link(both, "nowhere", "none/none")
    for name in ("dyn", "meta", "odd", "gone", "nowhere"):
        looked_at(both, f"{A}/yb/{name}")
    for headers in (
        {"Range": "bytes=0-5"},
        {"Range": "bytes=0-1,3-4"},
        {"Range": "bytes=99-"},
        {"If-Match": ETAG},
        {"If-Match": "x"},
        {"If-None-Match": ETAG},
        {"If-None-Match": "d41d8cd98f00b204e9800998ecf8427e"},
        {"If-None-Match": "*"},
        {"If-Modified-Since": "Sat, 21 Nov 2099 00:00:00 GMT"},
        {"If-Unmodified-Since": "Sat, 21 Nov 2009 00:00:00 GMT"},
        {"X-Newest": "true"},
        {"Origin": "http://x"},
    ):
        both("GET", A + "/yb/dyn", headers)
        both("HEAD", A + "/yb/dyn", headers)
    for headers in (
        {"If-Match": ETAG},
        {"If-None-Match": "d41d8cd98f00b204e9800998ecf8427e"},
        {"Range": "bytes=0-1"},
    ):
        both("GET", A + "/yb/dyn?symlink=get", headers)
    both("GET", A + "/yb/dyn?symlink=x")
    both("GET", A + "/yb/dyn?symlink=")
    both("OPTIONS", A + "/yb/dyn")
    both("PUT", A + "/yb/over", {"X-Symlink-Target": "ya/t"})
    both("PUT", A + "/yb/over", None, b"plain now")
    looked_at(both, A + "/yb/over")
    both("PUT", A + "/yb/del", {"X-Symlink-Target": "ya/t"})
    both("DELETE", A + "/yb/del")
    both("HEAD", A + "/yb/del")
    both("HEAD", A + "/ya/t")
    both("PUT", A + "/yb/inm", {"X-Symlink-Target": "ya/t", "If-None-Match": "*"})
    both("PUT", A + "/yb/inm", {"X-Symlink-Target": "ya/t", "If-None-Match": "*"})
    both("PUT", A + "/yb/et", {"X-Symlink-Target": "ya/t", "ETag": "d41d8cd98f00b204e9800998ecf8427e"})
    both("PUT", A + "/yb/et", {"X-Symlink-Target": "ya/t", "ETag": ETAG})


def static(both):
    """Links that lead to one version."""
    for etag in (ETAG, f'"{ETAG}"', ETAG.upper(), "x", "", "a b", "x;y=z"):
        link(both, "st", "ya/t", {"X-Symlink-Target-Etag": etag})
        looked_at(both, A + "/yb/st")
    link(both, "st2", "ya/none", {"X-Symlink-Target-Etag": ETAG})
    link(both, "st2", "none/none", {"X-Symlink-Target-Etag": ETAG})
    link(both, "stodd", "ya/a%20b%C3%A9", {"X-Symlink-Target-Etag": hashlib.md5(b"odd").hexdigest()})
    looked_at(both, A + "/yb/stodd")
    link(both, "st3", "yb/dyn", {"X-Symlink-Target-Etag": ETAG})
    link(both, "st3", "yb/dyn", {"X-Symlink-Target-Etag": "d41d8cd98f00b204e9800998ecf8427e"})
    link(both, "st3", "yb/gone", {"X-Symlink-Target-Etag": ETAG})
    both("PUT", A + "/ya/ch", {"Content-Type": "a/b"}, b"first")
    link(both, "stch", "ya/ch", {"X-Symlink-Target-Etag": hashlib.md5(b"first").hexdigest()})
    looked_at(both, A + "/yb/stch")
    both("POST", A + "/ya/ch", {"X-Object-Meta-A": "b"})
    both("HEAD", A + "/yb/stch")
    both("PUT", A + "/ya/ch", {"Content-Type": "a/b"}, b"second")
    looked_at(both, A + "/yb/stch")
    both("GET", A + "/yb/stch", {"If-None-Match": "*"})
    both("GET", A + "/yb/stch", {"If-Match": "x"})
    both("DELETE", A + "/ya/ch")
    looked_at(both, A + "/yb/stch")


def chains(both):
    """Links to links."""
    link(both, "l1", "ya/t")
    link(both, "l2", "yb/l1")
    link(both, "l3", "yb/l2")
    link(both, "loop1", "yb/loop2")
    link(both, "loop2", "yb/loop1")
    for name in ("l1", "l2", "l3", "loop1"):
        looked_at(both, f"{A}/yb/{name}")
    link(both, "s2", "yb/l2", {"X-Symlink-Target-Etag": ETAG})
    link(both, "s3", "yb/l3", {"X-Symlink-Target-Etag": ETAG})
    looked_at(both, A + "/yb/s2")


def posts(both):
    """Metadata of links."""
    both("POST", A + "/yb/dyn", {"X-Object-Meta-Posted": "1"})
    looked_at(both, A + "/yb/dyn")
    both("POST", A + "/yb/dyn?symlink=get", {"X-Object-Meta-Posted": "2"})
    looked_at(both, A + "/yb/dyn")
    both("POST", A + "/yb/odd", {"X-Object-Meta-Posted": "1"})
    both("POST", A + "/yb/gone", {"X-Object-Meta-Posted": "1"})
    both("POST", A + "/yb/dyn", {"X-Symlink-Target": "ya/t"})
    both("POST", A + "/yb/dyn", {"X-Symlink-Target-Account": "AUTH_test"})
    both("POST", A + "/yb/dyn", {"Content-Type": "posted/type"})
    looked_at(both, A + "/yb/dyn")
    both("POST", A + "/yb/none", {"X-Object-Meta-Posted": "1"})


def accounts(both):
    """Whose rights count."""
    there = {"X-Symlink-Target-Account": "AUTH_test2"}
    both("PUT", B + "/yx/o", {"Content-Type": "a/b"}, b"theirs", user=OTHER)
    link(both, "far", "yx/o", there)
    looked_at(both, A + "/yb/far")
    link(both, "farst", "yx/o", {**there, "X-Symlink-Target-Etag": hashlib.md5(b"theirs").hexdigest()})
    both("POST", B + "/yx", {"X-Container-Read": "test:tester"}, user=OTHER)
    looked_at(both, A + "/yb/far")
    link(both, "farst", "yx/o", {**there, "X-Symlink-Target-Etag": hashlib.md5(b"theirs").hexdigest()})
    looked_at(both, A + "/yb/farst")
    both("POST", A + "/yb/far", {"X-Object-Meta-A": "b"})
    looked_at(both, A + "/yb/far", user=OTHER)
    both("POST", A + "/yb", {"X-Container-Read": OTHER})
    looked_at(both, A + "/yb/far", user=OTHER)
    looked_at(both, A + "/yb/dyn", user=OTHER)
    both("POST", A + "/yb", {"X-Container-Read": ".r:*"})
    looked_at(both, A + "/yb/dyn", user=None)
    both("POST", A + "/ya", {"X-Container-Read": ".r:*"})
    both("POST", A + "/yb", {"X-Container-Read": ""})
    both("GET", A + "/yb/dyn", user=None)
    both("POST", A + "/yb", {"X-Container-Read": ".r:*"})
    looked_at(both, A + "/yb/dyn", user=None)
    both("POST", A + "/ya", {"X-Container-Read": ""})
    both("POST", A + "/yb", {"X-Container-Read": "", "X-Container-Write": OTHER})
    link(both, "others", "ya/t", user=OTHER)
    link(both, "others", "ya/t", {"X-Symlink-Target-Etag": ETAG}, user=OTHER)
    both("POST", A + "/yb/dyn", {"X-Object-Meta-A": "b"}, user=OTHER)
    both("POST", A + "/yb", {"X-Container-Write": ""})


def copies(both):
    """Copies of links and of what they lead to."""
    for source in ("dyn", "meta", "st", "far"):
        both("PUT", f"{A}/yb/st", {"X-Symlink-Target": "ya/t", "X-Symlink-Target-Etag": ETAG})
        both("COPY", f"{A}/yb/{source}", {"Destination": f"ya/copy-{source}"})
        looked_at(both, f"{A}/ya/copy-{source}")
        both("COPY", f"{A}/yb/{source}?symlink=get", {"Destination": f"ya/link-{source}"})
        looked_at(both, f"{A}/ya/link-{source}")
        both("PUT", f"{A}/ya/put-{source}?symlink=get", {"X-Copy-From": f"yb/{source}"})
        looked_at(both, f"{A}/ya/put-{source}")
    both("COPY", A + "/yb/gone", {"Destination": "ya/copy-gone"})
    both("COPY", A + "/yb/gone?symlink=get", {"Destination": "ya/link-gone"})
    both("COPY", A + "/ya/t", {"Destination": "yb/tolink", "X-Symlink-Target": "ya/t"})
    both("COPY", A + "/yb/dyn?symlink=get", {"Destination": "ya/t2", "X-Fresh-Metadata": "true"})
    looked_at(both, A + "/ya/t2")
    both("COPY", A + "/yb/dyn?symlink=get", {"Destination": "yb/dyn"})


def large(both):
    """Links and large objects."""
    both("PUT", A + "/ya/s0", {"Content-Type": "a/b"}, b"0000")
    manifest = json.dumps([{"path": "/ya/s0"}, {"data": "ZW5k"}]).encode()
    both("PUT", A + "/ya/slo?multipart-manifest=put", {"Content-Type": "v/x"}, manifest)
    whole = hashlib.md5(
        (hashlib.md5(b"0000").hexdigest() + hashlib.md5(b"end").hexdigest()).encode()
    ).hexdigest()
    link(both, "toslo", "ya/slo")
    looked_at(both, A + "/yb/toslo")
    both("GET", A + "/yb/toslo?multipart-manifest=get&format=raw")
    both("GET", A + "/yb/toslo", {"Range": "bytes=3-5"})
    both("GET", A + "/yb/toslo?part-number=2")
    link(both, "stslo", "ya/slo", {"X-Symlink-Target-Etag": whole})
    looked_at(both, A + "/yb/stslo")
    both("PUT", A + "/yb/sloflink?multipart-manifest=put", None, json.dumps([{"path": "/yb/l1"}]).encode())
    both("GET", A + "/yb/sloflink")
    both("GET", A + "/yb/sloflink?multipart-manifest=get&format=raw")
    both("PUT", A + "/ya/seg/1", None, b"one")
    both("PUT", A + "/ya/seg/2", {"X-Symlink-Target": "ya/s0"})
    both("PUT", A + "/yb/dlo", {"X-Object-Manifest": "ya/seg/"}, b"")
    looked_at(both, A + "/yb/dlo")
    link(both, "todlo", "yb/dlo")
    looked_at(both, A + "/yb/todlo")


def listed(both):
    """How links are listed."""
    for query in ("?format=json", "?format=xml", "", "?format=json&prefix=st", "?format=json&delimiter=o"):
        both("GET", A + "/yb" + query)

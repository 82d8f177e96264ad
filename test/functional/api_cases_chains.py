"""Requests about links to links, to large objects and to versions, and about ids where there are no versions.

Like ``api_cases_versioning``: version ids are times, so the cases need a ``NumberingAsker``.
"""

import hashlib
import json

from test.functional.versioned import A, looked_at, put, rows_of

DATA = b"target data"
_EMPTY = hashlib.md5(b"").hexdigest()
_NOT_THERE = "1234567890.12345"
_LOCATED = ("HEAD", "GET")

_EXPLAINED = {
    "the peer fails at it": ((409, f"PUT {A}/xl/s4 "),),
    "a request that names a version leaves the object without versions as it is": (
        (400, f"DELETE {A}/xst/kept?version-id=<time"),
        (400, f"DELETE {A}/xhi/kept?version-id="),
    ),
    "a location leads to the version, and hidden names stay hidden": (
        *(
            (200, f"{method} {A}/{name}{query} [] ")
            for method in _LOCATED
            for name in ("xl/vslo", "xl/vo", "xl/vso", "xl/vsslo", "xv/link", "xv/slink", "xv/linkslo")
            for query in ("", "?multipart-manifest=get")
        ),
        *((200, f"{method} {A}/xq/{name} [] ") for method in _LOCATED for name in ("x", "xs")),
        *(
            (200, f"{method} {A}/xv/slinkslo{query} [] ")
            for method in _LOCATED
            for query in ("", "?multipart-manifest=get")
        ),
    ),
}
#: As in ``test_filter_answers``.
DIFFERENT = {start: (status, why) for why, cases in _EXPLAINED.items() for status, start in cases}


def md5(data):
    return hashlib.md5(data).hexdigest()


def send_chains(both):
    """Send every case."""
    both("PUT", A + "/xt")
    both("PUT", A + "/xl")
    both("PUT", A + "/xt/o", {"Content-Type": "a/b", "X-Object-Meta-Color": "red"}, DATA)
    both("PUT", A + "/xt/seg", None, b"0000")
    for part in (chains, changed_target, large_targets, versioned_targets, ids_of_stacks, stacked_links):
        part(both)
    for part in (crossing, restored_links, far_links):
        part(both)


def static(both, name, target, etag, headers=None):
    both("PUT", f"{A}/{name}", {"X-Symlink-Target": target, "X-Symlink-Target-Etag": etag, **(headers or {})})


def seen(both, path, *queries):
    for method in ("GET", "HEAD"):
        for query in queries:
            both(method, f"{A}/{path}{query}")


def chains(both):
    """Static links to links of either kind."""
    etag = md5(DATA)
    static(both, "xl/s1", "xt/o", etag)
    for number in (2, 3, 4):
        static(both, f"xl/s{number}", f"xl/s{number - 1}", etag)
    static(both, "xl/bad", "xl/s1", _EMPTY)
    static(both, "xl/bad", "xl/s2", _EMPTY)
    static(both, "xl/gone", "xl/none", etag)
    both("PUT", A + "/xl/d1", {"X-Symlink-Target": "xt/o"})
    static(both, "xl/sd", "xl/d1", etag)
    static(both, "xl/sde", "xl/d1", _EMPTY)
    both("PUT", A + "/xl/ds", {"X-Symlink-Target": "xl/s1"})
    both("PUT", A + "/xl/dss", {"X-Symlink-Target": "xl/s2"})
    static(both, "xl/own", "xl/s1", etag, {"Content-Type": "own/type", "X-Object-Meta-Own": "1"})
    for name in ("s1", "s2", "s3", "sde", "ds", "dss", "own"):
        seen(both, f"xl/{name}", "", "?symlink=get")
        both("POST", f"{A}/xl/{name}", {"X-Object-Meta-P": name})
        both("HEAD", f"{A}/xl/{name}?symlink=get")
    both("GET", A + "/xl/s2", {"Range": "bytes=2-5"})
    both("GET", A + "/xl/s2", {"If-None-Match": etag})
    both("GET", A + "/xl?format=json")
    both("COPY", A + "/xl/s2?symlink=get", {"Destination": "xl/copied"})
    both("COPY", A + "/xl/s2", {"Destination": "xl/content"})
    seen(both, "xl/copied", "", "?symlink=get")
    seen(both, "xl/content", "")


def changed_target(both):
    """The end of a chain becomes another object, or goes away."""
    both("PUT", A + "/xt/o", {"Content-Type": "a/b"}, b"other data")
    for name in ("s1", "s2", "s3", "ds", "dss"):
        seen(both, f"xl/{name}", "")
    static(both, "xl/s5", "xl/s1", md5(DATA))
    static(both, "xl/s5", "xl/s1", md5(b"other data"))
    both("DELETE", A + "/xt/o")
    seen(both, "xl/s2", "")
    static(both, "xl/s5", "xl/s1", md5(DATA))
    both("PUT", A + "/xt/o", {"Content-Type": "a/b"}, DATA)
    both("DELETE", A + "/xl/s1")
    seen(both, "xl/s2", "", "?symlink=get")


def make_slo(both, path):
    """Make a large object; the manifest's ETag and that of the whole."""
    manifest = json.dumps([{"path": "/xt/seg"}, {"data": "ZW5k"}]).encode()
    both("PUT", f"{A}/{path}?multipart-manifest=put", {"Content-Type": "v/x"}, manifest)
    found = both("HEAD", f"{A}/{path}").headers
    return found.get("x-manifest-etag", "none"), md5((md5(b"0000") + md5(b"end")).encode())


def large_targets(both):
    """Rows of links to large objects say what the whole is."""
    manifest, whole = make_slo(both, "xt/slo")
    both("PUT", A + "/xl/lslo", {"X-Symlink-Target": "xt/slo"})
    static(both, "xl/lsslo", "xt/slo", whole)
    static(both, "xl/lsslo", "xt/slo", manifest)
    static(both, "xl/llslo", "xl/lsslo", whole)
    static(both, "xl/llslo", "xl/lsslo", manifest)
    static(both, "xl/llslo2", "xl/lslo", manifest)
    both("PUT", A + "/xt/dlo", {"X-Object-Manifest": "xt/se"}, b"")
    both("PUT", A + "/xl/ldlo", {"X-Symlink-Target": "xt/dlo"})
    static(both, "xl/lsdlo", "xt/dlo", _EMPTY)
    for name in ("lslo", "lsslo", "llslo", "ldlo", "lsdlo"):
        seen(both, f"xl/{name}", "", "?symlink=get", "?multipart-manifest=get")
        both("GET", f"{A}/xl/{name}", {"Range": "bytes=2-5"})
    for shape in ("json", "xml", "plain"):
        both("GET", f"{A}/xl?format={shape}&prefix=l")


def versioned_targets(both):
    """Links to what has versions, and links that have versions themselves."""
    both("PUT", A + "/xv", {"X-Versions-Enabled": "true"})
    manifest, whole = make_slo(both, "xv/slo")
    put(both, "/xv/o", DATA, {"Content-Type": "v/o"})
    for container, prefix in (("xl", "v"), ("xv", "")):
        names = {"xl": ("vo", "vso", "vslo", "vsslo"), "xv": ("link", "slink", "linkslo", "slinkslo")}
        dynamic, fixed, slo, sslo = names[container]
        both("PUT", f"{A}/{container}/{dynamic}", {"X-Symlink-Target": "xv/o"})
        static(both, f"{container}/{fixed}", "xv/o", md5(DATA))
        static(both, f"{container}/{fixed}", "xv/o", _EMPTY)
        both("PUT", f"{A}/{container}/{slo}", {"X-Symlink-Target": "xv/slo"})
        static(both, f"{container}/{sslo}", "xv/slo", whole)
        static(both, f"{container}/{sslo}", "xv/slo", manifest)
        for name in (dynamic, fixed, slo, sslo):
            seen(both, f"{container}/{name}", "", "?symlink=get", "?multipart-manifest=get")
            both("POST", f"{A}/{container}/{name}", {"X-Object-Meta-P": "1"})
        both("GET", f"{A}/{container}?format=json&prefix={prefix}")
    static(both, "xv/tslo", "xt/slo", both("HEAD", A + "/xt/slo").headers.get("x-manifest-etag", "none"))
    seen(both, "xv/tslo", "", "?symlink=get")
    rows_of(both, "xv")


def ids_of_stacks(both):
    """Ids of versions where former objects are kept in the open, or not at all."""
    for container, header in (("xst", "X-Versions-Location"), ("xhi", "X-History-Location")):
        home = container + "-old"
        both("PUT", f"{A}/{home}")
        both("PUT", f"{A}/{container}", {header: home})
        for number in range(3):
            put(both, f"/{container}/o", b"version %d" % number)
        for version in ("null", "x", _NOT_THERE):
            seen(both, f"{container}/o", f"?version-id={version}")
            both("PUT", f"{A}/{container}/new?version-id={version}", None, b"")
            both("PUT", f"{A}/{container}/new?version-id={version}", None, b"body")
            both("POST", f"{A}/{container}/o?version-id={version}", {"X-Object-Meta-A": "1"})
        looked_at(both, f"/{container}/new")
        for _ in range(4 if container == "xst" else 1):
            both("DELETE", f"{A}/{container}/o?version-id=null")
            looked_at(both, f"/{container}/o")
            both("GET", f"{A}/{home}?format=json&prefix=001o/")
        both("GET", f"{A}/{container}?versions&format=json")
        for version in ("x", _NOT_THERE):
            put(both, f"/{container}/kept", b"kept")
            both("DELETE", f"{A}/{container}/kept?version-id={version}")


def stacked_links(both):
    """Former objects that are links or large, and come back as what they were."""
    both("PUT", A + "/xks-old")
    both("PUT", A + "/xks", {"X-Versions-Location": "xks-old"})
    static(both, "xks/o", "xt/o", md5(DATA))
    both("PUT", A + "/xks/o", {"X-Symlink-Target": "xt/o"})
    put(both, "/xks/o", b"plain")
    both("HEAD", A + "/xks-old")
    for _ in range(3):
        both("DELETE", A + "/xks/o")
        seen(both, "xks/o", "", "?symlink=get")
    make_slo(both, "xks/big")
    put(both, "/xks/big", b"small")
    both("DELETE", A + "/xks/big")
    both("GET", A + "/xks/big")
    both("GET", A + "/xks-old?format=json&delimiter=/")


def crossing(both):
    """Links from one container with versions to another."""
    etag = md5(DATA)
    both("PUT", A + "/xw", {"X-Versions-Enabled": "true"})
    both("PUT", A + "/xq", {"X-Versions-Enabled": "true"})
    version = put(both, "/xw/o", DATA, {"Content-Type": "a/1"})
    both("PUT", A + "/xq/x", {"X-Symlink-Target": "xw/o"})
    static(both, "xq/xs", "xw/o", etag)
    both("PUT", A + "/xq/plain", {"X-Symlink-Target": "xt/o"})
    for name in ("x", "xs", "plain"):
        seen(both, f"xq/{name}", "", "?symlink=get", "?version-id=null")
        both("POST", f"{A}/xq/{name}", {"X-Object-Meta-A": "1"})
    rows_of(both, "xq")
    both("DELETE", A + "/xq/x")
    both("GET", A + "/xq/x")
    for target in (f"xw/o?version-id={version}", f"xw/o%3Fversion-id={version}"):
        both("PUT", A + "/xl/named", {"X-Symlink-Target": target})
        seen(both, "xl/named", "")
    static(both, "xl/changed", "xw/o", etag)
    put(both, "/xw/o", b"second", {"Content-Type": "a/2"})
    seen(both, "xl/changed", "")
    static(both, "xl/more", "xl/changed", etag)
    both("DELETE", A + "/xw/o")
    seen(both, "xl/changed", "")
    static(both, "xl/more", "xw/o", etag)
    both("POST", A + "/xw", {"X-Versions-Enabled": "false"})
    put(both, "/xw/n", b"null")
    static(both, "xl/null", "xw/n", md5(b"null"))
    seen(both, "xl/null", "", "?symlink=get")
    for name in ("n", "o"):
        both("GET", f"{A}/xw/{name}?version-id=null")
    rows_of(both, "xw")


def restored_links(both):
    """Copies of links, and ETags that are none."""
    etag = md5(DATA)
    static(both, "xl/a", "xt/o", etag)
    static(both, "xl/b", "xl/a", etag)
    for source in ("a", "b"):
        both("COPY", f"{A}/xl/{source}", {"Destination": f"xl/c{source}"})
        both("COPY", f"{A}/xl/{source}?symlink=get", {"Destination": f"xl/d{source}"})
        both("PUT", f"{A}/xl/e{source}", {"X-Copy-From": f"xl/{source}", "X-Symlink-Target": "xt/o"}, b"")
        for kind in ("c", "d", "e"):
            seen(both, f"xl/{kind}{source}", "", "?symlink=get")
    both("COPY", A + "/xl/b?symlink=get", {"Destination": "xq/db"})
    seen(both, "xq/db", "", "?symlink=get")
    for text in (
        f'"{etag}"',
        etag.upper(),
        "x",
        "a;b",
        "",
        " ",
        f'W/"{etag}"',
        f"'{etag}'",
        f'"{etag}',
        '""',
    ):
        static(both, "xl/odd", "xl/b", text)
        both("HEAD", A + "/xl/odd?symlink=get")


def far_links(both):
    """Chains across accounts."""
    far, other = "/v1/AUTH_test2", "test2:tester2"
    etag, there = md5(DATA), {"X-Symlink-Target-Account": "AUTH_test2"}
    both("PUT", far + "/xz", {"X-Container-Read": "test:tester"}, user=other)
    both("PUT", far + "/xzz", user=other)
    for container, link in (("xz", "l"), ("xzz", "l2")):
        both("PUT", f"{far}/{container}/o", None, DATA, user=other)
        headers = {"X-Symlink-Target": f"{container}/o", "X-Symlink-Target-Etag": etag}
        both("PUT", f"{far}/xz/{link}", headers, user=other)
        static(both, f"xl/far-{link}", f"xz/{link}", etag, there)
        seen(both, f"xl/far-{link}", "", "?symlink=get")
    both("GET", A + "/xl?format=json&prefix=far")
    for query in (
        "versions",
        "versions&format=xml",
        "versions&limit=x",
        "versions&delimiter=1",
        "versions&limit=2",
    ):
        both("GET", f"{A}/xt?{query}")
    both("GET", A + "/none?versions")
    both("HEAD", A + "/xt?versions")
    for user in (None, other):
        both("GET", A + "/xt?versions", user=user)

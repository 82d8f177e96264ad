"""Requests about versions that are more than plain objects: manifests, links, copies, expiring ones.

Like ``api_cases_versioning``.
"""

import hashlib
import json

from test.functional.versioned import OTHER, A, looked_at, put, rows_of


def send_kinds(both):
    """Send every case."""
    for part in (
        static_large,
        dynamic_large,
        links,
        links_to_versions,
        copies,
        expiring,
        quotas,
        bulk,
        legacy,
    ):
        part(both)


def enable(both, container, headers=None):
    both("PUT", f"{A}/{container}", {"X-Versions-Enabled": "true", **(headers or {})})


def static_large(both):
    """Manifests of static large objects, and their segments."""
    enable(both, "kslo")
    both("PUT", A + "/kseg")
    put(both, "/kseg/1", b"1111")
    put(both, "/kseg/2", b"22")
    manifest = json.dumps([{"path": "/kseg/1"}, {"path": "/kseg/2"}, {"data": "ZW5k"}]).encode()
    one = put(both, "/kslo/big?multipart-manifest=put", manifest, {"Content-Type": "s/1"})
    looked_at(both, "/kslo/big")
    both("GET", A + "/kslo/big?multipart-manifest=get")
    both("GET", A + "/kslo/big?multipart-manifest=get&format=raw")
    both("GET", A + "/kslo/big", {"Range": "bytes=3-5"})
    both("GET", A + "/kslo/big?part-number=2")
    two = put(both, "/kslo/big", b"plain now")
    for query in ("", "&multipart-manifest=get", "&multipart-manifest=get&format=raw", "&part-number=1"):
        for version in (one, two):
            both("GET", f"{A}/kslo/big?version-id={version}{query}")
            both("HEAD", f"{A}/kslo/big?version-id={version}{query}")
    both("GET", f"{A}/kslo/big?version-id={one}", {"Range": "bytes=3-5"})
    both("GET", f"{A}/kslo/big?version-id={one}", {"Range": "bytes=1-1,5-"})
    both("GET", f"{A}/kslo/big?version-id={one}", {"If-None-Match": "*"})
    rows_of(both, "kslo")
    both("PUT", f"{A}/kslo/big?version-id={one}", None, b"")
    looked_at(both, "/kslo/big")
    rows_of(both, "kslo")
    both("COPY", A + "/kslo/big", {"Destination": "kslo/copy"})
    both("COPY", A + "/kslo/big?multipart-manifest=get", {"Destination": "kslo/manifest"})
    both("COPY", f"{A}/kslo/big?version-id={one}", {"Destination": "kslo/copy"})
    both("COPY", f"{A}/kslo/big?multipart-manifest=get&version-id={one}", {"Destination": "kslo/manifest"})
    for name in ("copy", "manifest"):
        looked_at(both, f"/kslo/{name}")
    both("DELETE", f"{A}/kslo/big?multipart-manifest=delete&version-id={two}")
    rows_of(both, "kslo")
    both("DELETE", A + "/kslo/big?multipart-manifest=delete")
    looked_at(both, "/kslo/big")
    both("GET", A + "/kseg?format=json")
    rows_of(both, "kslo")
    put(both, "/kseg/1", b"1111")
    put(both, "/kseg/2", b"22")
    both("DELETE", f"{A}/kslo/big?multipart-manifest=delete&version-id={one}")
    both("GET", A + "/kseg?format=json")
    rows_of(both, "kslo")
    segment = put(both, "/kslo/seg", b"segment")
    put(both, "/kslo/of?multipart-manifest=put", json.dumps([{"path": "/kslo/seg"}]).encode())
    looked_at(both, "/kslo/of")
    put(both, "/kslo/seg", b"changed")
    looked_at(both, "/kslo/of")
    both("GET", A + "/kslo/of?multipart-manifest=get&format=raw")
    query = f"/kslo/seg?version-id={segment}"
    put(both, "/kslo/of?multipart-manifest=put", json.dumps([{"path": query}]).encode())
    both("GET", A + "/kslo/of")
    put(both, "/kslo/bad?multipart-manifest=put", b"[]")
    put(both, "/kslo/bad?multipart-manifest=put", b"{")
    put(both, "/kslo/hb?multipart-manifest=put&heartbeat=on", json.dumps([{"path": "/kseg/none"}]).encode())
    put(both, "/kslo/hb?multipart-manifest=put&heartbeat=on", json.dumps([{"path": "/kslo/seg"}]).encode())
    looked_at(both, "/kslo/hb")


def dynamic_large(both):
    """Manifests of dynamic large objects."""
    enable(both, "kdlo")
    both("PUT", A + "/kdseg")
    put(both, "/kdseg/a1", b"aa")
    put(both, "/kdseg/a2", b"bb")
    one = put(both, "/kdlo/d", b"", {"X-Object-Manifest": "kdseg/a"})
    looked_at(both, "/kdlo/d")
    both("GET", A + "/kdlo/d", {"Range": "bytes=1-2"})
    both("GET", A + "/kdlo/d?multipart-manifest=get")
    put(both, "/kdlo/d", b"plain")
    for query in ("", "&multipart-manifest=get"):
        both("GET", f"{A}/kdlo/d?version-id={one}{query}")
        both("HEAD", f"{A}/kdlo/d?version-id={one}{query}")
    both("PUT", f"{A}/kdlo/d?version-id={one}", None, b"")
    looked_at(both, "/kdlo/d")
    put(both, "/kdlo/s1", b"one")
    put(both, "/kdlo/s2", b"two")
    put(both, "/kdlo/s2", b"three")
    both("DELETE", A + "/kdlo/s3")
    put(both, "/kdlo/own", b"", {"X-Object-Manifest": "kdlo/s"})
    looked_at(both, "/kdlo/own")
    rows_of(both, "kdlo")


def links(both):
    """Links among the versions."""
    enable(both, "kln")
    both("PUT", A + "/klt")
    data = b"target"
    put(both, "/klt/t", data)
    etag = hashlib.md5(data).hexdigest()
    dynamic = put(both, "/kln/l", b"", {"X-Symlink-Target": "klt/t"})
    looked_at(both, "/kln/l")
    looked_at(both, "/kln/l?symlink=get")
    rows_of(both, "kln")
    static = put(both, "/kln/l", b"", {"X-Symlink-Target": "klt/t", "X-Symlink-Target-Etag": etag})
    looked_at(both, "/kln/l")
    looked_at(both, "/kln/l?symlink=get")
    rows_of(both, "kln")
    put(both, "/kln/l", b"plain")
    for version in (dynamic, static):
        looked_at(both, f"/kln/l?version-id={version}")
        looked_at(both, f"/kln/l?symlink=get&version-id={version}")
    rows_of(both, "kln")
    both("PUT", f"{A}/kln/l?version-id={dynamic}", None, b"")
    looked_at(both, "/kln/l")
    looked_at(both, "/kln/l?symlink=get")
    both("POST", A + "/kln/l", {"X-Object-Meta-A": "b"})
    looked_at(both, "/kln/l?symlink=get")
    both("DELETE", A + "/kln/l")
    rows_of(both, "kln")
    put(both, "/kln/bad", b"", {"X-Symlink-Target": "klt/none", "X-Symlink-Target-Etag": etag})
    put(both, "/kln/bad", b"", {"X-Symlink-Target": "klt"})
    put(both, "/kln/bad", b"body", {"X-Symlink-Target": "klt/t"})
    put(both, "/kln/self", b"", {"X-Symlink-Target": "kln/self"})
    both("PUT", A + "/klold")
    put(both, "/klold/l", b"", {"X-Symlink-Target": "klt/t"})
    put(both, "/klold/s", b"", {"X-Symlink-Target": "klt/t", "X-Symlink-Target-Etag": etag})
    both("POST", A + "/klold", {"X-Versions-Enabled": "true"})
    rows_of(both, "klold")
    for name in ("l", "s"):
        looked_at(both, f"/klold/{name}")
        looked_at(both, f"/klold/{name}?version-id=null")
        looked_at(both, f"/klold/{name}?version-id=null&symlink=get")
        put(both, f"/klold/{name}", b"over")
        looked_at(both, f"/klold/{name}")
    rows_of(both, "klold")


def links_to_versions(both):
    """Links that lead to objects with versions."""
    enable(both, "kv")
    both("PUT", A + "/kw")
    one = put(both, "/kv/o", b"one")
    link = {"X-Symlink-Target": "kv/o"}
    put(both, "/kw/l", b"", link)
    put(both, "/kw/s", b"", {**link, "X-Symlink-Target-Etag": hashlib.md5(b"one").hexdigest()})
    put(both, "/kw/l2", b"", {"X-Symlink-Target": "kw/l"})
    put(both, "/kw/l3", b"", {"X-Symlink-Target": "kw/l2"})
    put(both, "/kw/q", b"", {"X-Symlink-Target": f"kv/o?version-id={one}"})
    for name in ("l", "s", "l2", "l3", "q"):
        looked_at(both, f"/kw/{name}")
        both("GET", f"{A}/kw/{name}", {"Range": "bytes=1-"})
        both("GET", f"{A}/kw/{name}?version-id={one}")
    put(both, "/kv/o", b"second")
    for name in ("l", "s", "l2"):
        looked_at(both, f"/kw/{name}")
    both("POST", A + "/kw/l", {"X-Object-Meta-A": "b"})
    both("DELETE", A + "/kv/o")
    looked_at(both, "/kw/l")
    both("GET", A + "/kw?format=json")
    put(both, "/kv/in", b"", {"X-Symlink-Target": "kw/l2"})
    looked_at(both, "/kv/in")
    put(both, "/kv/o", b"third")
    looked_at(both, "/kv/in")
    both("GET", A + "/kv/in?symlink=get")


def copies(both):
    """Copies from and to versions."""
    enable(both, "kc")
    both("PUT", A + "/kd")
    one = put(both, "/kc/o", b"one", {"X-Object-Meta-A": "1", "Content-Type": "a/1"})
    two = put(both, "/kc/o", b"second", {"X-Object-Meta-A": "2", "Content-Type": "a/2"})
    marker = both("DELETE", A + "/kc/gone").headers.get("x-object-version-id", "none")
    for version in (one, two, "null", marker, "x", "1234567890.12345"):
        both("COPY", f"{A}/kc/o?version-id={version}", {"Destination": "kd/copy"})
        both("PUT", f"{A}/kd/put?version-id={version}", {"X-Copy-From": "kc/o"}, b"")
        both("PUT", f"{A}/kd/put2", {"X-Copy-From": f"kc/o?version-id={version}"}, b"")
        both("COPY", f"{A}/kc/o?version-id={version}", {"Destination": "kc/o2"})
        both("COPY", f"{A}/kc/o?version-id={version}&symlink=get", {"Destination": "kd/sym"})
    for name in ("/kd/copy", "/kd/put", "/kc/o2", "/kd/sym"):
        looked_at(both, name)
    both("HEAD", A + "/kd/sym?symlink=get")
    both("COPY", A + "/kc/o", {"Destination": "kd/plain"})
    looked_at(both, "/kd/plain")
    both("HEAD", A + "/kd/plain?symlink=get")
    both("COPY", A + "/kc/o?symlink=get", {"Destination": "kd/link"})
    looked_at(both, "/kd/link")
    both("HEAD", A + "/kd/link?symlink=get")
    both("COPY", A + "/kc/o?symlink=get", {"Destination": "kc/link"})
    looked_at(both, "/kc/link")
    both("COPY", f"{A}/kc/o?version-id={one}", {"Destination": "kc/o"})
    looked_at(both, "/kc/o")
    both("COPY", A + "/kc/o", {"Destination": "kc/o", "X-Object-Meta-B": "c"})
    both("COPY", A + "/kc/o", {"Destination": "kc/o", "X-Fresh-Metadata": "true", "X-Object-Meta-C": "d"})
    looked_at(both, "/kc/o")
    both("COPY", A + "/kd/plain", {"Destination": "kc/o"})
    both("COPY", A + "/kc/o", {"Destination": "kd/r", "Range": "bytes=0-1"})
    both("COPY", A + "/kc/o?heartbeat=on", {"Destination": "kd/hb"})
    both("COPY", A + "/kc/gone", {"Destination": "kd/none"})
    both("COPY", f"{A}/kc/gone?version-id={marker}", {"Destination": "kd/none"})
    both("POST", A + "/kc", {"X-Container-Read": OTHER})
    both(
        "COPY",
        f"{A}/kc/o?version-id={one}",
        {"Destination": "kt/o", "Destination-Account": "AUTH_test2"},
        user=OTHER,
    )
    both("PUT", "/v1/AUTH_test2/kt", user=OTHER)
    both(
        "COPY",
        f"{A}/kc/o?version-id={one}",
        {"Destination": "kt/o", "Destination-Account": "AUTH_test2"},
        user=OTHER,
    )
    both("GET", "/v1/AUTH_test2/kt/o", user=OTHER)
    rows_of(both, "kc")
    both("GET", A + "/kd?format=json")


def expiring(both):
    """Versions that have an end."""
    enable(both, "ke")
    put(both, "/ke/o", b"e", {"X-Delete-At": "9999999999", "X-Object-Meta-A": "b"})
    looked_at(both, "/ke/o")
    both("HEAD", A + "/ke/o?symlink=get")
    both("POST", A + "/ke/o", {"X-Object-Meta-A": "c"})
    looked_at(both, "/ke/o")
    both("POST", A + "/ke/o", {"X-Delete-At": "9999999998"})
    both("POST", A + "/ke/o", {"X-Remove-Delete-At": "x"})
    both("POST", A + "/ke/o", {"X-Delete-At": "1"})
    looked_at(both, "/ke/o")
    put(both, "/ke/o", b"e", {"X-Delete-After": "99999", "X-Delete-At": "9999999999"})
    looked_at(both, "/ke")
    rows_of(both, "ke")


def quotas(both):
    """Every version counts."""
    enable(both, "kq", {"X-Container-Meta-Quota-Bytes": "20", "X-Container-Meta-Quota-Count": "2"})
    for size in (8, 8, 8, 4, 1):
        put(both, "/kq/o", b"q" * size)
        both("HEAD", A + "/kq")
    put(both, "/kq/p", b"")
    put(both, "/kq/r", b"")
    put(both, "/kq/s", b"")
    both("DELETE", A + "/kq/o")
    both("HEAD", A + "/kq")
    put(both, "/kq/o", b"q" * 8)
    rows_of(both, "kq")


def bulk(both):
    """Lists of deletions."""
    enable(both, "kb")
    one = put(both, "/kb/o", b"one")
    put(both, "/kb/p", b"two")
    names = b"/kb/o\n/kb/none\n/kb\n"
    both("POST", A + "?bulk-delete", {"Content-Type": "text/plain"}, names)
    rows_of(both, "kb")
    names = f"/kb/o?version-id={one}\n".encode()
    both("POST", A + "?bulk-delete", {"Content-Type": "text/plain"}, names)
    both("DELETE", A + "/kb/p?bulk-delete", {"Content-Type": "text/plain"}, b"")
    rows_of(both, "kb")


def legacy(both):
    """The other way of keeping versions, beside this one."""
    for container in ("ky", "kz"):
        both("PUT", f"{A}/{container}")
    enable(both, "kx")
    both("POST", A + "/ky", {"X-Versions-Location": "kx"})
    for body in (b"1", b"22", b"333"):
        put(both, "/ky/o", body)
    both("GET", A + "/kx?delimiter=/")
    both("HEAD", A + "/kx")

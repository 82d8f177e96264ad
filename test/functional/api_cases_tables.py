"""Requests made of small tables: names, listings, access, origins and methods of accounts and containers.

Like ``api_cases``; they run after those, in containers of their own.
"""

from itertools import product

A = "/v1/AUTH_test"
ADMIN = "admin:admin"
OTHER = "test2:tester2"
TEXT = {"Content-Type": "text/plain"}
#: The policies by which containers of a case are made: suffix of the container's name → headers.
POLICIES = {"": {}, "ec": {"X-Storage-Policy": "ec"}}


def send_tables(both):
    """Send every case."""
    for part in (
        metadata_names,
        metadata_limits,
        internal_headers,
        object_names,
        container_names,
        container_listings,
        account_listings,
        lives_of_containers,
        lives_of_accounts,
        container_access,
        access_lists,
        account_access,
        origins,
        methods,
        newest,
        queries,
    ):
        part(both)


METADATA = [
    *(
        (name, "value")
        for name in (b"\xc3\xbc", b"a b", b"a(b", b'a"b', b"a,b", b"a/b", b"a_b", b"a.b", b"a'b")
    ),
    *(
        (name, "value")
        for name in (b"a@b", b"a=b", b"a;b", b"a%20b", b"A--B", b"-", b"9", b"{}", b"UPPER-lower")
    ),
    *(
        ("k", value)
        for value in (b"v w", b" v ", b"\xc3\xbc", b"a,b", b'"q"', b"a;b=c", b"%41", b"<b>", b"0")
    ),
    *(("k", value) for value in (b"v\tw", b"\tv", b"v\x01w", b"a\\b", b"None", b"a:b", b"\xe2\x82\xac")),
]


def metadata_names(both):
    """Names and values of metadata: stored, shown, replaced and removed."""
    both("PUT", A + "/ta")
    for kind, path in ((b"Container", A + "/ta"), (b"Account", A)):
        for name, value in METADATA:
            name = name if isinstance(name, bytes) else name.encode()
            header = b"X-%s-Meta-%s" % (kind, name)
            both("POST", path, {header: value})
            both("HEAD", path)
            both("POST", path, {b"X-Remove-%s-Meta-%s" % (kind, name): "x"})
        both("HEAD", path)
        header = kind.decode()
        both("POST", path, {f"X-{header}-Meta-A": "1", f"X-Remove-{header}-Meta-A": "x"})
        both("HEAD", path)
        both("POST", path, {f"X-{header}-Meta-A": ""})
        both("POST", path, {f"X-Remove-{header}-Meta-": "x"})
        both("POST", path, {f"X-Remove-{header}-Meta-Never": "x"})
        both("HEAD", path)


def metadata_limits(both):
    """One less, as many and one more than what /info allows."""
    both("PUT", A + "/tm")
    both("PUT", A + "/tm/o", TEXT, b"x")
    for kind, path in (("Container", A + "/tm"), ("Account", A), ("Object", A + "/tm/o")):
        prefix = f"X-{kind}-Meta-"
        for length in (127, 128, 129):
            both("POST", path, {prefix + "n" * length: "v"})
            both("POST", path, {f"X-Remove-{prefix[2:]}" + "n" * length: "v"})
        for length in (255, 256, 257):
            both("POST", path, {prefix + "V": "v" * length})
            both("POST", path, {f"X-Remove-{prefix[2:]}V": "v"})
        both("POST", path, {prefix + "V": "\xc3\xbc" * 128})
        both("POST", path, {prefix + "V": "\xc3\xbc" * 129})
        both("POST", path, {prefix + "V": ""})
        for count in (89, 90, 91):
            both("POST", path, {f"{prefix}{n}": "v" for n in range(count)})
            both("HEAD", path)
            both("POST", path, {f"{prefix}{n}": "" for n in range(count)})
        # 16 names of one byte: 15 values of 255 bytes leave 256 of the 4,096. What is allowed does not fit
        # beside an object on ext4, and the peer would take its devices for broken.
        for last in (256,) if kind == "Object" else (255, 256):
            both("POST", path, {f"{prefix}{n:x}": "v" * (255 if n else last) for n in range(16)})
            both("POST", path, {f"{prefix}{n:x}": "" for n in range(16)})


def internal_headers(both):
    """What only servers may say to each other has no effect and is not shown."""
    both("PUT", A + "/ti")
    for name, value in (
        ("X-Container-Sysmeta-A", "b"),
        ("X-Account-Sysmeta-A", "b"),
        ("X-Object-Sysmeta-A", "b"),
        ("X-Object-Transient-Sysmeta-A", "b"),
        ("X-Backend-Storage-Policy-Index", "1"),
        ("X-Backend-Timestamp", "5000000000.00000"),
        ("X-Backend-Override-Delete", "true"),
        ("X-Backend-Replication", "true"),
        ("X-Backend-Etag-Is-At", "x"),
        ("X-Timestamp", "1"),
        ("X-Timestamp", "junk"),
        ("X-Timestamp", "5000000000.00000"),
        ("X-Trans-Id-Extra", "abc"),
        ("X-Container-Host", "127.0.0.1:1"),
        ("X-Container-Partition", "1"),
        ("X-Container-Device", "d"),
        ("X-Account-Host", "127.0.0.1:1"),
        ("X-Account-Override-Deleted", "yes"),
        ("X-Delete-At-Container", "1"),
        ("X-Delete-At-Host", "127.0.0.1:1"),
        ("X-If-Delete-At", "1"),
        ("X-Put-Timestamp", "1"),
        ("X-Size", "7"),
        ("X-Etag", "x"),
        ("X-Copied-From", "a/b"),
        ("X-Allow-Reserved-Names", "true"),
        ("X-Account-Autocreate", "yes"),
        ("X-Newest", "yes"),
    ):
        for method, path in (
            ("PUT", "/ti/o"),
            ("HEAD", "/ti/o"),
            ("POST", "/ti/o"),
            ("POST", "/ti"),
            ("HEAD", "/ti"),
        ):
            both(method, A + path, {name: value, **TEXT}, b"x" if method == "PUT" else None)
    both("GET", A + "/ti?format=json")


NAMES = (
    ".", "..", "./a", "../a", "a/./b", "a/../b", "a//b", "/a", "//", "a/", "a%2Fb", "%2Fa", "a%2f", "%00",
    "a%00b", "%C3%A9", "e%CC%81", "%E2%82%AC/%F0%9F%98%80", "%ff", "%C3", "a%20b", "a+b", "a%2Bb", "%3F",
    "%23", "%25", "%2525", "a;b", "a=b", "a&b", "a:b", "a@b", "a,b", "a~b", "a'b", "a%22b", "a*b", "a(b)",
    "a!b", "a$b", "a%0Ab", "a%0Db", "a%09b", "%7F", "%01", "a%5Cb", "%EF%BF%BE", "%ED%A0%80", "n" * 1024,
    "%C3%A9" * 512, "%C3%A9" * 513, "%zz", "a%",
)  # fmt: skip


def object_names(both):
    """Names of objects as they are quoted in paths and shown in listings."""
    both("PUT", A + "/tn")
    for name in NAMES:
        both("PUT", f"{A}/tn/{name}", TEXT, b"x")
        both("HEAD", f"{A}/tn/{name}")
        both("GET", f"{A}/tn?limit=3&format=json&prefix={name[:40]}")
    for form in (
        "",
        "?format=json",
        "?format=xml",
        "?delimiter=/",
        "?delimiter=/&format=json",
        "?delimiter=%C3%A9",
    ):
        both("GET", f"{A}/tn{form}")
    for name in NAMES:
        both("POST", f"{A}/tn/{name}", {"X-Object-Meta-A": "b"})
        both("DELETE", f"{A}/tn/{name}")
    both("GET", A + "/tn")


def container_names(both):
    """Names of containers."""
    names = [name for name in NAMES if "/" not in name and len(name) < 200]
    for name in (*names, "c" * 256, "c" * 257, "%C3%A9" * 128, "%C3%A9" * 129):
        path = f"/v1/AUTH_names/{name}"
        both("PUT", path, user=ADMIN)
        both("HEAD", path, user=ADMIN)
        both("PUT", path + "/o", TEXT, b"x", user=ADMIN)
        both("DELETE", path, user=ADMIN)
    for form in ("", "?format=json", "?format=xml"):
        both("GET", "/v1/AUTH_names" + form, user=ADMIN)


def container_listings(both):
    """Every combination of what narrows a listing of objects."""
    both("PUT", A + "/tl")
    for name in (
        "a",
        "a/",
        "a/b",
        "a/b/c",
        "a/b/d",
        "a0",
        "b",
        "b/a",
        "c/d/e",
        "c/d/f",
        "%C3%A9",
        "%C3%A9/x",
        "z",
    ):
        both("PUT", f"{A}/tl/{name}", TEXT, b"x")
    narrowings = product(
        ("", "a", "a/", "a/b", "%C3%A9", "zz"),
        ("", "/", "b", "/b", "%C3%A9"),
        ("", "a/b", "a/", "c/d", "zzz"),
        ("", "on"),
    )
    for number, (prefix, delimiter, marker, reverse) in enumerate(narrowings):
        form = ("json", "plain", "xml")[number % 3]
        query = f"format={form}&prefix={prefix}&delimiter={delimiter}&marker={marker}&reverse={reverse}"
        both("GET", f"{A}/tl?{query}")
    for marker, end, limit, reverse in product(
        ("", "a/b"), ("", "a0", "a", "zz"), ("", "1", "2"), ("", "true")
    ):
        both("GET", f"{A}/tl?marker={marker}&end_marker={end}&limit={limit}&reverse={reverse}&delimiter=/")
    for form, accept in product(
        ("", "json", "xml", "plain", "JSON", "x"), ("*/*", "text/xml", "application/json", "x/y")
    ):
        query = f"?limit=2&format={form}" if form else "?limit=2"
        both("GET", f"{A}/tl{query}", {"Accept": accept})
    for path in ("a", "a/", "a/b", "b", "c", "c/d", "/", "zz", "%C3%A9"):
        both("GET", f"{A}/tl?format=json&path={path}")


def account_listings(both):
    """Every combination of what narrows a listing of containers."""
    account = "/v1/AUTH_listed"
    for name in ("a", "a-b", "a-b-c", "a.b", "b", "b-a", "%C3%A9", "%C3%A9-x", "z"):
        both("PUT", f"{account}/{name}", user=ADMIN)
    narrowings = product(("", "a", "a-", "%C3%A9"), ("", "-", "b"), ("", "a-b", "b"), ("", "1"), ("", "on"))
    for number, (prefix, delimiter, marker, limit, reverse) in enumerate(narrowings):
        form = ("plain", "json", "xml")[number % 3]
        query = f"format={form}&prefix={prefix}&delimiter={delimiter}&marker={marker}"
        both("GET", f"{account}?{query}&limit={limit}&reverse={reverse}", user=ADMIN)
    for end in ("a", "a-b", "b", "", "zz"):
        both("GET", f"{account}?end_marker={end}", user=ADMIN)
        both("GET", f"{account}?end_marker={end}&reverse=on&format=json", user=ADMIN)
    for empty in ("/v1/AUTH_empty",):
        both("PUT", empty, user=ADMIN)
        for form in ("", "?format=json", "?format=xml", "?format=plain", "?prefix=a&format=json", "?limit=0"):
            both("GET", empty + form, user=ADMIN)
            both("HEAD", empty + form, user=ADMIN)


def lives_of_containers(both):
    """From the first PUT to after the last DELETE, by policy."""
    for suffix, headers in POLICIES.items():
        path = f"{A}/tlc{suffix}"
        for again in range(2):
            both("PUT", path, {**headers, "X-Container-Meta-A": str(again)})
            both("PUT", path, {"X-Container-Meta-B": "b"})
            both("HEAD", path)
            both("PUT", path, {"X-Storage-Policy": "Policy-9"})
            both("PUT", path, {"X-Storage-Policy": "ec"})
            both("PUT", path, {"X-Storage-Policy": "gold"})
            both("POST", path, {"X-Storage-Policy": "gold"})
            both("PUT", path + "/o", TEXT, b"x")
            both("DELETE", path)
            both("GET", path + "?format=json")
            both("DELETE", path + "/o")
            both("GET", path)
            both("DELETE", path)
            for method in ("GET", "HEAD", "POST", "DELETE"):
                both(method, path)
                both(method, path + "/o")
            both("PUT", path + "/o", TEXT, b"x")
    for header, value in (
        ("X-Container-Sync-To", "http://127.0.0.1/v1/a/c"),
        ("X-Container-Sync-Key", "k"),
        ("X-Versions-Location", "x"),
        ("X-History-Location", "x"),
        ("X-Container-Read", "a b"),
        ("X-Container-Meta-Quota-Bytes", "x"),
        ("X-Container-Meta-Web-Index", "index.html"),
        ("X-Container-Meta-Temp-Url-Key", "secret"),
        ("X-Container-Sharding", "on"),
        ("X-Delete-At", "x"),
        ("X-Object-Meta-A", "b"),
        ("X-Account-Meta-A", "b"),
        ("If-None-Match", "*"),
        ("If-Match", "x"),
        ("Content-Type", "a/b"),
        ("ETag", "x"),
        ("X-Storage-Policy", ""),
        ("X-Storage-Policy", "EC"),
        ("Transfer-Encoding", "gzip"),
    ):
        both("PUT", A + "/tlh", {header: value})
        both("HEAD", A + "/tlh")
        both("POST", A + "/tlh", {header: value})
    both("PUT", A + "/tlh", body=b"a body")
    both("POST", A + "/tlh", body=b"a body")
    both("DELETE", A + "/tlh", body=b"a body")


def lives_of_accounts(both):
    """Made, filled, emptied and deleted by the reseller; nobody else may."""
    for user in (ADMIN, "test:tester", OTHER, None):
        path = f"/v1/AUTH_life{'' if user == ADMIN else 'x'}"
        for method, headers in (
            ("HEAD", {}),
            ("PUT", {"X-Account-Meta-A": "b"}),
            ("GET", {}),
            ("POST", {"X-Account-Meta-A": "c"}),
            ("HEAD", {}),
            ("PUT", {"X-Account-Meta-B": "d"}),
            ("HEAD", {}),
            ("DELETE", {}),
            ("HEAD", {}),
            ("GET", {}),
            ("PUT", {}),
            ("POST", {}),
            ("DELETE", {}),
        ):
            both(method, path, headers, user=user)
    for path in (
        "/v1/test",
        "/v1/AUTH_",
        "/v1/AUTH",
        "/v1/.auth",
        "/v1/.expiring_objects",
        "/v1/OTHER_test",
        "/v1/%2Etest",
    ):
        for method, user in product(("GET", "PUT", "POST", "DELETE"), (ADMIN, "test:tester", None)):
            if (method, path) != ("DELETE", "/v1/AUTH_"):
                both(method, path, user=user)


def container_access(both):
    """Who may do what with which lists."""
    both("PUT", A + "/tr")
    both("PUT", A + "/tr/o", TEXT, b"x")
    for number, read in enumerate(
        (
            ".r:*",
            ".r:*,.rlistings",
            ".rlistings",
            ".r:.example.com,.rlistings",
            ".r:-.example.com,.r:*",
            ".r:*,.r:-.example.com",
            ".r:example.com",
            ".r:*.example.com",
            "test2",
            "test2:tester2",
            "test2:nobody",
            "*:tester2",
            "test2:*",
            "*:*",
            "test",
            "test:tester3",
            ".ref:*",
            ".referrer:*,.rlistings",
            ".REFERER:*",
        )
    ):
        both("POST", A + "/tr", {"X-Container-Read": read})
        both("HEAD", A + "/tr")
        for user, referer in (
            (OTHER, ""),
            ("test:tester3", ""),
            (None, ""),
            (None, "http://x.example.com/"),
            (None, "x"),
        ):
            headers = {"Referer": referer} if referer else {}
            method = ("GET", "HEAD")[number % 2]
            both(method, A + "/tr/o", headers, user=user)
            both(method, A + "/tr", headers, user=user)
    both("POST", A + "/tr", {"X-Container-Read": ""})
    for write in ("test2", "test2:tester2", "*:*", "test:tester3", "*:tester3", "test2:*", "nobody"):
        both("POST", A + "/tr", {"X-Container-Write": write})
        for user in (OTHER, "test:tester3", None):
            both("PUT", A + "/tr/w", TEXT, b"x", user=user)
            both("GET", A + "/tr/w", user=user)
            both("POST", A + "/tr/w", user=user)
            both("DELETE", A + "/tr/w", user=user)
            both("POST", A + "/tr", {"X-Container-Meta-A": "b"}, user=user)
            both("DELETE", A + "/tr", user=user)


def access_lists(both):
    """How lists are cleaned, and which are refused."""
    both("PUT", A + "/tra")
    for text in (
        " .r:* ", ".r: *", ".r:a.com , .r:-b.com", "a,,b", ",", "a , b", ".r:a b", ".r", ".r:-", ".r:-*",
        ".r:.", ".r:*.", ".x",
        ".x:y", ".rlistings:x", ".r:http://a.com", ".r:a.com:80", "a:b:c", ":", "a:", ":b", "\xc3\xa9:x",
        "a" * 256, "a" * 257,
        ".r:-.a.com,.r:.b.com", "..", ".r:*.a.com", "%41", '"a"', "*", ".r:**", ".rlistings,.rlistings",
        ".r:-a,.rlistings",
    ):  # fmt: skip
        for name in ("X-Container-Read", "X-Container-Write"):
            both("POST", A + "/tra", {name: text})
        both("HEAD", A + "/tra")
    both("POST", A + "/tra", {"X-Remove-Container-Read": "x", "X-Remove-Container-Write": "x"})
    both("HEAD", A + "/tra")


def account_access(both):
    """Lists of accounts: who reads, writes and administers."""
    for text in (
        '{"read-only": ["test2"]}',
        '{"read-only": ["test2:tester2"]}',
        '{"read-write": ["test2:tester2"]}',
        '{"admin": ["test2:tester2"]}',
        '{"admin": []}',
        '{"admin": ["test2:tester2"], "read-only": ["x"]}',
        '{"read-only": "test2"}',
        '{"read-only": {"a": 1}}',
        '{"read-only": [1]}',
        '{"read-only": [null]}',
        '{"read-only": null}',
        "[]",
        "null",
        "1",
        '"a"',
        "",
        "{",
        '{"Admin": ["a"]}',
        '{"admin": ["*:*"]}',
        '{"admin": [""]}',
    ):
        both("POST", A, {"X-Account-Access-Control": text})
        both("HEAD", A)
        for method, path in (
            ("GET", ""),
            ("HEAD", "/tr"),
            ("GET", "/tr/o"),
            ("PUT", "/tr/n"),
            ("POST", ""),
            ("HEAD", ""),
        ):
            both(method, A + path, TEXT, b"x" if method == "PUT" else None, user=OTHER)
        both("POST", A, {"X-Account-Access-Control": ""})
    both("POST", A, {"X-Account-Access-Control": '{"admin": ["a"]}'}, user=OTHER)


def origins(both):
    """Requests of browsers: before and with the real one."""
    both("PUT", A + "/to")
    both("PUT", A + "/to/o", {**TEXT, "X-Object-Meta-A": "b"}, b"x")
    both("POST", A + "/to", {"X-Container-Read": ".r:*,.rlistings"})
    for allowed in (
        "",
        "*",
        "http://a.com",
        "http://a.com http://b.com",
        "http://a.com, http://b.com",
        "a.com",
        "http://A.com",
    ):
        both("POST", A + "/to", {"X-Container-Meta-Access-Control-Allow-Origin": allowed})
        for origin, method in product(
            ("http://a.com", "http://b.com", "*", "null"), ("GET", "DELETE", "COPY", "get", None)
        ):
            asked = {"Access-Control-Request-Method": method} if method else {}
            both("OPTIONS", A + "/to/o", {"Origin": origin, **asked}, user=None)
        for origin in ("http://a.com", "http://b.com", "http://c.com"):
            both("GET", A + "/to/o", {"Origin": origin}, user=None)
            both("HEAD", A + "/to", {"Origin": origin}, user=None)
            both("PUT", A + "/to/p", {"Origin": origin, **TEXT}, b"x")
    for exposed in ("X-A", "X-A X-B", "X-A, X-B", "*", "", "x-object-meta-a"):
        both("POST", A + "/to", {"X-Container-Meta-Access-Control-Expose-Headers": exposed})
        both("GET", A + "/to/o", {"Origin": "http://a.com"}, user=None)
        both("GET", A + "/to/none", {"Origin": "http://A.com"}, user=None)
    for age in ("5", "", "x"):
        both("POST", A + "/to", {"X-Container-Meta-Access-Control-Max-Age": age})
        for names in ("", "X-A", "x-a,X-B", " X-A ,, ", "\xc3\xa9"):
            asked = {"Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": names}
            both("OPTIONS", A + "/to/o", {"Origin": "http://A.com", **asked}, user=None)


def methods(both):
    """Every method on every kind of path, by users who may and who may not."""
    both("PUT", A + "/tv")
    both("PUT", A + "/tv/o", TEXT, b"x")
    for method, path, user in product(
        ("OPTIONS", "PATCH", "COPY", "TRACE", "UPDATE", "SSYNC", "REPLICATE", "LINK", "get", "Put", "X"),
        (A, A + "/tv", A + "/tv/o", A + "/none/o", "/v1", "/", "/info"),
        ("test:tester", OTHER, None),
    ):
        both(method, path, user=user)
    for method, path, user in product(
        ("HEAD", "POST", "DELETE", "GET"), ("/none", "/tv/none", "/none/none"), (OTHER, None)
    ):
        both(method, A + path, user=user)


def newest(both):
    """Who wants to hear the newest of all."""
    for path, value, method in product(
        ("", "/tv", "/tv/o", "/tv/none", "/none"), ("true", "1", "yes", "no", "x"), ("GET", "HEAD")
    ):
        both(method, A + path, {"X-Newest": value})
    both("GET", A + "/tv/o", {"X-Newest": "on", "Range": "bytes=0-0"})
    both("GET", A + "/tv/o", {"X-Newest": "t", "If-None-Match": "*"})


def queries(both):
    """Parameters of features that are not in this pipeline, and of servers among each other."""
    both("PUT", A + "/tq")
    both("PUT", A + "/tq/o", TEXT, b"x")
    for query in (
        "x=y", "symlink=get", "version-id=null", "partNumber=1", "multipart-manifest=get",
        "temp_url_sig=x&temp_url_expires=1",
        "states=listing", "bulk-delete", "extract-archive=tar", "format=json&format=xml", "a=b;c=d", "&",
        "=", "%3D", "?",
        "swift_owner=true", "versions", "acl", "location",
    ):  # fmt: skip
        for method, path in (
            ("GET", ""),
            ("GET", "/tq"),
            ("GET", "/tq/o"),
            ("HEAD", "/tq/o"),
            ("POST", "/tq/o"),
        ):
            if path or query not in ("version-id=null",):
                both(method, f"{A}{path}?{query}", TEXT)

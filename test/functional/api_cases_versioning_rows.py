"""Listings of versions, and of accounts whose containers have some.

Like ``api_cases_versioning``.
"""

import json

A = "/v1/AUTH_test"
B = "/v1/AUTH_test2"
OTHER = "test2:tester2"
RESERVED = {"X-Allow-Reserved-Names": "true"}
NAMES = ("a", "a/1", "a/2", "b", "b%C3%A9", "c", "c c", "d/", "~")


def send_rows(both):
    """Send every case."""
    for part in (formats, pages, plain_pages, empty, accounts):
        part(both)


def put(both, path, body=b"x", headers=None, **who):
    return both("PUT", path, headers, body, **who).headers.get("x-object-version-id", "none")


def fill(both, container):
    """Objects with null versions, several ones, marks of deletions, and a link."""
    both("PUT", f"{A}/{container}")
    for name in NAMES[::2]:
        put(both, f"{A}/{container}/{name.replace(' ', '%20')}", b"null")
    both("POST", f"{A}/{container}", {"X-Versions-Enabled": "true"})
    for number, name in enumerate(NAMES):
        for turn in range(1 + number % 3):
            put(
                both,
                f"{A}/{container}/{name.replace(' ', '%20')}",
                b"v" * (turn + 1),
                {"Content-Type": "t/t"},
            )
    for name in NAMES[1::3]:
        both("DELETE", f"{A}/{container}/{name.replace(' ', '%20')}")
    put(both, f"{A}/{container}/c", b"after")
    both("POST", f"{A}/{container}", {"X-Versions-Enabled": "false"})
    for name in ("b", "new"):
        put(both, f"{A}/{container}/{name}", b"null!")
    both("POST", f"{A}/{container}", {"X-Versions-Enabled": "true"})


def formats(both):
    """What a listing of versions looks like."""
    fill(both, "pa")
    for query in (
        *("", "?format=json", "?format=xml", "?format=plain", "?format=bogus", "?versions"),
        *("?versions=", "?versions=true", "?versions=false", "?versions&format=json", "?versions&format=xml"),
        *("?versions&format=plain", "?versions&format=bogus", "?versions&format=", "?Versions&format=json"),
        *("?version&format=json", "?versions&versions&format=json", "?versions&format=JSON"),
    ):
        both("GET", A + "/pa" + query)
        both("HEAD", A + "/pa" + query)
    for accept in (
        *("application/json", "text/xml", "application/xml", "text/plain", "*/*", "text/*", "image/png"),
        *("application/json;q=0.1, text/plain", "text/xml, application/json;q=0.9", "application/*"),
    ):
        both("GET", A + "/pa", {"Accept": accept})
        both("GET", A + "/pa?versions", {"Accept": accept})
        both("HEAD", A + "/pa?versions", {"Accept": accept})
    both("GET", A + "/pa?versions&format=json", {"Accept": "image/png"})
    both("OPTIONS", A + "/pa?versions")
    both("PUT", A + "/pa?versions")
    both("POST", A + "/pa?versions", {"X-Container-Meta-A": "b"})
    both("DELETE", A + "/pa?versions")
    both("GET", A + "/pa/a?versions")
    both("GET", A + "?versions")
    both("GET", A + "/pa?versions&format=json", user=OTHER)
    both("GET", A + "/pa?versions&format=json", user=None)
    both("GET", A + "/pnone?versions&format=json")
    both("GET", A + "/pa?versions&format=json", {"Origin": "http://x"})


def listed(both, query):
    told = both("GET", f"{A}/pa?versions&format=json{query}")
    return json.loads(told.body) if told.status == 200 and told.body.startswith(b"[") else []


def pages(both):
    """Markers, prefixes, delimiters."""
    rows = listed(both, "")
    for query in (
        *("&prefix=a", "&prefix=a/", "&prefix=b", "&prefix=zz", "&prefix=", "&prefix=%C3%A9", "&prefix=%00"),
        *("&delimiter=/", "&delimiter=/&prefix=a", "&delimiter=/&prefix=a/", "&delimiter=a", "&delimiter= "),
        *("&delimiter=%C3%A9", "&delimiter=c%20", "&delimiter=ab", "&delimiter=1", "&delimiter=."),
        *(
            "&delimiter=%00",
            "&delimiter=",
            "&delimiter=a1",
            "&delimiter=/.",
            "&delimiter=%FF",
            "&delimiter=_",
        ),
        *("&limit=0", "&limit=1", "&limit=3", "&limit=-1", "&limit=x", "&limit=10000", "&limit=10001"),
        *("&reverse", "&reverse=true", "&reverse=on", "&reverse=false", "&reverse=true&prefix=a"),
        *(
            "&reverse=true&limit=4",
            "&reverse=true&delimiter=/",
            "&end_marker=b",
            "&end_marker=c&reverse=true",
        ),
        *("&path=", "&path=a", "&path=a/", "&path=d", "&end_marker=b&marker=a", "&states=listing"),
        *("&marker=a", "&marker=a&limit=2", "&marker=b&prefix=b", "&marker=zz", "&marker=", "&marker=%C3%A9"),
        *("&marker=c&reverse=true", "&marker=a/1&delimiter=/", "&marker=%FF", "&marker=%00", "&marker=a%00b"),
        *(
            "&version_marker=null",
            "&version_marker=x",
            "&version_marker=",
            "&version_marker=1234567890.12345",
        ),
        *(
            "&marker=a&version_marker=null",
            "&marker=b&version_marker=null",
            "&marker=none&version_marker=null",
        ),
        *("&marker=a&version_marker=x", "&marker=a&version_marker=", "&marker=&version_marker=null"),
        *("&marker=a&version_marker=1234567890.12345", "&marker=a&version_marker=9999999999.99999"),
        *("&marker=a&version_marker=0", "&marker=a&version_marker=1", "&marker=none&version_marker=5"),
        *("&marker=b&version_marker=null&reverse=true", "&marker=b&version_marker=null&limit=1"),
        *("&marker=a&version_marker=null&prefix=a/", "&marker=a/1&version_marker=null&delimiter=/"),
        *("&marker=a&version_marker=1234567890.12345_0000000000000001", "&marker=a&version_marker=%00"),
    ):
        listed(both, query.replace("= ", "=%20"))
    for row in rows:
        if "name" not in row:
            continue
        name = row["name"].encode().decode("latin-1").replace(" ", "%20")
        where = f"&marker={name}&version_marker={row['version_id']}"
        for more in ("", "&limit=2", "&reverse=true", "&prefix=b", "&delimiter=/", "&reverse=true&limit=3"):
            listed(both, where + more)
    for row in rows[::3]:
        other = f"&version_marker={row['version_id']}"
        listed(both, "&marker=b" + other)
        listed(both, "&marker=a/" + other)
    for limit in (1, 4):
        page, seen = listed(both, f"&limit={limit}"), 0
        while page and seen < 40:
            seen += len(page)
            last = page[-1]
            name = last["name"].encode().decode("latin-1").replace(" ", "%20")
            page = listed(both, f"&limit={limit}&marker={name}&version_marker={last['version_id']}")


def plain_pages(both):
    """Listings without versions."""
    for query in (
        *("limit=3", "marker=b", "end_marker=b", "prefix=a", "delimiter=/", "reverse=true", "path=a"),
        *(
            "version_marker=null",
            "version_marker=x",
            "marker=a&version_marker=x",
            "delimiter=1",
            "delimiter=%00",
        ),
    ):
        for shape in ("json", "xml", "plain"):
            both("GET", f"{A}/pa?format={shape}&{query}")


def empty(both):
    """Containers without versions."""
    both("PUT", A + "/pe", {"X-Versions-Enabled": "true"})
    both("PUT", A + "/pf")
    both("PUT", A + "/pg")
    put(both, A + "/pg/o", b"null", {"Content-Type": "a/b"})
    put(both, A + "/pg/sub/o", b"null")
    both("PUT", A + "/pg/link", {"X-Symlink-Target": "pg/o"}, b"")
    both("PUT", A + "/ph", {"X-Versions-Enabled": "true"})
    both("DELETE", A + "/ph/marked")
    for container in ("pe", "pf", "pg", "ph"):
        for query in (
            *("", "&limit=1", "&prefix=o", "&delimiter=/", "&reverse=true", "&marker=o", "&delimiter=1"),
            *("&marker=o&version_marker=null", "&version_marker=null", "&end_marker=o", "&format=xml"),
            *("&marker=o&version_marker=x", "&marker=link&version_marker=null&limit=1"),
        ):
            both("GET", f"{A}/{container}?versions&format=json{query}")
        both("HEAD", f"{A}/{container}?versions&format=json")


def accounts(both):
    """An account shows its containers as if nothing were hidden."""
    for container in ("aa", "ab", "ac"):
        both("PUT", f"{B}/{container}", {"X-Versions-Enabled": "true"}, user=OTHER)
    for container in ("ad", "b%C3%A9"):
        both("PUT", f"{B}/{container}", user=OTHER)
    both("PUT", B + "/b%C3%A9", {"X-Versions-Enabled": "true"}, user=OTHER)
    put(both, B + "/aa/o", b"1234", user=OTHER)
    put(both, B + "/aa/o", b"1234", user=OTHER)
    shapes(both)
    for name in ("orphan", "aab", "zz"):
        both("PUT", f"{B}/%00versions%00{name}", RESERVED, user=OTHER)
    both("PUT", f"{B}/%00other%00x", RESERVED, user=OTHER)
    shapes(both)
    both("HEAD", B, user=OTHER)
    both("GET", B + "?format=json", RESERVED, user=OTHER)
    both("GET", B + "?format=json&versions", user=OTHER)


def shapes(both):
    for query in (
        *("", "?format=json", "?format=xml", "?format=json&limit=2", "?format=json&limit=1", "?limit=2"),
        *("?format=json&marker=ab", "?format=json&end_marker=ac", "?format=json&prefix=a", "?prefix=a"),
        *("?format=json&prefix=o", "?format=json&delimiter=a", "?format=json&delimiter=b&prefix=a"),
        *("?format=json&reverse=true", "?format=json&reverse=true&limit=2", "?format=json&limit=0"),
        *("?format=json&marker=b&limit=2", "?format=json&reverse=true&marker=ac", "?marker=aa&limit=1"),
        *("?format=json&marker=aa&end_marker=ad", "?format=json&prefix=zz", "?format=json&prefix=none"),
        *("?format=xml&limit=3&marker=ac", "?format=json&reverse=true&marker=zz&end_marker=ab"),
    ):
        both("GET", B + query, user=OTHER)
    both("HEAD", B, user=OTHER)

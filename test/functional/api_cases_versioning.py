"""Requests to containers that keep every version of their objects (X-Versions-Enabled).

Like ``api_cases``, but a case may go on from an answer: version ids are times. They need a
``NumberingAsker``. What hidden containers hold is looked at with X-Allow-Reserved-Names.
"""

import hashlib
import json

from test.functional import api_cases_versioning_kinds, api_cases_versioning_rows
from test.functional.versioned import OTHER, RESERVED, A, looked_at, put, rows_of

GUEST = "test:tester3"
#: Requests for versions by those who may not.
_OF_OTHERS = (("PUT", 167), ("DELETE", 15))
OPTIONS = """
[filter:gatekeeper]
use = egg:swift#gatekeeper
allow_reserved_names_header = true

[filter:versioned_writes]
use = egg:swift#versioned_writes
allow_versioned_writes = true
allow_object_versioning = true
"""
#: No version has them, and some are none.
ODD_IDS = (
    "1234567890.12345",
    "0000000001.00000",
    "1",
    "1.5",
    "x",
    "",
    "NULL",
    "Null",
    "-1",
    "1e3",
    "nan",
    "inf",
    "99999999999",
    "9999999999.99999",
    "1234567890.12345_0000000000000001",
    "1234567890.123456789",
    "%00",
    "%C3%A9",
    "%FF",
    "a/b",
)

_EXPLAINED = {
    "who may not delete a container is not told what is in it": (
        (403, f"DELETE {A}/da [] as {OTHER}"),
        (401, f"DELETE {A}/da [] as None"),
    ),
    "refusals do not tell what is there": (
        *(
            (403, f"{m} {A}/ga/o?version-id=<time {n}> [] as {w}")
            for m, n in _OF_OTHERS
            for w in (OTHER, GUEST)
        ),
        *((401, f"{m} {A}/ga/o?version-id=<time {n}> [] as None") for m, n in _OF_OTHERS),
        (403, f"DELETE {A}/ga/theirs?version-id="),
    ),
    "the peer fails at it": (
        *((400, f"{m} {A}/ia/o?version-id=inf") for m in ("GET", "HEAD", "OPTIONS", "DELETE", "PUT")),
        (200, f"GET {A}/%00versions%00ha?versions "),
        (204, f"POST {A}/%00versions%00ha "),
        (200, f"HEAD {A}/kslo/big?version-id=<time 185>&multipart-manifest=get&format=raw"),
        *(
            (200, f"GET {A}/pa?versions&format=json&{q}")
            for q in ("prefix=%00 ", "marker=%00 ", "marker=a%00b ")
        ),
    ),
    "what cannot be has no versions": (
        *((412, f"{method} {A}/la/%FF") for method in ("GET", "HEAD")),
        (404, f"PUT {A}/%00versions%00mine/o"),
        (400, f"PUT {A}/ha/%00x [('X-Allow"),
    ),
    "what was not made the object has no id": (
        (412, f"PUT {A}/ra/o?version-id=<time 130> [('If-None-Match'"),
        (400, f"PUT {A}/ra/o?version-id=<time 133> "),
        *((400, f"PUT {A}/xa/{name} [('X-Delete") for name in ("o", "never")),
    ),
    "and leaves nothing behind; types are guessed from the object's name": (
        *((200, f"GET {A}/xa?{query}") for query in ("format=json", "versions")),
        *((200, f"{m} {A}/xa/photo.{ending}") for m in ("GET", "HEAD") for ending in ("jpg", "png")),
        (204, f"HEAD {A}/xa [] "),
        (200, f"GET {A}/%00versions%00xa?"),
    ),
    "a name that leaves no room for ids can be deleted": tuple(
        (404, f"DELETE {A}/la/{letter * 99}") for letter in "xy"
    ),
    "one version is the latest": ((200, f"GET {A}/ra?versions&format=json"),),
    "a large object that was restored is listed as one": ((200, f"GET {A}/kslo?format=json"),),
    "a link has no body": ((400, f"PUT {A}/kln/bad [('X-Symlink-Target', 'klt/t')]"),),
    "hidden names stay hidden": (
        *((200, f"{m} {A}/kw/{n} [] ") for m in ("GET", "HEAD") for n in ("l", "s")),
        *((206, f"GET {A}/kw/{n} [('Range'") for n in ("l", "s")),
    ),
    "a version is no further link": (
        *((200, f"{m} {A}/kw/l2 [] ") for m in ("GET", "HEAD")),
        (206, f"GET {A}/kw/l2 [('Range'"),
    ),
    "there is no such version": ((404, f"COPY {A}/kc/o?version-id=null&symlink=get"),),
    "what a link may not lead to is quoted": (
        *((409, f"COPY {A}/kc/o?symlink=get [('Destination', '{to}/link')]") for to in ("kd", "kc")),
    ),
}
#: As in ``test_filter_answers``.
DIFFERENT = {start: (status, why) for why, cases in _EXPLAINED.items() for status, start in cases}


def send_versioning(both):
    """Send every case."""
    for part in (settings, refused_settings, life, ids, restored, suspended, before, hidden, deleted, rights):
        part(both)
    api_cases_versioning_kinds.send_kinds(both)
    api_cases_versioning_rows.send_rows(both)
    refused_links(both)


def enable(both, container, value="true"):
    both("PUT", f"{A}/{container}", {"X-Versions-Enabled": value})


def settings(both):
    """What a container says of its versions."""
    both("GET", "/info", user=None)
    for method in ("PUT", "POST"):
        for value in (
            "true",
            "false",
            "True",
            "FALSE",
            "yes",
            "1",
            "on",
            "t",
            "0",
            "x",
            "",
            " true ",
            "null",
        ):
            name = f"se-{method.lower()}-{value.strip()}".rstrip("-")
            if method == "POST":
                both("PUT", f"{A}/{name}")
            both(method, f"{A}/{name}", {"X-Versions-Enabled": value})
            looked_at(both, f"/{name}")
            both("HEAD", f"{A}/%00versions%00{name}", RESERVED)
    enable(both, "sa")
    for value in ("false", "false", "true", "true", "", "x"):
        both("POST", A + "/sa", {"X-Versions-Enabled": value})
        both("HEAD", A + "/sa")
    both("POST", A + "/sa", {"X-Remove-Versions-Enabled": "x"})
    both("HEAD", A + "/sa")
    both("POST", A + "/sa", {"X-Container-Meta-A": "b"})
    both("PUT", A + "/sa")
    both("HEAD", A + "/sa")
    both("POST", A + "/none", {"X-Versions-Enabled": "true"})
    both("POST", A + "/none", {"X-Versions-Enabled": "false"})
    both("HEAD", A + "/%00versions%00none", RESERVED)
    both("PUT", A + "/" + "n" * 256, {"X-Versions-Enabled": "true"})
    both("PUT", A + "/" + "n" * 257, {"X-Versions-Enabled": "true"})
    both("PUT", A + "/s%C3%A9%20%22%25/", {"X-Versions-Enabled": "true"})
    looked_at(both, "/s%C3%A9%20%22%25")
    both("HEAD", A + "/%00versions%00s%C3%A9%20%22%25", RESERVED)
    both("PUT", A + "/sec", {"X-Versions-Enabled": "true", "X-Storage-Policy": "ec"})
    put(both, "/sec/o", b"coded")
    looked_at(both, "/sec/o")
    rows_of(both, "sec")
    both("PUT", A + "/sbad", {"X-Versions-Enabled": "true", "X-Storage-Policy": "none"})
    both("HEAD", A + "/%00versions%00sbad", RESERVED)
    both("PUT", A + "/o/o", {"X-Versions-Enabled": "true"}, b"")
    both("POST", A, {"X-Versions-Enabled": "true"})
    both("HEAD", A)
    both("PUT", A + "/sanon", {"X-Versions-Enabled": "true"}, user=None)
    both("PUT", A + "/sother", {"X-Versions-Enabled": "true"}, user=OTHER)
    both("POST", A + "/sa", {"X-Versions-Enabled": "false"}, user=OTHER)
    both("POST", A + "/sa", {"X-Versions-Enabled": "false"}, user=GUEST)
    both("HEAD", A + "/sa")
    both("HEAD", A + "/%00versions%00sother", RESERVED)
    both("HEAD", A + "/%00versions%00sa")
    both("PUT", A + "/%00versions%00mine")
    both("PUT", A + "/%00versions%00mine/o", RESERVED, b"x")


def refused_settings(both):
    """What does not go together."""
    for container in ("re", "rf", "rg"):
        both("PUT", f"{A}/{container}")
    for name in ("X-Versions-Location", "X-History-Location"):
        for method in ("PUT", "POST"):
            both(method, A + "/re", {name: "rf"})
            both(method, A + "/re", {"X-Versions-Enabled": "true"})
            both(method, A + "/re", {"X-Versions-Enabled": "false"})
            both(method, A + "/re", {"X-Versions-Enabled": "true", f"X-Remove-{name[2:]}": "x"})
            both("HEAD", A + "/re")
            both(method, A + "/re", {f"X-Remove-{name[2:]}": "x"})
            both(method, A + "/rg", {"X-Versions-Enabled": "true", name: "rf"})
            both("HEAD", A + "/rg")
            both(method, A + "/rg", {"X-Versions-Enabled": "false", name: "rf"})
            both("HEAD", A + "/rg")
            both("POST", A + "/rg", {f"X-Remove-{name[2:]}": "x"})
    both("PUT", A + "/rnew", {"X-Versions-Enabled": "true", "X-Versions-Location": "rf"})
    both("HEAD", A + "/rnew")
    sync = {"X-Container-Sync-To": "http://127.0.0.1/v1/AUTH_x/c", "X-Container-Sync-Key": "k"}
    both("PUT", A + "/rs", sync)
    both("HEAD", A + "/rs")
    both("POST", A + "/rs", {"X-Versions-Enabled": "true"})
    both("POST", A + "/rs", {"X-Versions-Enabled": "false"})
    both("POST", A + "/rs", {"X-Container-Sync-To": "", "X-Versions-Enabled": "true"})
    both("HEAD", A + "/rs")
    enable(both, "rt")
    both("POST", A + "/rt", sync)
    both("PUT", A + "/rt", sync)
    both("POST", A + "/rt", {"X-Versions-Enabled": "false"})
    both("POST", A + "/rt", sync)
    both("HEAD", A + "/rt")
    for method in ("PUT", "POST"):
        both(method, A + "/ru", {"X-Versions-Enabled": "true", **sync})


def life(both):
    """Versions come and go."""
    enable(both, "la")
    both("GET", A + "/la/o")
    both("DELETE", A + "/la/o")
    rows_of(both, "la")
    for number in (1, 2, 3):
        headers = {"X-Object-Meta-N": str(number), "Content-Type": f"t/{number}"}
        put(both, "/la/o", b"version %d" % number, headers)
        looked_at(both, "/la/o")
        rows_of(both, "la")
    both("GET", A + "/la/o?symlink=get")
    both("HEAD", A + "/la/o?symlink=get")
    both("OPTIONS", A + "/la/o")
    both("POST", A + "/la/o", {"X-Object-Meta-Posted": "1", "X-Object-Meta-N": "9"})
    looked_at(both, "/la/o")
    both("POST", A + "/la/o", {"Content-Type": "posted/type"})
    looked_at(both, "/la/o")
    rows_of(both, "la")
    both("POST", A + "/la/none", {"X-Object-Meta-Posted": "1"})
    etag = hashlib.md5(b"version 3").hexdigest()
    for headers in (
        {"Range": "bytes=0-2"},
        {"Range": "bytes=-2"},
        {"Range": "bytes=1-2,4-5"},
        {"Range": "bytes=99-"},
        {"If-Match": etag},
        {"If-Match": "x"},
        {"If-None-Match": etag},
        {"If-None-Match": "d41d8cd98f00b204e9800998ecf8427e"},
        {"If-None-Match": "*"},
        {"If-Modified-Since": "Sat, 21 Nov 2099 00:00:00 GMT"},
        {"If-Unmodified-Since": "Sat, 21 Nov 2009 00:00:00 GMT"},
        {"X-Newest": "true"},
        {"Origin": "http://x"},
    ):
        both("GET", A + "/la/o", headers)
        both("HEAD", A + "/la/o", headers)
    for path in ("/la/o", "/la/new"):
        put(both, path, b"again", {"ETag": hashlib.md5(b"again").hexdigest()})
        put(both, path, b"again", {"ETag": "bad"})
        both("PUT", A + path, None, [b"chunk", b"ed"])
        looked_at(both, path)
    put(both, "/la/o", b"")
    looked_at(both, "/la/o")
    put(both, "/la/o", b"x", {"X-Object-Meta-" + "a" * 200: "b"})
    put(both, "/la/o", b"x", {"X-Object-Version-Id": "1234567890.12345"})
    for _ in range(2):
        both("DELETE", A + "/la/o")
        looked_at(both, "/la/o")
        rows_of(both, "la")
    both("POST", A + "/la/o", {"X-Object-Meta-Posted": "1"})
    both("COPY", A + "/la/o", {"Destination": "la/p"})
    put(both, "/la/o", b"reborn")
    looked_at(both, "/la/o")
    rows_of(both, "la")
    names = (
        *("a/b", "a%20b", "%C3%A9", "%22%25%23", "a/", "%2Fx", "a//b", "%E2%98%83/%E2%98%83", "~", "&<>"),
        *("a%0Ab", "1234567890.12345", "%7F", "." * 3, "x" * 1007, "y" * 1008, "x" * 1024, "x" * 1025, "%FF"),
    )
    for name in names:
        put(both, f"/la/{name}", b"first")
        put(both, f"/la/{name}", b"second!")
        looked_at(both, f"/la/{name}")
        both("DELETE", f"{A}/la/{name}")
        both("GET", f"{A}/la/{name}")
    rows_of(both, "la")


def asked_for(both, path, version, **who):
    """Every method that takes the id of a version, but those that change something."""
    for method in ("GET", "HEAD"):
        both(method, f"{A}{path}?version-id={version}", **who)


def ids(both):
    """version-id, of what is and is not there."""
    enable(both, "ia")
    both("PUT", A + "/ib")
    enable(both, "ic", "false")
    first = put(both, "/ia/o", b"one", {"Content-Type": "a/1", "X-Object-Meta-A": "1"})
    second = put(both, "/ia/o", b"second", {"Content-Type": "a/2", "X-Object-Meta-A": "2"})
    elsewhere = put(both, "/ia/other", b"else")
    marker = both("DELETE", A + "/ia/o").headers.get("x-object-version-id", "none")
    third = put(both, "/ia/o", b"third one", {"Content-Type": "a/3"})
    for version in (first, second, third, marker, elsewhere, "null", *ODD_IDS):
        asked_for(both, "/ia/o", version)
        both("POST", f"{A}/ia/o?version-id={version}", {"X-Object-Meta-B": "c"})
        both("OPTIONS", f"{A}/ia/o?version-id={version}")
    for version in (first, marker, third):
        asked_for(both, "/ia/none", version)
        for query in ("&symlink=get", "&multipart-manifest=get", "&version-id=null", "&versions"):
            both("GET", f"{A}/ia/o?version-id={version}{query}")
        for headers in ({"Range": "bytes=0-1"}, {"If-None-Match": "*"}, {"If-Match": "x"}):
            both("GET", f"{A}/ia/o?version-id={version}", headers)
            both("HEAD", f"{A}/ia/o?version-id={version}", headers)
    both("GET", f"{A}/ia/o?version-id=null&version-id={first}")
    put(both, "/ib/plain", b"plain")
    put(both, "/ic/plain", b"plain")
    for container in ("ib", "ic", "inone"):
        for version in ("null", first, "x", "1234567890.12345", ""):
            for name in ("plain", "none"):
                asked_for(both, f"/{container}/{name}", version)
            both("PUT", f"{A}/{container}/new?version-id={version}", None, b"")
            both("PUT", f"{A}/{container}/new?version-id={version}", None, b"body")
            both("POST", f"{A}/{container}/plain?version-id={version}", {"X-Object-Meta-A": "1"})
            both("DELETE", f"{A}/{container}/new?version-id={version}")
    both("DELETE", f"{A}/ib/plain?version-id=null")
    both("DELETE", f"{A}/ic/plain?version-id=null")
    for container in ("ib", "ic"):
        rows_of(both, container)
    for version in (*ODD_IDS, elsewhere):
        both("DELETE", f"{A}/ia/o?version-id={version}")
        both("PUT", f"{A}/ia/o?version-id={version}", None, b"")
    rows_of(both, "ia")
    for version in (second, second, "null", marker, first, third, third):
        both("DELETE", f"{A}/ia/o?version-id={version}")
        looked_at(both, "/ia/o")
        rows_of(both, "ia")
    for query in ("?version-id=null", "?version-id=x", f"?version-id={first}"):
        both("GET", A + "/ia" + query)
        both("GET", A + query)
        both("HEAD", A + "/ia" + query)


def restored(both):
    """A version becomes the object again."""
    enable(both, "ra")
    one = put(both, "/ra/o", b"one", {"Content-Type": "a/1", "X-Object-Meta-A": "1"})
    two = put(both, "/ra/o", b"second", {"Content-Type": "a/2"})
    both("PUT", f"{A}/ra/o?version-id={one}", None, b"body")
    both("PUT", f"{A}/ra/o?version-id={one}", None, [b"body"])
    both("PUT", f"{A}/ra/o?version-id={one}", None, [])
    for version in (one, two, one):
        both("PUT", f"{A}/ra/o?version-id={version}", {"X-Object-Meta-B": "n", "Content-Type": "n/n"}, b"")
        looked_at(both, "/ra/o")
        rows_of(both, "ra")
    both("PUT", f"{A}/ra/o?version-id={two}", {"X-Symlink-Target": "ra/x"}, b"")
    both("PUT", f"{A}/ra/o?version-id={two}", {"If-None-Match": "*"}, b"")
    both("PUT", f"{A}/ra/o?version-id={two}", {"ETag": "x"}, b"")
    looked_at(both, "/ra/o")
    both("PUT", f"{A}/ra/other?version-id={two}", None, b"")
    both("PUT", f"{A}/ra/o?version-id=null", None, b"")
    marker = both("DELETE", A + "/ra/o").headers.get("x-object-version-id", "none")
    both("PUT", f"{A}/ra/o?version-id={marker}", None, b"")
    looked_at(both, "/ra/o")
    rows_of(both, "ra")
    both("PUT", f"{A}/ra/o?version-id={one}", None, b"")
    looked_at(both, "/ra/o")
    rows_of(both, "ra")
    both("POST", A + "/ra", {"X-Versions-Enabled": "false"})
    both("PUT", f"{A}/ra/o?version-id={two}", None, b"")
    looked_at(both, "/ra/o")
    put(both, "/ra/o", b"null version")
    both("PUT", f"{A}/ra/o?version-id={one}", None, b"")
    looked_at(both, "/ra/o")
    rows_of(both, "ra")
    both("DELETE", f"{A}/ra/o?version-id={one}")
    looked_at(both, "/ra/o")
    rows_of(both, "ra")


def suspended(both):
    """Versions are no longer made, but those that are there stay."""
    enable(both, "ua")
    one = put(both, "/ua/o", b"one")
    put(both, "/ua/kept", b"kept")
    both("POST", A + "/ua", {"X-Versions-Enabled": "false"})
    looked_at(both, "/ua/o")
    put(both, "/ua/o", b"null one", {"X-Object-Meta-A": "b"})
    looked_at(both, "/ua/o")
    asked_for(both, "/ua/o", "null")
    asked_for(both, "/ua/o", one)
    rows_of(both, "ua")
    put(both, "/ua/o", b"another null")
    rows_of(both, "ua")
    both("POST", A + "/ua/o", {"X-Object-Meta-B": "c"})
    both("POST", A + "/ua/kept", {"X-Object-Meta-B": "c"})
    looked_at(both, "/ua/o")
    looked_at(both, "/ua/kept")
    for _ in range(2):
        both("DELETE", A + "/ua/o")
        looked_at(both, "/ua/o")
        rows_of(both, "ua")
    both("DELETE", A + "/ua/kept")
    rows_of(both, "ua")
    put(both, "/ua/o", b"null again")
    both("POST", A + "/ua", {"X-Versions-Enabled": "true"})
    put(both, "/ua/o", b"two")
    looked_at(both, "/ua/o")
    rows_of(both, "ua")
    both("POST", A + "/ua", {"X-Versions-Enabled": "false"})
    put(both, "/ua/p", b"null p")
    both("POST", A + "/ua", {"X-Versions-Enabled": "true"})
    both("DELETE", A + "/ua/p")
    looked_at(both, "/ua/p")
    rows_of(both, "ua")
    both("POST", A + "/ua", {"X-Versions-Enabled": "false"})
    put(both, "/ua/q", b"null q")
    both("POST", A + "/ua", {"X-Versions-Enabled": "true"})
    both("DELETE", A + "/ua/q?version-id=null")
    both("DELETE", A + "/ua/q?version-id=null")
    both("DELETE", f"{A}/ua/o?version-id={one}")
    rows_of(both, "ua")


def before(both):
    """Objects of before versions were kept."""
    both("PUT", A + "/ba")
    put(
        both,
        "/ba/o",
        b"old",
        {"X-Object-Meta-A": "old", "Content-Type": "old/type", "X-Delete-At": "9999999999"},
    )
    put(both, "/ba/del", b"old")
    put(both, "/ba/post", b"old")
    put(both, "/ba/sub/dir", b"old")
    both("GET", A + "/ba?versions&format=json")
    both("GET", A + "/ba/o?version-id=null")
    both("POST", A + "/ba", {"X-Versions-Enabled": "true"})
    looked_at(both, "/ba/o")
    asked_for(both, "/ba/o", "null")
    rows_of(both, "ba")
    both("POST", A + "/ba/post", {"X-Object-Meta-A": "b"})
    looked_at(both, "/ba/post")
    both("POST", A + "/ba/post?version-id=null", {"X-Object-Meta-A": "c"})
    put(both, "/ba/o", b"new", {"Content-Type": "new/type"})
    looked_at(both, "/ba/o")
    both("DELETE", A + "/ba/del")
    looked_at(both, "/ba/del")
    both("DELETE", A + "/ba/post?version-id=null")
    looked_at(both, "/ba/post")
    rows_of(both, "ba")
    asked_for(both, "/ba/o", "null")
    listed = both("GET", A + "/ba?versions&format=json&prefix=o").body
    for row in json.loads(listed) if listed.startswith(b"[") else ():
        asked_for(both, "/ba/o", row["version_id"])
        both("PUT", f"{A}/ba/o?version-id={row['version_id']}", None, b"")
        both("HEAD", A + "/ba/o")
    for row in json.loads(listed) if listed.startswith(b"[") else ():
        both("DELETE", f"{A}/ba/o?version-id={row['version_id']}")
    rows_of(both, "ba")


def hidden(both):
    """What is stored, seen from inside."""
    enable(both, "ha")
    put(both, "/ha/o%20%C3%A9", b"one", {"X-Object-Meta-A": "1", "Content-Type": "a/1"})
    put(both, "/ha/o%20%C3%A9", b"two", {"X-Object-Meta-A": "2", "Content-Type": "a/2"})
    both("DELETE", A + "/ha/gone")
    both("GET", A + "/ha/o%20%C3%A9", RESERVED)
    both("GET", A + "/ha?format=json", RESERVED)
    both("GET", A + "/ha?format=json&versions", RESERVED)
    listed = both("GET", A + "/%00versions%00ha?format=json", RESERVED).body
    for row in json.loads(listed) if listed.startswith(b"[") else ():
        name = row.get("name", "").replace("\0", "%00").replace("o \xe9", "o%20%C3%A9")
        for headers in (RESERVED, None):
            for method in ("GET", "HEAD"):
                both(method, f"{A}/%00versions%00ha/{name}", headers)
    for query in ("", "?format=xml", "?versions"):
        both("GET", A + "/%00versions%00ha" + query, RESERVED)
        both("GET", A + "/%00versions%00ha" + query)
    both("POST", A + "/%00versions%00ha", {**RESERVED, "X-Versions-Enabled": "true"})
    both("DELETE", A + "/%00versions%00ha", RESERVED)
    both("PUT", A + "/ha/%00x", RESERVED, b"x")
    both("PUT", A + "/ha/x%00y", None, b"x")


def deleted(both):
    """The end of a container."""
    enable(both, "da")
    both("DELETE", A + "/da")
    both("HEAD", A + "/%00versions%00da", RESERVED)
    both("DELETE", A + "/da")
    enable(both, "da")
    version = put(both, "/da/o")
    both("DELETE", A + "/da")
    marker = both("DELETE", A + "/da/o").headers.get("x-object-version-id", "none")
    both("DELETE", A + "/da")
    both("DELETE", A + "/da", user=OTHER)
    both("DELETE", A + "/da", user=None)
    both("DELETE", f"{A}/da/o?version-id={version}")
    both("DELETE", A + "/da")
    both("DELETE", f"{A}/da/o?version-id={marker}")
    both("DELETE", A + "/da")
    both("HEAD", A + "/da")
    both("HEAD", A + "/%00versions%00da", RESERVED)
    enable(both, "db")
    put(both, "/db/o")
    both("POST", A + "/db", {"X-Versions-Enabled": "false"})
    both("DELETE", A + "/db")
    both("DELETE", A + "/db/o")
    both("DELETE", A + "/db")
    rows_of(both, "db")
    enable(both, "dc", "false")
    put(both, "/dc/o")
    both("DELETE", A + "/dc")
    both("DELETE", A + "/dc/o")
    both("DELETE", A + "/dc")
    both("HEAD", A + "/%00versions%00dc", RESERVED)
    enable(both, "dd")
    both("DELETE", A + "/%00versions%00dd", RESERVED)
    both("PUT", A + "/dd/o", None, b"lost home")
    both("GET", A + "/dd/o")
    both("GET", A + "/dd?versions&format=json")
    both("DELETE", A + "/dd/o")
    both("POST", A + "/dd", {"X-Versions-Enabled": "true"})
    both("PUT", A + "/dd/o", None, b"found home")
    both("GET", A + "/dd/o")
    both("GET", A + "/dd?versions&format=json")


def rights(both):
    """Who may do what."""
    enable(both, "ga")
    one = put(both, "/ga/o", b"one")
    two = put(both, "/ga/o", b"second")
    for read, write in ((None, None), (OTHER, None), (None, OTHER), (OTHER, OTHER), (".r:*", None)):
        both("POST", A + "/ga", {"X-Container-Read": read or "", "X-Container-Write": write or ""})
        for who in (OTHER, GUEST, None):
            looked_at(both, "/ga/o", user=who)
            asked_for(both, "/ga/o", one, user=who)
            asked_for(both, "/ga/o", "null", user=who)
            both("GET", A + "/ga?versions&format=json", user=who)
            both("POST", A + "/ga/o", {"X-Object-Meta-A": "b"}, user=who)
            put(both, "/ga/p", b"theirs", user=who)
            both("PUT", f"{A}/ga/o?version-id={two}", None, b"", user=who)
            both("DELETE", A + "/ga/p", user=who)
            both("DELETE", f"{A}/ga/o?version-id=1234567890.12345", user=who)
            both("DELETE", f"{A}/ga/none", user=who)
            both("COPY", A + "/ga/o", {"Destination": "ga/q"}, user=who)
    both("POST", A + "/ga", {"X-Container-Read": ".r:*,.rlistings", "X-Container-Write": ""})
    both("GET", A + "/ga?versions&format=json", user=None)
    both("GET", A + "/ga", user=None)
    both("POST", A + "/ga", {"X-Container-Read": "", "X-Container-Write": OTHER})
    version = put(both, "/ga/theirs", b"1", user=OTHER)
    both("DELETE", f"{A}/ga/theirs?version-id={version}", user=OTHER)
    both("DELETE", f"{A}/ga/theirs?version-id={version}", user=OTHER)
    rows_of(both, "ga")


def refused_links(both):
    """Uploads whose version could be stored, but not the link to it."""
    enable(both, "xa")
    for name in ("o", "never"):
        for headers in ({"If-None-Match": "*"}, {"X-Delete-After": "x"}, {"X-Delete-At": "1"}):
            put(both, f"/xa/{name}", b"again", headers)
    put(both, "/xa/o", b"1", {"If-None-Match": "x"})
    put(both, "/xa/photo.jpg", b"no type")
    put(both, "/xa/photo.jpg", b"no type", {"Content-Type": ""})
    put(both, "/xa/photo.png", b"guessed", {"Content-Type": "a/b", "X-Detect-Content-Type": "true"})
    both("GET", A + "/xa?format=json")
    for name in ("photo.jpg", "photo.png"):
        looked_at(both, f"/xa/{name}")
    rows_of(both, "xa")

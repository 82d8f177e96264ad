"""Listings of the S3 API, sent to both servers: objects, versions, uploads and parts."""

from urllib.parse import quote

from test.functional.api_cases_s3 import element

_NUMBERS = (
    "",
    "0",
    "1",
    "2",
    "1000",
    "1001",
    "-1",
    "x",
    "1.5",
    "2147483647",
    "2147483648",
    "%2B1",
    "%201",
    "1%20",
)
_DELIMITERS = ("", "/", "b", "1", ".", "//", "%C3%BC", "%20", "-", "b/", "%FF")
_PREFIXES = ("", "a", "b/", "b", "none", "%C3%BC", "/", "b/c/3", "%FF", "a%26")
_MARKERS = ("", "a", "b/", "b/1", "b/2", "zzz", "%C3%BC", "%FF", "b/c/3")
_ENCODINGS = ("", "url", "URL", "odd", "xml")
NAMES = ("a", "a.1", "b/1", "b/2", "b/c/3", "d", "d.e.f", "\u00fc&<", "x y", "z+1%")


def send_all_listings(both):
    """Send every case of listings."""
    both("PUT", "/lists")
    for name in NAMES:
        both("PUT", f"/lists/{quote(name)}", body=name.encode())
    for kind in ("", "list-type=2&", "versions&"):
        send_objects(both, f"/lists?{kind}")
    send_second(both)
    send_markers_of_versions(both)
    send_uploads(both)


def send_objects(both, start):
    for name, values in (
        ("max-keys", _NUMBERS),
        ("delimiter", _DELIMITERS),
        ("prefix", _PREFIXES),
        ("marker", _MARKERS),
        ("encoding-type", _ENCODINGS),
    ):
        for value in values:
            both("GET", f"{start}{name}={value}")
    for query in (
        *(
            "prefix=b/&delimiter=/",
            "prefix=b&delimiter=/",
            "prefix=b/c&delimiter=/",
            "delimiter=/&max-keys=3",
        ),
        *("encoding-type=url&delimiter=b", "encoding-type=url&prefix=%C3%BC", "encoding-type=url&max-keys=4"),
        *(
            "marker=b/1&delimiter=/",
            "marker=b/&delimiter=/&max-keys=1",
            "marker=b/1&prefix=b/",
            "prefix=a&prefix=b",
        ),
        *("max-keys=0&delimiter=/", "max-keys=1&marker=a", "foo=bar", "allow-unordered=true"),
    ):
        both("GET", f"{start}{query}")
    both("HEAD", f"{start}max-keys=1")
    both("GET", f"/missing-lists?{start.partition('?')[2]}max-keys=1")


def send_second(both):
    for query in (
        *(
            "continuation-token=",
            "continuation-token=odd",
            "continuation-token=YQ",
            "continuation-token=YQ%3D%3D",
        ),
        *("continuation-token=%3D%3D", "continuation-token=Yi8%3D", "continuation-token=%2F%2F8%3D"),
        *("continuation-token=YQ%3D%3D&start-after=d", "continuation-token=&start-after=d"),
        *("start-after=", "start-after=b/1", "start-after=zzz", "start-after=%C3%BC", "start-after=%FF"),
        *("start-after=b/&delimiter=/", "start-after=a&max-keys=1", "start-after=%C3%BC&encoding-type=url"),
        *("fetch-owner=true", "fetch-owner=false", "fetch-owner=", "fetch-owner=TRUE", "fetch-owner=odd"),
        *(
            "delimiter=/&max-keys=2&prefix=b/",
            "max-keys=0",
            "max-keys=0&start-after=a",
            "marker=a&start-after=b",
        ),
    ):
        both("GET", f"/lists?list-type=2&{query}")
    for value in ("", "1", "3", "x", "02"):
        both("GET", f"/lists?list-type={value}")


def send_markers_of_versions(both):
    for query in (
        *(
            "key-marker=",
            "key-marker=a",
            "key-marker=b/",
            "key-marker=zzz",
            "key-marker=%C3%BC",
            "key-marker=%FF",
        ),
        *("version-id-marker=x", "version-id-marker=", "key-marker=a&version-id-marker=null"),
        *("key-marker=a&version-id-marker=", "key-marker=a&version-id-marker=x", "key-marker=b/&delimiter=/"),
        "key-marker=a&version-id-marker=1000000000.00000",
    ):
        both("GET", f"/lists?versions&{query}")


def _initiate(both, key):
    upload = element(both("POST", f"/lists/{quote(key)}?uploads", body=b""), "UploadId")
    both.call(upload, f"<upload {key}>")
    return upload


def send_uploads(both):
    both("GET", "/lists?uploads")
    ids = {key: _initiate(both, key) for key in ("a", "b/1", "b/2", "d", "\u00fc")}
    for name, values in (
        ("max-uploads", _NUMBERS),
        ("delimiter", _DELIMITERS),
        ("prefix", _PREFIXES),
        ("key-marker", _MARKERS),
        ("encoding-type", _ENCODINGS),
    ):
        for value in values:
            both("GET", f"/lists?uploads&{name}={value}")
    for query in (
        *(
            "upload-id-marker=x",
            "upload-id-marker=",
            "key-marker=a&upload-id-marker=",
            "max-uploads=2&delimiter=/",
        ),
        *(
            f"key-marker=a&upload-id-marker={ids['a']}",
            "key-marker=a&upload-id-marker=x",
            "prefix=b/&delimiter=/",
        ),
        *(
            "key-marker=b/1&prefix=b/",
            "max-uploads=1&prefix=b/",
            "max-uploads=3",
            "encoding-type=url&prefix=%C3%BC",
        ),
        *("key-marker=b/&delimiter=/", "key-marker=a&upload-id-marker=AAAA", "max-uploads=1&key-marker=b/1"),
    ):
        both("GET", f"/lists?uploads&{query}")
    both("GET", "/missing-lists?uploads")
    send_parts(both, ids["b/1"])


def send_parts(both, upload):
    for number in (1, 2, 3, 10):
        both("PUT", f"/lists/b/1?partNumber={number}&uploadId={upload}", body=b"p" * number)
    start = f"/lists/b/1?uploadId={upload}"
    both("GET", start)
    for name, values in (
        ("max-parts", _NUMBERS),
        ("part-number-marker", (*_NUMBERS, "3", "10", "11", "10000", "10001")),
        ("encoding-type", _ENCODINGS),
    ):
        for value in values:
            both("GET", f"{start}&{name}={value}")
    both("GET", f"{start}&max-parts=2&part-number-marker=1")
    both("GET", f"{start}&max-parts=0&part-number-marker=1")
    for query in ("uploadId=", "uploadId=x", "uploadId=%FF", f"uploadId={upload}x"):
        both("GET", f"/lists/b/1?{query}")
    both("GET", f"/lists/other?uploadId={upload}")
    both("GET", f"/missing-lists/b/1?uploadId={upload}")
    both("HEAD", start)
    both("GET", "/lists?uploads&prefix=b/1")
    both("DELETE", start)
    both("GET", start)

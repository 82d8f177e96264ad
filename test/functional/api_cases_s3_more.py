"""More of the S3 API, sent to both servers: multipart uploads, copies, heads, documents and forms."""

from hashlib import md5
from urllib.parse import quote

from test.functional.api_cases_s3 import element, md5_of

PIECE = b"p" * (5 << 20)


def send_more(both):
    """Send every case of these groups."""
    both("PUT", "/more")
    both(
        "PUT",
        "/more/from",
        {"x-amz-meta-a": "1", "Content-Type": "x/y", "Cache-Control": "no-cache"},
        b"source",
    )
    send_multipart(both)
    send_part_copies(both)
    send_copies(both)
    send_heads(both)
    send_acls(both)
    send_tags(both)
    send_versioning(both)
    send_deletes(both)
    send_cors(both)
    send_forms(both)


def _document(*parts, more=""):
    inner = "".join(f"<Part><PartNumber>{n}</PartNumber><ETag>{e}</ETag>{more}</Part>" for n, e in parts)
    return f"<CompleteMultipartUpload>{inner}</CompleteMultipartUpload>".encode()


def _initiate(both, key, headers=None):
    upload = element(both("POST", f"/more/{key}?uploads", headers, b""), "UploadId")
    both.call(upload, f"<upload {key}>")
    return f"uploadId={upload}"


def send_multipart(both):
    for headers in (
        *({"x-amz-checksum-algorithm": "CRC32"}, {"x-amz-checksum-algorithm": "odd"}, {"x-amz-acl": "odd"}),
        *({"x-amz-storage-class": "GLACIER"}, {"x-amz-storage-class": "STANDARD"}, {"Content-MD5": "x"}),
        *({"x-amz-server-side-encryption": "AES256"}, {"x-amz-checksum-type": "COMPOSITE"}),
    ):
        both.call(element(both("POST", "/more/odd?uploads", headers, b""), "UploadId"), "<upload odd>")
    for query, body in (("uploads", b"content"), ("uploads=1", b"")):
        both.call(element(both("POST", f"/more/odd?{query}", body=body), "UploadId"), "<upload odd>")
    both("POST", f"/more/{'k' * 1025}?uploads", body=b"")
    upload = _initiate(both, "big", {"Content-Type": "x/y"})
    path = f"/more/big?{upload}"
    for number in ("", "0", "-1", "x", "1.5", "10001", "99999999999", "%2B1", "%201", "01"):
        both("PUT", f"{path}&partNumber={number}", body=b"x")
    for headers in (
        *(md5_of(b"other"), {"Content-MD5": "x"}, {"x-amz-checksum-crc32": "AAAAAA=="}),
        *({"x-amz-checksum-crc32": "x"}, {"x-amz-meta-a": "b"}, {"Content-Type": "x/y"}),
    ):
        both("PUT", f"{path}&partNumber=1", headers, b"part")
    for query in ("uploadId=x&partNumber=1", "uploadId=&partNumber=1", "partNumber=1", f"{upload}"):
        both("PUT", f"/more/big?{query}", body=b"x")
    both("PUT", f"/more/other?{upload}&partNumber=1", body=b"x")
    both("PUT", f"/missing-more/big?{upload}&partNumber=1", body=b"x")
    one, two = md5(PIECE).hexdigest(), md5(b"tail").hexdigest()
    both("PUT", f"{path}&partNumber=1", body=PIECE)
    both("PUT", f"{path}&partNumber=2", body=b"tail")
    both("PUT", f"{path}&partNumber=3", body=b"end")
    send_completions(both, path, one, two)


def send_completions(both, path, one, two):
    good = _document((1, one), (2, two))
    for body in (
        *(b"<Other/>", b"<CompleteMultipartUpload/>", good[:-9], _document((1, one), (1, one))),
        *(
            _document((0, one)),
            _document(("x", one)),
            _document(("", one)),
            _document((1, "")),
            _document((-1, one)),
        ),
        *(_document((1, f'"{one}"x')), _document((1, one.upper() + "0")), _document((10001, one))),
        b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber></Part></CompleteMultipartUpload>",
        b"<CompleteMultipartUpload><Part><ETag>x</ETag></Part></CompleteMultipartUpload>",
        b"<CompleteMultipartUpload><Odd/></CompleteMultipartUpload>",
        _document((1, one), more="<Odd>1</Odd>"),
        _document((2, two), (3, md5(b"end").hexdigest())),
    ):
        both("POST", path, md5_of(body), body)
    both("POST", path, md5_of(b"other"), good)
    both("POST", path, {"Content-MD5": "x"}, good)
    for query in ("uploadId=x", "uploadId="):
        both("POST", f"/more/big?{query}", body=good)
    both("POST", f"/more/other?{path.partition('?')[2]}", body=good)
    both("POST", f"/missing-more/big?{path.partition('?')[2]}", body=good)
    quoted = _document((1, f'"{one}"'), (2, f"&quot;{two}&quot;"))
    both("POST", path, body=quoted)
    both("POST", path, body=quoted)
    both("GET", path)
    both("DELETE", path)
    for query in ("uploadId=x", "uploadId="):
        both("DELETE", f"/more/big?{query}")
    for number in ("1", "2", "3", "0", "x", "10001", "-1", ""):
        both("GET", f"/more/big?partNumber={number}", {"If-None-Match": '"none"'})
        both("HEAD", f"/more/big?partNumber={number}")
    both("GET", "/more/big?partNumber=2", {"Range": "bytes=0-1"})
    for value in ("bytes=5242878-5242881", "bytes=-2", "bytes=5242884-", "bytes=9999999-"):
        both("GET", "/more/big", {"Range": value})
        both("HEAD", "/more/big", {"Range": value})


def send_part_copies(both):
    upload = _initiate(both, "copied")
    path = f"/more/copied?{upload}&partNumber=1"
    source = {"x-amz-copy-source": "/more/from"}
    for value in (
        "bytes=0-2",
        "bytes=2-2",
        "bytes=0-6",
        "bytes=3-2",
        "bytes=-2",
        "bytes=x",
        "bytes=0-1,3-4",
        "",
        "0-2",
    ):
        both("PUT", path, {**source, "x-amz-copy-source-range": value})
    for value in ("/more/missing", "/missing-more/k", "", "/", "/more", "/more/", "more/from?versionId=x"):
        both("PUT", path, {"x-amz-copy-source": value})
    both("PUT", path, source, b"body")
    both("PUT", path, {"x-amz-copy-source-range": "bytes=0-1"}, b"x")
    both("DELETE", f"/more/copied?{upload}")


def send_copies(both):
    etag = md5(b"source").hexdigest()
    source = {"x-amz-copy-source": "/more/from"}
    for name in ("if-match", "if-none-match"):
        for value in (f'"{etag}"', etag, '"x"', "*", "", f'"x", "{etag}"'):
            both("PUT", "/more/to", {**source, f"x-amz-copy-source-{name}": value})
    for name in ("if-modified-since", "if-unmodified-since"):
        for value in ("Mon, 01 Jan 2001 00:00:00 GMT", "Thu, 01 Jan 2099 00:00:00 GMT", "x", ""):
            both("PUT", "/more/to", {**source, f"x-amz-copy-source-{name}": value})
    for value in (
        *(
            "more/from",
            "//more/from",
            "/more//from",
            "/more/from/",
            "/more%2Ffrom",
            "%2Fmore%2Ffrom",
            "/more/fr%6Fm",
        ),
        *(
            "/more/from?versionId=null",
            "/more/from?versionId=x",
            "/more/from?x=y",
            "from",
            "/UP/x",
            "/more/%FF",
        ),
    ):
        both("PUT", "/more/to", {"x-amz-copy-source": value})
    for value in ("COPY", "REPLACE", "copy", "odd", ""):
        both("PUT", "/more/to", {**source, "x-amz-metadata-directive": value, "x-amz-meta-b": "2"})
        both("HEAD", "/more/to")
    for directive in ("COPY", "REPLACE"):
        both("PUT", "/more/from", {**source, "x-amz-metadata-directive": directive})
    both("PUT", "/more/to", source, b"body")
    both("PUT", "/missing-more/to", source)
    for headers in (
        {"x-amz-storage-class": "STANDARD"},
        {"x-amz-storage-class": "GLACIER"},
        {"x-amz-acl": "odd"},
    ):
        both("PUT", "/more/to", {**source, **headers})


def send_heads(both):
    etag = md5(b"head").hexdigest()
    both(
        "PUT",
        "/more/head",
        {"x-amz-storage-class": "STANDARD", "Expires": "x", "Content-Language": "de"},
        b"head",
    )
    both("HEAD", "/more/head")
    for headers in (
        *(
            {"If-Match": f'"{etag}"'},
            {"If-Match": '"x"'},
            {"If-None-Match": f'"{etag}"'},
            {"If-None-Match": '"x"'},
        ),
        *(
            {"If-Modified-Since": "Thu, 01 Jan 2099 00:00:00 GMT"},
            {"If-Unmodified-Since": "Mon, 01 Jan 2001 00:00:00 GMT"},
        ),
        *(
            {"Range": "bytes=1-2"},
            {"Range": "bytes=9-"},
            {"x-amz-checksum-mode": "ENABLED"},
        ),
    ):
        both("HEAD", "/more/head", headers)
        both("GET", "/more/head", headers)
    for query in (
        *(
            "?versionId=null",
            "?versionId=x",
            "?versionId=",
            "?partNumber=1",
            "?partNumber=2",
            "?uploadId=x",
            "?acl",
        ),
        *(
            "?response-content-type=x",
            "?response-expires=x",
            "?foo",
            "?foo=bar",
            "?torrent",
            "?tagging",
            "?logging",
        ),
    ):
        both("HEAD", f"/more/head{query}")
    for path in (
        "/more",
        "/more/",
        "/missing-more",
        "/",
        "/more?acl",
        "/more?location",
        "/more?versions",
        "/more?uploads",
    ):
        both("HEAD", path)


def send_acls(both):
    for value in ("", "PRIVATE", "public-read", "bucket-owner-read", "odd"):
        both("PUT", "/more/acl", {"x-amz-acl": value}, b"x")
        both("PUT", f"/more-{value or 'none'}".lower(), {"x-amz-acl": value})
    for headers in (
        *(
            {"x-amz-grant-read": 'id="test:tester"'},
            {"x-amz-grant-read": "odd"},
            {"x-amz-grant-full-control": ""},
        ),
        {"x-amz-grant-read": 'uri="http://acs.amazonaws.com/groups/global/AllUsers"', "x-amz-acl": "private"},
    ):
        both("PUT", "/more?acl", headers)
    for body in (b"x", b"<AccessControlPolicy/>", b"<Odd/>", b""):
        both("PUT", "/more?acl", md5_of(body), body)
        both("PUT", "/more/head?acl", md5_of(body), body)
    both("GET", "/more?acl")
    both("GET", "/more/head?acl")
    both("DELETE", "/more?acl")
    both("POST", "/more?acl", body=b"")


def send_tags(both):
    both("PUT", "/more/tags", {"x-amz-tagging": "a=b"}, b"x")
    for method in ("GET", "PUT", "DELETE", "HEAD", "POST"):
        for path in ("/more?tagging", "/more/tags?tagging", "/more/missing?tagging", "/missing-more?tagging"):
            both(method, path, body=b"<Tagging/>" if method in ("PUT", "POST") else None)


def send_versioning(both):
    document = "<VersioningConfiguration>{}</VersioningConfiguration>"
    for inner in (
        *(
            "<Status>enabled</Status>",
            "<Status/>",
            "<Odd/>",
            "<Status>Enabled</Status><Status>Enabled</Status>",
        ),
        *("<MfaDelete>Enabled</MfaDelete>", "<Status>Enabled</Status><MfaDelete>Disabled</MfaDelete>", ""),
    ):
        body = document.format(inner).encode()
        both("PUT", "/more?versioning", md5_of(body), body)
    for method in ("GET", "HEAD", "DELETE", "POST"):
        both(method, "/more?versioning", body=b"" if method == "POST" else None)
        both(method, "/more/head?versioning", body=b"" if method == "POST" else None)
    for path in ("/missing-more?versioning", "/more?versioning=1"):
        both("GET", path)
        both("PUT", path, body=document.format("<Status>Suspended</Status>").encode())


def send_deletes(both):
    item = "<Object><Key>{}</Key></Object>"
    for name in ("one", "two", "three"):
        both("PUT", f"/more/{name}", body=b"x")
    for inner in (
        *(item.format("one") + item.format("one"), "<Quiet>odd</Quiet>" + item.format("x"), "<Quiet/>"),
        *(
            "<Object/>",
            "<Object><Key>a</Key><Odd/></Object>",
            "<Odd/>" + item.format("x"),
            item.format("k" * 1025),
        ),
        *(
            "<Object><Key>two</Key><VersionId/></Object>",
            "<Object><Key>two</Key><VersionId>x</VersionId></Object>",
        ),
        *(
            "<Quiet>true</Quiet>" + item.format("three"),
            item.format("\u00fc"),
            item.format("a&amp;b"),
            "text",
        ),
    ):
        body = f"<Delete>{inner}</Delete>".encode()
        both("POST", "/more?delete", md5_of(body), body)
    good = f"<Delete>{item.format('x')}</Delete>".encode()
    for headers in (
        *({}, {"Content-MD5": "x"}, md5_of(b"other"), {"x-amz-checksum-crc32": "AAAAAA=="}),
        *({**md5_of(good), "x-amz-mfa": "x"}, {"X-Amz-Content-SHA256": "UNSIGNED-PAYLOAD"}),
    ):
        both("POST", "/more?delete", headers, good)
    for method in ("GET", "PUT", "DELETE", "HEAD"):
        both(method, "/more?delete", body=b"" if method == "PUT" else None)
    both("POST", "/more/key?delete", md5_of(good), good)


def send_cors(both):
    origin = {"Origin": "http://example.com"}
    for method in ("GET", "PUT", "HEAD", "X"):
        asked = {
            **origin,
            "Access-Control-Request-Method": method,
            "Access-Control-Request-Headers": "x-amz-date",
        }
        both.send(f"OPTIONS /more/head for {method}", "OPTIONS", "/more/head", asked)
    both.send("OPTIONS /more without a method", "OPTIONS", "/more", origin)
    both.send("OPTIONS /more without an origin", "OPTIONS", "/more", {})
    both("GET", "/more/head", origin)
    both("GET", "/more/missing", origin)
    both("PUT", "/more/corsed", origin, b"x")


def send_forms(both):
    fields = '--b\r\nContent-Disposition: form-data; name="key"\r\n\r\nk\r\n'
    file = '--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nx\r\n--b--\r\n'
    head = {"Content-Type": "multipart/form-data; boundary=b"}
    for label, headers, body in (
        *(
            ("a whole form", head, fields + file),
            ("a form without a file", head, fields),
            ("nothing", {}, ""),
        ),
        ("a text", {"Content-Type": "text/plain"}, "x"),
    ):
        both.send(f"POST /more anonymous with {label}", "POST", "/more", headers, body.encode())
        both("POST", "/more", {**headers, "x-amz-meta-label": label}, body.encode())
    both("POST", "/more/key", head, (fields + file).encode())
    both("POST", f"/more/{quote('key?')}", body=b"")

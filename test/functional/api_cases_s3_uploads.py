"""Uploads of the S3 API, sent to both servers: checksums, Content-MD5, bodies in aws-chunked framing."""

import zlib
from base64 import b64encode
from hashlib import md5, sha1, sha256

from test.functional.api_cases_s3 import md5_of
from test.support.s3 import chunked, hand_signed, signed_headers

DATA = b"data"
SIGNED = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
SIGNED_TRAILER = f"{SIGNED}-TRAILER"
UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"


def _text(data):
    return b64encode(data).decode()


CRC32 = _text(zlib.crc32(DATA).to_bytes(4, "big"))
SUMS = {
    "crc32": CRC32,
    "crc32c": "rth90Q==",
    "sha1": _text(sha1(DATA).digest()),
    "sha256": _text(sha256(DATA).digest()),
}


def send_uploads(both):
    """Send every case of uploads."""
    both("PUT", "/uploads")
    send_checksums(both)
    send_md5(both)
    send_hashes(both)
    send_streams(both)
    send_malformed_streams(both)
    send_trailers(both)
    send_empty_bodies(both)


def send_checksums(both):
    for name, good in SUMS.items():
        header = f"x-amz-checksum-{name}"
        wrong = _text(bytes(len(good) * 3 // 4 - good.count("=")))
        for value in (good, wrong, "", "%%", _text(b"x"), good + "=", f" {good} ", good[:-1]):
            both("PUT", f"/uploads/{name}", {header: value}, DATA)
        both("GET", f"/uploads/{name}", {"x-amz-checksum-mode": "ENABLED"})
        both("HEAD", f"/uploads/{name}")
        for named in (name.upper(), name, "MD5", "NONE", ""):
            both("PUT", "/uploads/named", {header: good, "x-amz-sdk-checksum-algorithm": named}, DATA)
        both("PUT", "/uploads/empty", {header: good}, b"")
    for headers in (
        {"x-amz-checksum-crc32": CRC32, "x-amz-checksum-sha1": SUMS["sha1"]},
        {"x-amz-checksum-crc32": CRC32, "x-amz-checksum-sha1": "bad"},
        {"x-amz-checksum-foo": "x"},
        {"x-amz-checksum-foo": "x", "x-amz-checksum-crc32": CRC32},
        {"x-amz-checksum-type": "FULL_OBJECT"},
        {"x-amz-checksum-type": "COMPOSITE", "x-amz-checksum-crc32": CRC32},
        {"x-amz-checksum-algorithm": "CRC32"},
        {"x-amz-checksum-mode": "ENABLED"},
        {"x-amz-sdk-checksum-algorithm": "CRC32"},
        {"x-amz-sdk-checksum-algorithm": "odd"},
        {"x-amz-trailer": "x-amz-checksum-crc32"},
        {"x-amz-trailer": ""},
        {"x-amz-decoded-content-length": "4"},
    ):
        both("PUT", "/uploads/various", headers, DATA)


def send_md5(both):
    good = md5_of(DATA)["Content-MD5"]
    for value in (
        good,
        f" {good} ",
        good[:-1],
        good[:-2],
        "",
        "x",
        "====",
        "%%",
        _text(b"x" * 15),
        good.lower(),
    ):
        both("PUT", "/uploads/md5", {"Content-MD5": value}, DATA)
    for value in (_text(md5(b"x").digest()), md5(DATA).hexdigest(), _text(b"x" * 17)):
        both("PUT", "/uploads/md5", {"Content-MD5": value}, DATA)
    both("PUT", "/uploads/md5", {**md5_of(b"x"), "x-amz-checksum-crc32": "AAAAAA=="}, DATA)
    both("PUT", "/uploads/md5", {**md5_of(b"")}, b"")
    both("PUT", "/uploads?versioning", md5_of(b"x"), b"<VersioningConfiguration/>")
    both("PUT", "/uploads?versioning", {"Content-MD5": "x"}, b"<VersioningConfiguration/>")
    both("PUT", "/uploads?acl", {**md5_of(b"x"), "x-amz-acl": "private"})
    both("PUT", "/new-uploads", md5_of(b"x"))


def send_hashes(both):
    digest = sha256(DATA).hexdigest()
    for value in (
        digest,
        digest.upper(),
        "0" * 64,
        "0" * 63,
        "",
        "UNSIGNED-PAYLOAD",
        "unsigned-payload",
        "x",
    ):
        both("PUT", "/uploads/hash", {"X-Amz-Content-SHA256": value}, DATA)
    for value in ("STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", "STREAMING-ODD", f"{SIGNED}-ODD"):
        both("PUT", "/uploads/hash", {"X-Amz-Content-SHA256": value}, DATA)
    both("GET", "/uploads/hash", {"X-Amz-Content-SHA256": "0" * 64})
    both("DELETE", "/uploads/hash", {"X-Amz-Content-SHA256": "0" * 64})
    head = hand_signed("PUT", both.host, "/uploads/hash", {"X-Amz-Content-SHA256": None})
    both.send("PUT without X-Amz-Content-SHA256", "PUT", "/uploads/hash", head, DATA)


# --- aws-chunked --------------------------------------------------------------------------------------


def _stream(both, label, body_of, headers=None, *, size=4, kind=SIGNED, key="stream", path=""):
    """Send a body in aws-chunked framing; ``body_of`` makes it from the signed head."""
    path = path or f"/uploads/{key}"
    sent = {"X-Amz-Content-SHA256": kind, "X-Amz-Decoded-Content-Length": str(size), **(headers or {})}
    sent = {name: value for name, value in sent.items() if value is not None}
    head = signed_headers("PUT", f"http://{both.host}{path}", sent)
    body = body_of(head) if callable(body_of) else body_of
    head["Content-Length"] = str(len(body))
    both.send(f"PUT {key} {kind[10:]}: {label}", "PUT", path, head, body)


def _good(pieces=(DATA,), **how):
    return lambda head: chunked(list(pieces), head, **how)


def _changed(old, new, pieces=(DATA,), **how):
    def made(head):
        body = chunked(list(pieces), head, **how)
        assert old in body, (old, body)
        return body.replace(old, new, 1)

    return made


def send_streams(both):
    big = b"x" * 8192
    for label, pieces in (
        ("nothing", ()),
        ("one chunk", (DATA,)),
        ("two chunks", (big, b"end")),
        ("short chunk first", (b"end", big)),
        ("short chunks", (b"ab", b"cd")),
        ("chunk of the least size", (big, big)),
    ):
        size = sum(map(len, pieces))
        _stream(both, label, _good(pieces), size=size)
        for signed, kind in ((False, UNSIGNED_TRAILER), (True, SIGNED_TRAILER)):
            _stream(both, f"{label}, no trailer", _good(pieces, signed=signed), size=size, kind=kind)
    for encoding in ("aws-chunked", "aws-chunked,gzip", "gzip,aws-chunked", "gzip", "", "AWS-CHUNKED"):
        _stream(both, f"Content-Encoding {encoding}", _good(), {"Content-Encoding": encoding})
        both("HEAD", "/uploads/stream")
    for size in ("3", "5", "0", "-1", "x", "", None, "4.0", "99999999999999999999"):
        _stream(both, f"decoded length {size}", _good(), {"X-Amz-Decoded-Content-Length": size})
    good = md5_of(DATA)
    for label, headers in (
        ("Content-MD5", good),
        ("wrong Content-MD5", md5_of(b"x")),
        ("bad Content-MD5", {"Content-MD5": "x"}),
        ("checksum", {"x-amz-checksum-crc32": CRC32}),
        ("wrong checksum", {"x-amz-checksum-crc32": "AAAAAA=="}),
        ("bad checksum", {"x-amz-checksum-crc32": "x"}),
    ):
        _stream(both, label, _good(), headers)
    both("GET", "/uploads/stream")


def send_malformed_streams(both):
    signature = b";chunk-signature="
    for label, old, new in (
        ("wrong signature", signature, signature + b"0"),
        ("no signature", signature, b";"),
        ("other extension", signature, b";x=1;chunk-signature="),
        ("blank before the extension", signature, b" ;chunk-signature="),
        ("blank behind the semicolon", signature, b"; chunk-signature="),
        ("blanks around the equals sign", signature, b";chunk-signature = "),
        ("tab before the extension", signature, b"\t;chunk-signature="),
        ("name in upper case", signature, b";CHUNK-SIGNATURE="),
        ("size with zeros", b"4;", b"0004;"),
        ("size in no hex", b"4;", b"g;"),
        ("size with 0x", b"4;", b"0x4;"),
        ("size with sign", b"4;", b"+4;"),
        ("negative size", b"4;", b"-4;"),
        ("blank before the size", b"4;", b" 4;"),
        ("no size", b"4;", b";"),
        ("smaller size", b"4;", b"3;"),
        ("larger size", b"4;", b"5;"),
        ("huge size", b"4;", b"ffffffffff;"),
        ("other data", b"\r\ndata", b"\r\ndate"),
        ("no end of the chunk", b"data\r\n", b"data"),
        ("line feeds", b"\r\n", b"\n"),
        ("blank after the data", b"data\r\n", b"data \r\n"),
    ):
        _stream(both, label, _changed(old, new))
    for label, body_of in (
        ("empty body", b""),
        ("no framing", DATA),
        ("no last chunk", lambda head: chunked([DATA], head).partition(b"\r\n0;")[0] + b"\r\n"),
        ("cut in the data", lambda head: chunked([DATA], head)[:91]),
        ("cut in the first line", lambda head: chunked([DATA], head)[:20]),
        ("no line after the last chunk", lambda head: chunked([DATA], head)[:-2]),
        ("cut in the last line", lambda head: chunked([DATA], head)[:-10]),
        ("more after the end", lambda head: chunked([DATA], head) + b"more"),
        ("a line after the end", lambda head: chunked([DATA], head) + b"\r\n"),
        ("no signatures", lambda head: chunked([DATA], head, signed=False)),
        (
            "a trailer",
            lambda head: chunked([DATA], head)[:-2] + b"x-amz-checksum-crc32:" + CRC32.encode() + b"\r\n\r\n",
        ),
    ):
        _stream(both, label, body_of)
    plain = b"4\r\ndata\r\n0\r\n\r\n"
    for label, body in (
        ("signed chunks", _good()),
        ("other extension", b"4;x=1" + plain[1:]),
        ("blanks after the size", b"4  " + plain[1:]),
        ("blank and extension", b"4 ; x" + plain[1:]),
        ("semicolon", b"4;" + plain[1:]),
        ("blank before the size", b" " + plain),
        ("size in no hex", b"g" + plain[1:]),
        ("smaller size", b"3" + plain[1:]),
        ("larger size", b"5" + plain[1:]),
        ("no last chunk", plain[:-5]),
        ("no line after the last chunk", plain[:-2]),
        ("more after the end", plain + b"more"),
        ("empty body", b""),
    ):
        _stream(both, label, body, kind=UNSIGNED_TRAILER)


def send_trailers(both):
    name = "x-amz-checksum-crc32"
    good, announced = (name, CRC32), {"x-amz-trailer": name}
    for signed, kind in ((False, UNSIGNED_TRAILER), (True, SIGNED_TRAILER)):

        def send(label, trailer, headers=announced, kind=kind, signed=signed, **how):
            _stream(both, label, _good(trailer=trailer, signed=signed), headers, kind=kind, **how)

        send("trailer", good)
        both("GET", "/uploads/stream", {"x-amz-checksum-mode": "ENABLED"})
        for label, trailer in (
            ("missing trailer", None),
            ("wrong checksum", (name, "AAAAAA==")),
            ("bad checksum", (name, "x")),
            ("empty checksum", (name, "")),
            ("blank before the value", (name, f" {CRC32}")),
            ("blank after the value", (name, f"{CRC32} ")),
            ("name in upper case", (name.upper(), CRC32)),
            ("another trailer", ("x-amz-checksum-sha1", SUMS["sha1"])),
            ("a foreign trailer", ("x-foo", "bar")),
            ("two lines", (name, f"{CRC32}\r\nx-foo:bar")),
            ("twice", (name, f"{CRC32}\r\n{name}:{CRC32}")),
            ("no colon", (name, f"{CRC32}\r\nfoo")),
        ):
            send(label, trailer)
        for label, headers in (
            ("not announced", {}),
            ("announced with a comma", {"x-amz-trailer": f"{name},"}),
            ("announced with a comma first", {"x-amz-trailer": f",{name}"}),
            ("announced twice", {"x-amz-trailer": f"{name},{name}"}),
            ("two announced", {"x-amz-trailer": f"{name},x-amz-checksum-sha1"}),
            ("announced with a foreign one", {"x-amz-trailer": f"{name},x-foo"}),
            ("announced with blanks", {"x-amz-trailer": f" {name} "}),
            ("announced in upper case", {"x-amz-trailer": name.upper()}),
            ("nothing announced", {"x-amz-trailer": ""}),
            ("a comma announced", {"x-amz-trailer": ","}),
            ("foreign announced", {"x-amz-trailer": "x-foo"}),
            ("unknown checksum announced", {"x-amz-trailer": "x-amz-checksum-foo"}),
            ("announced and in the head", {**announced, name: CRC32}),
            ("announced and another in the head", {**announced, "x-amz-checksum-sha1": SUMS["sha1"]}),
            ("announced and named", {**announced, "x-amz-sdk-checksum-algorithm": "CRC32"}),
            ("announced and named otherwise", {**announced, "x-amz-sdk-checksum-algorithm": "SHA1"}),
        ):
            send(label, good, headers)
        both("GET", "/uploads/stream")
    mark = b"x-amz-trailer-signature:"
    for label, old, new in (
        ("wrong trailer signature", mark, mark + b"0"),
        ("no trailer signature", mark, b"x-amz-trailer-sig:"),
        ("trailer signature in upper case", mark, mark.upper()),
        ("blank before the trailer signature", mark, mark + b" "),
        ("other trailer than signed", CRC32.encode(), b"AAAAAA=="),
    ):
        _stream(both, label, _changed(old, new, trailer=good), announced, kind=SIGNED_TRAILER)
    _stream(both, "trailer", _good(trailer=good), announced)
    _stream(
        both,
        "trailer without its signature",
        _good(trailer=good, signed=False),
        announced,
        kind=SIGNED_TRAILER,
    )


def send_empty_bodies(both):
    """Requests without a body that state something of one, and canned ACLs that objects cannot have."""
    both("PUT", "/uploads/source", body=DATA)
    source = {"x-amz-copy-source": "/uploads/source"}
    stated = (
        *({"X-Amz-Content-SHA256": "1" * 64}, {"x-amz-checksum-crc32": "junk"}, {"Content-MD5": "junk"}),
        *({"x-amz-sdk-checksum-algorithm": "CRC32"}, {"x-amz-trailer": "x-amz-checksum-crc32"}),
        *({"X-Amz-Content-SHA256": SIGNED}, {"x-amz-acl": "authenticated-read"}),
        *({"x-amz-storage-class": "standard"}, {"x-amz-storage-class": ""}),
    )
    for headers in stated:
        both("POST", "/uploads/begun?uploads", headers, b"")
        both("PUT", "/uploads/copied", {**source, **headers})
    for headers in ({"Content-MD5": "junk"}, {"X-Amz-Content-SHA256": SIGNED}):
        for method in ("GET", "HEAD", "DELETE"):
            both(method, "/uploads/source", headers)
            both(method, "/uploads", headers)

"""Signatures of the S3 API, sent to both servers: good, broken, expired, skewed and missing ones."""

import time
from email.utils import formatdate

from test.support.s3 import EMPTY, hand_linked, hand_linked_v2, hand_signed, signed_headers, stamp_of

KEY = "/signed/key"


def send_signed(both):
    """Send every case of signatures."""
    both("PUT", "/signed")
    both("PUT", KEY, {"Content-Type": "text/plain", "x-amz-meta-a": "b"}, b"data")
    send_headers_v4(both)
    send_headers_v2(both)
    send_links_v4(both)
    send_links_v2(both)
    send_anonymous(both)


# --- headers ------------------------------------------------------------------------------------------


def _by_hand(both, label, method="GET", path=KEY, headers=None, body=None, **how):
    head = hand_signed(method, both.host, path, headers, **how)
    both.send(f"{method} {path} {label}", method, path, head, body)


def send_headers_v4(both):
    now = time.time()
    _by_hand(both, "signed by hand")
    for seconds in (-850, -901, 890, 910, -86400, 86400):
        _by_hand(both, f"signed at {seconds:+} s", stamp=stamp_of(now + seconds))
    day = stamp_of(now)[:8]
    for scope in (
        *(f"{day}/us-west-1/s3/aws4_request", f"{day}/us-east-1/sts/aws4_request"),
        *(f"{day}/us-east-1/s3/aws4", "20000101/us-east-1/s3/aws4_request", f"{day}//s3/aws4_request"),
        *(f"{day}/us-east-1/s3", f"{day}/US-EAST-1/s3/aws4_request", "x/us-east-1/s3/aws4_request"),
    ):
        _by_hand(both, f"for {scope.replace(day, 'DAY')}", scope=scope, stamp=stamp_of(now))
    for words in (
        *({name: None} for name in ("Credential", "SignedHeaders", "Signature")),
        *({name: ""} for name in ("Credential", "SignedHeaders", "Signature")),
        *({"Credential": "x"}, {"Signature": "0" * 64}, {"Signature": "x"}, {"More": "x"}),
        *({"SignedHeaders": "host"}, {"SignedHeaders": "Host;X-Amz-Date"}),
    ):
        _by_hand(both, f"with {words}", words=words)
    for leave in ("host", "x-amz-date", "x-amz-content-sha256"):
        _by_hand(both, f"without {leave} signed", leave=(leave,))
    for name in ("x-amz-meta-a", "x-amz-acl", "x-amz-foo", "content-type", "content-md5", "range", "x-foo"):
        _by_hand(both, f"with unsigned {name}", "PUT", f"{KEY}-2", {name: "x"}, b"", leave=(name,))
    for date in ("", "x", "20260101", formatdate(now, usegmt=True), "20261301T000000Z", None):
        shown = "date of mail" if date and "GMT" in date else date
        _by_hand(both, f"with X-Amz-Date {shown}", headers={"X-Amz-Date": date}, stamp=stamp_of(now))
    dated = {"X-Amz-Date": None, "Date": formatdate(now, usegmt=True)}
    _by_hand(both, "with Date", headers=dated, stamp=stamp_of(now))
    _by_hand(both, "of another user", user="nobody")
    _by_hand(both, "of an unknown account", user="no:body")
    _by_hand(both, "with a wrong secret", secret="wrong")
    for value in (
        *("", "AWS4-HMAC-SHA256", "AWS4-HMAC-SHA256 x", "AWS4-HMAC-SHA256 Credential=x", "AWS4-ODD x"),
        *("AWS4-ECDSA-P256-SHA256 x", "Basic dGVzdDp0ZXN0", "Bearer x", "AWS", "aws x:y", "AWS4"),
    ):
        head = {"Authorization": value, "X-Amz-Date": stamp_of(now), "X-Amz-Content-SHA256": EMPTY}
        both.send(f"GET {KEY} Authorization: {value}", "GET", KEY, head)


def send_headers_v2(both):
    now = time.time()
    for method, path in (("GET", KEY), ("HEAD", KEY), ("GET", "/signed/"), ("GET", f"{KEY}?acl")):
        both(method, path, version=2)
    both("PUT", f"{KEY}-v2", {"x-amz-meta-b": "2", "Content-Type": "x/y"}, b"two", version=2)
    for headers in (
        {"Date": formatdate(now - 800)},
        {"Date": formatdate(now - 1000)},
        {"Date": "x"},
        {"Date": ""},
    ):
        head = signed_headers("GET", f"http://{both.host}{KEY}", headers, version=2)
        label = "in time" if headers["Date"] == formatdate(now - 800) else headers["Date"]
        both.send(
            f"GET {KEY} version 2 {'late' if len(label) > 9 else label}", "GET", KEY, {**head, **headers}
        )
    head = signed_headers("GET", f"http://{both.host}{KEY}", version=2)
    head.pop("Date")
    both.send(f"GET {KEY} version 2 without a date", "GET", KEY, head)
    for value in ("AWS ", "AWS x", "AWS x:", "AWS :x", "AWS test:tester:", "AWS test:tester:x", "AWS a b:c"):
        dated = {"Authorization": value, "Date": formatdate(now, usegmt=True)}
        both.send(f"GET {KEY} Authorization: {value}", "GET", KEY, dated)


# --- links --------------------------------------------------------------------------------------------

V4_NAMES = ("Algorithm", "Credential", "Date", "Expires", "SignedHeaders", "Signature")


def send_links_v4(both):
    now = time.time()
    day = stamp_of(now)[:8]

    def link(label, params=None, method="GET", headers=None, body=None, path=KEY, sent=None, **how):
        url = hand_linked(method, both.host, path, params, headers, **how)
        both.send(f"{method} {path} link {label}", method, url, sent if sent is not None else headers, body)

    for method in ("GET", "HEAD", "PUT", "DELETE", "POST"):
        link("", method=method, path=f"{KEY}-linked" if method in ("PUT", "DELETE") else KEY)
    for name in V4_NAMES:
        link(f"without {name}", {f"X-Amz-{name}": None})
        link(f"with empty {name}", {f"X-Amz-{name}": ""})
        link(f"with odd {name}", {f"X-Amz-{name}": "odd"})
        link(f"with {name} as HEAD", {f"X-Amz-{name}": "odd"}, method="HEAD")
    for expires in ("0", "-1", "604800", "604801", "1.5", " 5", "1e3", "9" * 30, "0x10", "+5"):
        link(f"that expires in {expires}", {"X-Amz-Expires": expires})
    for seconds in (-500, -700, -86400 * 8, 800, 1000):
        link(f"of {seconds:+} s", stamp=stamp_of(now + seconds))
    link("that is long over", {"X-Amz-Expires": "604800"}, stamp=stamp_of(now - 86400 * 8))
    # A label does not contain the day of its recording.
    for label, date in (
        *(("YEAR8", "20260101"), ("YEAR16", "20261301T000000Z")),
        *(("mail29", formatdate(now, usegmt=True)), ("YEAR15", stamp_of(now)[:-1])),
    ):
        link(f"with date {label}", {"X-Amz-Date": date})
    for text in (
        *("test:tester", f"test:tester/{day}", f"test:tester/{day}/us-east-1/s3"),
        *(f"test:tester/{day}/us-west-1/s3/aws4_request", f"test:tester/{day}/us-east-1/ec2/aws4_request"),
        *(f"test:tester/{day}/us-east-1/s3/aws5_request", "test:tester/20000101/us-east-1/s3/aws4_request"),
        *(f"/{day}/us-east-1/s3/aws4_request", f"nobody/{day}/us-east-1/s3/aws4_request"),
        f"test:tester/{day}/us-east-1/s3/aws4_request/more",
    ):
        link(f"for {text.replace(day, 'DAY')}", {"X-Amz-Credential": text})
    for algorithm in ("AWS4-HMAC-SHA1", "aws4-hmac-sha256", "AWS4-ECDSA-P256-SHA256"):
        link(f"by {algorithm}", {"X-Amz-Algorithm": algorithm})
    for names in ("", "x-amz-date", "host;x-amz-meta-a", "HOST"):
        link(f"that signs {names}", {"X-Amz-SignedHeaders": names})
    link("with a wrong secret", secret="wrong")
    link("of nobody", user="nobody")
    link("with a token", {"X-Amz-Security-Token": "x"})
    link("with a foreign parameter", {"foo": "bar"})
    link("with a response header", {"response-content-type": "x/y"})
    link("with a foreign header", sent={"x-foo": "bar"})
    for name in ("x-amz-meta-a", "x-amz-acl", "x-amz-foo", "x-amz-date", "content-type", "range"):
        link(f"with {name} unsigned", method="PUT", path=f"{KEY}-l", sent={name: "private"}, body=b"")
        link(f"with {name} signed", method="PUT", path=f"{KEY}-l", headers={name: "private"}, body=b"")
    for name, value in (("x-amz-meta-q", "b"), ("x-amz-acl", "odd"), ("x-amz-copy-source", KEY)):
        link(f"with {name} in the query", {name: value}, method="PUT", path=f"{KEY}-q")
    both("HEAD", f"{KEY}-q")
    for payload in ("UNSIGNED-PAYLOAD", "0" * 64, "x"):
        sent = {"X-Amz-Content-SHA256": payload}
        link(f"with payload {payload}", method="PUT", path=f"{KEY}-p", sent=sent, payload=payload, body=b"")
        link(f"with unsigned payload {payload}", method="PUT", path=f"{KEY}-p", sent=sent, body=b"")
    url = hand_linked("GET", both.host, KEY)
    head = signed_headers("GET", f"http://{both.host}{KEY}")
    both.send(f"GET {KEY} link and header", "GET", url, head)
    both.send(f"GET {KEY} link and basic header", "GET", url, {"Authorization": "Basic eDp5"})
    both.send(f"PUT {KEY} link for a GET", "PUT", url, {}, b"x")
    both.send(f"GET {KEY} link for another key", "GET", url.replace(KEY, f"{KEY}-2"))
    both.send(f"GET {KEY} link with more", "GET", f"{url}&foo=bar")


def send_links_v2(both):
    now = int(time.time())

    def link(label, params=None, method="GET", path=KEY, sent=None, body=None, **how):
        both.send(
            f"{method} {path} old link {label}",
            method,
            hand_linked_v2(method, path, params, **how),
            sent,
            body,
        )

    for method in ("GET", "HEAD", "PUT", "DELETE"):
        link("", method=method, path=f"{KEY}-old" if method in ("PUT", "DELETE") else KEY)
    for name in ("AWSAccessKeyId", "Expires", "Signature"):
        for value in (None, "", "odd"):
            if name != "AWSAccessKeyId" or value is not None:
                link(f"with {name} {value}", {name: value})
    for expires in ("0", "1", "-1", "1.5", str(1 << 31), str((1 << 31) - 1), "9" * 30, "x", " 5", "0x1"):
        link(f"that expires at {expires}", {"Expires": expires})
    link("that is over", {"Expires": str(now - 10)})
    link("that lasts a year", {"Expires": str(now + 365 * 86400)})
    link("with a wrong secret", secret="wrong")
    link("with a foreign parameter", {"foo": "bar"})
    link("with a header", sent={"x-amz-meta-a": "b"}, method="PUT", path=f"{KEY}-o", body=b"")
    link("with a type", sent={"Content-Type": "x/y"}, method="PUT", path=f"{KEY}-o", body=b"")
    for query in ("?acl", "?uploads", "?versionId=null", "?response-content-type=x/y", "?logging"):
        link("", path=f"{KEY}{query}")
    both.send(
        f"GET {KEY} old link and header", "GET", hand_linked_v2("GET", KEY), {"Authorization": "AWS a:b"}
    )


# --- without a signature ------------------------------------------------------------------------------


def send_anonymous(both):
    for method, path in (
        *(
            ("GET", "/signed"),
            ("GET", KEY),
            ("HEAD", KEY),
            ("PUT", KEY),
            ("DELETE", KEY),
            ("HEAD", "/signed"),
        ),
        *(("PUT", "/signed"), ("DELETE", "/signed"), ("GET", f"{KEY}?acl"), ("POST", f"{KEY}?uploads")),
    ):
        both.send(f"{method} {path} anonymous", method, path, {}, b"" if method == "POST" else None)
    for query in ("?AWSAccessKeyId=test:tester", "?Signature=x", "?X-Amz-Credential=x", "?X-Amz-Signature=x"):
        both.send(f"GET {KEY}{query} anonymous", "GET", f"{KEY}{query}")
    both.send("GET / anonymous", "GET", "/")

"""Requests of the S3 API, signed as clients sign them, sent to both servers."""

import json
import re
from base64 import b64encode
from hashlib import md5
from urllib.parse import quote

from lxml import etree

from test.support.cluster import KEYS
from test.support.s3 import signed_headers
from test.support.transcripts import Asker, Recorded

#: Headers of answers that clients look at.
HEADERS = (
    *("etag", "content-type", "content-range", "content-length", "location", "accept-ranges"),
    *("cache-control", "content-disposition", "content-encoding", "content-language", "expires"),
)
#: Not the same in two runs, or said by one of both as it likes.
_VOLATILE = {"RequestId", "HostId", "LastModified", "Initiated", "Message", "CreationDate"}
_OF_SIGNATURES = {
    *("AWSAccessKeyId", "StringToSign", "StringToSignBytes", "SignatureProvided"),
    *("CanonicalRequest", "CanonicalRequestBytes"),
}
#: Details that the peer does not give.
_NOT_OF_ERRORS = {
    *("RequestId", "HostId", "Header", "Operation", "Parameter", "Condition"),
    *("PartNumberRequested", "RangeRequested", "X-Amz-Expires", "Expires", "ServerTime"),
    *_OF_SIGNATURES,
}
_FREE = {"x-amz-id-2", "x-amz-request-id", "x-amz-bucket-arn"}
#: Checksums are kept and returned here, and computed of bytes without one; the peer only verifies them.
_FREE |= {"x-amz-checksum-type", *(f"x-amz-checksum-{name}" for name in ("crc32", "crc32c", "crc64nvme"))}
_FREE |= {"x-amz-checksum-sha1", "x-amz-checksum-sha256"}
_OF_CHECKSUMS = {"ChecksumCRC64NVME", "ChecksumType"}
#: The day of a run in messages about credentials.
_DAY = re.compile(r'(?<=X-Amz-Date: ")\d{8}(?=")')


class S3Asker(Asker):
    """Signs each request; keeps status, headers and document, elements in the order of their names."""

    def __init__(self, host, token_of):
        super().__init__(host, token_of)
        self._names = {}
        #: Keep texts and details of errors, and the order of elements.
        self.is_detailed = False

    @property
    def host(self):
        """``ip:port``, which signatures cover."""
        return self._host

    def call(self, value, name):
        """Show a value that differs from run to run by a name, in the last answer too."""
        if value:
            self._names[value] = name
            last = self.answers[-1]
            last["headers"] = {n: self._renamed(v) for n, v in last["headers"].items()}
            if not isinstance(last["body"], str):
                last["body"] = json.loads(self._renamed(json.dumps(last["body"])))

    def __call__(self, method, path, headers=None, body=None, *, user="test:tester", secret=None, version=4):
        head = signed_headers(
            method,
            f"http://{self._host}{path}",
            headers,
            body or b"",
            user=user,
            secret=KEYS.get(user, "") if secret is None else secret,
            version=version,
        )
        head.pop("Content-Length", None)
        shown = sorted(f"{name}: {value}" for name, value in (headers or {}).items())
        return self.send(f"{method} {path} {shown} as {user}", method, path, head, body)

    def send(self, label, method, path, headers=None, body=None):
        """Send a request as it is, and keep the answer under a label."""
        status, _reason, pairs, data = self._converse(method, path, headers or {}, body)
        told = Recorded(status, {name.lower(): value for name, value in pairs}, data)
        self.answers.append(
            {
                "request": self._renamed(label),
                "status": status,
                "headers": self._headers(method, told),
                "body": self._body(told),
            }
        )
        return told

    def _headers(self, method, told):
        kept = {}
        # What is said of the bytes of a document, or of none, is not of the object.
        is_document = method not in ("GET", "HEAD") or told.status >= 300 or told.body.startswith(b"<?xml")
        for name, value in told.headers.items():
            if name.startswith("x-amz-") and name not in _FREE:
                kept[name] = self._renamed(value)
            elif name in HEADERS and not (is_document and name.startswith("content-")):
                kept[name] = self._renamed(value.replace(self._host, "HOST"))
        return kept

    def _body(self, told):
        if not told.body.startswith(b"<?xml"):
            return told.body.decode("latin-1")
        if told.status >= 300:
            return self._error(told) if self.is_detailed else element(told, "Code")
        return self._tree(etree.fromstring(told.body))

    def _error(self, told):
        """Return the code, message and details of an error without values that differ from run to run."""
        found = {child.tag: _DAY.sub("DAY", child.text or "") for child in etree.fromstring(told.body)}
        return {n: self._renamed(v) for n, v in sorted(found.items()) if n not in _NOT_OF_ERRORS}

    def _tree(self, element):
        name = etree.QName(element).localname
        if name in _VOLATILE:
            return [name, "*"]
        if not len(element):
            return [name, self._renamed(element.text or "").replace(self._host, "HOST")]
        left_out = _OF_SIGNATURES | _OF_CHECKSUMS
        # The peer mixes them with the rows; each kind has one order in itself.
        children = sorted(element, key=lambda child: etree.QName(child).localname == "CommonPrefixes")
        inner = [self._tree(child) for child in children if etree.QName(child).localname not in left_out]
        return [name, inner if self.is_detailed else sorted(inner, key=str)]

    def _renamed(self, text):
        for value, name in self._names.items():
            text = text.replace(value, name).replace(quote(value, safe=""), name)
        return text


def element(told, name):
    """The text of the first element of a name."""
    found = re.search(f"<{name}>([^<]*)<".encode(), told.body)
    return found[1].decode() if found else ""


def md5_of(body):
    return {"Content-MD5": b64encode(md5(body).digest()).decode()}


def send_s3(both):
    """Send every case to a fresh cluster."""
    send_buckets(both)
    send_objects(both)
    send_refused(both)
    send_copies(both)
    send_listings(both)
    send_deletes(both)
    send_multipart(both)
    send_versions(both)
    send_acls(both)
    send_subresources(both)


def send_buckets(both):
    both("GET", "/")
    for name in ("golden", "ab", "UPPER", "a..b", "1.2.3.4", "under_score", "n" * 64):
        both("PUT", f"/{name}")
    both("PUT", "/golden")
    both("HEAD", "/golden")
    both("HEAD", "/missing-bucket")
    both("GET", "/golden?location")
    both("GET", "/missing-bucket?location")
    located = (
        b'<CreateBucketConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        b"<LocationConstraint>%s</LocationConstraint></CreateBucketConfiguration>"
    )
    both("PUT", "/located", body=located % b"us-east-1")
    both("PUT", "/located-2", body=located % b"mars")
    both("PUT", "/located-3", body=b"<nonsense/>")
    both("PUT", "/located-4", body=b"no xml")
    both("DELETE", "/located")
    both("DELETE", "/located")
    both("GET", "/")
    both("GET", "/", user="test2:tester2")
    for user, secret in (("test:tester", "wrong"), ("no:body", "x"), ("nobody", "x")):
        both("GET", "/", user=user, secret=secret)
        both("GET", "/golden/k", user=user, secret=secret, version=2)
    both("GET", "/golden", user="test:tester3")
    both("PATCH", "/golden")
    both("POST", "/golden")
    both("PUT", "/")


def send_objects(both):
    meta = {"x-amz-meta-Colour": "red", "x-amz-meta-a-b": "1"}
    both("PUT", "/golden/k", {"Content-Type": "text/plain", **meta}, b"hello world")
    both("GET", "/golden/k")
    both("HEAD", "/golden/k")
    both("GET", "/golden/k", version=2)
    for value in ("bytes=0-3", "bytes=-3", "bytes=5-", "bytes=90-", "bytes=x"):
        both("GET", "/golden/k", {"Range": value})
        both("HEAD", "/golden/k", {"Range": value})
    etag = md5(b"hello world").hexdigest()
    for name in ("If-Match", "If-None-Match"):
        for value in (f'"{etag}"', etag, '"0"', "*"):
            both("GET", "/golden/k", {name: value})
    for name in ("If-Modified-Since", "If-Unmodified-Since"):
        for value in ("Mon, 01 Jan 2001 00:00:00 GMT", "Thu, 01 Jan 2099 00:00:00 GMT", "nonsense"):
            both("GET", "/golden/k", {name: value})
    both("GET", "/golden/k?partNumber=1")
    both("GET", "/golden/k?partNumber=2")
    both("GET", "/golden/k?partNumber=0")
    both("GET", "/golden/k?response-content-type=x%2Fy&response-cache-control=none")
    both("GET", "/golden/missing")
    both("HEAD", "/golden/missing")
    both("GET", "/missing-bucket/k")
    both("PUT", "/missing-bucket/k", body=b"x")
    both("DELETE", "/golden/missing")
    both("DELETE", "/missing-bucket/k")
    for name in ("a b", "\u00fc", "a+b", "a%b", "a&b<c>", "dir/", "a//b", "k" * 1024):
        path = f"/golden/{quote(name)}"
        both("PUT", path, body=b"v")
        both("GET", path)
        both("DELETE", path)
    both("PUT", f"/golden/{'k' * 1025}", body=b"v")
    both("PUT", "/golden/empty", body=b"")
    both("GET", "/golden/empty")
    both("PUT", "/golden/disp", {"Content-Disposition": "attachment", "Cache-Control": "no-cache"}, b"v")
    both("HEAD", "/golden/disp")
    both("DELETE", "/golden")


def send_refused(both):
    both("PUT", "/golden/bad", md5_of(b"other"), b"data")
    both("PUT", "/golden/bad", {"Content-MD5": "short"}, b"data")
    both("PUT", "/golden/good", md5_of(b"data"), b"data")
    both("PUT", "/golden/bad", {"x-amz-storage-class": "GLACIER"}, b"data")
    both("PUT", "/golden/good", {"x-amz-storage-class": "STANDARD"}, b"data")
    for name in ("x-amz-server-side-encryption", "x-amz-website-redirect-location", "x-amz-mfa"):
        both("PUT", "/golden/bad", {name: "AES256"}, b"data")
    both("PUT", "/golden/good", {"If-None-Match": "*"}, b"data")
    both("PUT", "/golden/created", {"If-None-Match": "*"}, b"data")
    both("PUT", "/golden/bad", {"If-None-Match": '"x"'}, b"data")
    both("GET", "/golden/bad")
    crc = {"x-amz-checksum-crc32": "rfP2XQ==", "x-amz-sdk-checksum-algorithm": "CRC32"}
    both("PUT", "/golden/summed", crc, b"data")
    both("PUT", "/golden/bad", crc, b"other")
    both("PUT", "/golden/bad", {"x-amz-checksum-crc32": "%%"}, b"data")
    both("PUT", "/golden/bad", {**crc, "x-amz-checksum-sha1": "x"}, b"data")
    both("PUT", "/golden/bad", {"x-amz-sdk-checksum-algorithm": "CRC32"}, b"data")


def send_copies(both):
    both("PUT", "/golden/from", {"x-amz-meta-a": "1", "Content-Type": "x/y"}, b"to be copied")
    etag = md5(b"to be copied").hexdigest()
    for source in ("/golden/from", "golden/from", "/golden/missing", "/missing-bucket/k", "/golden", "", "/"):
        both("PUT", "/golden/to", {"x-amz-copy-source": source})
    both("HEAD", "/golden/to")
    both("PUT", "/golden/to", {"x-amz-copy-source": "/golden/from", "x-amz-metadata-directive": "REPLACE"})
    both("HEAD", "/golden/to")
    both("PUT", "/golden/to", {"x-amz-copy-source": "/golden/from", "x-amz-metadata-directive": "ODD"})
    both("PUT", "/golden/from", {"x-amz-copy-source": "/golden/from"})
    both("PUT", "/golden/to", {"x-amz-copy-source": "/golden/from", "x-amz-copy-source-range": "bytes=0-1"})
    for name in ("if-match", "if-none-match"):
        for value in (etag, "0"):
            requested = {"x-amz-copy-source": "/golden/from", f"x-amz-copy-source-{name}": value}
            both("PUT", "/golden/to", requested)


def send_listings(both):
    both("PUT", "/listed")
    for name in ("a", "b/1", "b/2", "b/c/3", "d", "\u00fc&<"):
        both("PUT", f"/listed/{quote(name)}", body=name.encode())
    for query in (
        *("", "max-keys=2", "max-keys=0", "max-keys=x", "max-keys=-1", "max-keys=99999999999"),
        *("prefix=b/", "prefix=b/&delimiter=/", "delimiter=/", "delimiter=/&max-keys=2", "marker=b/1"),
        *("marker=b/&delimiter=/", "encoding-type=url", "encoding-type=odd", "prefix=none"),
        *("list-type=2", "list-type=2&max-keys=2", "list-type=2&delimiter=/&max-keys=2"),
        *("list-type=2&start-after=b/2", "list-type=2&fetch-owner=true&max-keys=1", "list-type=2&prefix=b/"),
        *("list-type=2&continuation-token=YQ%3D%3D", "versions", "versions&max-keys=2", "versions&prefix=b/"),
    ):
        both("GET", f"/listed?{query}")
    both("GET", "/missing-bucket")
    both("GET", "/missing-bucket?list-type=2")


def send_deletes(both):
    document = b"<Delete>%s</Delete>"
    item = b"<Object><Key>%s</Key></Object>"
    for body in (
        document % (item % b"a" + item % b"missing"),
        document % (b"<Quiet>true</Quiet>" + item % b"d"),
        *(document % b"", b"", b"no xml", b"<Other/>", document % (item % b"x" * 1001)),
        document % b"<Object><Key/></Object>",
        document % b"<Object><Key>b/1</Key><VersionId>null</VersionId></Object>",
    ):
        both("POST", "/listed?delete", md5_of(body), body)
    both("POST", "/listed?delete", body=document % (item % b"b/2"))
    both("POST", "/missing-bucket?delete", md5_of(document % (item % b"a")), document % (item % b"a"))
    both("GET", "/listed")


def send_multipart(both):
    both("PUT", "/parts")
    told = both("POST", "/parts/big?uploads", {"x-amz-meta-a": "1", "Content-Type": "x/big"}, b"")
    upload = element(told, "UploadId")
    both.call(upload, "<upload>")
    asked = f"uploadId={quote(upload, safe='')}"
    piece = b"p" * (5 << 20)
    both("PUT", f"/parts/big?partNumber=1&{asked}", body=piece)
    both("PUT", f"/parts/big?partNumber=2&{asked}", body=b"tail")
    both("PUT", f"/parts/big?partNumber=3&{asked}", {"x-amz-copy-source": "/golden/from"})
    ranged = {"x-amz-copy-source": "/golden/from", "x-amz-copy-source-range": "bytes=0-3"}
    both("PUT", f"/parts/big?partNumber=4&{asked}", ranged)
    for value in ("bytes=0-", "bytes=9-3", "bytes=0-99999", "x"):
        both("PUT", f"/parts/big?partNumber=4&{asked}", {**ranged, "x-amz-copy-source-range": value})
    for number in ("0", "x", "10001", "-1"):
        both("PUT", f"/parts/big?partNumber={number}&{asked}", body=b"x")
    both("PUT", "/parts/big?partNumber=1&uploadId=nothing", body=b"x")
    both("GET", "/parts?uploads")
    both("GET", "/parts?uploads&prefix=none")
    both("GET", f"/parts/big?{asked}")
    both("GET", f"/parts/big?{asked}&max-parts=1")
    both("GET", f"/parts/big?{asked}&part-number-marker=1")
    both("GET", "/parts/big?uploadId=nothing")
    one, two = md5(piece).hexdigest(), md5(b"tail").hexdigest()

    def document(*parts):
        inner = "".join(f"<Part><PartNumber>{n}</PartNumber><ETag>{e}</ETag></Part>" for n, e in parts)
        return f"<CompleteMultipartUpload>{inner}</CompleteMultipartUpload>".encode()

    for body in (
        *(b"", b"no xml", document(), document((2, two), (1, one)), document((1, "0" * 32))),
        *(document((9, one)), document((1, "odd")), document((2, two), (3, one))),
        document((1, one), (2, two)),
        *(document((1, one), (2, two)), document((1, one))),
    ):
        both("POST", f"/parts/big?{asked}", body=body)
    both("HEAD", "/parts/big")
    both("GET", "/parts/big?partNumber=2")
    both("GET", "/parts/big?partNumber=3")
    both("GET", "/parts/big", {"Range": "bytes=5242879-5242881"})
    both("GET", "/parts")
    told = both("POST", "/parts/gone?uploads", body=b"")
    second = element(told, "UploadId")
    both.call(second, "<second>")
    asked = f"uploadId={quote(second, safe='')}"
    both("PUT", f"/parts/gone?partNumber=1&{asked}", body=b"x")
    both("DELETE", f"/parts/gone?{asked}")
    both("DELETE", f"/parts/gone?{asked}")
    both("PUT", f"/parts/gone?partNumber=1&{asked}", body=b"x")
    both("POST", "/missing-bucket/k?uploads", body=b"")
    both("DELETE", "/parts/big")
    both("GET", "/parts/big")
    both("DELETE", "/parts")


def send_versions(both):
    both("PUT", "/kept")
    both("GET", "/kept?versioning")
    both("GET", "/kept/k?versionId=1000000000.00000")
    both("DELETE", "/kept/k?versionId=1000000000.00000")
    document = b"<VersioningConfiguration><Status>%s</Status></VersioningConfiguration>"
    for status in (b"Odd", b"", b"Enabled"):
        both("PUT", "/kept?versioning", body=document % status)
    both("PUT", "/kept?versioning", body=b"no xml")
    both("GET", "/kept?versioning")
    for number in range(2):
        told = both("PUT", "/kept/k", body=b"version %d" % number)
        version = told.headers.get("x-amz-version-id", "")
        both.call(version, f"<version {number}>")
    both("GET", "/kept/k")
    both("GET", f"/kept/k?versionId={version}")
    both("HEAD", f"/kept/k?versionId={version}")
    both("GET", "/kept/k?versionId=odd")
    both("GET", "/kept/k?versionId=1000000000.00000")
    told = both("DELETE", "/kept/k")
    marker = told.headers.get("x-amz-version-id", "")
    both.call(marker, "<marker>")
    both("GET", "/kept/k")
    both("GET", f"/kept/k?versionId={marker}")
    both("GET", "/kept?versions")
    both("DELETE", f"/kept/k?versionId={marker}")
    both("GET", "/kept/k")
    both("DELETE", f"/kept/k?versionId={version}")
    both("GET", "/kept/k")
    both("GET", "/kept?versions")
    both("DELETE", "/kept")
    both("PUT", "/kept?versioning", body=document % b"Suspended")
    both("GET", "/kept?versioning")
    both("PUT", "/kept/n", body=b"null")
    both("GET", "/kept/n")
    both("GET", "/kept?versions&prefix=n")


def send_acls(both):
    both("PUT", "/shared")
    both("PUT", "/shared/k", body=b"x")
    both("GET", "/shared?acl")
    both("GET", "/shared/k?acl")
    for acl in (
        *("public-read", "public-read-write", "private", "bucket-owner-read", "bucket-owner-full-control"),
        *("authenticated-read", "log-delivery-write", "odd"),
    ):
        both("PUT", "/shared?acl", {"x-amz-acl": acl})
        both("GET", "/shared?acl")
    both("PUT", "/shared/k?acl", {"x-amz-acl": "private"})
    both("PUT", "/shared?acl")
    both("GET", "/missing-bucket?acl")
    both("GET", "/shared/missing?acl")
    grant = (
        '<AccessControlPolicy xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Owner><ID>test:tester</ID></Owner>'
        '<AccessControlList><Grant><Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        'xsi:type="{}"><{}>{}</{}></Grantee><Permission>{}</Permission></Grant></AccessControlList>'
        "</AccessControlPolicy>"
    )
    users = "http://acs.amazonaws.com/groups/global/AllUsers"
    for words in (
        *(
            ("CanonicalUser", "ID", "test:tester", "ID", "FULL_CONTROL"),
            ("Group", "URI", users, "URI", "READ"),
        ),
        ("Group", "URI", users, "URI", "ODD"),
    ):
        both("PUT", "/shared?acl", body=grant.format(*words).encode())
    both("PUT", "/shared?acl", {"x-amz-acl": "private"}, grant.format(*words).encode())


def send_subresources(both):
    for name in ("logging", "tagging", "object-lock", "cors", "policy", "notification", "requestPayment"):
        both("GET", f"/golden?{name}")
    for name in ("website", "publicAccessBlock", "torrent", "restore"):
        both("GET", f"/golden?{name}")
    both("GET", "/golden/k?logging")
    both("GET", "/golden/k?tagging")
    both("GET", "/golden/k?torrent")
    for name in ("cors", "policy", "notification", "website", "logging", "object-lock"):
        both("PUT", f"/golden?{name}", body=b"<x/>")

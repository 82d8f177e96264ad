"""Server-side encryption with customer keys: objects are readable only with their key."""

from base64 import b64encode
from hashlib import md5

import pytest

from swift.http import fields
from swift.s3.api.encryption import parse_customer_key
from swift.s3.core.call import Features
from swift.s3.core.errors import S3Error
from test.support.s3_fixtures import Multipart, S3Cluster

DATA = bytes(n % 251 for n in range(9000))


def key_headers(letter=b"k", prefix="x-amz-server-side-encryption-customer-"):
    key = letter * 32
    texts = "AES256", b64encode(key).decode(), b64encode(md5(key).digest()).decode()
    return dict(zip((f"{prefix}algorithm", f"{prefix}key", f"{prefix}key-md5"), texts, strict=True))


KEY, OTHER = key_headers(), key_headers(b"o")
OF_SOURCE = "x-amz-copy-source-server-side-encryption-customer-"


@pytest.fixture
def sealed(s3):
    response = s3("PUT", "/bucket/key", KEY, DATA)
    assert response.status == 200
    assert response.headers["x-amz-server-side-encryption-customer-algorithm"] == "AES256"
    return s3


def test_neither_plain_bytes_nor_keys_are_stored(sealed):
    stored = sealed.sim("GET", "/AUTH_test/bucket/key")
    assert len(stored.body) == len(DATA) and stored.body[:64] != DATA[:64]
    told = str(stored.headers)
    assert KEY["x-amz-server-side-encryption-customer-key"] not in told
    assert KEY["x-amz-server-side-encryption-customer-key-md5"] not in told
    assert stored.headers[fields.SYSMETA_S3_SSE_C]


@pytest.mark.parametrize("span", [(0, 0), (15, 17), (16, 4000), (8999, 8999)])
def test_ranges_refer_to_the_plain_bytes(sealed, span):
    first, last = span
    response = sealed("GET", "/bucket/key", {**KEY, "range": f"bytes={first}-{last}"})
    assert (response.status, response.body) == (206, DATA[first : last + 1])


@pytest.mark.parametrize(
    ("headers", "code"),
    [({}, "InvalidRequest"), (OTHER, "AccessDenied"), (dict([*KEY.items()][:2]), "InvalidArgument")],
)
def test_get_and_head_need_the_customer_key(sealed, headers, code):
    assert sealed("GET", "/bucket/key", headers).code == code
    assert sealed("HEAD", "/bucket/key", headers).status in (400, 403)
    assert (
        sealed("GET", "/bucket/key?attributes", {**headers, "x-amz-object-attributes": "ETag"}).code == code
    )


def test_a_customer_key_is_refused_for_objects_encrypted_without_one(s3):
    s3("PUT", "/bucket/plain", {}, b"x")
    assert s3("GET", "/bucket/plain", KEY).code == "InvalidRequest"


CIPHER_NAME = "x-amz-server-side-encryption-customer-"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({f"{CIPHER_NAME}algorithm": "AES128"}, "InvalidEncryptionAlgorithmError"),
        ({f"{CIPHER_NAME}key": "%%%"}, "InvalidArgument"),
        ({f"{CIPHER_NAME}key": b64encode(b"k" * 31).decode()}, "InvalidArgument"),
        ({f"{CIPHER_NAME}key": ""}, "InvalidArgument"),
        ({f"{CIPHER_NAME}key-md5": "AAAA"}, "InvalidArgument"),
        ({"x-amz-server-side-encryption": "AES256"}, "InvalidArgument"),
        ({"content-md5": b64encode(md5(DATA).digest()).decode()}, "NotImplemented"),
    ],
)
def test_an_invalid_customer_key_stores_nothing(s3, change, code):
    assert s3("PUT", "/bucket/key", {**KEY, **change}, DATA).code == code
    assert s3("POST", "/bucket/key?uploads", {**KEY, **change}).status >= 400 or code == "NotImplemented"
    assert s3.names("bucket") == []


def test_the_md5_of_a_key_may_be_any_text():
    with pytest.raises(S3Error) as refused:
        parse_customer_key({**KEY, f"{CIPHER_NAME}key-md5": "\u00e9"})
    assert refused.value.code == "InvalidArgument"


def test_the_same_bytes_under_the_same_key_are_stored_differently(sealed):
    sealed("PUT", "/bucket/again", KEY, DATA)
    assert (
        sealed.sim("GET", "/AUTH_test/bucket/key").body != sealed.sim("GET", "/AUTH_test/bucket/again").body
    )


def test_a_copy_is_read_with_one_key_and_written_with_another(sealed):
    source = {"x-amz-copy-source": "/bucket/key"}
    assert sealed("PUT", "/bucket/copy", {**source, **OTHER}).code == "InvalidRequest"
    both = {**source, **OTHER, **key_headers(prefix=OF_SOURCE)}
    assert sealed("PUT", "/bucket/copy", both).status == 200
    assert sealed("GET", "/bucket/copy", OTHER).body == DATA
    assert sealed("GET", "/bucket/copy", KEY).code == "AccessDenied"


# --- parts --------------------------------------------------------------------------------------------

PIECES = b"a" * 100, b"b" * 33, b"c" * 50


@pytest.fixture
def parts(s3):
    upload = Multipart(s3, headers=KEY)
    etags = []
    for number, piece in enumerate(PIECES, 1):
        response = upload.part(number, piece, KEY)
        etags.append((number, response.headers["etag"].strip('"')))
    assert upload.complete(*etags).status == 200
    return s3


@pytest.mark.parametrize("span", [(0, 182), (99, 100), (100, 132), (0, 0), (120, 150), (182, 182)])
def test_ranges_across_parts_refer_to_the_plain_bytes(parts, span):
    first, last = span
    whole = b"".join(PIECES)
    assert parts("GET", "/bucket/key", KEY).body == whole
    assert (
        parts("GET", "/bucket/key", {**KEY, "range": f"bytes={first}-{last}"}).body == whole[first : last + 1]
    )
    assert parts("GET", "/bucket/key").code == "InvalidRequest"
    assert parts("GET", "/bucket/key", OTHER).code == "AccessDenied"


def test_a_part_needs_the_key_of_its_upload(s3):
    upload, plain = Multipart(s3, headers=KEY), Multipart(s3, "/bucket/plain")
    for made, headers in ((upload, {}), (upload, OTHER), (plain, KEY)):
        assert made.part(1, b"x", headers).code == "InvalidRequest"
    assert len(s3.names("bucket+segments")) == 2


def test_a_missing_part_breaks_the_download_without_wrong_bytes(parts):
    [last] = [name for name in parts.names("bucket+segments") if name.endswith("/3")]
    assert parts.sim("DELETE", f"/AUTH_test/bucket+segments/{last}").status == 204
    response = parts("GET", "/bucket/key", KEY)
    assert response.status >= 400 or b"".join(PIECES).startswith(response.body) and len(response.body) < 183


# --- answered as if a filter encrypted ----------------------------------------------------------------


def test_responses_report_aes256_where_an_option_enables_it(sim):
    s3 = S3Cluster(sim, Features(encryption=True), accept_aes256="true")
    s3("PUT", "/bucket")
    header = {"x-amz-server-side-encryption": "AES256"}
    for headers in (header, {}):
        assert s3("PUT", "/bucket/k", headers, b"x").headers["x-amz-server-side-encryption"] == "AES256"
    assert s3("HEAD", "/bucket/k").headers["x-amz-server-side-encryption"] == "AES256"
    assert s3("GET", "/bucket/k").headers["x-amz-server-side-encryption"] == "AES256"
    wrong = {"x-amz-server-side-encryption": "aws:kms"}
    assert s3("PUT", "/bucket/k", wrong, b"x").code == "NotImplemented"


def test_responses_report_no_encryption_where_nothing_is_encrypted(s3):
    header = {"x-amz-server-side-encryption": "AES256"}
    assert s3("PUT", "/bucket/k", header, b"x").code == "NotImplemented"
    assert s3("GET", "/bucket/k").code == "NoSuchKey"
    document = b"<SSEAlgorithm>AES256</SSEAlgorithm>"
    for name in (b"ApplyServerSideEncryptionByDefault", b"Rule", b"ServerSideEncryptionConfiguration"):
        document = b"<%b>%b</%b>" % (name, document, name)
    assert s3("PUT", "/bucket?encryption", {}, document).code == "NotImplemented"
    assert s3("GET", "/bucket?encryption").code == "ServerSideEncryptionConfigurationNotFoundError"
    for response in (s3("PUT", "/bucket/plain", {}, b"x"), s3("GET", "/bucket/plain")):
        assert "x-amz-server-side-encryption" not in response.headers

"""Times of objects in the S3 API: rounded down alike everywhere, also in conditions."""

import pytest

from swift.base.timestamp import http_date

SECOND = 1_700_000_000
ISO = "2023-11-14T22:13:20.000Z"
COPY = {"x-amz-copy-source": "/bucket/key"}


@pytest.fixture(params=["00000", "00001", "50000", "99999"])
def dated(s3, request):
    """An object with a time in this second."""
    stamp = {"x-timestamp": f"{SECOND}.{request.param}", "content-type": "t/t"}
    assert s3.sim("PUT", "/AUTH_test/bucket/key", stamp, b"0123").status == 201
    return s3


def test_listings_and_headers_show_the_same_second(dated):
    for query in ("", "?list-type=2", "?versions"):
        assert dated("GET", f"/bucket{query}").texts("LastModified") == [ISO]
    for method, headers in (("GET", {}), ("HEAD", {}), ("GET", {"range": "bytes=1-2"})):
        assert dated(method, "/bucket/key", headers).headers["last-modified"] == http_date(SECOND)
    response = dated("GET", "/bucket/key", {"if-none-match": "*"})
    assert (response.status, response.headers["last-modified"]) == (304, http_date(SECOND))


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("part", [{}, {"range": "bytes=1-2"}])
@pytest.mark.parametrize(
    ("name", "off_s", "status"),
    [
        ("if-modified-since", -1, 200),
        ("if-modified-since", 0, 304),
        ("if-modified-since", 1, 304),
        ("if-unmodified-since", -1, 412),
        ("if-unmodified-since", 0, 200),
        ("if-unmodified-since", 1, 200),
    ],
)
def test_conditions_compare_the_second_that_is_shown(dated, method, part, name, off_s, status):
    date = http_date(SECOND + off_s)
    response = dated(method, "/bucket/key", {name: date, **part})
    assert response.status == (206 if part and status == 200 else status)
    if status == 304:
        assert response.body == b"" and "content-length" not in response.headers
    copied = dated("PUT", "/bucket/copy", {f"x-amz-copy-source-{name}": date, **COPY})
    assert copied.status == (200 if status == 200 else 412)


def test_a_date_in_if_range_is_the_second_that_is_shown(dated):
    headers = {"range": "bytes=1-2", "if-range": http_date(SECOND + 1)}
    assert dated("GET", "/bucket/key", headers).body == b"0123"
    # Of an object of a whole second all is sent: storage nodes see no difference to the second before.
    response = dated("GET", "/bucket/key", {**headers, "if-range": http_date(SECOND)})
    assert response.body in (b"12", b"0123")


def test_a_copy_shows_the_time_that_its_object_has(s3):
    for number in range(5):
        s3("PUT", "/bucket/key", {}, b"x")
        copied = s3("PUT", f"/bucket/copy{number}", COPY)
        [listed] = s3("GET", f"/bucket?prefix=copy{number}").texts("LastModified")
        assert copied.texts("LastModified") == [listed]

"""Uploads are encrypted, and their ETag, size and metadata limits are verified."""

import json
import os

import pytest

from test.support.filters import EncryptionFixture, as_stored, bare, md5_of

EMPTY = md5_of(b"")


@pytest.fixture
def front(sim):
    return EncryptionFixture(sim)


@pytest.mark.parametrize("size", [1, 10, 65536, 300_001])
def test_bodies_are_stored_encrypted_and_read_decrypted(front, sim, size):
    data = os.urandom(size)
    put = front("PUT", "/a/c/o", {"x-object-meta-color": "blue", "etag": md5_of(data)}, data)
    assert (put.status, bare(put.headers["etag"])) == (201, md5_of(data))
    stored = as_stored(sim, "GET", "/a/c/o")
    assert len(stored.body) == size and (size < 8 or stored.body != data)
    assert "x-object-meta-color" not in stored.headers
    response = front("GET", "/a/c/o")
    assert (response.body, bare(response.headers["etag"])) == (data, md5_of(data))
    assert response.headers["x-object-meta-color"] == "blue"
    assert not [name for name in response.headers if "sysmeta-crypto" in name]
    head = front("HEAD", "/a/c/o")
    assert (bare(head.headers["etag"]), head.headers["content-length"]) == (md5_of(data), str(size))


def test_an_empty_object_and_empty_metadata_are_stored_in_clear(front, sim):
    assert bare(front("PUT", "/a/c/o", {"x-object-meta-none": ""}).headers["etag"]) == EMPTY
    stored = as_stored(sim, "GET", "/a/c/o")
    assert not [name for name in stored.headers if "crypto" in name]
    response = front("GET", "/a/c/o")
    assert (response.body, bare(response.headers["etag"])) == (b"", EMPTY)
    assert json.loads(front("GET", "/a/c?format=json").body)[0]["hash"] == EMPTY


def test_a_body_with_a_wrong_etag_is_refused(front, sim):
    for size in (10, 300_000):
        assert front("PUT", "/a/c/o", {"etag": EMPTY}, b"x" * size).status == 422
        assert sim("GET", "/a/c/o").status == 404


def test_a_post_replaces_metadata_that_is_encrypted_again(front, sim):
    front("PUT", "/a/c/o", {"x-object-meta-a": "1"}, b"data")
    assert front("POST", "/a/c/o", {"x-object-meta-b": "secret"}).status == 202
    assert "secret" not in str(as_stored(sim, "GET", "/a/c/o").headers)
    response = front("GET", "/a/c/o")
    assert (response.headers["x-object-meta-b"], response.body) == ("secret", b"data")
    assert "x-object-meta-a" not in response.headers


def test_metadata_has_the_limits_of_plain_metadata(front):
    long = {"x-object-meta-a": "x" * 257}
    assert front("PUT", "/a/c/o", long, b"data").status == 400
    front("PUT", "/a/c/o", {}, b"data")
    assert front("POST", "/a/c/o", long).status == 400
    many = {f"x-object-meta-{number}": "x" * 60 for number in range(3)}
    assert front("PUT", "/a/c/o", many, b"data").status == 201
    assert front("GET", "/a/c/o").headers["x-object-meta-2"] == "x" * 60


def test_a_conditional_upload_compares_the_plain_etag(front):
    front("PUT", "/a/c/o", {}, b"one")
    assert front("PUT", "/a/c/o", {"if-match": '"other"'}, b"two").status == 412
    assert front("PUT", "/a/c/o", {"if-none-match": "*"}, b"two").status == 412
    assert front("PUT", "/a/c/o", {"if-match": f'"{md5_of(b"one")}"'}, b"two" * 100_000).status == 201
    assert front("GET", "/a/c/o").body == b"two" * 100_000

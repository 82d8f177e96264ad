"""Erasure coded containers of a live cluster, through the swift command and plain HTTP."""

import filecmp
import hashlib
import random
import subprocess

import pytest


def random_bytes(size):
    """Return pseudorandom bytes that depend only on the size."""
    return random.Random(size).randbytes(size)


#: Around the segment size of 1 MiB, and the sizes at which bodies travel otherwise.
SIZES = [0, 1, 100, 65_536, 200_000, 1_048_575, 1_048_576, 1_048_577, 3_500_000]


@pytest.fixture(scope="module")
def coded(cluster):
    """Return the name of an erasure coded container."""
    assert cluster.request("PUT", "coded", {"X-Storage-Policy": "ec"}).status == 201
    assert cluster.request("HEAD", "coded").headers["x-storage-policy"] == "ec"
    return "coded"


@pytest.mark.parametrize("size", SIZES)
def test_objects_of_all_sizes_are_read_back(cluster, coded, size):
    body = random_bytes(size)
    etag = hashlib.md5(body).hexdigest()
    put = cluster.request("PUT", f"{coded}/o{size}", {"ETag": etag}, body)
    assert (put.status, put.headers["etag"]) == (201, etag)
    got = cluster.request("GET", f"{coded}/o{size}")
    assert (got.status, got.headers["etag"], got.headers["content-length"]) == (200, etag, str(size))
    assert got.body == body
    head = cluster.request("HEAD", f"{coded}/o{size}")
    assert (head.status, head.headers["etag"], head.headers["content-length"]) == (200, etag, str(size))
    assert not [name for name in (*got.headers, *head.headers) if "sysmeta" in name or "backend" in name]


def test_a_chunked_upload_is_read_back(cluster, coded):
    pieces = [random_bytes(n) for n in (1, 70_000, 1_500_000, 3)]
    assert cluster.request("PUT", f"{coded}/chunked", {}, iter(pieces)).status == 201
    assert cluster.request("GET", f"{coded}/chunked").body == b"".join(pieces)


@pytest.mark.parametrize("text", ["0-0", "1048570-1048580", "-100", "3000000-", "1048576-2097151"])
def test_ranges_return_exactly_the_requested_bytes(cluster, coded, text):
    body = random.Random(9).randbytes(3_200_000)
    cluster.request("PUT", f"{coded}/ranged", {}, body)
    first, _, last = text.partition("-")
    start = int(first) if first else len(body) - int(last)
    stop = int(last) + 1 if first and last else len(body)
    got = cluster.request("GET", f"{coded}/ranged", {"Range": f"bytes={text}"})
    assert (got.status, got.body) == (206, body[start:stop])
    assert got.headers["content-range"] == f"bytes {start}-{stop - 1}/{len(body)}"


def test_several_ranges_are_sent_in_one_response(cluster, coded):
    body = random.Random(9).randbytes(2_200_000)
    cluster.request("PUT", f"{coded}/parts", {}, body)
    got = cluster.request("GET", f"{coded}/parts", {"Range": "bytes=0-9,1048570-1048589,-5"})
    assert got.status == 206 and got.headers["content-type"].startswith("multipart/byteranges;boundary=")
    assert all(part in got.body for part in (body[:10], body[1048570:1048590], body[-5:]))
    assert int(got.headers["content-length"]) == len(got.body)


def test_conditions_overwriting_and_deletion(cluster, coded):
    path = f"{coded}/cond"
    cluster.request("PUT", path, {}, b"one")
    etag = hashlib.md5(b"one").hexdigest()
    assert cluster.request("GET", path, {"If-None-Match": f'"{etag}"'}).status == 304
    assert cluster.request("GET", path, {"If-Match": '"other"'}).status == 412
    assert cluster.request("GET", path, {"Range": "bytes=10-"}).status == 416
    assert cluster.request("PUT", path, {"If-None-Match": "*"}, b"two").status == 412
    assert cluster.request("PUT", path, {"ETag": "0" * 32}, b"two").status == 422
    assert cluster.request("GET", path).body == b"one"
    assert cluster.request("PUT", path, {}, b"three").status == 201
    assert cluster.request("POST", path, {"X-Object-Meta-A": "1"}).status == 202
    got = cluster.request("GET", path)
    assert (got.body, got.headers["x-object-meta-a"]) == (b"three", "1")
    assert cluster.request("DELETE", path).status == 204
    assert [cluster.request(method, path).status for method in ("GET", "HEAD", "DELETE")] == [404] * 3


def test_listings_show_objects_and_not_their_archives(cluster, coded):
    body = random_bytes(100_000)
    cluster.request("PUT", f"{coded}/listed", {}, body)
    [row] = cluster.request("GET", f"{coded}?format=json&prefix=listed").json()
    assert (row["bytes"], row["hash"]) == (len(body), hashlib.md5(body).hexdigest())


def test_large_objects_can_have_erasure_coded_segments(cluster, coded):
    parts = [random_bytes(n) for n in (1_300_000, 900_000)]
    for number, part in enumerate(parts):
        cluster.request("PUT", f"{coded}/seg/{number}", {}, part)
    cluster.request("PUT", f"{coded}/manifest", {"X-Object-Manifest": f"{coded}/seg/"}, b"")
    whole = b"".join(parts)
    assert cluster.request("GET", f"{coded}/manifest").body == whole
    got = cluster.request("GET", f"{coded}/manifest", {"Range": "bytes=1299990-1300009"})
    assert (got.status, got.body) == (206, whole[1299990:1300010])


def test_the_command_line_client_uploads_and_downloads(cluster, swift_client, tmp_path):
    source = tmp_path / "source"
    source.write_bytes(random_bytes(2_500_000))
    swift_client(cluster, "post", "-H", "X-Storage-Policy: ec", "client")
    swift_client(cluster, "upload", "client", str(source), "--object-name", "name")
    swift_client(cluster, "download", "client", "name", "--output", str(tmp_path / "back"))
    assert filecmp.cmp(source, tmp_path / "back", shallow=False)
    difference = ["diff", "-q", str(source), str(tmp_path / "back")]
    assert subprocess.run(difference, check=False).returncode == 0


def test_the_logs_contain_no_traceback(cluster):
    assert "Traceback" not in cluster.log_text()

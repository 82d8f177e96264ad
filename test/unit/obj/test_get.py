"""GET answers verified bytes or none (spec: object-server.md §6, §7)."""

from __future__ import annotations

import os

import pytest

from swift.green import spawn
from swift.http.body import BodyError, FileBody
from swift.obj.get import BlockBody, gathered

LARGE = os.urandom((3 << 20) + 11)


def flip(bench, position):
    (path,) = bench.root.rglob("*.data")
    with open(path, "r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ 1]))


@pytest.mark.parametrize(
    ("header", "place"),
    [
        ("bytes=0-9", slice(0, 10)),
        ("bytes=1048570-1048580", slice(1048570, 1048581)),
        ("bytes=-5", slice(-5, None)),
        ("bytes=3145728-", slice(3145728, None)),
        ("bytes=10-2999999", slice(10, 3000000)),
    ],
)
def test_ranges_of_a_large_object(bench, header, place):
    expected = LARGE[place]
    bench.ask("PUT", body=LARGE)
    response = bench.ask("GET", headers={"range": header})
    assert response.status == 206
    assert response.headers["content-length"] == str(len(expected))
    assert response.read_body() == expected


@pytest.mark.parametrize("body", [LARGE, LARGE[:5000]], ids=["large", "small"])
def test_several_ranges_have_an_exact_length(bench, body):
    bench.ask("PUT", body=body)
    response = bench.ask("GET", headers={"range": "bytes=0-1,2000-2999,4000-"})
    data = response.read_body()
    assert response.status == 206
    assert response.headers["content-length"] == str(len(data))
    for part in (body[:2], body[2000:3000], body[4000:]):
        assert b"\r\n\r\n" + part + b"\r\n--" in data


@pytest.mark.parametrize("size", [100, 1 << 20], ids=["small", "one-block"])
def test_damage_found_before_the_answer_is_unknown_and_only_then_absent(bench, size):
    bench.ask("PUT", body=LARGE[:size])
    flip(bench, size - 1)
    assert bench.ask("GET").status == 503
    assert bench.ask("GET").status == 404
    assert os.listdir(bench.root / "sda/quarantined/objects")


def test_damage_found_later_breaks_the_body_off(bench):
    bench.ask("PUT", body=LARGE)
    flip(bench, 2 << 20)
    response = bench.ask("GET")
    got = b""
    with pytest.raises(BodyError):
        for block in response.body:
            got += os.pread(block.fd, block.length, block.offset) if isinstance(block, FileBody) else block
    response.discard()
    assert got == LARGE[: len(got)]
    assert len(got) <= 2 << 20
    assert bench.ask("GET").status == 404


def test_no_descriptor_stays_open_however_a_get_ends(bench):
    bench.ask("PUT", body=LARGE)
    bench.ask("GET").read_body()
    before = len(os.listdir("/proc/self/fd"))
    for headers in (
        {},
        {"range": "bytes=0-5"},
        {"range": "bytes=9999999999-"},
        {"if-match": "other"},
        {"range": "bytes=0-0,5-5"},
        {"x-timestamp": "6000000000"},
    ):
        bench.ask("GET", headers=headers).discard()
    response = bench.ask("GET")
    next(iter(response.body))
    response.discard()
    spawn(lambda: None).wait()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_a_body_closed_during_a_read_is_released_after_it(bench):
    class Stored:
        closed = False

        def close(self):
            self.closed = True

    from swift.green import sleep

    def slowly():
        for piece in (b"one", b"two"):
            sleep(0.01)
            yield piece

    stored = Stored()
    body = BlockBody(slowly(), 6, stored)
    assert body.only_block() is None
    assert next(iter(body)) == b"one"
    ahead = body._ahead
    body.close()
    assert not stored.closed
    ahead.wait()
    spawn(lambda: None).wait()
    assert stored.closed


def test_small_pieces_travel_together():
    pieces = [b"a", b"b" * (1 << 20), b"c", b"d"]
    assert list(gathered(pieces)) == [b"a" + b"b" * (1 << 20), b"cd"]


def test_bad_preferences_are_refused_and_nonsense_is_ignored(bench):
    headers = {"x-backend-storage-policy-index": "1", "x-object-sysmeta-ec-frag-index": "2"}
    bench.ask("PUT", headers=headers, body=b"x")
    for text, status in (
        ("nonsense", 200),
        ("[" * 5000, 200),
        ("[]", 200),
        ("[1]", 400),
        ("{}", 200),
        ('[{"timestamp": "1"}]', 400),
    ):
        asked = {**headers, "x-backend-fragment-preferences": text}
        assert bench.ask("GET", headers=asked).status == status, text


def test_another_object_under_the_same_hash_is_forbidden_and_its_changes_are_for_other_nodes(bench):
    from swift.platform.disk import Disk
    from swift.store.metadata import write_metadata

    bench.ask("PUT", body=b"x")
    (path,) = bench.root.rglob("*.data")
    write_metadata(Disk(), str(path), {"name": "/x/y/z", "Content-Length": "1", "X-Timestamp": "1"})
    for verb in ("GET", "HEAD"):
        assert bench.ask(verb).status == 403, verb
    for verb, body in (("PUT", b"x"), ("PUT", bytes(600_000)), ("POST", b""), ("DELETE", b"")):
        assert bench.ask(verb, body=body).status == 503, verb

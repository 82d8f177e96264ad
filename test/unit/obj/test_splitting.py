"""While its partition is being split an object is one object, by whichever partition it is asked for."""

import os

import pytest

from swift.base.hashing import PathHasher
from swift.ring.builder import RingBuilder
from swift.ring.partpower import cancel_increase, finish_increase, increase, prepare_increase
from swift.ring.ring import RELOAD_INTERVAL_S
from test.unit.obj.conftest import Bench

POWER = 4
HASHER = PathHasher(b"p", b"s")
RING_OF = {0: "object.ring.gz", 1: "object-1.ring.gz"}
ARCHIVE = {"X-Object-Sysmeta-Ec-Frag-Index": "2"}


class Splitting:
    """A device, a ring whose part power grows, and workers of one object server."""

    def __init__(self, root, policy):
        self.devices, self.etc = root / "srv", root / "etc"
        self.devices.mkdir()
        self.etc.mkdir()
        self.policy = policy
        self.ring = self.etc / RING_OF[policy]
        self.written = 0
        self.builder = RingBuilder(POWER, 1, 0)
        self.builder.add_device(ip="127.0.0.1", port=6200, device="sda", weight=1, region=1, zone=1, meta="")
        self.builder.rebalance(seed=1)
        self.write_ring()
        self.bench = Bench(self.devices, swift_dir=self.etc)
        self.other = Bench(self.devices, swift_dir=self.etc, clock=self.bench.clock)
        self.other.tick = self.bench.tick

    def write_ring(self):
        self.builder.write_ring(str(self.ring))
        self.written += 1
        os.utime(self.ring, (self.written, self.written))

    def step(self, change):
        change(self.builder)
        self.write_ring()

    def settle(self):
        """All workers have looked at the ring."""
        self.bench.clock.advance(RELOAD_INTERVAL_S)

    def ask(self, method, power, name="o", headers=None, body=b"", *, tells=None, bench=None):
        part = int(HASHER.hexdigest("AUTH_a", "c", name)[:8], 16) >> (32 - power)
        headers = {"X-Backend-Storage-Policy-Index": str(self.policy), **(headers or {})}
        if method == "PUT" and self.policy:
            headers |= ARCHIVE
        if tells is not None:
            headers["X-Backend-Next-Part-Power"] = str(tells)
        bench = bench or self.bench
        return bench.ask(method, f"/sda/{part}/AUTH_a/c/{name}", headers, body)

    def body(self, power, name="o", bench=None):
        response = self.ask("GET", power, name, bench=bench)
        return response.read_body() if response.status == 200 else response.status


@pytest.fixture(params=[0, 1], ids=["copies", "archives"])
def splitting(request, tmp_path):
    made = Splitting(tmp_path, request.param)
    name_hash = HASHER.hexdigest("AUTH_a", "c", "o")
    assert int(name_hash[:8], 16) >> (31 - POWER) > 1, "the object must move for these tests"
    return made


BOTH = (POWER, POWER + 1)


@pytest.mark.parametrize(
    "steps", [(prepare_increase,), (prepare_increase, increase)], ids=["prepared", "increased"]
)
@pytest.mark.parametrize("writer", BOTH, ids=["old-writer", "new-writer"])
@pytest.mark.parametrize("reader", BOTH, ids=["old-reader", "new-reader"])
def test_what_is_written_by_one_partition_is_read_by_the_other(splitting, steps, writer, reader):
    assert splitting.ask("PUT", POWER, body=b"first").status == 201
    for step in steps:
        splitting.step(step)
        splitting.settle()
    assert splitting.body(reader) == b"first"
    for body in (b"second", b"third"):
        assert splitting.ask("PUT", writer, body=body, tells=POWER + 1).status == 201
        assert splitting.body(reader) == body
    posted = splitting.ask("POST", writer, headers={"X-Object-Meta-A": "b"}, tells=POWER + 1)
    assert posted.status == 202
    assert splitting.ask("HEAD", reader).headers["x-object-meta-a"] == "b"
    assert splitting.ask("DELETE", writer, tells=POWER + 1).status == 204
    assert splitting.body(reader) == 404
    assert splitting.ask("PUT", writer, headers={"If-None-Match": "*"}, body=b"again").status == 201
    assert splitting.ask("PUT", reader, headers={"If-None-Match": "*"}, body=b"more").status == 412


def test_what_was_never_linked_is_found_after_the_increase(splitting):
    """The relinker was not there, or a server did not know of the increase yet."""
    for name in ("o", "p"):
        assert splitting.ask("PUT", POWER, name, body=b"body").status == 201
    splitting.step(prepare_increase)
    splitting.step(increase)
    splitting.settle()
    assert splitting.body(POWER + 1) == b"body"
    assert splitting.ask("POST", POWER + 1, "p", {"X-Object-Meta-A": "b"}).status == 202
    assert splitting.ask("DELETE", POWER + 1).status == 204
    assert splitting.body(POWER) == 404


def test_all_workers_turn_to_the_new_partitions_at_the_same_moment(splitting):
    splitting.step(prepare_increase)
    splitting.settle()
    for bench in (splitting.bench, splitting.other):
        assert splitting.body(POWER, bench=bench) == 404
    splitting.step(increase)
    assert splitting.ask("PUT", POWER + 1, body=b"new", tells=POWER + 1).status == 201
    assert splitting.body(POWER, bench=splitting.other) == b"new"


def test_a_worker_that_is_told_of_an_increase_looks_at_its_ring(splitting):
    assert splitting.ask("PUT", POWER, body=b"old").status == 201
    splitting.step(prepare_increase)
    assert splitting.ask("PUT", POWER, body=b"both", tells=POWER + 1).status == 201
    splitting.step(increase)
    assert splitting.body(POWER + 1) == b"both"
    assert splitting.ask("PUT", POWER + 1, body=b"new", tells=POWER + 1).status == 201
    assert splitting.body(POWER) == b"new"


def test_nothing_is_linked_any_more_after_an_increase_that_was_cancelled(splitting):
    splitting.step(prepare_increase)
    splitting.step(cancel_increase)
    splitting.settle()
    # A proxy that does not know yet still has it linked.
    assert splitting.ask("PUT", POWER, body=b"body", tells=POWER + 1).status == 201
    assert len([name for name in splitting.bench.files() if name.endswith(".data")]) == 1
    assert splitting.body(POWER) == splitting.body(POWER + 1) == b"body"
    splitting.step(finish_increase)
    splitting.settle()
    assert splitting.body(POWER) == b"body"


def test_a_ring_that_cannot_be_read_for_a_moment_changes_nothing(splitting):
    splitting.step(prepare_increase)
    splitting.settle()
    assert splitting.ask("PUT", POWER + 1, body=b"body").status == 201
    kept = splitting.ring.read_bytes()
    splitting.ring.write_bytes(kept[:100])
    assert splitting.body(POWER) == splitting.body(POWER + 1) == b"body"
    splitting.ring.unlink()
    assert splitting.body(POWER) == splitting.body(POWER + 1) == b"body"

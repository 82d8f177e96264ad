"""Faults between hosts: network partitions, wrong clocks, old rings. The cluster then recovers by itself.

Each node has a network namespace of its own; skipped where these cannot be made.
"""

import shutil
import time

import pytest

from swift.ring.builder import RingBuilder
from test.support.cluster import Hosts, can_make_hosts

pytestmark = pytest.mark.skipif(not can_make_hosts(), reason="needs root and network namespaces")


@pytest.fixture
def hosts(tmp_path, request):
    made = Hosts(tmp_path / "data", count=getattr(request, "param", 3))
    try:
        made.make()
        yield made
    finally:
        made.stop()


def attempt(hosts, number, method, path, body=None):
    """Return the status; None when the connection broke."""
    try:
        return hosts(number, method, path, body=body).status
    except OSError:
        return None


def copies(hosts):
    """Return number of copies → number of objects with so many data files."""
    counts = {}
    for path in hosts.files("objects/*/*/*/*.data"):
        counts[path.parent.name] = counts.get(path.parent.name, 0) + 1
    return sorted(counts.values())


def await_health(hosts, known, gone):
    """Every copy of what is known is back, listings agree, and nothing deleted returns; seconds."""
    started_s = time.monotonic()

    def is_healthy():
        return copies(hosts) == [3] * len(known) and all(
            hosts.names(number) == sorted(known) for number in hosts.numbers
        )

    hosts.await_true(is_healthy, "three copies of everything, and equal listings", 120)
    took_s = time.monotonic() - started_s
    for name, body in known.items():
        response = hosts(1, "GET", f"c/{name}", {"X-Newest": "true"})
        assert (response.status, response.body) == (200, body)
    for name in gone:
        assert hosts(1, "GET", f"c/{name}").status == 404
    assert "Traceback" not in hosts.log_text()
    return took_s


@pytest.mark.long
def test_a_network_partition_loses_nothing_and_replicas_converge_after_it(hosts):
    hosts.start()
    assert hosts(1, "PUT", "c").status == 201
    known, gone = {}, []
    for number in range(6):
        known[f"before{number}"] = b"x"
        assert hosts(1, "PUT", f"c/before{number}", body=b"x").status == 201
    hosts.part(3)
    for number in range(6):
        name, body = f"amid{number}", f"body {number}".encode()
        assert hosts(1, "PUT", f"c/{name}", body=body).status == 201
        known[name] = body
    for name in ("before0", "before1"):
        assert hosts(1, "DELETE", f"c/{name}").status == 204
        gone.append(name)
        del known[name]
    # One host of three is no majority: it serves reads and acknowledges no write.
    assert attempt(hosts, 3, "PUT", "c/minority", b"x") in (None, 401, 503)
    assert attempt(hosts, 3, "DELETE", "c/before3") in (None, 401, 503)
    hosts.heal(3)
    hosts.tokens.clear()
    for name in ("minority", "before3"):
        # The outcome of these requests is unknown, so the client repeats them.
        if name in known:
            assert hosts(1, "PUT", f"c/{name}", body=b"x").status == 201
        else:
            assert hosts(1, "DELETE", f"c/{name}").status in (204, 404)
            gone.append(name)
    took_s = await_health(hosts, known, gone)
    print(f"healthy {took_s:.1f} s after the partition")


@pytest.mark.long
def test_a_host_with_a_clock_one_hour_off_does_no_harm(hosts):
    hosts.offsets = {2: 3600, 3: -3600}
    hosts.start()
    assert hosts(1, "PUT", "c").status == 201
    known, gone = {}, []
    for number in range(6):
        name, body = f"o{number}", f"body {number}".encode()
        assert hosts(1, "PUT", f"c/{name}", body=body).status == 201
        known[name] = body
    assert hosts(1, "DELETE", "c/o0").status == 204
    gone.append("o0")
    del known["o0"]
    # Writes of a proxy with a slow clock may be older than stored ones: they are refused or win.
    status = attempt(hosts, 3, "PUT", "c/o1", b"of the slow clock")
    assert status in (None, 201, 202, 401, 409, 503)
    assert hosts(1, "GET", "c/o1", {"X-Newest": "true"}).body == known["o1"]
    for number in (2, 3):
        hosts.stop_host(number)
    hosts.offsets.clear()
    hosts.tokens.clear()
    for number in (2, 3):
        hosts.start_host(number)
    hosts.await_listening()
    took_s = await_health(hosts, known, gone)
    print(f"healthy {took_s:.1f} s after the clocks were set right")


@pytest.mark.long
@pytest.mark.parametrize("hosts", [4], indirect=True)
def test_hosts_with_different_ring_versions_lose_nothing(hosts):
    # A host has an older ring, which assigns partitions to other devices.
    for path in sorted(hosts.etc(3).glob("*.builder")):
        builder = RingBuilder.load(str(path))
        device = next(iter(builder.live_devs))
        builder.change_device(device["id"], weight=30.0)
        builder.pretend_min_part_hours_passed()
        builder.rebalance(seed=7)
        builder.write_ring(str(path.with_suffix(".ring.gz")))
    hosts.start()
    assert hosts(1, "PUT", "c").status == 201
    known, gone = {}, []
    for number in range(12):
        name, body = f"o{number}", f"body {number}".encode()
        assert hosts((1, 3)[number % 2], "PUT", f"c/{name}", body=body).status == 201
        known[name] = body
    for name in ("o0", "o1"):
        assert hosts(1, "DELETE", f"c/{name}").status == 204
        gone.append(name)
        del known[name]
    for kind in ("account", "container", "object"):
        shutil.copy(hosts.etc(1) / f"{kind}.ring.gz", hosts.etc(3) / f"{kind}.ring.gz")
    took_s = await_health(hosts, known, gone)
    print(f"healthy {took_s:.1f} s after the rings were equal")

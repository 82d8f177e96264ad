"""Metadata within the limits of ``/info`` can be stored; larger metadata is refused without harm."""

import json
import tempfile
from pathlib import Path

import pytest

from test.support.cluster import LiveCluster

POLICIES = ["gold", "ec"]


@pytest.fixture(scope="module", params=[True, False], ids=["fitting-limits", "default-limits"])
def live(request):
    # On a disk: the filesystem limits the size of attributes.
    with tempfile.TemporaryDirectory() as folder:
        cluster = LiveCluster(Path(folder) / "data", ec="2+1", fitting_limits=request.param)
        cluster.start()
        cluster.keeps_promises = request.param
        yield cluster
        cluster.stop()


@pytest.fixture
def limits(live):
    return json.loads(live.raw("GET", "/info").body)["swift"]


def largest_metadata(limits):
    """Return metadata of the largest allowed number and total size."""
    count, left = limits["max_meta_count"], limits["max_meta_overall_size"]
    items = {}
    for number in range(count):
        name = f"{number:02d}"
        size = min(limits["max_meta_value_length"], left - len(name) - (count - number - 1) * (len(name) + 1))
        items[f"X-Object-Meta-{name}"] = "v" * size
        left -= len(name) + size
    return items


@pytest.mark.parametrize("policy", POLICIES)
def test_the_largest_object_that_info_promises_is_stored(live, limits, policy):
    if not live.keeps_promises:
        pytest.skip("these limits are those of another filesystem")
    container = policy.ljust(limits["max_container_name_length"], "c")
    path = container
    assert live.request("PUT", path, {"X-Storage-Policy": policy}).status == 201
    path += "/" + "o" * limits["max_object_name_length"]
    metadata = largest_metadata(limits)
    headers = {"Content-Type": "t" * 255, "X-Delete-At": "9999999999", **metadata}
    assert live.request("PUT", path, headers, b"body").status == 201
    found = live.request("GET", path)
    assert (found.status, found.body) == (200, b"body")
    assert {name: found.headers[name.lower()] for name in metadata} == metadata
    assert live.request("POST", path, headers).status == 202
    assert live.request("HEAD", path).status == 200
    assert live.request("DELETE", path).status == 204


@pytest.mark.long
@pytest.mark.parametrize("policy", POLICIES)
def test_oversized_headers_leave_the_cluster_available(live, limits, policy):
    path = f"cramped-{policy}"
    assert live.request("PUT", path, {"X-Storage-Policy": policy}).status == 201
    assert live.request("PUT", f"{path}/innocent", {}, b"x").status == 201
    long = {"Content-Type": "text/plain; a=" + "b" * (limits["max_header_size"] - 100)}
    many = {f"X-Object-Meta-{number:02d}": "a" * 235 for number in range(16)}
    for headers in (long, many, {**long, **many}):
        for _ in range(4):
            response = live.request("PUT", f"{path}/big", headers, b"x")
            # Where files have room for it, it is stored.
            assert response.status in (201, 400), response
            assert live.request("POST", f"{path}/innocent", headers).status in (202, 400)
            assert live.request("GET", f"{path}/innocent").status == 200
            assert live.request("PUT", f"{path}/innocent", {}, b"x").status == 201
    # The limit of headers is unchanged, although the limit of metadata is lower.
    assert live.request("GET", f"{path}/innocent", {f"X-Any-{n}": "v" for n in range(100)}).status == 200

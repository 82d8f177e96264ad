"""One server with several devices and workers, as operators run it."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from test.support.cluster import LiveCluster

DISKS = 6
NAMES = [f"o{number}" for number in range(24)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = LiveCluster(
        tmp_path_factory.mktemp("node"), nodes=1, disks=DISKS, ec="4+2", storage_workers=2, proxy_workers=1
    )
    cluster.start()
    for policy in ("gold", "ec"):
        made = cluster.request("PUT", policy, headers={"X-Storage-Policy": policy})
        assert made.status == 201
    yield cluster
    cluster.stop()


def at_once(ask):
    with ThreadPoolExecutor(8) as threads:
        return list(threads.map(ask, NAMES))


def content(name):
    return name.encode() * 5000


def put_all(cluster, container):
    return at_once(lambda name: cluster.request("PUT", f"{container}/{name}", body=content(name)).status)


def get_all(cluster, container):
    return at_once(lambda name: cluster.request("GET", f"{container}/{name}").body)


@pytest.mark.parametrize(("container", "holders"), [("gold", 3), ("ec", DISKS)])
def test_objects_are_spread_over_the_devices_of_a_server(cluster, container, holders):
    assert put_all(cluster, container) == [201] * len(NAMES)
    assert get_all(cluster, container) == [content(name) for name in NAMES]
    policy = 0 if container == "gold" else 1
    assert len(cluster.stored(policy)) == holders * len(NAMES)


@pytest.mark.parametrize("container", ["gold", "ec"])
def test_a_server_with_a_lost_device_still_serves_everything(cluster, container):
    put_all(cluster, container)
    cluster.lose_device(1, disk=2)
    try:
        assert get_all(cluster, container) == [content(name) for name in NAMES]
        if container == "gold":
            # Six archives have no seventh device as a handoff.
            assert put_all(cluster, container) == [201] * len(NAMES)
    finally:
        cluster.return_device(1, disk=2)

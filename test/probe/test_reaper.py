"""The reaper removes the content of a deleted account, also when nodes were down."""

import pytest

from test.support.cluster import LiveCluster
from test.support.databases import rows_of

ACCOUNT = "/v1/AUTH_test"


@pytest.fixture
def cluster(tmp_path):
    live = LiveCluster(tmp_path / "data", ec="2+1")
    live.start()
    yield live
    live.stop()


def living(cluster):
    """Return the stored object files except tombstones."""
    return [each for each in cluster.stored(suffix="") if not each.name.endswith(".ts")]


@pytest.mark.long
def test_a_deleted_account_is_emptied_although_servers_were_dead(cluster):
    for policy in ("gold", "ec"):
        for number in range(3):
            container = f"{policy}{number}"
            response = cluster.request("PUT", container, {"X-Storage-Policy": policy})
            assert response.status == 201, response
            for name in range(3):
                assert cluster.request("PUT", f"{container}/o {name}", body=b"x" * 3000).status == 201
    dead = ("object-1", "container-2")
    for name in dead:
        cluster.kill(name)
    admin = {"X-Auth-Token": cluster.token("admin:admin")}
    assert cluster.raw("DELETE", ACCOUNT, admin).status == 204
    cluster.await_true(
        lambda: all(each.device.name == "sdb1" for each in living(cluster)),
        "only the dead object server has files",
        40,
    )
    for name in dead:
        cluster.restart(name)
    # A container replica that was down lists the objects again after replication.
    cluster.await_true(
        lambda: (
            cluster.raw("HEAD", ACCOUNT, admin).status == 410
            and all(containers_of(cluster, node) == 0 for node in cluster.plan.node_numbers())
        ),
        "no account replica has containers",
        40,
    )
    assert "Traceback" not in cluster.log_text()


def containers_of(cluster, node):
    """Return the number of containers that the account's replica on a node lists."""
    count = 0
    for path in cluster.device_path(node).glob("accounts/*/*/*/*.db"):
        found = rows_of(path, "SELECT container_count FROM account_stat WHERE account = 'AUTH_test'")
        count += sum(row[0] for row in found)
    return count

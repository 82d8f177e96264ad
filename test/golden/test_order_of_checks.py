"""The order of checks when several things are wrong with a request to a storage server.

The statuses are OpenStack Swift's 2.38.3, recorded with rings of part power 4 and the suffix ``s``; only the
partitions and policies that do not exist on a good device are refused by ours alone (differences.md).
"""

from __future__ import annotations

import pytest

from swift.account.server import AccountServer
from swift.base.hashing import PathHasher
from swift.container.server import ContainerServer
from swift.http.body import BytesBody
from swift.http.request import Request
from swift.obj.server import ObjectServer, make_stores
from swift.obj.settings import ObjectSettings
from swift.platform.devices import Devices
from swift.policy.policy import Policies, Policy
from swift.runtime.backendapp import BackendContext, RingPartitions
from test.support.checks import every
from test.support.peer import make_rings

TIME = {"x-timestamp": "1700000000.00000"}
TYPE = {"content-type": "text/plain", "content-length": "0"}
UNKNOWN_POLICY = {"x-backend-storage-policy-index": "77"}
#: Paths below a device: of the right partition, of another one, of none, and that of readiness checks.
PATHS = {
    "account": ("2/a", "3/a", "99/a", "x/a", "01/a", "1/2"),
    "container": ("7/a/c", "8/a/c", "99/a/c", "x/a/c", "01/a/c", "1/2/3"),
    "object": ("4/a/c/o", "5/a/c/o", "99/a/c/o", "x/a/c/o", "01/a/c/o", "1/2/3/4"),
}


@pytest.fixture()
def servers(tmp_path):
    """The three servers of a node with one device, sda."""
    (tmp_path / "sda").mkdir()
    make_rings(tmp_path, [("127.0.0.1", 6200 + n, "sda") for n in range(3)])
    context = BackendContext(
        devices=Devices(str(tmp_path), mount_check=False),
        hasher=PathHasher(b"", b"s"),
        policies=Policies([Policy(0, "gold", is_default=True), Policy(1, "silver")]),
        partitions=RingPartitions(str(tmp_path)),
    )
    settings = ObjectSettings()
    return {
        "account": AccountServer(context),
        "container": ContainerServer(context),
        "object": ObjectServer(context, settings, make_stores(context, settings)),
    }


@every(
    "kind, method, headers",
    [
        *((kind, method, TIME) for kind in PATHS for method in ("GET", "HEAD", "DELETE")),
        *((kind, method, TIME | TYPE) for kind in PATHS for method in ("PUT", "POST")),
        *(("account", "DELETE", headers) for headers in ({}, {"x-timestamp": "x"})),
        *((kind, "GET", {}) for kind in PATHS),
        ("container", "GET", UNKNOWN_POLICY),
        ("container", "UPDATE", TIME),
        ("object", "POST", TIME),
    ],
)
def test_a_device_that_cannot_be_used_is_reported_before_the_partition(servers, kind, method, headers):
    for device in ("sdz", "s%20d", "connect"):
        for path in PATHS[kind]:
            request = Request(method, f"/{device}/{path}", dict(headers), BytesBody(b""))
            assert servers[kind].handle(request).status == 507, path


def test_replication_reports_a_device_that_cannot_be_used_before_the_rest(servers):
    for kind, path in (("account", "1/2"), ("container", "1/2"), ("object", "99"), ("object", "x/abc")):
        assert servers[kind].handle(Request("REPLICATE", f"/sdz/{path}")).status == 507, (kind, path)


@every("kind", list(PATHS))
def test_a_partition_of_another_path_is_refused_on_a_device_that_can_be_used(servers, kind):
    good, *bad = PATHS[kind]
    assert servers[kind].handle(Request("GET", f"/sda/{good}", dict(TIME))).status == 404
    for path in bad:
        assert servers[kind].handle(Request("GET", f"/sda/{path}", dict(TIME))).status == 400, path


@every(
    "kind, method",
    [(kind, method) for kind in PATHS for method in ("GET", "PUT", "DELETE", "REPLICATE", "OPTIONS", "FOO")],
)
def test_a_path_that_is_not_utf_8_is_412_whatever_else_is_wrong(servers, kind, method):
    request = Request(method, "/sdz/1/%ff/c/o", dict(UNKNOWN_POLICY))
    assert servers[kind].handle(request).status == 412

"""swift-health asks the servers of all rings; whatever a server says, there is a verdict."""

import json

import pytest

from swift.cluster.transport import BackendResponse, TransportError
from swift.compose import cluster_of
from swift.operations.health.evaluate import PackedSpaceReport, evaluate
from swift.operations.health.snapshot import load_rings, take_snapshot
from swift.operations.recon.client import Host, ReconClient
from test.support.peer import SWIFT_CONF, make_rings

NOW_S = 1795228430.0
PORTS = {"account": 6202, "container": 6201, "object": 6200, "object-1": 6200}
SICK, WELL = Host("10.0.0.1", 6200), Host("10.0.0.2", 6200)

#: What a server in good health says.
GOOD = {
    "time": NOW_S,
    "devices": {"/srv/node": ["sda"]},
    "unmounted": [],
    "diskusage": [{"device": "sda", "mounted": True, "size": 100, "used": 99, "avail": 1}],
    "replication/object": {"object_replication_last": NOW_S - 60, "object_replication_time": 2.0},
    "reconstruction/object": {"object_reconstruction_last": NOW_S - 60},
    "async": {"async_pending": 7, "async_pending_last": 1000.5},
    "driveaudit": {"drive_audit_errors": 0},
    "deviceerrors/object": {"device_errors": {"sda": {"errors": 4, "last": NOW_S, "error": "EIO"}}},
    "serverauth/object": {"mode": "require", "key_ids": ["1"]},
    "native": {"native_disk": True},
    "layout": {"layout": {"version": 3, "id": "a", "issued": NOW_S, "last_check": NOW_S, "error": ""}},
    "layoutcontroller": {
        "layout_controller": {
            "said": "ring object: 1 copies are still to arrive",
            "last": NOW_S,
            "leads": True,
            "version": 3,
            "change": "drain 10.0.0.1",
            "rings": {"object": {"all": 8, "arrived": 2, "moving": 1}},
        }
    },
    "compactor/object": {
        "object_packed_devices": {"sda": {"volumes": 1, "live_bytes": 2, "dead_bytes": 3, "index_bytes": 4}}
    },
    "quarantined": {"objects": 2, "containers": 0, "accounts": 0, "policies": {"0": {"objects": 2}}},
}
#: JSON that no server should say.
NONSENSE = [
    None,
    7,
    "text",
    True,
    [],
    {},
    [None, 1, "x", [], {}],
    {"a": 1, "b": None},
    {"objects": "many", "containers": [], "accounts": {}},
    {"async_pending": "x", "drive_audit_errors": None},
    {"async_pending": 1e999, "drive_audit_errors": float("nan"), "objects": float("inf")},
    {"object_replication_last": "x", "object_replication_time": 1e308, "replication_time": True},
    [{"device": 1, "mounted": True, "size": "x", "used": "y"}, {"mounted": True}],
    [
        {"device": "sda", "mounted": True, "size": 5},
        {"device": "sda", "mounted": True, "size": "", "used": 1},
    ],
    {"/srv/node": [["sda"], 7, None]},
    {"device_errors": 7},
    {"native_disk": 1},
    {"mode": 7},
    {"mode": "require", "key_ids": 7, "refused": 7},
    {"mode": "x" * 999, "key_ids": [None, {}], "refused": {"count": 1e999, "last": 10**400, "address": []}},
    {"layout": {"version": "x", "issued": 1e999, "last_check": None, "changed": {"a": 1}, "error": 5}},
    {"layout": {"version": 7, "changed": [None, 1], "id": []}},
    {"layout_controller": {"last": "x"}},
    {"layout_controller": {"last": 1e999, "rings": 7}},
    {
        "layout_controller": {
            "last": 5,
            "said": [1],
            "version": 1e999,
            "rings": {"a": 1},
            "away": 7,
            "left_s": {},
        }
    },
    {
        "layout_controller": {
            "last": 5,
            "rings": {"a": {"all": "x", "arrived": -1}, "b": None},
            "away": [None],
        }
    },
    {"object_packed_devices": 7},
    {"object_packed_devices": {"sda": None, "sdb": {"dead_bytes": "x", "live_bytes": 1e999}}},
    {"device_errors": {"sda": None, "sdb": {"errors": "x", "last": 1}, "sdc": {"errors": 1, "last": 1e999}}},
]


class Servers:
    """Answers by address and path; all others say what is good."""

    def __init__(self, sick=None, down=False):
        self.sick, self.down, self.asked = sick, down, set()

    def request(self, request):
        ip, port, path = request.node.ip, request.node.port, request.path
        self.asked.add((ip, port))
        check = path.removeprefix("/recon/")
        if (ip, port) == tuple(SICK):
            if self.down:
                raise TransportError("refused")
            if self.sick is not None:
                return BackendResponse(200, body=json.dumps(self.sick[0]).encode())
        if check in GOOD:
            return BackendResponse(200, body=json.dumps(GOOD[check]).encode())
        return BackendResponse(404, reason="Not Found")


@pytest.fixture
def etc(tmp_path):
    (tmp_path / "swift.conf").write_text(SWIFT_CONF)
    for name, port in PORTS.items():
        make_rings(tmp_path, [(f"10.0.0.{n}", port, "sda") for n in (1, 2, 3)], names=(name,))
    return tmp_path


def record_snapshot(etc, servers):
    rings = load_rings(str(etc), cluster_of({"swift_dir": str(etc)}).policies)
    return take_snapshot(rings, ReconClient(5.0, transport=servers))


def test_there_is_a_ring_of_each_policy_that_has_one(etc):
    policies = cluster_of({"swift_dir": str(etc)}).policies
    nouns = [ring.noun for ring in load_rings(str(etc), policies)]
    assert nouns == ["account", "container", "object (gold)", "object (silver)"]
    (etc / "object-1.ring.gz").unlink()
    assert [ring.server_type for ring in load_rings(str(etc), policies)] == ["account", "container", "object"]


def test_a_ring_is_loaded_again_when_its_file_has_changed(etc):
    policies = cluster_of({"swift_dir": str(etc)}).policies
    first = load_rings(str(etc), policies)
    make_rings(etc, [("10.0.0.9", 6200, "sdz")], replicas=1, names=("object",))
    second = load_rings(str(etc), policies, first)
    assert [old is new for old, new in zip(first, second, strict=True)] == [True, True, False, True]
    assert second[2].devices[0].ip == "10.0.0.9" and second[2].assigned == {0: 16}


def test_every_server_of_a_ring_is_asked_and_what_it_says_is_kept(etc):
    servers = Servers()
    snapshot = record_snapshot(etc, servers)
    assert servers.asked == {(f"10.0.0.{n}", port) for n in (1, 2, 3) for port in PORTS.values()}
    assert snapshot.present[WELL] == ["sda"] and snapshot.unmounted[WELL] == []
    assert snapshot.usage[WELL] == GOOD["diskusage"]
    assert snapshot.async_counted[WELL] == 1000
    assert snapshot.async_pending[WELL] == 7 and snapshot.quarantined[WELL]["objects"] == 2
    assert snapshot.replication["object", WELL]["object_replication_time"] == 2.0
    assert snapshot.packed[WELL] == {"sda": PackedSpaceReport(1, 2, 3, 4)}


def test_a_server_that_is_down_is_silent_and_not_asked_for_more(etc):
    snapshot = record_snapshot(etc, Servers(down=True))
    assert snapshot.unresponsive["object"] == [SICK]
    assert SICK not in snapshot.present


@pytest.mark.parametrize("said", NONSENSE, ids=str)
def test_one_that_talks_nonsense_leaves_the_verdict_on_the_others(etc, said):
    snapshot = record_snapshot(etc, Servers(sick=[said]))
    health = evaluate([], {}, snapshot, NOW_S)
    assert health.facts["async_pending"] == 7 * (len(snapshot.async_pending) - 1)
    assert "3 devices over 95 % full" in " ".join(problem.text for problem in health.problems)
    json.dumps(health.as_json(), allow_nan=False)


def test_a_ring_that_differs_there_is_told_by_its_name(etc):
    class Others(Servers):
        def request(self, request):
            ip, port, path = request.node.ip, request.node.port, request.path
            if path == "/recon/ringmd5" and (ip, port) == tuple(SICK):
                rings = {"/etc/swift/object.ring.gz": "0" * 32, "/etc/swift/unknown.ring.gz": "1" * 32}
                return BackendResponse(200, body=json.dumps(rings).encode())
            return super().request(request)

    assert record_snapshot(etc, Others()).other_rings == {SICK: ["object.ring.gz"]}


def test_a_clock_that_is_wrong_is_told_by_how_much(etc):
    assert record_snapshot(etc, Servers(sick=[0])).clocks[SICK] < -1e9

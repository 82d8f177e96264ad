"""The checks of swift-recon: what a cluster says is added up, and nonsense of one server is its error."""

import time
from hashlib import md5

import pytest

from swift.cluster.transport import BackendResponse, TransportError
from swift.operations.recon.checks import CHECKS, CheckContext
from swift.operations.recon.client import Host, ReconClient
from swift.operations.recon.report import ReconReport
from test.support.stub_servers import NONSENSE, StubServers

HOSTS = [Host("10.0.0.1", 1), Host("10.0.0.2", 2)]
BY_SWITCH = {check.switch: check for check in CHECKS}
CASES = [(check.switch, kind) for check in CHECKS for kind in check.types]


@pytest.fixture
def ask(capsys, tmp_path):
    """The facts and the lines of one check."""

    def made(switch, said, server_type="object", **more):
        report = ReconReport(prints=True)
        client = ReconClient(5.0, transport=StubServers(said))
        rings = more.pop("rings", ())
        BY_SWITCH[switch].run(CheckContext(client, HOSTS, server_type, str(tmp_path), rings, **more), report)
        return report.facts, capsys.readouterr().out.splitlines()[1:]

    return made


def device(name="sda", used=50, size=100, **more):
    return {"device": name, "mounted": True, "size": size, "used": used, "avail": size - used, **more}


def test_figures_are_added_up_over_the_servers(ask):
    facts, lines = ask("async_", {(1, "/recon/async"): {"async_pending": 3}, (2, "/recon/async"): {}})
    assert (facts["async_pending"]["total"], facts["async_pending"]["number_none"]) == (3, 1)
    assert lines == [
        "[async_pending] low: 3, high: 3, avg: 3.0, total: 3, Failed: 50.0%, no_result: 1, reported: 1",
        "-> not counted on 10.0.0.2:2: run swift-recon-cron there every five minutes",
    ]


def test_failures_of_replication_are_told_by_server(ask):
    stats = [{"failure": 520, "success": 9, "attempted": 1553}, {"failure": 0, "attempted": 4}]
    said = {
        (number, "/recon/replication/object"): {"replication_time": 1.0, "replication_stats": each}
        for number, each in enumerate(stats, 1)
    }
    _, lines = ask("replication", said)
    told = [line for line in lines if line.startswith("->")]
    assert told == ["-> 10.0.0.1:1: 520 failures in its last pass, of 1553 attempts; see its log"]


def test_a_server_that_does_not_answer_is_an_error_and_the_others_count(ask):
    said = {(1, "/recon/load"): {"1m": 2.0}, (2, "/recon/load"): TransportError("timed out")}
    facts, lines = ask("loadstats", said)
    assert facts["errors"] == {"http://10.0.0.2:2/recon/load": "timed out"}
    assert facts["1m_load_avg"]["high"] == 2.0 and facts["5m_load_avg"] is None
    assert any("Failed: 50.0%, no_result: 1, reported: 1" in line for line in lines)


def test_devices_that_are_not_mounted_are_told_by_name(ask):
    said = [{"device": "sda", "mounted": False}, {"device": "sdb", "mounted": "I/O error"}]
    _, lines = ask("unmounted", {(1, "/recon/unmounted"): said, (2, "/recon/unmounted"): []})
    assert lines == ["Not mounted: sda on 10.0.0.1:1", "Device errors: sdb on 10.0.0.1:1"]


def test_how_full_devices_are(ask):
    said = {
        (1, "/recon/diskusage"): [device("sda", 50), device("sdb", 100), {"device": "sdc", "mounted": False}],
        (2, "/recon/diskusage"): [device("sda", 0)],
    }
    facts, lines = ask("diskusage", said, top=1, lowest=1, human_readable=True)
    usage = facts["disk_usage"]
    assert (usage["used"], usage["size"], usage["lowest"], usage["highest"]) == (150, 300, 0.0, 100.0)
    assert [entry["percent"] for entry in usage["devices"]] == [100.0, 50.0, 0.0]
    assert "Disk usage: space used: 150 B of 300 B" in lines
    assert lines[-4:] == ["TOP 1", "100.00%  10.0.0.1        sdb", "LOWEST 1", "0.00%  10.0.0.2        sda"]


@pytest.mark.parametrize(
    "entry",
    [
        {**device(), "size": 0},
        {**device(), "size": "100"},
        {**device(), "used": None},
        {**device(), "avail": [1]},
        {**device(), "used": 10**400},
        {**device(), "mounted": "error"},
    ],
)
def test_a_device_that_says_no_figures_is_left_out(ask, entry):
    facts, lines = ask("diskusage", {"/recon/diskusage": [entry, device("sdb")]})
    assert [each["device"] for each in facts["disk_usage"]["devices"]] == ["sdb", "sdb"]
    facts, lines = ask("diskusage", {"/recon/diskusage": [entry]})
    assert facts["disk_usage"] is None
    assert lines[-1] == "No hosts returned valid data."


def test_quarantined_objects_are_told_by_policy_in_the_order_of_numbers(ask):
    said = {
        (1, "/recon/quarantined"): {"objects": 3, "policies": {"10": {"objects": 1}, "2": {"objects": 2}}},
        (2, "/recon/quarantined"): {"objects": 0, "policies": {"x": {"objects": 9}, "²": 1, "2": None}},
    }
    facts, lines = ask("quarantined", said)
    assert [name for name in facts if name.startswith("quarantined_objects_")] == [
        "quarantined_objects_2",
        "quarantined_objects_10",
    ]
    assert facts["quarantined_objects"]["total"] == 3


def test_servers_are_of_the_type_that_the_ring_says(ask):
    said = {
        (1, "/"): BackendResponse(200, {"server": "object-server/1"}),
        (2, "/"): BackendResponse(200, {"server": "nginx"}),
    }
    facts, lines = ask("validate_servers", said)
    assert facts["hosts"] == {"ok": 1, "of": 2, "errors": 0}
    assert lines[0] == "Invalid: http://10.0.0.2:2/ is nginx"


def test_clocks_that_differ_are_told(ask):
    said = {(1, "/recon/time"): time.time() + 0.5, (2, "/recon/time"): 5}
    facts, lines = ask("time", said, jitter_s=60.0)
    assert facts["hosts"] == {"matched": 1, "of": 2, "errors": 0}
    assert "but remote is 1970-01-01 00:00:05, differs" in lines[0]


def test_rings_are_compared_by_name_wherever_they_are_kept(ask, tmp_path):
    (tmp_path / "object.ring.gz").write_bytes(b"ring")
    good = md5(b"ring").hexdigest()
    said = {
        (1, "/recon/ringmd5"): {"/elsewhere/object.ring.gz": good, "/etc/more.ring.gz": "x"},
        (2, "/recon/ringmd5"): {"/etc/object.ring.gz": "other"},
        "/recon/swiftconfmd5": {},
    }
    facts, lines = ask("md5", said, rings=["object.ring.gz"])
    assert facts["ringmd5"] == {"matched": 1, "of": 2, "errors": 0}
    assert "(/etc/object.ring.gz => other) doesn't match on disk md5sum" in lines[0]


def test_versions_differ_or_not(ask):
    facts, lines = ask("swift_versions", {(1, "/recon/version"): {"version": "1"}, (2, "/recon/version"): {}})
    assert lines[-1] == "Versions not matched (1, None), 0 error[s] while checking hosts."


def test_figures_of_workers_are_added_up(ask):
    stats = {"object_auditor_stats_ALL": {"sda": {"errors": 1, "x": "y"}, "sdb": {"errors": 2}}}
    facts, _ = ask("auditor", {"/recon/auditor/object": stats})
    assert facts["ALL_errors_last_path"]["total"] == 6
    assert facts["ZBF_auditor"] is None


@pytest.mark.parametrize(("switch", "server_type"), CASES)
def test_nonsense_of_servers_ends_no_check(ask, switch, server_type):
    paths = _paths_of(ask, switch, server_type)
    for nonsense in NONSENSE:
        ask(switch, dict.fromkeys(paths, nonsense), server_type)


@pytest.mark.parametrize(("switch", "server_type"), CASES)
def test_nonsense_in_the_place_of_figures_ends_no_check(ask, switch, server_type):
    keys = ["async_pending", "replication_time", "replication_stats", "replication_last", "sharding_stats"]
    keys += ["sharding_last", "object_reconstruction_last", "policies", "objects", "version", "1m", "orphan"]
    keys += [
        "object_auditor_stats_ALL",
        "account_audits_since",
        "container_audits_since",
        "expired_last_pass",
    ]
    keys += ["device", "mounted", "size", "used", "avail", "object_updater_sweep", "drive_audit_errors"]
    paths = _paths_of(ask, switch, server_type)
    for nonsense in NONSENSE:
        said = dict.fromkeys(keys, nonsense)
        for answer in (said, [said], {"replication_stats": said, "policies": {"0": said}, "1m": {"a": said}}):
            ask(switch, dict.fromkeys(paths, answer), server_type)


def _paths_of(ask, switch, server_type):
    """What a check asks for."""
    talkers = StubServers({})
    report = ReconReport(prints=False)
    BY_SWITCH[switch].run(
        CheckContext(ReconClient(5.0, transport=talkers), HOSTS[:1], server_type, "/none", ()), report
    )
    return [path for _, _, path in talkers.asked]


def test_what_cannot_be_checked_on_a_type_is_told_in_words():
    assert BY_SWITCH["updater"].noun_on("account") == "updaters on account"
    assert BY_SWITCH["sharding"].noun_on("object") == "sharding on non container"


def test_volumes_of_packed_devices_are_added_up(ask):
    said = {
        (1, "/recon/compactor/object"): {
            "object_packed_devices": {
                "sda": {"volumes": 3, "live_bytes": 20, "dead_bytes": 10, "index_bytes": 1, "lost_bytes": 64},
                "sdb": {"volumes": 1, "live_bytes": 5, "dead_bytes": 0, "index_bytes": 1},
            }
        },
        (2, "/recon/compactor/object"): {"object_packed_devices": None},
    }
    facts, _lines = ask("packed", said)
    assert (facts["packed_volumes"]["total"], facts["packed_dead_bytes"]["total"]) == (4, 10)
    assert facts["packed_lost_bytes"]["total"] == 64
    assert not BY_SWITCH["packed"].in_all


def test_why_no_server_reports_packed_devices_is_told(ask):
    _facts, lines = ask("packed", {(1, "/recon/compactor/object"): {}})
    assert any("swift-object-compactor has not completed a pass" in line for line in lines)

"""What calibration measures, and how predictions are set beside what was measured."""

import subprocess
import time

import pytest

pytest.importorskip("hdrh")

from swift.base.errors import ConfigError
from swift.load.endpoint import LoadEndpoint
from swift.load.measure import PhaseResult
from swift.load.workload import parse
from swift.plan.calibration import (
    LAYOUTS,
    CalibratedWork,
    CalibrationCheck,
    CalibrationOptions,
    NamedServers,
    StorageLayout,
    calibration_works,
    check_clusters,
    check_possible,
    check_report,
    check_text,
    cluster_plan,
    measured_figures,
    servers_by_command,
    workload_text,
)
from swift.plan.costs import KINDS
from swift.plan.emulated import Expected
from swift.plan.errors import PlanError


@pytest.fixture
def choices(tmp_path):
    return CalibrationOptions(tmp_path, seconds=5.0, clients=4)


def test_every_kind_is_measured_small_and_large_with_several_clients_and_one(choices):
    works = calibration_works(choices)
    assert {work.kind for work in works} == set(KINDS)
    for verb in ("GET", "PUT"):
        for kept in LAYOUTS:
            its = {(w.size, w.clients) for w in works if (w.verb, w.kept) == (verb, kept)}
            assert its == {(4096, 4), (4096, 1), (4 << 20, 4), (4 << 20, 1)}


def test_each_is_a_workload_of_one_operation(choices):
    for work in calibration_works(choices):
        made = parse(workload_text(work, choices.seconds), "x")
        main = next(phase for phase in made.phases if phase.kind == "main")
        assert main.mix == ((work.verb.lower(), 100.0),)
        assert (main.clients, main.seconds, main.rampup) == (work.clients, 5.0, 0)
        assert made.objects.policy == work.kept.policy
        is_prepared = any(phase.kind == "prepare" for phase in made.phases)
        assert is_prepared is (work.verb != "PUT"), "what is read or removed was stored before"
        assert main.operations == (made.objects.count if work.verb == "DELETE" else None)


def test_the_clusters_of_a_check_are_four_others(choices):
    clusters = check_clusters(choices)
    assert [(c.nodes, c.copies, c.is_coded, c.size > 1e6, bool(c.slow)) for c in clusters] == [
        (2, 2, False, False, False),
        (4, 3, False, True, False),
        (4, 3, True, True, False),
        (2, 2, False, True, True),
    ]
    for cluster in clusters:
        made = parse(check_text(cluster, 6.0), "x")
        main = next(phase for phase in made.phases if phase.kind == "main")
        assert dict(main.mix) == {"get": 50, "put": 50}
        assert (main.clients, main.rampup) == (8, 1.0)
        plan = cluster_plan(choices, "c", nodes=cluster.nodes, replicas=cluster.copies, xfs=False)
        assert len({port for _name, port in plan.ports()}) == len(list(plan.ports()))


def test_the_report_says_what_is_missed(choices):
    cluster = check_clusters(choices)[0]
    predicted = Expected(110.0, {"GET": 0.010, "PUT": 0.2}, 0.050)
    found = CalibrationCheck(cluster, predicted, Expected(100.0, {"GET": 0.010}, 0.025))
    assert found.off == {
        "requests/s": pytest.approx(0.1),
        "GET p50 ms": 0.0,
        "PUT p50 ms": 0.0,
        "p99 ms": pytest.approx(1.0),
    }
    rate, get, _put, p99 = check_report([found]).splitlines()[-4:]
    assert rate.endswith("+10 %") and get.endswith("+0 %") and p99.endswith("+100 % MISSED")


def test_operations_of_a_phase_are_taken_together_but_for_their_medians():
    phase = PhaseResult()
    for verb, latency in (("get", 0.001), ("put", 0.1)):
        for _ in range(50):
            phase.of(verb).add(0.5, latency, 10, None)
    phase.seconds = 2.0
    found = measured_figures(phase)
    assert found.rate == 50
    assert found.p50_s == {"GET": pytest.approx(0.001, rel=0.01), "PUT": pytest.approx(0.1, rel=0.01)}
    assert found.p99_s == pytest.approx(0.1, rel=0.01)


def test_what_cannot_be_limited_is_said(choices, monkeypatch):
    slow = check_clusters(choices)[-1]
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(ConfigError, match="needs root"):
        check_possible(slow)
    check_possible(check_clusters(choices)[0])


def test_requests_ask_as_many_nodes_as_the_policy_needs():
    copies, coded = StorageLayout.of("gold=3"), StorageLayout.of("cold=4+2")
    nodes = {
        (verb, k.policy): CalibratedWork(verb, k, 1, 1).nodes
        for verb in ("GET", "PUT")
        for k in (copies, coded)
    }
    assert nodes == {("GET", "gold"): 1, ("PUT", "gold"): 3, ("GET", "cold"): 4, ("PUT", "cold"): 6}
    assert (copies.is_coded, coded.is_coded) == (False, True)


@pytest.mark.parametrize("text", ["gold", "=3", "gold=", "gold=0", "gold=x", 'a"b=3', "a\nb=3"])
def test_a_policy_that_cannot_be_is_refused(text):
    with pytest.raises(PlanError, match="policy"):
        StorageLayout.of(text)


COMMANDS = {
    1: "/usr/bin/python3 /usr/bin/swift-proxy-server /etc/swift/proxy-server.conf",
    2: "/v/bin/python -m swift.cli.object_server /etc/swift/object-server/1.conf -v",
    3: "swift-container-server /etc/swift/container-server.conf",
    4: "python -m swift.cli.account_server a.conf",
    5: "vim /etc/swift/object-server.conf",
    6: "/usr/bin/swift-object-replicator /etc/swift/object-server.conf",
    7: "less /var/log/object_server.log",
}


def test_servers_that_run_are_known_by_their_commands():
    assert servers_by_command(COMMANDS) == {"proxy": {1}, "object": {2}, "container": {3}, "account": {4}}
    with pytest.raises(PlanError, match="of this kind: object$"):
        servers_by_command({pid: command for pid, command in COMMANDS.items() if pid != 2})


def test_servers_that_end_meanwhile_take_nothing_away():
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2)]
    try:
        servers = NamedServers(
            {"proxy": {each.pid for each in busy}}, LoadEndpoint("http://192.0.2.1:1/v1/a")
        )
        time.sleep(0.2)
        before = servers.measure()
        busy[0].kill()
        busy[0].wait()
        time.sleep(0.3)
        used = servers.usage_since(before).by_server["proxy"]
    finally:
        for each in busy:
            each.kill()
            each.wait()
    assert sum(before.cpu_s.values()) > 0
    assert used >= 0

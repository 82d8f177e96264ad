"""What the bench of overload asks, and how it reports; that it says what is missing."""

import os
from dataclasses import replace

import pytest

from swift.aio.make import make_cluster
from swift.base.errors import ConfigError
from swift.plan.overload import OverloadOutcome
from tools.bench.overload import main, parse, plan_for, report, with_admission


def test_a_cluster_has_a_device_a_node_and_one_copy(tmp_path):
    setting, found = parse(["--devices", "3", "--rate", "20", "--root", str(tmp_path)])
    plan = plan_for(found.root, found.port, setting)
    assert (plan.nodes, plan.replicas, plan.xfs, plan.proxy_workers) == (3, 1, True, 1)
    assert setting.capacity == 60e6
    assert plan.xfs_bytes > 12 * 2 * 20e6, "what two accounts have on a device fits"
    assert len({port for _name, port in plan.ports()}) == len(list(plan.ports()))


def test_admission_gets_into_the_pipeline_of_a_cluster(tmp_path):
    setting, found = parse(["--devices", "3", "--configured", "0.5", "--root", str(tmp_path)])
    plan = replace(plan_for(found.root, found.port, setting), xfs=False)
    make_cluster(plan)
    conf = with_admission((plan.etc / "proxy-server.conf").read_text(), setting)
    assert " tempauth admission staticweb copy " in conf
    assert "capacity_bytes_per_second = 15000000\n" in conf
    with pytest.raises(ConfigError, match="no tempauth"):
        with_admission("[pipeline:main]\npipeline = proxy-server\n", setting)


def test_the_report_sets_what_is_simulated_beside():
    measured = [
        OverloadOutcome(150, True, 80e6, 30e6, 0.5, 7, 0),
        OverloadOutcome(150, False, 0.0, 0.0, 0.0, 0, 9),
    ]
    simulated = [
        OverloadOutcome(150, False, 1e6, 0.0, 0.0, 0, 9),
        OverloadOutcome(150, True, 88e6, 29e6, 0.6, 8, 0),
    ]
    lines = report(measured, simulated).splitlines()
    words = "150 % yes 80.0 88.0 +10 % 30.0 29.0 0.50 s 0.60 s"
    assert lines[2].split() == words.split()
    assert "0.0" in lines[3], "nothing came, and nothing is divided by it"


@pytest.mark.parametrize(
    "argv", [["--loads", "x"], ["--devices", "0"], ["--rate", "0"], ["--reserved", "2"], ["--seconds", "nan"]]
)
def test_a_bad_choice_is_a_usage_error(argv, capsys):
    with pytest.raises(SystemExit) as error:
        parse(argv)
    assert error.value.code == 2
    assert capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="root could do it")
def test_without_root_it_says_so(capsys):
    assert main(["--seconds", "1"]) == 1
    assert "needs root" in capsys.readouterr().err

"""What the bench of striping measures, and that it says what is missing."""

import os

import pytest

from tools.bench.striping import (
    MIB,
    MeasuredTransfer,
    code_for,
    main,
    parse,
    plan_for,
    plot,
    prediction,
    report,
)


def test_there_is_a_code_for_three_devices_and_more():
    assert [code_for(n) for n in (1, 2, 3, 6, 8)] == ["", "", "1+2", "4+2", "6+2"]


def test_every_device_of_a_cluster_has_a_copy(tmp_path):
    choices, _ = parse(["--root", str(tmp_path), "--devices", "6", "--mib", "16"])
    plan = plan_for(choices, 6)
    assert (plan.nodes, plan.replicas, plan.ec, plan.xfs) == (6, 6, "4+2", True)
    assert len({port for _name, port in plan.ports()}) == len(list(plan.ports()))


def test_the_report_says_how_many_devices_a_client_is_worth():
    measured = [MeasuredTransfer(3, "GET of replicas, striped", 10.0, 500 * 10**6)]
    text = report(measured, [], 20_000_000)
    assert text.splitlines()[-1] == "| 3 | GET of replicas, striped | 50.0 | 2.50 |  |  | 2.2 |  |"


def test_the_peer_stands_beside_each_of_our_rows():
    ours = MeasuredTransfer(3, "GET of replicas, striped", 10.0, 500 * 10**6)
    theirs = MeasuredTransfer(3, "GET of replicas, from one", 25.0, 500 * 10**6, True)
    [row] = report([ours, theirs], [], 20_000_000).splitlines()[2:]
    assert row == "| 3 | GET of replicas, striped | 50.0 | 2.50 |  |  | 2.2 | 1.00 |"


def test_what_is_simulated_stands_beside_what_was_measured(tmp_path):
    choices, _ = parse(["--devices", "1,3", "--mib", "64", "--rate", "20"])
    predicted = prediction(choices)
    measured = [
        MeasuredTransfer(each.devices, each.work, each.seconds * 1.1, each.bytes) for each in predicted
    ]
    text = report(measured, predicted, choices.device_rate)
    assert text.count("| +10 % |") == len(measured) == 9
    plot(measured, predicted, choices.device_rate, tmp_path / "p.svg")
    assert (tmp_path / "p.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize("argv", [["--devices", "0"], ["--devices", "x"], ["--mib", "0"], ["--rate", "-1"]])
def test_a_bad_choice_is_a_usage_error(argv, capsys):
    with pytest.raises(SystemExit) as error:
        parse(argv)
    assert error.value.code == 2
    assert capsys.readouterr().err


def test_sizes_are_in_mib_and_rates_in_mb():
    choices, _ = parse(["--mib", "3", "--rate", "1.5", "--devices", "1,8"])
    assert (choices.object_bytes, choices.device_rate, choices.devices) == (3 * MIB, 1_500_000, (1, 8))


@pytest.mark.skipif(os.geteuid() == 0, reason="root could do it")
def test_without_root_it_says_so(capsys):
    assert main(["--devices", "1"]) == 1
    assert "needs root" in capsys.readouterr().err

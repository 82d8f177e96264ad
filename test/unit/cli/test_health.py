"""swift-health, in a process of its own: the screen and the exit code that monitoring hears."""

import json
import signal
import subprocess
import sys

import pytest

from test.support.peer import SWIFT_CONF, make_rings, run
from test.support.processes import free_ports


def test_servers_that_are_not_there_are_a_danger_with_a_remedy(tmp_path):
    (tmp_path / "swift.conf").write_text(SWIFT_CONF)
    places = zip(free_ports(2), ("sda", "sdb"), strict=True)
    make_rings(tmp_path, [("127.0.0.1", port, device) for port, device in places], replicas=2)
    done = run("swift-health", "-d", tmp_path, "-t", "1")
    assert (done.returncode, done.stderr) == (2, "")
    head, _, titles, *rest = done.stdout.splitlines()
    assert head.startswith("CRITICAL") and "2 devices, 2 away" in head
    assert titles.split()[:4] == ["ring", "partitions", "degraded", "away"]
    assert [line.split()[:3] for line in rest[:4]] == [
        [name, "16", "16"] for name in ("account", "container", "object", "object-1")
    ]
    assert "  to heal it: " in done.stdout
    assert "waiting updates 0 (not counted everywhere: run swift-recon-cron)" in done.stdout
    assert "the time that is left is unknown until the replicators complete another pass" in done.stdout


def test_whoever_watches_ends_it_without_a_traceback_at_any_moment(tmp_path):
    command = [sys.executable, "-m", "swift.cli.health", "-d", str(tmp_path), "--watch", "0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        for _ in range(2):
            assert watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        _out, err = watching.communicate(timeout=30)
    assert (watching.returncode, err) == (3, "")


@pytest.mark.parametrize("pause", ["0", "-1", "nan", "inf", "x"])
def test_a_pause_that_is_none_is_refused(tmp_path, pause):
    done = run("swift-health", "-d", tmp_path, f"--watch={pause}")
    assert done.returncode == 2 and f"value: '{pause}'" in done.stderr


def test_where_there_are_no_rings_nobody_can_say(tmp_path):
    done = run("swift-health", "-d", tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    done = run("swift-health", "-d", tmp_path, "--format", "json")
    told = json.loads(done.stdout)
    assert (done.returncode, done.stderr, told["status"]) == (3, "", "UNKNOWN")
    assert told["problems"][0]["remedy"] == "run this where swift.conf and the rings are"


def test_the_history_of_disk_usage_is_kept_on_request(tmp_path):
    (tmp_path / "swift.conf").write_text(SWIFT_CONF)
    make_rings(tmp_path, [("127.0.0.1", free_ports(1)[0], "sda")], replicas=1)
    history, metrics = tmp_path / "capacity.jsonl", tmp_path / "health.prom"
    words = ("-d", tmp_path, "-t", "1", "--format", "json", "--history", history, "--metrics", metrics)
    done = run("swift-health", *words)
    assert (done.returncode, done.stderr) == (2, "")
    # No server responds: there is a sample without a zone.
    assert json.loads(done.stdout)["capacity"] == []
    assert json.loads(history.read_text())["usage"] == {} and metrics.exists()
    done = run("swift-health", "-d", tmp_path, "--metrics", metrics)
    assert done.returncode == 2 and "--metrics needs --history" in done.stderr

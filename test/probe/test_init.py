"""swift-init, swift-reload, swift-oldies and swift-orphans with real processes."""

import json
import os
from pathlib import Path

import pytest

from swift.aio.supervisor import accepts_connections
from test.support.cluster import LiveCluster
from test.support.peer import ToolNode, run
from test.support.processes import free_ports


@pytest.fixture()
def node(tmp_path):
    made = ToolNode(tmp_path)
    yield made
    made.stop()


def lines(done):
    """Return the output lines without the note about limits, which depends on the machine."""
    return [line for line in done.stdout.splitlines() if not line.startswith("WARNING")]


@pytest.mark.long
def test_a_server_is_started_reloaded_and_stopped(node):
    conf = node.etc / "account-server.conf"
    started = node.init("account", "start")
    assert (started.returncode, lines(started)) == (0, [f"Starting account-server...({conf})"])
    assert accepts_connections("127.0.0.1", node.ports["account"]), "a start is over when the server answers"
    pid = node.pids()["account-server.pid"]
    again = node.init("account-server", "start")
    assert again.returncode == 1
    assert lines(again) == [f"account-server running ({pid} - {conf})", "account-server already started..."]
    status = node.init("status", "account")
    assert (status.returncode, lines(status)) == (0, [f"account-server running ({pid} - {conf})"])
    assert json.loads(node.init("account", "status", "--format", "json").stdout) == [
        {"server": "account-server", "pid": pid, "config": str(conf)}
    ]
    seamless = node.init("account", "reload-seamless")
    assert (seamless.returncode, lines(seamless)) == (0, [f"Signal account-server  pid: {pid}  signal: 10"])
    assert node.pids()["account-server.pid"] == pid

    reloaded = node.init("account", "reload")
    assert reloaded.returncode == 0
    assert node.pids()["account-server.pid"] != pid
    pid = node.pids()["account-server.pid"]
    stopped = node.init("account", "stop")
    assert stopped.returncode == 0
    assert lines(stopped) == [
        f"Signal account-server  pid: {pid}  signal: 15",
        f"account-server ({pid}) appears to have stopped",
    ]
    assert node.pids() == {}
    for verb, code in (("stop", 1), ("kill", 0), ("status", 1)):
        done = node.init("account", verb)
        assert (done.returncode, lines(done)) == (code, ["No account-server running"])


@pytest.mark.long
def test_groups_numbers_and_names_select_servers(node):
    for number, port in enumerate(free_ports(2), 1):
        node.write_conf("container", f"/{number}", port)
    (node.etc / "container-server.conf").unlink()
    started = node.init("main", "start")
    assert started.returncode == 0, "not all of a group need be there"
    assert "Unable to locate config for proxy-server" in started.stdout
    assert sorted(node.pids()) == [
        "account-server.pid",
        "container-server/1.pid",
        "container-server/2.pid",
        "object-server.pid",
    ]
    assert node.init("main", "start", "--strict").returncode == 1
    assert node.init("container.2", "stop").returncode == 0
    assert "container-server/2.pid" not in node.pids()
    assert node.init("container", "-c", "1", "stop").returncode == 0
    assert sorted(node.pids()) == ["account-server.pid", "object-server.pid"]
    assert node.init("proxy", "start").returncode == 1, "one that is named must be there"
    assert node.init("container.9", "start").returncode == 1
    ended = node.init("*-server", "shutdown")
    assert ended.returncode == 0
    assert "signal: 1" in ended.stdout
    assert node.pids() == {}


@pytest.mark.long
def test_daemons_run_once_or_forever_and_are_restarted_instead_of_reloaded(node):
    once = node.init("account-auditor", "once")
    assert once.returncode == 0
    assert lines(once) == [f"Running account-auditor once...({node.etc}/account-server.conf)"]
    assert json.loads((node.recon / "account.recon").read_text())["account_auditor_pass_completed"] >= 0
    assert node.init("account-auditor", "start").returncode == 0
    pid = node.pids()["account-auditor.pid"]
    assert node.init("account-auditor", "reload-seamless").returncode == 0
    assert node.pids()["account-auditor.pid"] != pid


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "service"),
    [
        *(("restart", "account-server"), ("restart", "account-auditor")),
        *(("reload", "account-server"), ("force-reload", "account-auditor")),
    ],
)
def test_an_invalid_configuration_stops_nothing(node, command, service):
    assert node.init("account-server", "account-auditor", "start").returncode == 0
    before = node.pids()
    conf = node.etc / "account-server.conf"
    section = "[DEFAULT]" if service == "account-server" else "[account-auditor]"
    option = "max_clients = many" if service == "account-server" else "interval = many"
    conf.write_text(conf.read_text().replace(section, f"{section}\n{option}"))
    done = node.init("account-server", "account-auditor", command)
    assert done.returncode == 1
    assert f"{service} would not start ({conf}): " in done.stdout and "many" in done.stdout
    assert "Signal" not in done.stdout
    assert node.pids() == before
    assert node.init("account-server", "account-auditor", "status").returncode == 0


@pytest.mark.long
def test_group_status_succeeds_on_a_node_that_runs_some_of_its_servers(node):
    started = node.init("all", "start")
    assert started.returncode == 0
    for text in (
        f"Unable to find account-reaper config section in {node.etc}/account-server.conf",
        "Unable to locate config for object-expirer",
        "Unable to locate config for container-reconciler",
        "Unable to locate config for s3-lifecycle",
    ):
        assert text in lines(started)
    kinds = ("account", "container", "object")
    assert sorted(node.pids()) == sorted(
        f"{kind}-{what}.pid" for kind in kinds for what in ("auditor", "server")
    )
    assert node.init("account-reaper", "start").returncode == 1, "one that is named must be configured"
    assert node.init("main", "reload-seamless").returncode == 0
    assert node.init("main", "reload-seamless", "--strict").returncode == 1
    assert node.init("account", "stop").returncode == 0
    assert node.init("main", "reload-seamless").returncode == 1, "one that is configured must run"


def test_a_server_that_cannot_start_reports_the_reason(node):
    node.write_conf("object", more="[app:nosuch]\n").write_text("[DEFAULT]\n")
    started = node.init("object", "start")
    assert started.returncode == 1
    assert "swift-object-server: " in started.stdout
    assert "Traceback" not in started.stdout + started.stderr
    assert lines(node.init("object", "status")) == ["No object-server running"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "ERROR: specify server(s) and command"),
        (("account",), "ERROR: specify server(s) and command"),
        (("account", "bogus"), "ERROR: unknown command, bogus"),
        (("account", "strat"), "ERROR: unknown command, strat; did you mean start?"),
        (("objct", "status"), "swift-init: unknown server objct; did you mean object?"),
        (("objct*", "status"), "swift-init: unknown server objct*; did you mean object?"),
    ],
)
def test_unknown_arguments_are_explained(words, sentence):
    done = run("swift-init", *words)
    assert (done.returncode, (done.stdout or done.stderr).splitlines()[-1]) == (1, sentence)


def test_pid_files_of_other_programs_are_removed(node):
    for name, text in (
        ("gone", "4194303"),
        ("of-init", "1"),
        ("of-this-test", str(os.getpid())),
        ("no", "x"),
    ):
        (node.run_dir / "object-server").mkdir(exist_ok=True)
        (node.run_dir / "object-server" / f"{name}.pid").write_text(text)
    done = node.init("object", "status")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "No object-server running")
    assert list((node.run_dir / "object-server").iterdir()) == []


@pytest.mark.long
def test_reload_names_servers_that_it_cannot_reload(node):
    assert node.init("account", "start").returncode == 0
    pid = node.pids()["account-server.pid"]
    done = run("swift-reload", pid, "-v")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "Reloaded swift-account-server")
    children = Path(f"/proc/{pid}/task/{pid}/children")
    LiveCluster.await_true(lambda: len(children.read_text().split()) == 1, "the former worker has ended")
    (worker,) = children.read_text().split()
    done = run("swift-reload", worker)
    assert (done.returncode, done.stderr) == (
        2,
        f"Process appears to be a swift-account-server worker, not a manager. Did you mean {pid}?\n",
    )
    assert run("swift-reload", os.getpid()).returncode == 2
    assert run("swift-reload", 4194303).stderr == "Failed to get process information for 4194303\n"
    conf = node.etc / "account-server.conf"
    conf.write_text(conf.read_text().replace("pipeline = recon", "pipeline = nosuch"))
    done = run("swift-reload", pid)
    assert done.returncode == 1
    assert "nosuch" in done.stderr
    assert accepts_connections("127.0.0.1", node.ports["account"])


def test_a_server_without_workers_refuses_a_reload_at_once(node):
    conf = node.etc / "account-server.conf"
    conf.write_text(conf.read_text().replace("workers = 1", "workers = 0"))
    assert node.init("account", "start").returncode == 0
    reason = "a server without workers (workers = 0) cannot be reloaded; restart it"
    done = run("swift-reload", node.pids()["account-server.pid"])
    assert (done.returncode, done.stderr) == (1, f"swift-account-server was not reloaded: {reason}\n")
    done = node.init("account", "reload-seamless")
    assert (done.returncode, lines(done)[-1].partition(": ")[2]) == (1, reason)


@pytest.mark.long
def test_processes_without_a_pid_file_are_orphans(node):
    assert node.init("account", "start").returncode == 0
    pid = node.pids()["account-server.pid"]
    conf = str(node.etc / "account-server.conf")
    old = run("swift-oldies", "-a", "0", "--format", "json")
    assert pid in {row["pid"] for row in json.loads(old.stdout)}
    assert str(pid) not in run("swift-oldies", "-p").stdout.split()
    assert conf not in run("swift-orphans", "-a", "0", "-w", "-r", node.run_dir).stdout
    assert conf in run("swift-orphans", "-a", "0", "-w", "-r", node.etc).stdout

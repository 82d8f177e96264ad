"""Servers and daemons started by shells, supervisors of other projects and the peer's swift-init."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from swift.aio.supervisor import accepts_connections
from swift.runtime.service.processes import wait_for_end
from test.support.peer import ToolNode, can_hide_etc, command, environment, needs_peer, peer_command

BIN = Path(sys.executable).parent


@pytest.fixture()
def node(tmp_path):
    made = ToolNode(tmp_path)
    yield made
    made.stop()


@pytest.mark.parametrize("service", ["account-server", "object-auditor"])
def test_a_shell_gets_the_output_of_a_start_at_once(node, service):
    conf = node.etc / f"{service.partition('-')[0]}-server.conf"
    script = 'out=$("$0" "$1" 2>&1 & echo $!); echo "$out"'
    done = subprocess.run(
        ["sh", "-c", script, *command(f"swift-{service}"), str(conf)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    pid = int(done.stdout)
    try:
        assert os.getsid(pid) == pid
        for each in (pid, *Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
            assert [os.readlink(f"/proc/{each}/fd/{fd}") for fd in (0, 1, 2)] == ["/dev/null"] * 3
    finally:
        os.kill(pid, signal.SIGTERM)
        assert wait_for_end(pid, 30)


def test_a_supervisor_that_collects_the_console_sees_the_log(node):
    conf = node.etc / "object-server.conf"
    # The port of the metrics page was not reserved by the test.
    text = conf.read_text().replace("[DEFAULT]\n", "[DEFAULT]\nmetrics_path =\n", 1)
    conf.write_text(text.replace("log_requests = false", "log_requests = true"))
    child = subprocess.Popen(
        [*command("swift-object-server"), str(conf), "-v"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert "Starting" in child.stderr.readline()
        assert child.stdout.read() == "", "standard output is closed although the server runs"
        while not accepts_connections("127.0.0.1", node.ports["object"]):
            time.sleep(0.05)
        subprocess.run(
            ["curl", "-s", f"http://127.0.0.1:{node.ports['object']}/nosuch"], check=True, capture_output=True
        )
    finally:
        child.terminate()
        _out, rest = child.communicate(timeout=30)
    assert '"GET /nosuch"' in rest, "workers log to the console too"


class PeerInit:
    """The peer's swift-init with our commands in the PATH, and the node's pid files in /run/swift.

    Its reload knows no other directory for them.
    """

    def __init__(self, node):
        self.node = node
        self.run = node.root / "hidden-run"
        self.run.mkdir()
        (self.run / "swift").symlink_to(node.run_dir)

    def __call__(self, *words, timeout_s=60):
        env = {**environment(), "PATH": f"{BIN}:{os.environ['PATH']}"}
        hide = 'mount --bind "$1" /run && shift && exec "$@"'
        words = peer_command("swift-init", *words, swift_dir=self.node.etc)
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", hide, "sh", self.run, *words],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env=env,
            check=False,
        )
        assert "Traceback" not in done.stdout + done.stderr
        return done.returncode, [line for line in done.stdout.splitlines() if not line.startswith("WARNING")]


@pytest.mark.peer
@needs_peer
@pytest.mark.skipif(not can_hide_etc(), reason="needs root and unshare(1) for an /etc of its own")
def test_the_peers_swift_init_starts_reloads_and_stops_our_services(node):
    init = PeerInit(node)
    for service in ("account-server", "account-auditor"):
        conf = "/etc/swift/account-server.conf"
        assert init(service, "start") == (0, [f"Starting {service}...({conf})"])
        pid = node.pids()[f"{service}.pid"]
        assert str(BIN) in Path(f"/proc/{pid}/cmdline").read_text(), "the command is ours"
        assert init(service, "status") == (0, [f"{service} running ({pid} - {conf})"])
        code, told = init(service, "reload")
        assert code == 0 and told[0].startswith(f"Signal {service}  pid: {pid}")
        pid = node.pids()[f"{service}.pid"]
        assert init(service, "stop") == (
            0,
            [f"Signal {service}  pid: {pid}  signal: 15", f"{service} ({pid}) appears to have stopped"],
        )
        assert init(service, "status") == (1, [f"No {service} running"])
    assert init("account-auditor", "once")[0] == 0
    assert init("account-server", "start")[0] == 0
    pid = node.pids()["account-server.pid"]
    assert init("account-server", "reload-seamless") == (
        0,
        [f"Signal account-server  pid: {pid}  signal: 10"],
    )
    assert init("account-server", "stop")[0] == 0

"""The supervisor of a cluster: its processes live until it ends them, whoever asked for them."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from swift.aio.plan import PlannedProcess
from swift.aio.ports import port_is_free
from swift.aio.supervisor import (
    JOBS_EVERY_S,
    PAUSE_MAX_S,
    PAUSE_MIN_S,
    STABLE_AFTER_S,
    AlreadyRunning,
    ProgramStarter,
    RestartDelays,
    RunLock,
    Supervisor,
    processes_of,
)
from swift.base.errors import ConfigError
from test.support.processes import free_ports

#: Listens on the port it is given, and ends at SIGTERM.
LISTENER = """
import signal, socket, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
sock = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    sock.accept()[0].close()
"""


@dataclass
class Small:
    """A plan of one server and the cache."""

    root: Path
    cache_port: int
    server: PlannedProcess
    ip: str = "127.0.0.1"

    @property
    def etc(self):
        return self.root

    @property
    def run(self):
        return self.root

    @property
    def logs(self):
        return self.root

    def servers(self):
        return [self.server]

    def daemons(self):
        return []

    def jobs(self):
        words = (sys.executable, "-c", f"open({str(self.root / 'counted')!r}, 'a').write('x')")
        return [PlannedProcess(f"job-{number}", words) for number in range(2)]

    @property
    def storage_ip(self):
        return self.ip

    #: As of a cluster without storage nodes: the server is in the place of the proxy.
    nodes = 0
    ec = ""

    def node_numbers(self):
        return range(1, self.nodes + 1)

    @property
    def proxy_port(self):
        return self.server.port

    @property
    def base_port(self):
        return 0


@pytest.fixture
def plan(tmp_path):
    cache, port = free_ports(2)
    return Small(tmp_path, cache, PlannedProcess("server", (sys.executable, "-c", LISTENER, str(port)), port))


@pytest.fixture
def supervisor(plan):
    made = Supervisor(plan, lambda _text: None)
    made.start()
    yield made
    made.end()


def state(plan):
    return {row["name"]: row["state"] for row in processes_of(plan)}


def test_processes_are_up_when_they_answer_and_their_state_can_be_asked(plan, supervisor):
    assert state(plan) == {"cache": "up", "server": "up"}


def test_who_reads_the_state_while_it_changes_reads_the_former_one_whole(plan, supervisor):
    with open(plan.run / "processes.json") as reader:
        former = supervisor.pid("server")
        supervisor.kill("server")
        for later_s in (0, 2):
            supervisor.restart_ended(time.monotonic() + later_s)
        assert supervisor.pid("server") != former
        assert former in [row["pid"] for row in json.load(reader)]
    assert supervisor.pid("server") in [row["pid"] for row in processes_of(plan)]


@pytest.mark.long
def test_what_a_thread_starts_again_outlives_that_thread(plan, supervisor):
    supervisor.kill("server")
    assert port_is_free(plan.ip, plan.server.port)
    thread = threading.Thread(target=supervisor.start_again, args=[["server"]])
    thread.start()
    thread.join()
    pid = supervisor.pid("server")
    until = time.monotonic() + 1
    while time.monotonic() < until:
        assert Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
        time.sleep(0.05)
    assert not port_is_free(plan.ip, plan.server.port)


@pytest.mark.long
def test_jobs_run_one_after_the_other_and_again_when_they_are_due(plan, supervisor):
    counted = plan.root / "counted"

    def run(until, times):
        deadline = time.monotonic() + 30
        while not counted.exists() or len(counted.read_text()) < times:
            supervisor.run_jobs(until)
            assert time.monotonic() < deadline
            time.sleep(0.01)
        # The next call takes note that the last one ended.
        supervisor.run_jobs(until)

    run(10.0, 2)
    supervisor.run_jobs(9.0 + JOBS_EVERY_S)
    assert counted.read_text() == "xx"
    run(10.0 + JOBS_EVERY_S, 4)


def test_all_are_gone_at_the_end_and_their_ports_free(plan, supervisor):
    supervisor.end()
    assert state(plan) == {}
    assert port_is_free(plan.ip, plan.server.port) and port_is_free(plan.ip, plan.cache_port)


@pytest.mark.long
def test_what_was_ended_may_be_started_anew(plan, supervisor):
    supervisor.end()
    supervisor.start()
    assert state(plan) == {"cache": "up", "server": "up"}


def test_one_that_ends_at_once_is_told_with_its_last_words_and_takes_the_others_along(plan):
    plan.server = PlannedProcess(
        "server", (sys.executable, "-c", "raise SystemExit('no disk')"), plan.server.port
    )
    with pytest.raises(ConfigError, match="server ended at once; .*no disk"):
        Supervisor(plan, lambda _text: None).start()
    assert port_is_free(plan.ip, plan.cache_port)


OBJECT_SERVER = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_REPLICATE(self):
        is_open = self.path == "/sdb1/0" or self.headers["X-Backend-Storage-Policy-Index"] == sys.argv[2]
        self.send_response(200 if is_open else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_args):
        print("no permission", flush=True)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


class OneNode(Small):
    """A plan of one object server with two devices, and two policies."""

    nodes, ec = 1, "2+1"
    base_port = 1

    def port(self, _kind, _node):
        return self.server.port

    def device_names(self, _node):
        return ["sdb1", "sdc1"]


@pytest.mark.parametrize("opens", ["", "0", "1"])
def test_a_cluster_with_a_device_that_cannot_be_opened_is_not_up(plan, opens):
    port = plan.server.port
    server = PlannedProcess("object-1", (sys.executable, "-c", OBJECT_SERVER, str(port), opens), port)
    one = OneNode(plan.root, plan.cache_port, server)
    with pytest.raises(ConfigError, match="object-1 cannot use sdc1; its log .* ends: no permission"):
        Supervisor(one, lambda _text: None).start()
    assert port_is_free(plan.ip, plan.cache_port)


def test_a_port_that_is_taken_is_named_before_anything_is_started(plan):
    supervisor = Supervisor(plan, lambda _text: None)
    supervisor.start()
    try:
        with pytest.raises(ConfigError, match=rf"ports {plan.cache_port} \(cache\), .* are taken"):
            Supervisor(plan, lambda _text: None).start()
        assert state(plan) == {"cache": "up", "server": "up"}
    finally:
        supervisor.end()


def test_one_supervisor_holds_a_data_directory(plan):
    first = RunLock(plan)
    assert first.holder() is None
    first.acquire()
    with pytest.raises(AlreadyRunning) as caught:
        RunLock(plan).acquire()
    assert caught.value.pid == os.getpid() == RunLock(plan).holder()


def test_a_process_that_dies_again_and_again_is_started_ever_more_rarely():
    pauses, now, waited = RestartDelays(), 0.0, []
    for _ in range(9):
        waited.append(pauses.after(now))
        now += waited[-1]
        pauses.began(now)
        now += 1
    assert waited[:3] == [PAUSE_MIN_S, 2 * PAUSE_MIN_S, 4 * PAUSE_MIN_S]
    assert waited[-1] == PAUSE_MAX_S == 5.0
    assert pauses.after(now + STABLE_AFTER_S) == PAUSE_MIN_S


@pytest.mark.process
def test_programs_do_not_import_another_swift_from_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "swift").mkdir()
    (tmp_path / "swift" / "__init__.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    starter = ProgramStarter()
    try:
        with open(tmp_path / "log", "wb") as log:
            assert starter.begin(("-m", "swift.aio.ports", "status", "x"), log).wait(30) == 0
    finally:
        starter.close()

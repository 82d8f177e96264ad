"""SIGUSR1 to a server under load: new workers take over, the former ones finish, no request is lost."""

import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from swift.runtime.notify import READY, reload_address
from test.support.cluster import LiveCluster, LoneServer
from test.support.object_servers import LoadClient

RELOADS = 4
CLIENTS = 4


@pytest.fixture()
def server(tmp_path):
    made = LoneServer(tmp_path, "object")
    made.start()
    LiveCluster.await_true(lambda: len(workers_of(made.process.pid)) == 2, "both workers run")
    yield made
    made.kill()


def workers_of(pid):
    """Return the pids of a process's children."""
    return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


class Ready:
    """Listens on the socket where a reloaded server reports that it is ready."""

    def __init__(self, pid):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(reload_address(pid))
        self.sock.settimeout(60)

    def wait(self):
        while self.sock.recv(256) != READY.encode():
            continue

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.sock.close()


def reload(server):
    with Ready(server.process.pid) as ready:
        os.kill(server.process.pid, signal.SIGUSR1)
        ready.wait()


def begun_upload(server):
    """Return a connection with a half-sent upload to a worker."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.putrequest("PUT", "/sda/1/a/c/slow")
    for name, value in (
        ("X-Timestamp", f"{time.time():.5f}"),
        ("Content-Type", "text/plain"),
        ("Content-Length", "8"),
        ("Expect", "100-continue"),
    ):
        connection.putheader(name, value)
    connection.endheaders()
    assert connection.sock.recv(4096).startswith(b"HTTP/1.1 100"), "a worker has begun with it"
    connection.send(b"half")
    return connection


@pytest.mark.long
def test_no_request_is_lost_under_load(server):
    stop = threading.Event()
    clients = [
        LoadClient(server.port, stop, name=str(number), keeps=number % 2 == 0) for number in range(CLIENTS)
    ]
    before = workers_of(server.process.pid)
    for client in clients:
        client.start()
    try:
        for _ in range(RELOADS):
            done = sum(client.seen.total() for client in clients)
            reload(server)
            LiveCluster.await_true(
                lambda done=done: sum(client.seen.total() for client in clients) > done + 50,
                "the new workers answer",
                60,
            )
    finally:
        stop.set()
        for client in clients:
            client.join(60)
    seen = sum((client.seen for client in clients), Counter())
    assert set(seen) == {200, 201}, seen
    assert server.process.poll() is None, "the master keeps its pid"
    LiveCluster.await_true(
        lambda: len(workers_of(server.process.pid)) == 2, "the former workers are gone", 30
    )
    assert not workers_of(server.process.pid) & before
    assert "Traceback" not in (server.root / "log").read_text()


def test_a_slow_upload_is_finished_by_the_worker_that_began_it(server):
    connection = begun_upload(server)
    before = workers_of(server.process.pid)
    reload(server)
    assert server.ask("PUT", "/sda/1/a/c/other", {"Content-Type": "text/plain"}, b"x").status == 201
    connection.send(b"half")
    response = connection.getresponse()
    assert response.status == 201
    assert response.getheader("Connection") == "close"
    response.read()
    LiveCluster.await_true(
        lambda: not workers_of(server.process.pid) & before, "the former workers are gone", 30
    )
    assert server.ask("GET", "/sda/1/a/c/slow").body == b"halfhalf"


def test_an_invalid_configuration_changes_nothing(server):
    before = workers_of(server.process.pid)
    text = server.conf.read_text()
    server.conf.write_text(text.replace("pipeline = object-server", "pipeline = nosuch object-server"))
    os.kill(server.process.pid, signal.SIGUSR1)
    LiveCluster.await_true(
        lambda: "reload refused" in (server.root / "log").read_text(), "the reload is refused", 60
    )
    assert server.ask("PUT", "/sda/1/a/c/o", {"Content-Type": "text/plain"}, b"x").status == 201
    assert workers_of(server.process.pid) == before
    server.conf.write_text(text)
    reload(server)
    assert server.ask("GET", "/sda/1/a/c/o").status == 200


@pytest.mark.long
def test_workers_continue_when_the_new_process_image_cannot_start(server):
    """The new port is occupied only after the configuration check has passed."""
    before = workers_of(server.process.pid)
    text = server.conf.read_text()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server.conf.write_text(
            text.replace(f"bind_port = {server.port}\n", f"bind_port = {port}\nbind_timeout = 1\n")
        )
        os.kill(server.process.pid, signal.SIGUSR1)
        LiveCluster.await_true(
            lambda: "the old workers continue" in (server.root / "log").read_text(),
            "the reload fails",
            60,
        )
    assert "Traceback" not in (server.root / "log").read_text()
    assert server.ask("PUT", "/sda/1/a/c/o", {"Content-Type": "text/plain"}, b"x").status == 201
    assert workers_of(server.process.pid) == before
    server.conf.write_text(text)
    reload(server)
    assert server.ask("GET", "/sda/1/a/c/o").status == 200
    LiveCluster.await_true(
        lambda: not workers_of(server.process.pid) & before, "the former workers are gone", 30
    )


def test_sighup_frees_the_port_at_once_and_ends_after_all_responses(server):
    connection = begun_upload(server)
    os.kill(server.process.pid, signal.SIGHUP)
    LiveCluster.await_true(lambda: not _can_connect(server.port), "nobody listens")
    connection.send(b"half")
    assert connection.getresponse().status == 201
    server.process.wait(30)


def _can_connect(port):
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.long
def test_a_proxy_reloads_without_losing_a_request(own_cluster):
    pid, stop, seen = own_cluster.pid("proxy"), threading.Event(), Counter()
    assert own_cluster.request("PUT", "c").status == 201

    def work(number):
        turn = 0
        while not stop.is_set():
            turn += 1
            seen[own_cluster.request("PUT", f"c/{number}-{turn % 20}", body=b"x" * 3000).status] += 1
            seen[own_cluster.request("GET", f"c/{number}-{turn % 20}").status] += 1

    workers = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for worker in workers:
        worker.start()
    try:
        for _ in range(2):
            with Ready(pid) as ready:
                os.kill(pid, signal.SIGUSR1)
                ready.wait()
            done = seen.total()
            own_cluster.await_true(lambda done=done: seen.total() > done + 20, "the new workers answer", 60)
    finally:
        stop.set()
        for worker in workers:
            worker.join(60)
    assert set(seen) == {200, 201}, seen
    assert own_cluster.pid("proxy") == pid


#: A command of a release: it logs its release and its interpreter when it starts.
COMMAND = """\
#!{bin}/python
import sys
with open({log!r}, "a") as log:
    log.write("{release} " + sys.executable + chr(10))
from swift.entry import {entry}
sys.exit({entry}())
"""


class Releases:
    """Two installed releases, and a symlink to the one in use."""

    def __init__(self, root):
        self.root = root
        self.log = root / "releases.log"
        for release in ("swift-1", "swift-2"):
            programs = root / release / "bin"
            programs.mkdir(parents=True)
            (programs / "python").symlink_to(os.path.realpath(sys.executable))
            (root / release / "lib").symlink_to(Path(sys.prefix) / "lib")
            shutil.copy(Path(sys.prefix) / "pyvenv.cfg", root / release)
            for name in ("swift-object-server", "swift-init"):
                entry = name.replace("-", "_")
                log = str(self.log)
                text = COMMAND.format(bin=programs, log=log, release=release, entry=entry)
                (programs / name).write_text(text)
                (programs / name).chmod(0o755)
        self.use("swift-1")

    def use(self, release):
        link = self.root / "link"
        link.symlink_to(release)
        link.rename(self.root / "current")

    def init(self, path, *words):
        """Run swift-init; return the lines that commands of releases wrote."""
        self.log.write_text("")
        run, conf = self.root / "run", self.root
        command = [path, "object-server", *words, "--run-dir", run, "--swift-dir", conf]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return self.log.read_text().splitlines()


@pytest.mark.long
@pytest.mark.parametrize("way", ["current/bin/swift-init", "bin/swift-init"])
def test_a_reload_executes_the_release_that_the_symlink_names(tmp_path, way):
    server = LoneServer(tmp_path, "object")
    releases = Releases(tmp_path)
    (tmp_path / "bin").mkdir()
    for name in ("swift-init", "swift-object-server"):
        (tmp_path / "bin" / name).symlink_to(tmp_path / "current/bin" / name)
    swift_init = tmp_path / way
    first, second = (f"{release} {tmp_path}/{release}/bin/python" for release in ("swift-1", "swift-2"))
    try:
        assert releases.init(swift_init, "start") == [first, first]
        pid = int((tmp_path / "run/object-server.pid").read_text())
        releases.use("swift-2")
        # swift-init itself, the check of the configuration, and the new process image.
        assert releases.init(swift_init, "reload-seamless") == [second] * 3
        assert f"{tmp_path}/swift-2/bin/python".encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert server.ask("GET", "/healthcheck-of-nothing").status == 400
        # And back, from a process image that a reload executed.
        releases.use("swift-1")
        assert releases.init(swift_init, "reload-seamless") == [first] * 3
    finally:
        releases.init(swift_init, "kill")

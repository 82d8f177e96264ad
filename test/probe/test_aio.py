"""swift-aio as its users run it: exit codes, messages, and no process left behind."""

import contextlib
import http.client
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from swift.aio.metadatalimits import measure_attribute_room
from swift.base.errors import ConfigError
from test.support.cluster import LiveCluster, login
from test.support.peer import run
from test.support.processes import free_ports, free_range

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 60


class Command:
    """Runs swift-aio on one data directory with its own ports."""

    def __init__(self, data):
        self.data = data
        self.proxy_port, cache_port = free_ports(2)
        base = free_range(60)
        self.options = ["--port", str(self.proxy_port), "--base-port", str(base)]
        self.options += ["--cache-port", str(cache_port), "--workers", "1", "--key", "testing"]
        #: The search path for programs such as memcached.
        self.path = os.environ.get("PATH", "")

    def line(self, verb, *more):
        return [sys.executable, "-m", "swift.cli.aio", verb, str(self.data), *more]

    def run(self, verb, *more):
        if verb != "start":
            return run("swift-aio", verb, self.data, *more)
        # What a start leaves running has its command line.
        return subprocess.run(
            self.line(verb, *more),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={**os.environ, "PATH": self.path},
        )

    def start(self, *more):
        return self.run("start", *self.options, *more)

    def status(self):
        return json.loads(self.run("status", "--format", "json").stdout)

    @contextlib.contextmanager
    def foreground(self):
        """Start ``start --foreground`` and wait until it reports that it is up; kill it at the end."""
        process = subprocess.Popen(
            self.line("start", *self.options, "--foreground"), cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        try:
            for line in process.stdout:
                if "is up: " in line and "device" in line:
                    break
            yield process
        finally:
            process.kill()
            process.wait(WAIT_S)
            process.stdout.close()
            LiveCluster.await_true(lambda: not self.processes(), "all processes are gone")

    def processes(self):
        """Command lines of all live processes that name this data directory or its cache port."""
        needles = [str(self.data).encode()]
        found = {}
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = path.read_bytes().split(b"\0")
                is_cache = b"memcached" in words[0] and self.options[5].encode() in words
                if is_cache or any(needle in word for word in words for needle in needles):
                    found[int(path.parent.name)] = b" ".join(words).decode()
        found.pop(os.getpid(), None)
        return found

    def request(self, method, path, body=None):
        host = f"127.0.0.1:{self.proxy_port}"
        connection = http.client.HTTPConnection(host, timeout=30)
        try:
            headers = {"X-Auth-Token": login(host, "test:tester")}
            connection.request(method, f"/v1/AUTH_test/{path}", body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


def error_line_of(done):
    """The one line that a command says on standard error; what Python says of ``-m`` is not its own."""
    (line,) = [line for line in done.stderr.splitlines() if "RuntimeWarning" not in line]
    return line


@pytest.fixture()
def aio(tmp_path):
    """Return a maker of commands for data directories; kill remaining processes at the end."""
    made = []

    def make(name="data"):
        made.append(Command(tmp_path / name))
        return made[-1]

    yield make
    for command in made:
        command.run("stop")
        if (command.data / "images").exists():
            command.run("clean", "--yes")
        for pid in command.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.long
def test_two_clusters_run_side_by_side_with_separate_data(aio):
    one, two = aio("one"), aio("two")
    started = one.start()
    assert started.returncode == 0, started.stderr
    assert f"http://127.0.0.1:{one.proxy_port}/v1/AUTH_test" in started.stdout
    for word in ("test:tester", "testing", f"swift-aio stop {one.data}"):
        assert word in started.stdout
    assert two.start().returncode == 0

    again = one.start()
    assert again.returncode == 1
    assert f"already running (supervisor pid {one.status()['supervisor']})" in again.stderr
    assert one.run("start", "--foreground").returncode == 1
    running_clean = one.run("clean", "--yes")
    assert (running_clean.returncode, "is running" in running_clean.stderr) == (1, True)

    for command, body in ((one, b"of one"), (two, b"of two")):
        assert command.request("PUT", "c")[0] == 201
        assert command.request("PUT", "c/o", body)[0] == 201
    status = one.status()
    assert status["running"]
    names = {row["name"] for row in status["processes"]}
    assert {"proxy", "cache", "object-1", "container-4", "account-2"} <= names
    assert [row for row in status["processes"] if row["state"] != "up"] == []
    text = one.run("status")
    assert text.returncode == 0
    assert "proxy" in text.stdout
    assert f"endpoint  http://127.0.0.1:{one.proxy_port}/v1/AUTH_test\n" in text.stdout
    assert "user      test:tester\n  key       testing\n" in text.stdout

    stopped = one.run("stop")
    assert (stopped.returncode, stopped.stdout) == (0, "stopped\n")
    assert one.processes() == {}
    assert one.run("stop").stdout == "not running\n"
    assert one.run("status").returncode == 3
    assert not one.status()["running"]
    assert two.request("GET", "c/o") == (200, b"of two")
    assert one.run("start", "--nodes", "7").returncode == 1

    one.proxy_port, base, cache = free_ports(1)[0], free_range(60), free_ports(1)[0]
    moved = ("--port", str(one.proxy_port), "--base-port", str(base), "--cache-port", str(cache))
    assert one.run("start", *moved).returncode == 0
    assert {row["port"] for row in one.status()["processes"]} >= {one.proxy_port, base + 10, cache}
    assert one.request("GET", "c/o") == (200, b"of one")
    assert one.run("stop").returncode == 0
    assert one.run("clean", "--yes").returncode == 0
    assert not one.data.exists()
    assert two.request("GET", "c/o") == (200, b"of two")
    assert one.run("status").returncode == 1


@pytest.mark.long
@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_a_signal_to_the_foreground_leaves_no_process(aio, sig):
    command = aio()
    with command.foreground() as process:
        assert len(command.processes()) > 12
        assert command.request("PUT", "c")[0] == 201
        process.send_signal(sig)
        assert process.wait(WAIT_S) == 0
        assert command.processes() == {}


@pytest.mark.long
def test_a_signal_during_startup_leaves_no_process(aio):
    command = aio()
    process = subprocess.Popen(
        command.line("start", *command.options, "--foreground"),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        LiveCluster.await_true(lambda: len(command.processes()) > 3, "the first servers were started")
        process.send_signal(signal.SIGINT)
        _, words = process.communicate(timeout=WAIT_S)
    assert process.returncode != 0
    assert "Traceback" not in words
    assert command.processes() == {}


@pytest.mark.long
def test_kill_9_of_the_supervisor_leaves_no_process(aio):
    command = aio()
    assert command.start().returncode == 0
    assert command.request("PUT", "c")[0] == 201
    os.kill(command.status()["supervisor"], signal.SIGKILL)
    LiveCluster.await_true(lambda: not command.processes(), "all processes are gone", WAIT_S)
    assert not command.status()["running"]
    assert command.start().returncode == 0, "a killed cluster starts again"
    assert command.request("HEAD", "c")[0] == 204


@pytest.mark.long
def test_an_occupied_port_is_reported(aio):
    command = aio()
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", command.proxy_port))
        taken.listen()
        for more in ((), ("--foreground",)):
            done = command.start(*more)
            assert done.returncode == 1
            assert f"port {command.proxy_port} (proxy) is taken; choose others, such as --port" in done.stderr
            assert "Traceback" not in done.stderr
        assert command.processes() == {}
        # Nothing was created, so the user can follow the advice and start again.
        assert not command.data.exists()
        command.options[1] = str(free_ports(1)[0])
        assert command.start().returncode == 0
        assert command.run("stop").returncode == 0


@pytest.mark.long
def test_a_server_that_dies_is_started_again(aio):
    command = aio()
    assert command.start("--nodes", "3").returncode == 0
    rows = {row["name"]: row["pid"] for row in command.status()["processes"]}
    victims = ("object-1", "proxy", "daemons-2")
    for name in victims:
        os.kill(rows[name], signal.SIGKILL)

    def all_are_back():
        status = {row["name"]: row for row in command.status()["processes"]}
        return all(status[name]["state"] == "up" and status[name]["pid"] != rows[name] for name in victims)

    LiveCluster.await_true(all_are_back, "the dead ones are up again", WAIT_S)
    assert command.request("PUT", "c")[0] == 201
    assert command.run("stop").returncode == 0
    assert command.processes() == {}


@pytest.mark.long
def test_other_users_cannot_read_stored_data(aio):
    command = aio()
    assert command.start("--nodes", "3", "--ec", "none").returncode == 0
    assert command.request("PUT", "c")[0] == 201
    assert command.request("PUT", "c/o", b"body")[0] == 201
    devices = [command.data / f"node{n}" / f"sdb{n}" for n in (1, 2, 3)]
    assert {device.stat().st_mode & 0o777 for device in devices} == {0o700}
    files = [path for d in devices for end in (".data", ".db", ".pending") for path in d.rglob(f"*{end}")]
    assert len(files) >= 9
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_a_disk_that_fills_up_during_creation_leaves_nothing(aio):
    command = aio()
    done = subprocess.run(
        command.line("start", *command.options),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        # A file size limit stands in for a full device: the configuration fits, rings do not.
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000)),
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert not command.data.exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--workers", "-1"), "--workers must be at least 0"),
        (("--nodes", "0"), "--nodes must be at least 1"),
        (("--replicas", "0"), "--replicas must be at least 1"),
        (("--ip", "nonsense"), "is not an address of this machine"),
        (("--ip", "192.0.2.1"), "is not an address of this machine"),
        (("--cache-port", "9080", "--port", "9080"), "would both listen on port 9080"),
        (("--base-port", "64990", "--nodes", "60"), "is beyond 65535"),
        (("--ec", "2+"), "an erasure code is K+M"),
    ],
    ids=str,
)
def test_invalid_values_are_reported_before_anything_is_created(aio, options, words):
    command = aio()
    done = command.start(*options)
    assert done.returncode == 1
    assert words in error_line_of(done)
    assert not command.data.exists()


@pytest.mark.long
def test_clean_removes_only_clusters_and_only_when_confirmed(aio):
    command = aio()
    command.data.mkdir()
    for plan in ('{"version": 1}', "[]", "{}", "[" * 5000, '{"version": 1, "ip": 5}'):
        (command.data / "aio.json").write_text(plan)
        assert command.run("clean", "--yes").returncode == 1
        assert (command.data / "aio.json").exists()
    (command.data / "aio.json").unlink()
    assert command.start("--nodes", "3").returncode == 0
    assert command.run("stop").returncode == 0
    letter = command.data / "letter.txt"
    letter.write_text("dear")
    done = command.run("clean", "--yes")
    assert (done.returncode, "letter.txt" in done.stderr) == (1, True)
    assert (command.data / "node1").exists()
    letter.unlink()
    asked = subprocess.run(
        command.line("clean"), cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert (asked.returncode, "--yes" in error_line_of(asked)) == (1, True)
    assert command.run("clean", "--yes").returncode == 0
    assert not command.data.exists()


@pytest.mark.long
def test_a_directory_that_is_no_cluster_is_left_unchanged(aio):
    command = aio()
    command.data.mkdir()
    (command.data / "letter.txt").write_text("dear")
    done = command.start()
    assert done.returncode == 1
    assert "is not empty and not a cluster" in done.stderr
    assert [path.name for path in command.data.iterdir()] == ["letter.txt"]
    for verb in ("status", "stop", "clean"):
        done = command.run(verb)
        assert done.returncode == 1
        assert "there is no cluster in" in done.stderr
    (command.data / "aio.json").write_text("{}")
    done = command.run("start")
    assert done.returncode == 1
    assert "is not a plan of swift-aio" in done.stderr


@pytest.fixture()
def without_attributes(tmp_path):
    """Return a directory whose filesystem does not support user attributes."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a filesystem without user attributes")
    place = tmp_path / "bare"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "ramfs", "none", place], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"cannot mount a ramfs here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_filesystem_without_user_attributes_is_refused_at_once(aio, without_attributes):
    with pytest.raises(ConfigError, match="does not take user extended attributes"):
        measure_attribute_room(without_attributes)
    command = aio("bare/data")
    done = command.start()
    assert done.returncode == 1
    assert "does not take user extended attributes" in done.stderr
    assert "--xfs" in done.stderr
    assert "Traceback" not in done.stderr
    assert command.processes() == {}


@pytest.mark.long
def test_devices_on_xfs_images_are_mounted_and_unmounted(aio):
    if os.geteuid() != 0 or shutil.which("mkfs.xfs") is None:
        pytest.skip("needs root and mkfs.xfs")
    if not os.path.exists("/dev/loop-control"):
        pytest.skip("needs loop devices")
    command = aio()
    done = command.start("--xfs", "--nodes", "3")
    assert done.returncode == 0, done.stderr
    mounts = [command.data / f"node{n}" / f"sdb{n}" for n in (1, 2, 3)]
    assert all(map(os.path.ismount, mounts))
    assert command.request("PUT", "c")[0] == 201
    assert command.request("PUT", "c/o", b"on xfs")[0] == 201
    assert command.run("stop").returncode == 0
    assert not any(map(os.path.ismount, mounts))
    assert command.run("start").returncode == 0
    assert command.request("GET", "c/o") == (200, b"on xfs")

    started = time.monotonic()
    os.kill(command.status()["supervisor"], signal.SIGKILL)
    LiveCluster.await_true(lambda: not command.processes(), "all processes are gone", WAIT_S)
    assert time.monotonic() - started < WAIT_S
    assert command.run("clean", "--yes").returncode == 0
    assert not any(map(os.path.ismount, mounts))
    assert not command.data.exists()


@pytest.mark.long
def test_a_machine_without_memcached_still_has_a_cache(aio, tmp_path):
    command = aio()
    command.path = str(tmp_path)
    assert command.start("--nodes", "3").returncode == 0
    (cache,) = [row for row in command.status()["processes"] if row["name"] == "cache"]
    assert b"swift.aio.cache" in Path(f"/proc/{cache['pid']}/cmdline").read_bytes()
    assert command.request("PUT", "c")[0] == 201
    assert command.request("PUT", "c/o", b"body")[0] == 201
    assert command.request("GET", "c/o") == (200, b"body")
    with socket.create_connection(("127.0.0.1", int(command.options[5])), 10) as wire:
        wire.sendall(b"get no-such-key\r\nquit\r\n")
        error_line_of = b"".join(iter(lambda: wire.recv(65536), b""))
    assert error_line_of == b"END\r\n"
    os.kill(cache["pid"], signal.SIGKILL)
    LiveCluster.await_true(lambda: command.request("GET", "c/o")[0] == 200, "reads go on without the cache")
    assert command.run("stop").returncode == 0

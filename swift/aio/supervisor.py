"""Running the processes of a cluster and ending them, all of them, whatever happens.

The supervisor starts the cache and the servers as its children, waits until each answers, and then
sleeps until a signal; a child that ends on its own is started again after a pause. Children die with it even
when it is killed (parent-death signal).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import BinaryIO, Protocol

from swift.aio.plan import ClusterPlan, PlannedProcess, plan_listeners
from swift.aio.ports import port_is_free, taken_ports_message
from swift.base.errors import ConfigError, SwiftError
from swift.cluster.serverauth import ServerSecrets, Signer
from swift.config.cluster import ServerAuthSettings
from swift.http import fields
from swift.ring.device import address
from swift.runtime.workers import die_with_parent

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 15.0
#: Bounds of the pause before a process that ended is started again, and the life after which it counts as
#: well, seconds.
PAUSE_MIN_S = 1.0
PAUSE_MAX_S = 5.0
STABLE_AFTER_S = 60.0
#: Jobs begin anew after so long, seconds, as the timers of nodes do.
JOBS_EVERY_S = 300.0

Report = Callable[[str], None]


class Child(Protocol):
    """A process that was begun, as ``subprocess.Popen`` is one; its pid is also that of its group."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None:
        """Return its exit status, None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait ``timeout`` seconds for its exit status; raises ``subprocess.TimeoutExpired``."""

    def send_signal(self, sig: int) -> None:
        """Send it a signal unless it has ended."""


class ProcessStarter(Protocol):
    """Begins processes."""

    def begin(self, args: Sequence[str], log: BinaryIO) -> Child:
        """Return a process of these words (``-m`` as the first: of this Python) in a session of its own.

        Its output goes to ``log``, and it ends with this one. Raises OSError.
        """

    def close(self) -> None:
        """Begin no more, for now."""


class ProgramStarter:
    """Runs programs. Children die with the thread that began them, so one thread begins all."""

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None

    def begin(self, args: Sequence[str], log: BinaryIO) -> Child:
        """See ``ProcessStarter``."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "supervisor")
        began = self._thread.submit(
            subprocess.Popen,
            # A folder of another swift, e.g. a checkout of OpenStack Swift, may be the working directory.
            args if args[0] != "-m" else (sys.executable, "-P", *args),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=die_with_parent,
            start_new_session=True,
        )
        return began.result()

    def close(self) -> None:
        """End the thread, and with it what it began."""
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None


class AlreadyRunning(SwiftError):
    """Another supervisor holds the lock of this data directory."""

    def __init__(self, pid: int):
        super().__init__(f"already running (supervisor pid {pid})")
        self.pid = pid


class RunLock:
    """An exclusive lock on the data directory; its file names the supervisor."""

    def __init__(self, plan: ClusterPlan):
        self._path = plan.run / "aio.pid"
        self._file: object = None

    def acquire(self) -> None:
        """Take the lock; raises ``AlreadyRunning``."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(self._path, "a+")  # noqa: SIM115 - held open as long as the lock
        os.set_inheritable(self._file.fileno(), False)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            raise AlreadyRunning(self.holder() or 0)
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n")
        self._file.flush()

    def holder(self) -> int | None:
        """Return the pid of the running supervisor, None when the lock is free."""
        try:
            with open(self._path, "r+") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    text = file.read().strip()
                    return int(text) if text.isdigit() else 0
        except FileNotFoundError:
            return None
        return None


def cache_process(plan: ClusterPlan) -> PlannedProcess:
    """Return memcached if it is installed, else the built-in cache server."""
    port = str(plan.cache_port)
    memcached = shutil.which("memcached")
    if memcached:
        user = ("-u", "root") if os.geteuid() == 0 else ()
        return PlannedProcess(
            "cache",
            (memcached, "-l", plan.storage_ip, "-p", port, "-m", "64", "-U", "0", *user),
            plan.cache_port,
            plan.storage_ip,
        )
    args = ("-m", "swift.aio.cache", plan.storage_ip, port)
    return PlannedProcess("cache", args, plan.cache_port, plan.storage_ip)


def check_ports(plan: ClusterPlan) -> None:
    """Raise ``ConfigError`` naming a port that something listens on already."""
    if problem := taken_ports_message(plan_listeners(plan)):
        raise ConfigError(problem)


def accepts_connections(ip: str, port: int) -> bool:
    """Return True if something accepts connections there."""
    with contextlib.suppress(OSError), socket.create_connection((ip, port), 2.0):
        return True
    return False


class RestartDelays:
    """Delays before an ended process is restarted: doubled each time.

    One that has lived for ``STABLE_AFTER_S`` is trusted anew.
    """

    def __init__(self) -> None:
        self._next_s = PAUSE_MIN_S
        self._began: float | None = None

    def began(self, now: float) -> None:
        """Note a restart."""
        self._began = now

    def after(self, now: float) -> float:
        """Return the seconds to wait after the process ended."""
        if self._began is None or now - self._began >= STABLE_AFTER_S:
            self._next_s = PAUSE_MIN_S
        pause_s, self._next_s = self._next_s, min(2 * self._next_s, PAUSE_MAX_S)
        return pause_s


class Supervisor:
    """Starts, watches and ends the processes of one plan."""

    def __init__(self, plan: ClusterPlan, report: Report, beginner: ProcessStarter | None = None):
        self._plan = plan
        self._report = report
        self._starter = beginner or ProgramStarter()
        self._children: dict[str, Child] = {}
        self._processes: dict[str, PlannedProcess] = {}
        self._restart_delays: defaultdict[str, RestartDelays] = defaultdict(RestartDelays)
        #: When those that have ended are started again, monotonic seconds.
        self._restart_at: dict[str, float] = {}
        #: Jobs that are due, the one that runs, and when they are due again (monotonic seconds).
        self._due_jobs: list[PlannedProcess] = []
        self._job: Child | None = None
        self._jobs_at = 0.0
        self._stop = 0

    def start(self) -> None:
        """Start everything and wait until it answers; raises ``ConfigError`` after ending all of it."""
        servers = [cache_process(self._plan), *self._plan.servers()]
        daemons = list(self._plan.daemons())
        check_ports(self._plan)
        try:
            for process in servers:
                self._spawn(process)
            self._write_state(servers)
            self._await_ports(servers)
            self._check_devices()
            # Requests do not need the daemons, so these start when the cluster already serves.
            for process in daemons:
                self._spawn(process)
            self._write_state([*servers, *daemons])
        except BaseException:
            self.end()
            raise

    def _spawn(self, process: PlannedProcess) -> None:
        self._processes[process.name] = process
        with open(self._plan.logs / f"{process.name}.log", "ab", buffering=0) as log:
            self._children[process.name] = self._starter.begin(process.args, log)

    def _write_state(self, processes: list[PlannedProcess]) -> None:
        rows = [
            {"name": p.name, "pid": self._children[p.name].pid, "port": p.port, "ip": p.ip} for p in processes
        ]
        path = _state_file(self._plan)
        # Atomic, since others read it at any time. Without a sync: it is not needed after a boot.
        written = path.with_suffix(".new")
        written.write_text(json.dumps(rows))
        written.replace(path)

    def _await_ports(self, processes: list[PlannedProcess]) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        waiting = {p.name: p for p in processes}
        while waiting:
            for name, process in list(waiting.items()):
                if self._children[name].poll() is not None:
                    raise ConfigError(f"{name} ended at once; {self._last_log_lines(name)}")
                if process.port is None or accepts_connections(process.ip, process.port):
                    del waiting[name]
                    self._report(f"{len(processes) - len(waiting)}/{len(processes)} {name} is up")
            if waiting and time.monotonic() > deadline:
                raise ConfigError(f"{', '.join(waiting)} did not come up in {START_TIMEOUT_S:g} s")
            if self._stop:
                raise ConfigError("interrupted")
            time.sleep(0.02)

    def _check_devices(self) -> None:
        """Raise ``ConfigError`` for a device that its object server cannot open."""
        policies = ("0", "1") if self._plan.ec else ("0",)
        signer = Signer(ServerSecrets(str(self._plan.etc / ServerAuthSettings.secret_file)))
        for node in self._plan.node_numbers():
            name = f"object-{node}"
            ip, port = self._plan.storage_ip, self._plan.port("object", node)
            connection = http.client.HTTPConnection(ip, port, timeout=START_TIMEOUT_S)
            with contextlib.closing(connection):
                for device, policy in product(self._plan.device_names(node), policies):
                    headers = {
                        "host": address(ip, port),
                        "accept-encoding": "identity",
                        fields.BACKEND_STORAGE_POLICY_INDEX: policy,
                    }
                    path = f"/{device}/0"
                    if text := signer.text_of("REPLICATE", path, headers["host"], headers):
                        line = signer.line(text).decode().strip()
                        headers[fields.BACKEND_SERVER_AUTH] = line.partition(": ")[2]
                    try:
                        # Hashes of a partition: a device is opened for them.
                        connection.request("REPLICATE", path, headers=headers)
                        response = connection.getresponse()
                        response.read()
                    except (OSError, http.client.HTTPException) as error:
                        raise ConfigError(f"{name} does not respond: {error}; {self._last_log_lines(name)}")
                    if response.status >= 400:
                        raise ConfigError(f"{name} cannot use {device}; {self._last_log_lines(name)}")

    def _last_log_lines(self, name: str) -> str:
        path = self._plan.logs / f"{name}.log"
        lines = path.read_text(errors="replace").strip().splitlines()
        return f"its log {path} ends: {lines[-1] if lines else '(empty)'}"

    def handle_signals(self) -> None:
        """End at SIGTERM, SIGINT and SIGHUP."""
        for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(sig, self._on_signal)

    def _on_signal(self, number: int, _frame: object) -> None:
        self._stop = number

    def watch(self) -> None:
        """Watch until stopped; restart processes that end on their own, and rotate logs."""
        rotated_s = time.monotonic()
        while not self._stop:
            now_s = time.monotonic()
            self.restart_ended(now_s)
            self.run_jobs(now_s)
            if now_s - rotated_s >= ROTATED_EVERY_S:
                rotated_s = now_s
                self._rotate_logs()
            time.sleep(0.2)

    def _rotate_logs(self) -> None:
        try:
            for name in rotate(self._plan.logs):
                self._report(f"{name} was too long; its former content is in {name}.1")
        except OSError as error:
            self._report(f"a log cannot be rotated: {error}")

    def restart_ended(self, now: float) -> None:
        """Report ended processes, and restart those whose delay is over (monotonic seconds)."""
        for name, child in list(self._children.items()):
            if child.poll() is None:
                continue
            again_at = self._restart_at.get(name)
            if again_at is None:
                pause_s = self._restart_delays[name].after(now)
                self._restart_at[name] = now + pause_s
                self._report(
                    f"{name} (pid {child.pid}) ended with status {child.returncode}; again in {pause_s:g} s"
                )
            elif now >= again_at:
                process = self._processes[name]
                if process.port is not None and not port_is_free(process.ip, process.port):
                    # Its workers have not noticed yet, or it was started by hand.
                    self._restart_at[name] = now + PAUSE_MIN_S
                    continue
                del self._restart_at[name]
                self._spawn(process)
                self._restart_delays[name].began(now)
                self._write_state(list(self._processes.values()))
                self._report(f"{name} was started again (pid {self._children[name].pid})")

    def run_jobs(self, now: float) -> None:
        """Begin the next job that is due, if none runs; they run one after the other (monotonic seconds)."""
        if self._job is not None and self._job.poll() is None:
            return
        if not self._due_jobs and now >= self._jobs_at:
            self._due_jobs, self._jobs_at = list(self._plan.jobs()), now + JOBS_EVERY_S
        self._job = None
        if self._due_jobs:
            job = self._due_jobs.pop(0)
            with open(self._plan.logs / "jobs.log", "ab", buffering=0) as log:
                self._job = self._starter.begin(job.args, log)

    def pid(self, name: str) -> int:
        """Return the process of this name, e.g. ``object-1``; raises KeyError."""
        return self._children[name].pid

    def kill(self, name: str) -> None:
        """End a process and its workers by force; only ``start_again`` restarts it.

        Raises ``ConfigError`` when its port stays in use.
        """
        child, process = self._children[name], self._processes[name]
        port = process.port
        _signal_group(child, signal.SIGKILL)
        child.wait()
        deadline = time.monotonic() + STOP_TIMEOUT_S
        # Workers end after their parent, and until then take connections of the next process.
        while port is not None and not port_is_free(process.ip, port):
            if time.monotonic() > deadline:
                raise ConfigError(f"port {port} of {name} is still in use")
            time.sleep(0.01)

    def start_again(self, names: Sequence[str]) -> None:
        """Start processes that were killed and wait until they answer; raises ``ConfigError``."""
        again = [self._processes[name] for name in names]
        for process in again:
            self._spawn(process)
        self._await_ports(again)

    def end(self) -> None:
        """End every process, by force after the timeout."""
        if self._job is not None:
            _signal_group(self._job, signal.SIGKILL)
            self._job.wait()
            self._job = None
        for child in reversed(self._children.values()):
            _signal_group(child, signal.SIGTERM)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        for child in self._children.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(max(0.0, deadline - time.monotonic()))
        for child in self._children.values():
            _signal_group(child, signal.SIGKILL)
            child.wait()
        self._starter.close()
        with contextlib.suppress(FileNotFoundError):
            _state_file(self._plan).unlink()


def _state_file(plan: ClusterPlan) -> Path:
    return plan.run / "processes.json"


def _signal_group(child: Child, sig: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sig == signal.SIGKILL:
            os.killpg(child.pid, sig)
        elif child.poll() is None:
            child.send_signal(sig)


def processes_of(plan: ClusterPlan) -> list[dict[str, object]]:
    """Return the recorded processes with their state: up, silent (has a port but does not answer) or dead."""
    try:
        rows = json.loads(_state_file(plan).read_text())
    except FileNotFoundError:
        return []
    for row in rows:
        row["state"] = _process_state(row["pid"], row.get("ip", plan.storage_ip), row["port"])
    return rows


def _process_state(pid: int, ip: str, port: int | None) -> str:
    if not _is_alive(pid):
        return "dead"
    return "up" if port is None or accepts_connections(ip, port) else "silent"


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[-1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in ("Z", "X")


# The log files of a cluster on one machine: none grows beyond a limit.
#
# Processes append to their files for as long as they live. So a file that is too long is copied to
# ``NAME.1``, which replaces the copy before it, and emptied; a line that is written in between is lost.


#: Bytes of a log file after which it begins anew; its former content is kept once.
LOG_BYTES_MAX = 64 << 20
#: Seconds between two looks at their sizes.
ROTATED_EVERY_S = 60.0


def rotate(directory: Path, bytes_max: int = LOG_BYTES_MAX) -> list[str]:
    """Empty the log files that are too long, after copying them; return their names. Raises OSError."""
    rotated = []
    for path in sorted(directory.glob("*.log")):
        if path.stat().st_size <= bytes_max:
            continue
        copy = path.with_name(f"{path.name}.new")
        shutil.copyfile(path, copy)
        os.truncate(path, 0)
        copy.replace(path.with_name(f"{path.name}.1"))
        rotated.append(path.name)
    return rotated

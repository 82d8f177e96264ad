"""Starting a service in the background: its limits, its output until it is ready, its pid file.

spec: cli-and-config.md §8.1
"""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from swift.platform.privileges import make_directories
from swift.runtime.service.services import Service, pid_file

Print = Callable[[str], None]

FILES_MAX = 32768
PROCESSES_MAX = 8192
#: A process without a message for so long counts as running, seconds.
READY_TIMEOUT_S = 60.0
_POLL_S = 0.05
#: As many links as the kernel follows.
_LINKS_MAX = 40
#: A configuration that cannot be checked within this time is no good.
CHECK_TIMEOUT_S = 60.0


class ProcessLimits(Protocol):
    """The resource limits of this process, as the module ``resource`` has them."""

    def getrlimit(self, resource: int, /) -> tuple[int, int]:
        """Return the soft and the hard limit."""

    def setrlimit(self, resource: int, limits: tuple[int, int], /) -> None:
        """Set both; raises ValueError and OSError."""


def raise_limits(
    say: Print, limits: ProcessLimits = resource, user_id: Callable[[], int] = os.geteuid
) -> None:
    """Raise the limits of descriptors and processes for services; report limits that cannot be raised."""
    wishes = (
        ("open files", resource.RLIMIT_NOFILE, FILES_MAX),
        ("processes", resource.RLIMIT_NPROC, PROCESSES_MAX),
    )
    remedy = "run this as root" if user_id() else "raise the hard limit of this session (limits.conf(5))"
    for name, kind, needed in wishes:
        soft, hard = limits.getrlimit(kind)
        if soft == resource.RLIM_INFINITY or soft >= needed:
            continue
        try:
            enough = hard == resource.RLIM_INFINITY or hard >= needed
            limits.setrlimit(kind, (needed, hard if enough else needed))
        except (ValueError, OSError):
            say(f"WARNING: the limit of {name} stays {soft}, {needed} are needed; {remedy}")


def program_path(name: str) -> str | None:
    """Return the file of a command: beside the one that runs now, else on the PATH.

    None when there is none. Links of directories are not resolved: a service that was started through a link
    follows it when it is reloaded.
    """
    for directory in (*_directories_of(sys.argv[0]), Path(sys.executable).parent):
        if os.access(directory / name, os.X_OK):
            return str(directory / name)
    return shutil.which(name)


def _directories_of(path: str) -> Iterator[Path]:
    """Yield the directory of a file, then those of the files that it links to."""
    file = Path(os.path.abspath(path))
    for _ in range(_LINKS_MAX):
        yield file.parent
        if not file.is_symlink():
            return
        file = file.parent / file.readlink()


class LaunchedProcess:
    """A process that was started; its output is kept until it is ready or has ended."""

    def __init__(self, process: subprocess.Popen[bytes], word: socket.socket | None, output: int, path: str):
        self._process = process
        self._ready_socket = word
        self._output = output
        self._pid_file = path

    def detach(self) -> None:
        """Wait for nothing."""
        if self._ready_socket is not None:
            self._ready_socket.close()
        if self._output >= 0:
            os.close(self._output)
            self._output = -1

    def await_ready(self, timeout_s: float = READY_TIMEOUT_S) -> bool:
        """Wait until it is ready or ends, and print its output; return True if it runs or has ended well."""
        deadline = time.monotonic() + timeout_s
        while self._process.poll() is None and time.monotonic() < deadline:
            if self._received_ready():
                break
        self._print_output()
        self.detach()
        return not self._process.returncode

    def _received_ready(self) -> bool:
        assert self._ready_socket is not None, "only what runs in the background is waited for"
        with selectors.DefaultSelector() as selector:
            selector.register(self._ready_socket, selectors.EVENT_READ)
            return bool(selector.select(_POLL_S)) and b"READY=1" in self._ready_socket.recv(4096)

    def wait(self) -> int:
        """Wait for its end, print its output and return the exit status."""
        try:
            status = self._process.wait()
        except KeyboardInterrupt:
            self._process.terminate()
            status = self._process.wait()
        self._print_output()
        self.detach()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._pid_file)
        return status

    def _print_output(self) -> None:
        if self._output < 0:
            return
        text = os.pread(self._output, 1 << 20, 0).decode("utf-8", "replace")
        if text:
            print(text, end="" if text.endswith("\n") else "\n", flush=True)


class Launcher:
    """Starts services."""

    def __init__(self, run_dir: str, swift_dir: str, say: Print):
        self._run_dir = run_dir
        self._swift_dir = swift_dir
        self._say = say

    def launch(
        self, service: Service, config: str, *, once: bool, in_foreground: bool
    ) -> LaunchedProcess | None:
        """Start a service with one configuration; None when the command is not installed. Raises OSError."""
        program = program_path(service.program)
        if program is None:
            self._say(f"Unable to find the command {service.program}")
            return None
        self._say(f"Running {service} once...({config})" if once else f"Starting {service}...({config})")
        path = pid_file(service, config, self._run_dir, self._swift_dir)
        make_directories(os.path.dirname(path))
        words = [program, config, *(["once"] if once and not service.is_server else [])]
        if in_foreground:
            process = subprocess.Popen([*words, "verbose"])
            word, output = None, -1
        else:
            process, word, output = _spawn(words)
        Path(path).write_text(f"{process.pid}")
        return LaunchedProcess(process, word, output, path)

    def startup_problem(self, service: Service, config: str) -> str:
        """Return why a service would not start with a configuration; empty when it would."""
        program = program_path(service.program)
        if program is None:
            return f"the command {service.program} is not installed"
        try:
            done = subprocess.run(
                [program, config, "--test-config"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=CHECK_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"the configuration check took longer than {CHECK_TIMEOUT_S:g} s"
        except OSError as error:
            return f"the configuration check cannot be started: {error.strerror}"
        if done.returncode == 0:
            return ""
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        return lines[-1] if lines else f"the configuration check ended with status {done.returncode}"


def _spawn(words: list[str]) -> tuple[subprocess.Popen[bytes], socket.socket, int]:
    """Return a process in a session of its own, the socket of its ready message, and its output."""
    with tempfile.TemporaryDirectory(prefix="swift-init-") as folder:
        address = f"{folder}/notify"
        word = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        word.bind("\0" + address)
    output = os.memfd_create("swift-init", os.MFD_CLOEXEC)
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
        env={**os.environ, "NOTIFY_SOCKET": "@" + address},
    )
    return process, word, output

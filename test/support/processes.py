"""Free ports, and starting servers and daemons from a warm process (``fork_server``)."""

import contextlib
import json
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from swift.aio.supervisor import ProgramStarter
from test.support.fork_server import PACKET_MAX, STANDARD_FILES, STATUS_BYTES, modules

# --- ports ------------------------------------------------------------------------------------------

# Free ports for servers under test.
#
# They come from below the range that the kernel takes for outgoing connections, so that no client's
# connection can be given one before its server listens.
#
# Servers begin to listen long after their ports were chosen, and may share ports with others
# (``SO_REUSEPORT``). So processes of tests that run side by side must not choose the same ones: each takes
# slices of the range for itself and holds them, as long as it lives, by abstract sockets of their names.


LOWEST = 10240
#: Where Linux begins to number outgoing connections (``ip_local_port_range``).
EPHEMERAL = 32768
SLICE = 256
SLICES = (EPHEMERAL - LOWEST) // SLICE


class Ports:
    """The ports of one process, which takes at most ``most`` of the ``SLICES``, as needed."""

    def __init__(self, most=SLICES):
        self._most = most
        self._slices = []
        self._left = range(0)

    def free_range(self, count):
        """Return the first of ``count`` consecutive free ports; ports are reused when none are left."""
        for _ in range(2 * SLICES):
            while len(self._left) >= count:
                wanted, self._left = self._left[:count], self._left[count:]
                if all(_is_free(port) for port in wanted):
                    return wanted[0]
            self._left = self._next_slice()
        raise RuntimeError("no free ports")

    def _next_slice(self):
        taken = _take_slice() if len(self._slices) < self._most else None
        if taken is None:
            self._most = len(self._slices)
            if not self._slices:
                raise RuntimeError("other tests have all ports")
            taken = self._slices.pop(0)
        self._slices.append(taken)
        number, _held = taken
        return range(LOWEST + number * SLICE, LOWEST + (number + 1) * SLICE)


def _take_slice():
    """Return the number of a free slice and its lock; None when all are taken."""
    for number in secrets.SystemRandom().sample(range(SLICES), SLICES):
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.bind(f"\0swift-test-ports-{number}")
        except OSError:
            sock.close()
        else:
            return number, sock
    return None


_ports = Ports()
free_range = _ports.free_range


def free_ports(count):
    """Return ``count`` different ports without a listener."""
    return [free_range(1) for _ in range(count)]


def _is_free(port):
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


# --- fork server ----------------------------------------------------------------------------------------

# Beginning servers, daemons and commands of tests in a warm process (``test.support.fork_server``).


class ForkedProcess:
    """A process started by the fork server, with the interface of ``subprocess.Popen``."""

    def __init__(self, pid, status):
        self.pid = pid
        self.returncode = None
        self._status = status

    def poll(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout=None):
        if self.returncode is None:
            # Unlike select, poll takes descriptors above 1023.
            status = select.poll()
            status.register(self._status, select.POLLIN)
            if not status.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            said = os.read(self._status, STATUS_BYTES)
            os.close(self._status)
            # A fork server that was killed takes its children with it.
            self.returncode = int.from_bytes(said, "little", signed=True) if said else -signal.SIGTERM
        return self.returncode

    def send_signal(self, sig):
        if self.poll() is None:
            os.kill(self.pid, sig)

    def terminate(self):
        self.send_signal(signal.SIGTERM)


class ForkServer:
    """The warm process, started at first use."""

    def __init__(self):
        self._socket = None
        self._process = None

    def begin(self, module, args, log):
        """Start a server or daemon, whose output is a log."""
        with open(os.devnull, "rb") as null:
            return self._begin((null, log, log), module=module, function="main", program=None, args=args)

    def run(self, program, words, *, input, timeout_s, environ):
        """Run one of our commands to its end and return the completed process."""
        name = Path(program).name
        with contextlib.ExitStack() as opened:
            files = [opened.enter_context(tempfile.TemporaryFile("w+")) for _ in range(STANDARD_FILES)]
            files[0].write(input or "")
            files[0].seek(0)
            started = self._begin(
                files,
                module="swift.entry",
                function=name.replace("-", "_"),
                program=program,
                args=words,
                environ=environ,
            )
            try:
                status = started.wait(timeout_s)
            except subprocess.TimeoutExpired:
                os.killpg(started.pid, signal.SIGKILL)
                raise
            for file in files:
                file.seek(0)
            _input, out, err = (file.read() for file in files)
        return subprocess.CompletedProcess([program, *words], status, out, err)

    def _begin(self, files, **wanted):
        if self._socket is None:
            self._start()
        status, told = os.pipe()
        packet = json.dumps({"cwd": os.getcwd(), "environ": dict(os.environ), **wanted}).encode()
        socket.send_fds(self._socket, [packet], [*(file.fileno() for file in files), told])
        os.close(told)
        answer = self._socket.recv(PACKET_MAX)
        assert answer, "the fork server has ended"
        return ForkedProcess(int(answer), status)

    def _start(self):
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        words = [sys.executable, "-m", "test.support.fork_server", str(theirs.fileno())]
        here = Path(__file__).resolve().parents[2]
        self._process = subprocess.Popen(
            words, cwd=here, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
        )
        theirs.close()


#: The one of this process: it stays warm from test to test.
FORK_SERVER = ForkServer()


class ForkStarter:
    """A ``ProcessStarter`` of one cluster: servers and daemons are forked, other programs executed."""

    def __init__(self):
        self._programs = ProgramStarter()

    def begin(self, args, log):
        if args[0] == "-m" and args[1] in modules():
            return FORK_SERVER.begin(args[1], args[2:], log)
        return self._programs.begin(args, log)

    def close(self):
        self._programs.close()

"""The fork server: a warm process that starts servers, daemons and commands for tests.

``python -m swift.cli.object_server`` spends a quarter of a second on imports, and a cluster of four nodes has
eighteen processes. The fork server forks instead: each child is its own session and has its own files,
arguments and environment, as if it had been started, but for its command line in /proc. It speaks on a Unix
socket of packets: one packet with what is to begin, its standard files and the pipe for its exit status; the
answer is a pid.
When the process that began the fork server ends, so do the fork server and all its children.
"""

import contextlib
import importlib
import json
import os
import signal
import sys
from select import POLLIN, poll
from socket import recv_fds
from socket import socket as Socket

SERVERS = (
    "swift.cli.proxy_server",
    "swift.cli.account_server",
    "swift.cli.container_server",
    "swift.cli.object_server",
)
PACKET_MAX = 1 << 16
STATUS_BYTES = 4
#: Standard input, output and error.
STANDARD_FILES = 3


def modules():
    """Return the modules that children can run; the fork server imports them beforehand."""
    from swift.config.declared import daemons

    declared = (daemon.module for daemon in daemons().values())
    return (*SERVERS, "swift.cli.daemons", "swift.cli.daemon", *declared)


class _Served:
    """The fork server's side of the socket."""

    def __init__(self, connection, die_with_parent):
        self._connection = connection
        self._die_with_parent = die_with_parent
        self._statuses = {}

    def serve(self):
        """Start requested programs until the socket closes; in a child return ``main`` and its arguments."""
        woken, waker = os.pipe()
        os.set_blocking(waker, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waker)
        # A test process with many open files hands over large descriptors, which select(2) does not take.
        poller = poll()
        for fd in (self._connection.fileno(), woken):
            poller.register(fd, POLLIN)
        while True:
            readable = {fd for fd, _events in poller.poll()}
            if woken in readable:
                os.read(woken, 4096)
                self._reap()
            if self._connection.fileno() in readable:
                packet, fds, _flags, _address = recv_fds(self._connection, PACKET_MAX, STANDARD_FILES + 1)
                if not packet:
                    sys.exit(0)
                if self._fork(fds[:STANDARD_FILES], fds[STANDARD_FILES]):
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    os.close(woken)
                    os.close(waker)
                    return json.loads(packet)

    def _fork(self, files, told):
        """Fork; return True in the child."""
        begun, begins = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(begun)
            self._become_child(files, told)
            os.close(begins)
            return True
        os.close(begins)
        # Whoever asked may signal its group as soon as it knows the pid.
        os.read(begun, 1)
        for fd in (begun, *files):
            os.close(fd)
        self._statuses[pid] = told
        self._connection.send(str(pid).encode())
        return False

    def _become_child(self, files, told):
        os.setsid()
        self._die_with_parent()
        self._connection.close()
        for fd in (told, *self._statuses.values()):
            os.close(fd)
        for place, fd in enumerate(files):
            os.dup2(fd, place)
            os.close(fd)

    def _reap(self):
        while self._statuses:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            told = self._statuses.pop(pid)
            with contextlib.suppress(BrokenPipeError):
                os.write(
                    told, os.waitstatus_to_exitcode(status).to_bytes(STATUS_BYTES, "little", signed=True)
                )
            os.close(told)


def _run(wanted):
    os.environ.clear()
    os.environ.update(wanted["environ"])
    os.chdir(wanted["cwd"])
    module = importlib.import_module(wanted["module"])
    sys.argv = [wanted["program"] or module.__file__, *wanted["args"]]
    # A server that reloads starts itself again.
    sys.orig_argv[:] = [sys.executable, "-m", wanted["module"], *wanted["args"]]
    return getattr(module, wanted["function"])()


if __name__ == "__main__":
    importlib.import_module(SERVERS[0])
    for module in modules():
        importlib.import_module(module)
    from swift.runtime.workers import die_with_parent

    die_with_parent()
    asking = Socket(fileno=int(sys.argv[1]))
    raise SystemExit(_run(_Served(asking, die_with_parent).serve()))

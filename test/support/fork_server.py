"""The fork server: a warm process that starts servers and daemons for tests.

``python -m swift.cli.object_server`` spends a quarter of a second on imports, and a cluster of four nodes has
eighteen processes. The fork server forks instead: each child is its own session and has its own output,
arguments and environment, as if it had been started, but for its command line in /proc. It speaks on a Unix
socket of packets: one packet with what is to begin, its log and the pipe for its exit status; the answer is a
pid.
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

# What is imported below makes these cooperative; the fork server itself has no event loop.

#: The first makes the standard library cooperative for all of them.
SERVERS = (
    "swift.cli.proxy_server",
    "swift.cli.account_server",
    "swift.cli.container_server",
    "swift.cli.object_server",
)
PACKET_MAX = 1 << 16
STATUS_BYTES = 4


def modules():
    """Return the modules that children can run; the fork server imports them beforehand."""
    from swift.config.declared import daemons

    declared = (daemon.module for daemon in daemons().values())
    return (*SERVERS, "swift.aio.daemons", "swift.cli.daemon", *declared)


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
                packet, fds, _flags, _address = recv_fds(self._connection, PACKET_MAX, 2)
                if not packet:
                    sys.exit(0)
                if self._fork(*fds):
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    os.close(woken)
                    os.close(waker)
                    return json.loads(packet)

    def _fork(self, log, told):
        """Fork; return True in the child."""
        begun, begins = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(begun)
            self._become_child(log, told)
            os.close(begins)
            return True
        os.close(begins)
        # Whoever asked may signal its group as soon as it knows the pid.
        os.read(begun, 1)
        for fd in (begun, log):
            os.close(fd)
        self._statuses[pid] = told
        self._connection.send(str(pid).encode())
        return False

    def _become_child(self, log, told):
        os.setsid()
        self._die_with_parent()
        self._connection.close()
        for fd in (told, *self._statuses.values()):
            os.close(fd)
        null = os.open(os.devnull, os.O_RDONLY)
        for fd, place in ((null, 0), (log, 1), (log, 2)):
            os.dup2(fd, place)
        os.close(null)
        os.close(log)

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
    sys.argv = [module.__file__, *wanted["args"]]
    # A server that reloads starts itself again.
    sys.orig_argv[:] = [sys.executable, "-m", wanted["module"], *wanted["args"]]
    return module.main()


if __name__ == "__main__":
    importlib.import_module(SERVERS[0])
    for module in modules():
        importlib.import_module(module)
    from swift.runtime.workers import die_with_parent

    die_with_parent()
    asking = Socket(fileno=int(sys.argv[1]))
    raise SystemExit(_run(_Served(asking, die_with_parent).serve()))

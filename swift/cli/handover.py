"""What a server leaves to the next image of itself: its listening sockets and its workers (SIGUSR1).

The master executes its own command line again, in the same process. Descriptors of sockets stay open across
that, workers stay its children; which ones they are is told in an environment variable. The configuration is
tried in another process before, so that a mistake in it leaves the server as it was.
spec: cli-and-config.md §8
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, MutableMapping, Sequence

from swift import green
from swift.platform import sockets
from swift.ring.device import address
from swift.runtime.notify import refusal
from swift.telemetry.log import Log

ENVIRONMENT_KEY = "SWIFT_HANDOVER"
#: A configuration that cannot be tried within this time is no good.
CHECK_TIMEOUT_S = 60.0


class SocketHandover:
    """The sockets of this server, those that were taken over among them, and the workers of former images."""

    def __init__(self, environ: MutableMapping[str, str] = os.environ):
        left = json.loads(environ.pop(ENVIRONMENT_KEY, "{}"))
        #: Pids of the workers of former images.
        self.workers: list[int] = left.get("workers", [])
        self._inherited: dict[str, int] = left.get("sockets", {})
        self._sockets: dict[str, socket.socket] = {}
        self._environ = environ

    def listen(self, ip: str, port: int, backlog: int, *, keep_idle_s: int = 0) -> socket.socket:
        """The socket that was taken over for this address, else a new one; raises OSError."""
        where = address(ip, port)
        fd = self._inherited.pop(where, None)
        if fd is None:
            sock = sockets.listen(ip, port, backlog, keep_idle_s=keep_idle_s)
        else:
            os.set_inheritable(fd, False)
            sock = green.PlainSocket(fileno=fd)
            sock.setblocking(False)
        self._sockets[where] = sock
        return sock

    def close_rest(self) -> None:
        """Close what was taken over and is not wanted any more."""
        for fd in self._inherited.values():
            os.close(fd)
        self._inherited.clear()

    def stop_listening(self) -> None:
        """Let another server have the addresses at once, whatever workers still do."""
        for sock in self._sockets.values():
            if sock.fileno() >= 0:
                sock.shutdown(2)
                sock.close()

    def renew(self, workers: Sequence[int], log: Log, tell: Callable[[str], None]) -> None:
        """Become the next image; returns when the configuration is no good."""
        command = [sys.executable, *sys.orig_argv[1:]]
        problem = _problem_of(command)
        if problem:
            log.error(f"no reload, everything goes on as before: {problem}")
            tell(refusal(problem))
            return
        tell("RELOADING=1")
        sockets = {where: sock.fileno() for where, sock in self._sockets.items() if sock.fileno() >= 0}
        for fd in sockets.values():
            os.set_inheritable(fd, True)
        self._environ[ENVIRONMENT_KEY] = json.dumps({"sockets": sockets, "workers": list(workers)})
        log.notice(f"Reloading {os.getpid()}")
        os.execv(command[0], command)

    def __repr__(self) -> str:
        return f"<Handover {sorted(self._sockets)}, former workers {self.workers}>"


def _problem_of(command: Sequence[str]) -> str:
    """Why a server could not be started by a command line; empty when it could."""
    try:
        done = subprocess.run(
            [*command, "--test-config"],
            capture_output=True,
            text=True,
            timeout=CHECK_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    lines = (done.stderr + done.stdout).strip().splitlines()
    return lines[-1] if lines else f"the configuration check ended with status {done.returncode}"

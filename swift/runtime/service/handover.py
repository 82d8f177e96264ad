"""Passes a server's listening sockets and state to its next image (SIGUSR1).

The master executes its own command line again, in the same process. The path of its script is not resolved,
so a link to the next release is followed. Descriptors of sockets stay open across that, workers stay its
children; which ones they are is told in an environment variable. Another process tries the configuration
before, so that a mistake in it leaves the server as it was.
spec: cli-and-config.md §8
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
from collections.abc import Callable, MutableMapping, Sequence

from swift.platform import sockets
from swift.ring.device import address
from swift.runtime import childprocess
from swift.runtime.notify import READY, refusal_message
from swift.telemetry.log import Log

ENVIRONMENT_KEY = "SWIFT_HANDOVER"
#: A configuration that cannot be tried within this time is no good.
CHECK_TIMEOUT_S = 60.0


class SocketHandover:
    """The sockets of this server, those that were taken over among them, and the workers of former images."""

    def __init__(
        self,
        environ: MutableMapping[str, str] = os.environ,
        *,
        command: Sequence[str] = (),
        check_timeout_s: float = CHECK_TIMEOUT_S,
    ):
        self._check_timeout_s = check_timeout_s
        #: The command of the next image; that of this process when empty.
        self._command = list(command) or restart_command(sys.orig_argv, sys.argv[0], sys.executable)
        left = json.loads(environ.pop(ENVIRONMENT_KEY, "{}"))
        #: Pids of the workers of former images.
        self.workers: list[int] = left.get("workers", [])
        self._inherited: dict[str, int] = left.get("sockets", {})
        self._sockets: dict[str, socket.socket] = {}
        self._environ = environ

    def listen(self, ip: str, port: int, backlog: int, *, keep_idle_s: int = 0) -> socket.socket:
        """Return the socket that was taken over for this address, else a new one; raises OSError."""
        where = address(ip, port)
        fd = self._inherited.pop(where, None)
        if fd is None:
            sock = sockets.listen(ip, port, backlog, keep_idle_s=keep_idle_s)
        else:
            os.set_inheritable(fd, False)
            sock = socket.socket(fileno=fd)
            sock.setblocking(False)
        self._sockets[where] = sock
        return sock

    def take_workers(self) -> list[int]:
        """Return the pids of the workers of former images, and leave their supervision to the caller."""
        taken, self.workers = self.workers, []
        return taken

    def close_unclaimed_sockets(self) -> None:
        """Close inherited sockets that no listener claimed."""
        for fd in self._inherited.values():
            os.close(fd)
        self._inherited.clear()

    def stop_listening(self) -> None:
        """Let another server have the addresses at once, whatever workers still do."""
        for fd in self._descriptors().values():
            with socket.socket(fileno=fd) as sock:
                sock.shutdown(socket.SHUT_RDWR)
        for sock in self._sockets.values():
            sock.detach()
        self._inherited.clear()

    def renew(self, workers: Sequence[int], log: Log, tell: Callable[[str], None]) -> None:
        """Become the next image; on return that failed, and the server continues as before."""
        try:
            self._exec_next_image(workers, log, tell)
        except Exception as error:
            # Anything: an error that left this method would end the server.
            log.exception("reload failed; the server continues with its old configuration", error)
            tell(refusal_message(str(error) or repr(error)))

    def _exec_next_image(self, workers: Sequence[int], log: Log, tell: Callable[[str], None]) -> None:
        command = self._command
        problem = _startup_problem(command, self._check_timeout_s)
        if problem:
            log.error(f"reload refused; the server continues with its old configuration: {problem}")
            tell(refusal_message(problem))
            return
        tell("RELOADING=1")
        descriptors = self._descriptors()
        self._environ[ENVIRONMENT_KEY] = json.dumps({"sockets": descriptors, "workers": list(workers)})
        try:
            for fd in descriptors.values():
                os.set_inheritable(fd, True)
            log.notice(f"Reloading {os.getpid()}")
            os.execv(command[0], command)
        finally:
            # Reached only when there is no next image.
            del self._environ[ENVIRONMENT_KEY]
            for fd in descriptors.values():
                os.set_inheritable(fd, False)
            tell(READY)

    def _descriptors(self) -> dict[str, int]:
        """Return the descriptor of each address: of sockets in use, and of inherited ones not yet claimed."""
        used = {where: sock.fileno() for where, sock in self._sockets.items() if sock.fileno() >= 0}
        return {**self._inherited, **used}

    def __repr__(self) -> str:
        return f"<Handover {sorted(self._sockets)}, former workers {self.workers}>"


def restart_command(words: Sequence[str], script: str, executable: str) -> list[str]:
    """Return the command that starts a program again, from its ``sys.orig_argv`` and its ``sys.argv[0]``.

    A script that names its interpreter itself is executed by its path, with no link resolved: the kernel then
    takes the interpreter that the script names now. So a link to the next release, or an upgraded package, is
    followed. An interpreter that the operator named is kept, also with its links.
    """
    if script not in words[1:]:
        return [executable, *words[1:]]
    index = words.index(script, 1)
    path = os.path.abspath(script)
    if os.access(path, os.X_OK) and f" {' '.join(words[:index])} " in _interpreter_line(path):
        return [path, *words[index + 1 :]]
    return [executable, *words[1:index], path, *words[index + 1 :]]


def _interpreter_line(path: str) -> str:
    """Return the words that name the interpreter of a script, between single spaces."""
    with open(path, "rb") as file:
        # An interpreter whose path is too long for the kernel stands in the second line, for /bin/sh.
        lines = file.read(4096).decode("utf-8", "replace").split("\n")[:2]
    if not lines[0].startswith("#!"):
        return ""
    return " ".join(("", *re.split(r"[\s'\"]+", " ".join(lines)[2:].strip()), ""))


def _startup_problem(command: Sequence[str], timeout_s: float) -> str:
    """Return why a server could not be started by a command line; empty when it could."""
    try:
        done = childprocess.run([*command, "--test-config"], timeout_s=timeout_s)
    except childprocess.ProcessTimeout:
        return f"the configuration check took longer than {timeout_s:g} s"
    except OSError as error:
        return f"the configuration check cannot be started: {error}"
    if done.status == 0:
        return ""
    lines = done.output.strip().splitlines()
    return lines[-1] if lines else f"the configuration check ended with status {done.status}"

"""Beginning servers and daemons of tests in a warm process, the nursery (``test.support.warm``)."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

from swift.aio.supervisor import ProgramBeginner
from test.support.warm import PACKET_MAX, STATUS_BYTES, modules


class NurseryChild:
    """A process that the nursery began, as a ``subprocess.Popen``."""

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
            readable = select.select([self._status], [], [], timeout)[0]
            if not readable:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            said = os.read(self._status, STATUS_BYTES)
            os.close(self._status)
            # A nursery that was killed takes its children with it.
            self.returncode = int.from_bytes(said, "little", signed=True) if said else -signal.SIGTERM
        return self.returncode

    def send_signal(self, sig):
        if self.poll() is None:
            os.kill(self.pid, sig)

    def terminate(self):
        self.send_signal(signal.SIGTERM)


class Nursery:
    """The warm process, started at first use."""

    def __init__(self):
        self._socket = None
        self._process = None

    def begin(self, module, args, log):
        if self._socket is None:
            self._start()
        status, told = os.pipe()
        wanted = {"module": module, "args": list(args), "cwd": os.getcwd(), "environ": dict(os.environ)}
        socket.send_fds(self._socket, [json.dumps(wanted).encode()], [log.fileno(), told])
        os.close(told)
        answer = self._socket.recv(PACKET_MAX)
        assert answer, "the nursery has ended"
        return NurseryChild(int(answer), status)

    def _start(self):
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        words = [sys.executable, "-m", "test.support.warm", str(theirs.fileno())]
        here = Path(__file__).resolve().parents[2]
        self._process = subprocess.Popen(
            words, cwd=here, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
        )
        theirs.close()


#: The one of this process: it stays warm from test to test.
NURSERY = Nursery()


class WarmBeginner:
    """A ``Beginner`` of one cluster: servers and daemons come from the nursery, other programs are run."""

    def __init__(self):
        self._programs = ProgramBeginner()

    def begin(self, args, log):
        if args[0] == "-m" and args[1] in modules():
            return NURSERY.begin(args[1], args[2:], log)
        return self._programs.begin(args, log)

    def close(self):
        self._programs.close()

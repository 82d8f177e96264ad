"""One storage server of two workers on one device, to be killed and started again."""

import contextlib
import http.client
import os
import pwd
import signal
import subprocess
import sys
import time

from swift.aio.supervisor import answers
from test.support.cluster import Answer
from test.support.nursery import NURSERY
from test.support.ports import free_ports


class LoneServer:
    """A server of ``kind`` (account, container, object) below ``root``; its device is ``sda``."""

    def __init__(self, root, kind, swift_conf="[swift-hash]\nswift_hash_path_suffix = s\n"):
        self.root = root
        self.kind = kind
        self.port = free_ports(1)[0]
        self.device = root / "dev" / "sda"
        self.device.mkdir(parents=True)
        (root / "swift.conf").write_text(swift_conf)
        self.conf = root / f"{kind}-server.conf"
        user = pwd.getpwuid(os.geteuid()).pw_name
        self.conf.write_text(
            f"[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = {self.port}\nworkers = 2\nuser = {user}\n"
            f"swift_dir = {root}\ndevices = {root}/dev\nmount_check = false\nlog_requests = false\n"
            f"[pipeline:main]\npipeline = {kind}-server\n"
            f"[app:{kind}-server]\nuse = egg:swift#{kind}\n"
        )
        self.process = None
        #: A command that runs the server.
        self.before = ()

    def start(self):
        with open(self.root / "log", "ab") as log:
            module, words = f"swift.cli.{self.kind}_server", (str(self.conf), "-v")
            if self.before:
                command = [*self.before, sys.executable, "-m", module, *words]
                self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
            else:
                self.process = NURSERY.begin(module, words, log)
        deadline = time.monotonic() + 30
        while not answers("127.0.0.1", self.port):
            assert time.monotonic() < deadline, (self.root / "log").read_text()[-2000:]
            time.sleep(0.01)

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        # The last of the workers lets go of the port a moment later.
        deadline = time.monotonic() + 10
        while answers("127.0.0.1", self.port):
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def kill_under(self, writers, go, seconds):
        """Let writers write for some seconds, kill the server, and start it again when they are idle."""
        go.set()
        time.sleep(seconds)
        self.kill()
        go.clear()
        for writer in writers:
            assert writer.idle.wait(60)
            assert writer.failure is None, writer.failure
        self.start()

    def ask(self, method, path, headers=None, body=None):
        """An answer; raises OSError or HTTPException when the server dies meanwhile."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            merged = {"X-Timestamp": f"{time.time():.5f}", **(headers or {})}
            connection.request(method, path, body, merged)
            return Answer(connection.getresponse())
        finally:
            connection.close()

"""A cluster of several hosts on one machine: each node in a network namespace of its own, with its own files.

Needs root. The machine itself stands on the same bridge, so that tests reach every proxy whatever is cut
between hosts.
"""

import http.client
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

from swift.aio.make import make_cluster
from swift.aio.plan import new_plan
from swift.aio.supervisor import answers
from swift.ring.builder import RingBuilder
from test.support.cluster import KEYS, Answer

PROXY_PORT = 8080
_MADE = itertools.count()
#: Makes the clock of a process wrong, by what SWIFT_TEST_CLOCK_OFFSET says.
_SKEWED_CLOCK = """\
import os, time
_offset = float(os.environ.get("SWIFT_TEST_CLOCK_OFFSET", "0"))
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + _offset
time.time_ns = lambda: _time_ns() + int(_offset * 1e9)
"""


def can_make_hosts():
    """Whether network namespaces can be made here."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"sw{os.getpid()}t"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    if made.returncode == 0:
        subprocess.run(["ip", "netns", "del", name], check=False)
    return made.returncode == 0


def _ip(*words, namespace=None):
    inside = ["-n", namespace] if namespace else []
    subprocess.run(["ip", *inside, *words], check=True, capture_output=True)


class Hosts:
    """``count`` hosts with a proxy, a storage node and its daemons each."""

    def __init__(self, root, count=3, replicas=3):
        self.root = root
        self.numbers = range(1, count + 1)
        # A namespace that was deleted takes its links with it a moment later.
        self._tag = f"s{os.getpid() % 100000}{next(_MADE)}"
        self._net = f"10.{random.randrange(201, 250)}.{random.randrange(250)}"
        self.plan = new_plan(root, nodes=count, replicas=replicas, part_power=5, proxy_workers=0)
        self._children = {}
        self.offsets = {}
        self.tokens = {}

    def ip(self, number):
        return f"{self._net}.{number}"

    def _namespace(self, number):
        return f"{self._tag}h{number}"

    # --- making -----------------------------------------------------------------------------------

    def make(self):
        """Networks and files; nothing runs yet."""
        bridge = f"{self._tag}b"
        _ip("link", "add", bridge, "type", "bridge")
        _ip("addr", "add", f"{self._net}.254/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for number in self.numbers:
            namespace, outside = self._namespace(number), f"{self._tag}v{number}"
            _ip("netns", "add", namespace)
            _ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", namespace)
            _ip("link", "set", outside, "master", bridge, "up")
            _ip("addr", "add", f"{self.ip(number)}/24", "dev", "eth0", namespace=namespace)
            for device in ("eth0", "lo"):
                _ip("link", "set", device, "up", namespace=namespace)
        make_cluster(self.plan)
        (self.root / "clock").mkdir()
        (self.root / "clock" / "sitecustomize.py").write_text(_SKEWED_CLOCK)
        self._move_rings()
        for number in self.numbers:
            self._write_etc(number)

    def _move_rings(self):
        for path in sorted(self.plan.etc.glob("*.builder")):
            builder = RingBuilder.load(str(path))
            for device in builder.live_devs:
                address = self.ip(device["zone"])
                builder.set_info(device["id"], ip=address, replication_ip=address)
            builder.save(str(path))
            builder.write_ring(str(path.with_suffix(".ring.gz")))

    def etc(self, number):
        """The configuration of a host."""
        return self.root / f"etc{number}"

    def _write_etc(self, number):
        etc = self.etc(number)
        shutil.copytree(self.plan.etc, etc)
        for conf in etc.rglob("*.conf"):
            text = conf.read_text().replace(str(self.plan.etc), str(etc))
            text = text.replace(f"= {self.plan.ip}\n", f"= {self.ip(number)}\n")
            lines = []
            for line in text.split("\n"):
                name, equals, value = line.partition(" = ")
                if name == "interval" and value.isdigit():
                    line = "interval = 3"
                if name == "bind_port" and conf.name == "proxy-server.conf":
                    line = f"bind_port = {PROXY_PORT}"
                lines.append(line)
            conf.write_text("\n".join(lines))

    # --- running ----------------------------------------------------------------------------------

    def start(self):
        for number in self.numbers:
            self.start_host(number)
        self.await_answers()

    def await_answers(self):
        """Wait until every server of every host listens."""
        for number in self.numbers:
            kinds = ("account", "container", "object")
            for port in (PROXY_PORT, *(self.plan.port(kind, number) for kind in kinds)):
                self._await(
                    lambda number=number, port=port: answers(self.ip(number), port), f"host {number} answers"
                )

    def start_host(self, number):
        """Start everything of a host, with the clock it is to have."""
        etc = self.etc(number)
        for server in self.plan.servers():
            kind, _, node = server.name.partition("-")
            if node == str(number):
                conf = etc / f"{kind}-server" / f"{number}.conf"
                self._spawn(number, server.name, "-m", f"swift.cli.{kind}_server", str(conf), "-v")
        for process in self.plan.daemons():
            if process.name == f"daemons-{number}":
                words = [word.replace(str(self.plan.etc), str(etc)) for word in process.args]
                self._spawn(number, process.name, *words)
        conf = str(etc / "proxy-server.conf")
        self._spawn(number, f"proxy-{number}", "-m", "swift.cli.proxy_server", conf, "-v")

    def _spawn(self, number, name, *words):
        path = os.pathsep.join(
            [str(self.root / "clock"), *filter(None, [os.environ.get("PYTHONPATH"), os.getcwd()])]
        )
        offset = str(self.offsets.get(number, 0))
        with open(self.plan.logs / f"{name}.log", "ab") as log:
            self._children[name] = subprocess.Popen(
                ["ip", "netns", "exec", self._namespace(number), sys.executable, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": path, "SWIFT_TEST_CLOCK_OFFSET": offset},
            )

    def stop_host(self, number):
        """Kill everything of a host."""
        for name in [name for name in self._children if name.endswith(f"-{number}")]:
            child = self._children.pop(name)
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()

    def stop(self):
        for number in self.numbers:
            self.stop_host(number)
            subprocess.run(["ip", "netns", "del", self._namespace(number)], check=False, capture_output=True)
        subprocess.run(["ip", "link", "del", f"{self._tag}b"], check=False, capture_output=True)

    # --- breaking ---------------------------------------------------------------------------------

    def part(self, *side):
        """Hosts of ``side`` and the others do not reach each other any more."""
        self._routes("add", side)

    def heal(self, *side):
        """They do again."""
        self._routes("del", side)

    def _routes(self, verb, side):
        for here in self.numbers:
            for there in self.numbers:
                if (here in side) != (there in side):
                    _ip("route", verb, "unreachable", f"{self.ip(there)}/32", namespace=self._namespace(here))

    # --- asking -----------------------------------------------------------------------------------

    def raw(self, number, method, path, headers=None, body=None):
        connection = http.client.HTTPConnection(self.ip(number), PROXY_PORT, timeout=60)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def __call__(self, number, method, path="", headers=None, body=None):
        """One request of the test user to the proxy of a host."""
        if number not in self.tokens:
            user = {"X-Auth-User": "test:tester", "X-Auth-Key": KEYS["test:tester"]}
            self.tokens[number] = self.raw(number, "GET", "/auth/v1.0", user).headers["x-auth-token"]
        sent = {"X-Auth-Token": self.tokens[number], **(headers or {})}
        return self.raw(number, method, f"/v1/AUTH_test/{path}", sent, body)

    def names(self, number):
        """What a host's proxy lists."""
        answer = self(number, "GET", "c?format=json")
        return [row["name"] for row in json.loads(answer.body)] if answer.status == 200 else []

    def files(self, pattern):
        return [path for device in self.plan.device_paths() for path in device.glob(pattern)]

    @staticmethod
    def _await(condition, what, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
            time.sleep(0.1)

    await_true = _await

    def log_text(self):
        return "\n".join(path.read_text(errors="replace") for path in self.plan.logs.glob("*.log"))

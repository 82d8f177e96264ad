"""Live clusters: the all-in-one plan on free ports, single servers, hosts in network namespaces."""

import contextlib
import glob
import http.client
import itertools
import json
import os
import pwd
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from swift.aio.make import make_cluster
from swift.aio.plan import new_plan, parse_ec
from swift.aio.ports import PORTS_PER_NODE, port_is_free
from swift.aio.supervisor import Supervisor, accepts_connections, cache_process
from swift.config.declared import daemons
from swift.policy.policy import ErasureCode, Policy
from swift.ring.builder import RingBuilder
from test.support.processes import FORK_SERVER, ForkStarter, free_ports, free_range
from test.support.stored import stored
from test.support.tiers import EVERYWHERE, LOCAL_EVERYWHERE, PACKED_EVERYWHERE, tier_section

# --- pipelines --------------------------------------------------------------------------------------

# Proxy configurations with other filters than the all-in-one cluster's.


def with_filters(text, places, options=""):
    """Return the text of a ``proxy-server.conf`` with more filters in its pipeline.

    ``places`` is filter → the filter that it goes before. ``options`` are their sections, or ones that
    replace those of the text; a filter without one gets a section with its entry point alone.
    """
    for name, before in places.items():
        text = re.sub(rf"(?m)^(pipeline = .*?)(?= {re.escape(before)}\b)", rf"\1 {name}", text, count=1)
    for name in re.findall(r"(?m)^\[filter:(.*)\]$", options):
        text = re.sub(rf"\[filter:{re.escape(name)}\]\n([^\[\n].*\n)*", "", text)
    sections = options
    for name in places:
        if f"[filter:{name}]" not in text + sections:
            sections += f"\n[filter:{name}]\nuse = egg:swift#{name.replace('-', '_')}\n"
    return f"{text}\n{sections}"


# --- cluster ----------------------------------------------------------------------------------------

# A live cluster for tests: the all-in-one plan on free ports in a temporary folder.


class Answer:
    """A response: status, headers (lower-case names) and body."""

    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<Answer {self.status} {self.body[:80]!r}>"


#: The keys of the users in the all-in-one configuration.
KEYS = {
    "test:tester": "testing",
    "test:tester3": "testing3",
    "test2:tester2": "testing2",
    "admin:admin": "testingadmin",
}


def login(host, user):
    """Return a token of ``user`` from the proxy at ``host``."""
    connection = http.client.HTTPConnection(host, timeout=30)
    try:
        headers = {"X-Auth-User": user, "X-Auth-Key": KEYS[user]}
        connection.request("GET", "/auth/v1.0", headers=headers)
        response = Answer(connection.getresponse())
    finally:
        connection.close()
    assert response.status == 200, response
    return response.headers["x-auth-token"]


class LiveCluster:
    """Real processes; ``request`` speaks HTTP to the proxy with the test user's token.

    Its limits are the defaults, as the peer's, unless it is to have those that fit into its filesystem.
    ``places`` and ``options`` are those of ``test.support.cluster.with_filters``. Daemons rest for
    ``rest_s`` seconds between passes: tests wait for what they do, people seldom. Where no test does,
    ``AT_REST_S`` leaves the machine to the tests. With ``tier`` every node has a cache tier. ``defaults`` are
    lines for ``[DEFAULT]`` of every server. The nodes of ``packed_nodes`` alone have the packed engine.
    ``server_auth`` is the mode of swift.conf: tests send to storage servers, too, which ``require`` refuses.
    Unless it ``reads_locally``, the proxy of a cluster with one node asks its object server as well.
    """

    AT_REST_S = 60

    def __init__(
        self,
        root,
        *,
        nodes=4,
        replicas=3,
        ec="",
        fitting_limits=False,
        places=None,
        options="",
        defaults="",
        rest_s=5,
        tier=EVERYWHERE,
        packed_nodes=(),
        reads_locally=True,
        server_auth="accept",
        **choices,
    ):
        self._reads_locally = reads_locally
        self._server_auth = server_auth
        self._packed_nodes = packed_nodes
        self._tier = tier
        self._rest_s = rest_s
        self._fitting_limits = fitting_limits
        self._filters = places or {}, options
        self._defaults = defaults
        proxy_port, cache_port = free_ports(2)
        choices.setdefault("packed", PACKED_EVERYWHERE)
        plan = new_plan(
            root,
            proxy_port=proxy_port,
            base_port=free_range(PORTS_PER_NODE * (nodes + 1)),
            cache_port=cache_port,
            nodes=nodes,
            replicas=replicas,
            ec=ec,
            part_power=6,
            **choices,
        )
        # A name is in the same partition whenever the test runs.
        self.plan = replace(plan, hash_suffix="test")
        self._supervisor = Supervisor(self.plan, lambda _text: None, ForkStarter())
        self.tokens = {}

    def start(self):
        make_cluster(self.plan)
        conf = self.plan.etc / "swift.conf"
        conf.write_text(re.sub(r"(?m)^mode = require$", f"mode = {self._server_auth}", conf.read_text()))
        if not self._fitting_limits:
            conf.write_text(conf.read_text().partition("[swift-constraints]")[0])
        for conf in self.plan.etc.glob("*-server/*.conf"):
            text = re.sub(r"(?m)^interval = \d+$", f"interval = {self._rest_s}", conf.read_text())
            conf.write_text(re.sub(r"(?m)^((zero_byte_)?files_per_second) = \d+$", r"\1 = 50", text))
        for conf in self.plan.etc.glob("container-server/*.conf"):
            # As in the peer's default, to which recorded answers belong.
            text = conf.read_text().replace(
                "[DEFAULT]\n", "[DEFAULT]\nallowed_sync_hosts = 127.0.0.1:80\n", 1
            )
            conf.write_text(text)
        proxy = self.plan.etc / "proxy-server.conf"
        # The same.
        proxy.write_text(re.sub(r"(?m)^anonymous_account = .*\n", "", proxy.read_text()))
        for node in self.plan.node_numbers() if self._tier else ():
            root, conf = self.plan.cache / f"tier{node}", self.plan.etc / "object-server" / f"{node}.conf"
            conf.write_text(f"{conf.read_text()}\n{tier_section(root / 'ssd', root / 'state')}")
        if not self._reads_locally:
            proxy.write_text(re.sub(r"(?m)^local_reads = .*\n", "", proxy.read_text()))
        elif LOCAL_EVERYWHERE:
            confs = ", ".join(map(str, sorted(self.plan.etc.glob("object-server/*.conf"))))
            text = re.sub(r"(?m)^local_reads = .*\n", "", proxy.read_text())
            use = "use = egg:swift#proxy\n"
            proxy.write_text(text.replace(use, f"{use}local_reads = {confs}\n", 1))
        if any(self._filters):
            proxy.write_text(with_filters(proxy.read_text(), *self._filters))
        for conf in (proxy, *self.plan.etc.glob("*-server/*.conf")) if self._defaults else ():
            conf.write_text(conf.read_text().replace("[DEFAULT]\n", f"[DEFAULT]\n{self._defaults}\n", 1))
        for node in self._packed_nodes:
            self._pack(node)
        self._supervisor.start()

    def _pack(self, node):
        """Give a node its own swift.conf, with the packed engine for all policies."""
        own = self.plan.etc / f"node{node}"
        own.mkdir(exist_ok=True)
        for path in (*self.plan.etc.glob("*.ring.gz"), self.plan.etc / "server.secret"):
            if not (own / path.name).exists():
                (own / path.name).symlink_to(path)
        parts = (self.plan.etc / "swift.conf").read_text().split("[storage-policy:")
        engines = ["erasure_coding" if "erasure_coding" in part else "replication" for part in parts[1:]]
        text = parts[0] + "".join(
            "[storage-policy:" + part.replace("]\n", f"]\ndiskfile_module = egg:swift#{engine}.packed\n", 1)
            for part, engine in zip(parts[1:], engines, strict=True)
        )
        (own / "swift.conf").write_text(text)
        conf = self.plan.etc / "object-server" / f"{node}.conf"
        conf.write_text(conf.read_text().replace(f"swift_dir = {self.plan.etc}", f"swift_dir = {own}"))

    def stop(self):
        self._supervisor.end()

    @property
    def host(self):
        return f"{self.plan.ip}:{self.plan.proxy_port}"

    def pid(self, name):
        """Return the pid of a process, e.g. ``object-1``."""
        return self._supervisor._children[name].pid

    def kill(self, name, sig=signal.SIGKILL):
        """Kill a server and wait for its end; its workers may accept connections a little longer."""
        child, port = self._supervisor._children[name], self._supervisor._processes[name].port
        os.killpg(child.pid, sig)
        child.wait()
        if port is not None:
            self.await_true(lambda: port_is_free(self.plan.ip, port), f"the port of {name} is free")

    @contextlib.contextmanager
    def stopped(self, *names):
        """Stop these processes and their workers (SIGSTOP) during the ``with`` block."""
        pids = [self.pid(name) for name in names]
        for pid in pids:
            os.killpg(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.killpg(pid, signal.SIGCONT)

    def restart(self, name):
        """Start a killed server again and wait until it responds."""
        known = (cache_process(self.plan), *self.plan.servers(), *self.plan.daemons())
        process = next(p for p in known if p.name == name)
        self._supervisor._spawn(process)
        if process.port is not None:
            self.await_true(lambda: accepts_connections(self.plan.ip, process.port), f"{name} answers")

    def run_once(self, daemon, node=1, options=("once",)):
        """Run one pass of a daemon on a node, beside the idle daemon."""
        conf = self.plan.etc / f"{daemons()[daemon].server_type}-server" / f"{node}.conf"
        with tempfile.TemporaryFile() as log:
            status = FORK_SERVER.begin("swift.cli.daemon", [daemon, str(conf), *options], log).wait(120)
            log.seek(0)
            assert status == 0, log.read().decode(errors="replace")

    def corrupt_and_audit(self, stored, at):
        """Damage a stored file and audit its partition; return the number of its node."""
        stored.damage(at)
        number = self.node_of(stored)
        self.run_once("object-auditor", number, ("-o", "-p", str(stored.partition)))
        return number

    @staticmethod
    def await_true(condition, what, seconds=60):
        """Poll a condition until another process makes it true."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
            time.sleep(0.05)

    def device_path(self, node, disk=0):
        return self.plan.devices(node) / self.plan.device(node, disk)

    def files(self, pattern):
        """Return the matching paths on all devices, while servers may add and remove files."""
        # ``Path.glob`` fails when a directory goes away under it.
        devices = self.plan.device_paths()
        return [Path(path) for device in devices for path in glob.glob(f"{device}/{pattern}")]

    @property
    def policies(self):
        """Return the policies of the plan."""
        found = [Policy(0, "gold", is_default=True)]
        if self.plan.ec:
            code = ErasureCode("liberasurecode_rs_vand", *parse_ec(self.plan.ec))
            found.append(Policy(1, "ec", ec=code))
        return found

    def stored(self, policy=None, suffix=".data", *, node=None):
        """Return the stored object files of one or all policies, on one or all nodes."""
        policies = self.policies if policy is None else [self.policies[policy]]
        nodes = self.plan.node_numbers() if node is None else [node]
        devices = [self.plan.devices(n) / name for n in nodes for name in self.plan.device_names(n)]
        found = (each for device in devices for of in policies for each in stored(device, of))
        return [each for each in found if each.name.endswith(suffix)]

    def node_of(self, stored):
        """Return the number of the node of a stored file."""
        return next(n for n in self.plan.node_numbers() if self.plan.devices(n) == stored.device.parent)

    def wipe_objects(self, node, disk=0):
        """Remove all objects of a device."""
        path = self.device_path(node, disk)
        for name in ("packed", *(each.name for each in path.glob("objects*")), "tmp"):
            self.wipe(path / name)

    def lose_device(self, node, disk=0):
        """Remove a device as an unmount would."""
        path = self.device_path(node, disk)
        path.rename(path.with_name(path.name + ".away"))

    def return_device(self, node, disk=0):
        path = self.device_path(node, disk)
        self.wipe(path)
        path.with_name(path.name + ".away").rename(path)

    def wipe(self, path):
        """Remove a folder of a device atomically, because daemons use it."""
        away = Path(tempfile.mkdtemp(dir=self.plan.root))
        if path.exists():
            path.rename(away / path.name)
        shutil.rmtree(away, ignore_errors=True)

    def token(self, user="test:tester"):
        if user not in self.tokens:
            self.tokens[user] = login(self.host, user)
        return self.tokens[user]

    def raw(self, method, path, headers=None, body=None, *, port=None, timeout=60):
        """Send a request without a token, on its own connection."""
        connection = http.client.HTTPConnection(self.plan.ip, port or self.plan.proxy_port, timeout=timeout)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def request(self, method, path="", headers=None, body=None, *, user="test:tester"):
        """Send a request below the test account; ``path`` is container[/object], unquoted."""
        url = "/v1/AUTH_test" + (f"/{quote(path, safe='/?=&%')}" if path else "")
        merged = {"X-Auth-Token": self.token(user), **(headers or {})}
        return self.raw(method, url, merged, body)

    def log_text(self):
        """Return all logs, to search for tracebacks."""
        return "\n".join(path.read_text(errors="replace") for path in self.plan.logs.glob("*.log"))


# --- server -----------------------------------------------------------------------------------------

# One storage server of two workers on one device, to be killed and started again.


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
                self.process = FORK_SERVER.begin(module, words, log)
        deadline = time.monotonic() + 30
        while not accepts_connections("127.0.0.1", self.port):
            assert time.monotonic() < deadline, (self.root / "log").read_text()[-2000:]
            time.sleep(0.01)

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        # The last of the workers lets go of the port a moment later.
        deadline = time.monotonic() + 10
        while accepts_connections("127.0.0.1", self.port):
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def kill_under(self, writers, go, seconds):
        """Let writers write for some seconds, kill the server, and restart it when they are idle."""
        go.set()
        time.sleep(seconds)
        self.kill()
        go.clear()
        for writer in writers:
            assert writer.idle.wait(60)
            assert writer.failure is None, writer.failure
        self.start()

    def ask(self, method, path, headers=None, body=None):
        """Return a response; raise OSError or HTTPException when the server dies meanwhile."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            merged = {"X-Timestamp": f"{time.time():.5f}", **(headers or {})}
            connection.request(method, path, body, merged)
            return Answer(connection.getresponse())
        finally:
            connection.close()


# --- hosts ------------------------------------------------------------------------------------------

# A cluster of several hosts on one machine: each node in a network namespace of its own, with its own
# files.
#
# Needs root. The machine itself stands on the same bridge, so that tests reach every proxy whatever is cut
# between hosts.


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
    """Return True if network namespaces can be created here."""
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
        """Create networks and files; start nothing."""
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
        """Return the configuration directory of a host."""
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
        self.await_listening()

    def await_listening(self):
        """Wait until every server of every host listens."""
        for number in self.numbers:
            kinds = ("account", "container", "object")
            for port in (PROXY_PORT, *(self.plan.port(kind, number) for kind in kinds)):
                self._await_ports(
                    lambda number=number, port=port: accepts_connections(self.ip(number), port),
                    f"host {number} answers",
                )

    def start_host(self, number):
        """Start all processes of a host, with its configured clock."""
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

    def run(self, number, *words):
        """Run Python on a host until it ends; return the finished process."""
        command = ["ip", "netns", "exec", self._namespace(number), sys.executable, *words]
        env = {**os.environ, "PYTHONPATH": os.getcwd()}
        return subprocess.run(command, capture_output=True, text=True, env=env, timeout=120, check=False)

    def stop_host(self, number):
        """Kill all processes of a host."""
        for name in [name for name in self._children if name.endswith(f"-{number}")]:
            self.kill(name)

    def kill(self, name):
        """Kill one process, e.g. ``daemons-1``."""
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
        """Partition the network between the hosts of ``side`` and the others."""
        self._routes("add", side)

    def heal(self, *side):
        """Repair the network partition."""
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
        """Send a request of the test user to the proxy of a host."""
        if number not in self.tokens:
            user = {"X-Auth-User": "test:tester", "X-Auth-Key": KEYS["test:tester"]}
            self.tokens[number] = self.raw(number, "GET", "/auth/v1.0", user).headers["x-auth-token"]
        sent = {"X-Auth-Token": self.tokens[number], **(headers or {})}
        return self.raw(number, method, f"/v1/AUTH_test/{path}", sent, body)

    def names(self, number):
        """Return the names that a host's proxy lists."""
        response = self(number, "GET", "c?format=json")
        return [row["name"] for row in json.loads(response.body)] if response.status == 200 else []

    def files(self, pattern):
        return [path for device in self.plan.device_paths() for path in device.glob(pattern)]

    @staticmethod
    def _await_ports(condition, what, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
            time.sleep(0.1)

    await_true = _await_ports

    def log_text(self):
        return "\n".join(path.read_text(errors="replace") for path in self.plan.logs.glob("*.log"))

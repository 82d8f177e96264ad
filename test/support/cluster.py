"""A live cluster for tests: the all-in-one plan on free ports in a temporary folder."""

import contextlib
import glob
import http.client
import json
import os
import re
import shutil
import signal
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from swift.aio.make import make_cluster
from swift.aio.plan import new_plan
from swift.aio.ports import PORTS_PER_NODE, port_is_free
from swift.aio.supervisor import Supervisor, answers, cache_process
from swift.config.declared import daemons
from test.support.nursery import NURSERY, WarmBeginner
from test.support.pipelines import with_filters
from test.support.ports import free_ports, free_range
from test.support.tiers import EVERYWHERE, tier_section


class Answer:
    """Status, headers (lower-case names) and body of a response."""

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
    """A token of ``user`` from the proxy at ``host``."""
    connection = http.client.HTTPConnection(host, timeout=30)
    try:
        headers = {"X-Auth-User": user, "X-Auth-Key": KEYS[user]}
        connection.request("GET", "/auth/v1.0", headers=headers)
        answer = Answer(connection.getresponse())
    finally:
        connection.close()
    assert answer.status == 200, answer
    return answer.headers["x-auth-token"]


class LiveCluster:
    """Real processes; ``request`` speaks HTTP to the proxy with the test user's token.

    Its limits are the defaults, as the peer's, unless it is to have those that fit into its filesystem.
    ``places`` and ``options`` are those of ``test.support.pipelines.with_filters``. Daemons rest for
    ``rest_s`` seconds between passes: tests wait for what they do, people seldom. Where no test does,
    ``AT_REST_S`` leaves the machine to the tests. With ``tier`` every node has a cache tier.
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
        rest_s=5,
        tier=EVERYWHERE,
        **choices,
    ):
        self._tier = tier
        self._rest_s = rest_s
        self._fitting_limits = fitting_limits
        self._filters = places or {}, options
        proxy_port, cache_port = free_ports(2)
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
        self._supervisor = Supervisor(self.plan, lambda _text: None, WarmBeginner())
        self.tokens = {}

    def start(self):
        make_cluster(self.plan)
        if not self._fitting_limits:
            conf = self.plan.etc / "swift.conf"
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
        for node in self.plan.node_numbers() if self._tier else ():
            root, conf = self.plan.cache / f"tier{node}", self.plan.etc / "object-server" / f"{node}.conf"
            conf.write_text(f"{conf.read_text()}\n{tier_section(root / 'ssd', root / 'state')}")
        if any(self._filters):
            conf = self.plan.etc / "proxy-server.conf"
            conf.write_text(with_filters(conf.read_text(), *self._filters))
        self._supervisor.start()

    def stop(self):
        self._supervisor.end()

    @property
    def host(self):
        return f"{self.plan.ip}:{self.plan.proxy_port}"

    def pid(self, name):
        """The pid of a process, e.g. ``object-1``."""
        return self._supervisor._children[name].pid

    def kill(self, name, sig=signal.SIGKILL):
        """Kill a server and wait until it is gone; its workers take connections a little longer."""
        child, port = self._supervisor._children[name], self._supervisor._processes[name].port
        os.killpg(child.pid, sig)
        child.wait()
        if port is not None:
            self.await_true(lambda: port_is_free(self.plan.ip, port), f"the port of {name} is free")

    @contextlib.contextmanager
    def stopped(self, *names):
        """These processes, with their workers, hang meanwhile."""
        pids = [self.pid(name) for name in names]
        for pid in pids:
            os.killpg(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.killpg(pid, signal.SIGCONT)

    def restart(self, name):
        """Start a killed server again and wait until it answers."""
        known = (cache_process(self.plan), *self.plan.servers(), *self.plan.daemons())
        process = next(p for p in known if p.name == name)
        self._supervisor._spawn(process)
        if process.port is not None:
            self.await_true(lambda: answers(self.plan.ip, process.port), f"{name} answers")

    def run_once(self, daemon, node=1, options=("once",)):
        """One pass of a daemon over a node, beside the one that rests."""
        conf = self.plan.etc / f"{daemons()[daemon].server_type}-server" / f"{node}.conf"
        with tempfile.TemporaryFile() as log:
            status = NURSERY.begin("swift.cli.daemon", [daemon, str(conf), *options], log).wait(120)
            log.seek(0)
            assert status == 0, log.read().decode(errors="replace")

    def rot(self, path, at):
        """Damage a file of a device, and have the auditor look at its partition; the number of its node."""
        with open(path, "r+b") as file:
            file.seek(at)
            file.write(b"rotten")
        number = next(n for n in self.plan.node_numbers() if self.device_path(n) in path.parents)
        self.run_once("object-auditor", number, ("-o", "-p", path.parts[-4]))
        return number

    @staticmethod
    def await_true(condition, what, seconds=60):
        """Poll a condition that another process brings about."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
            time.sleep(0.05)

    def device_path(self, node, disk=0):
        return self.plan.devices(node) / self.plan.device(node, disk)

    def files(self, pattern):
        """What matches on any device, while servers may be adding and removing."""
        # ``Path.glob`` fails when a directory goes away under it.
        devices = self.plan.device_paths()
        return [Path(path) for device in devices for path in glob.glob(f"{device}/{pattern}")]

    def lose_device(self, node, disk=0):
        """Take a device away as an unmount would."""
        path = self.device_path(node, disk)
        path.rename(path.with_name(path.name + ".away"))

    def return_device(self, node, disk=0):
        path = self.device_path(node, disk)
        self.wipe(path)
        path.with_name(path.name + ".away").rename(path)

    def wipe(self, path):
        """Remove a folder of a device in one step: daemons are at work in it."""
        away = Path(tempfile.mkdtemp(dir=self.plan.root))
        if path.exists():
            path.rename(away / path.name)
        shutil.rmtree(away, ignore_errors=True)

    def token(self, user="test:tester"):
        if user not in self.tokens:
            self.tokens[user] = login(self.host, user)
        return self.tokens[user]

    def raw(self, method, path, headers=None, body=None, *, port=None, timeout=60):
        """One request without a token, on its own connection."""
        connection = http.client.HTTPConnection(self.plan.ip, port or self.plan.proxy_port, timeout=timeout)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def request(self, method, path="", headers=None, body=None, *, user="test:tester"):
        """One request below the test account (``path`` is container[/object], quoted here)."""
        url = "/v1/AUTH_test" + (f"/{quote(path, safe='/?=&%')}" if path else "")
        merged = {"X-Auth-Token": self.token(user), **(headers or {})}
        return self.raw(method, url, merged, body)

    def log_text(self):
        """All logs, to look for tracebacks."""
        return "\n".join(path.read_text(errors="replace") for path in self.plan.logs.glob("*.log"))

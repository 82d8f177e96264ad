"""Faults of a live cluster: killed servers, lost, read-only and full devices.

Real processes on real files. After every fault the question is the same: is everything that was
acknowledged still there, with the right bytes, and does the proxy go on?
"""

import contextlib
import fcntl
import http.client
import os
import random
import shutil
import signal
import struct
import subprocess
import threading
import time
from collections import Counter
from hashlib import md5
from pathlib import Path

import pytest

from swift.aio.make import make_cluster
from swift.platform.disk import Disk
from swift.store.asyncpending import decode_update
from swift.store.metadata import read_metadata
from test.support.cluster import Answer, LiveCluster
from test.support.races import Ledger

LOAD_S = 10.0
THREADS = 4
NEWEST = {"X-Newest": "true"}
#: Statuses that clients may get during faults, besides successes.
TOLERATED = frozenset((503, 507))


# --- tools ------------------------------------------------------------------------------------------


@pytest.fixture()
def tuned_cluster(tmp_path):
    """Start clusters whose proxies have other options, and stop them at the end."""
    running = []

    def start(prepare=lambda _cluster: None, **options):
        live = LiveCluster(tmp_path / "data")
        make_cluster(live.plan)
        conf = live.plan.etc / "proxy-server.conf"
        mark = "use = egg:swift#proxy\n"
        extra = "".join(f"{name} = {value}\n" for name, value in options.items())
        conf.write_text(conf.read_text().replace(mark, mark + extra))
        prepare(live)
        running.append(live)
        live.start()
        return live

    yield start
    for live in running:
        live.stop()


def attempt(cluster, method, path, headers=None, body=None):
    """Return the response; None when the connection broke and the outcome is unknown."""
    try:
        return cluster.request(method, path, headers, body)
    except (OSError, http.client.HTTPException):
        return None


def children_of(pid):
    """Return the pids of a process's children."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(path.read_text().rsplit(")", 1)[1].split()[1]) == pid:
                found.append(int(path.parent.name))
    return found


def fill_container(cluster, container, count, size=2000):
    """PUT ``count`` objects; return name → body."""
    assert cluster.request("PUT", container).status in (201, 202)
    bodies = {}
    for number in range(count):
        name = f"{container}/o{number}"
        bodies[name] = os.urandom(size) + b"%d" % number
        response = cluster.request("PUT", name, body=bodies[name])
        assert response.status == 201, response
    return bodies


def assert_readable(cluster, bodies):
    for name, body in bodies.items():
        response = cluster.request("GET", name)
        assert response.status == 200, (name, response)
        assert response.body == body, name
        assert response.headers["etag"] == md5(body).hexdigest()


def device_files(cluster, pattern):
    """Return the matching files of all devices."""
    return [path for path in cluster.files(pattern) if path.is_file()]


def assert_nothing_torn(cluster):
    """Fail if a committed body is incomplete on any device; handoffs may be reverted meanwhile."""
    files = device_files(cluster, "objects/*/*/*/*.data")
    assert files
    for path in files:
        try:
            metadata = read_metadata(Disk(), str(path))
            body = path.read_bytes()
        except FileNotFoundError:
            continue
        assert int(metadata["Content-Length"]) == len(body), path
        assert metadata["ETag"] == md5(body).hexdigest(), path


def assert_no_traceback(cluster):
    text = cluster.log_text()
    where = text.find("Traceback")
    assert where < 0, text[max(0, where - 500) : where + 2000]


def pending_updates(cluster):
    """Return the pending container updates of all devices."""
    updates = []
    for path in device_files(cluster, "async_pending/*/*"):
        # The updater may be delivering it right now.
        with contextlib.suppress(FileNotFoundError):
            updates.append(decode_update(path.read_bytes())[0])
    return updates


def listing_on(cluster, node, container):
    """Return the names in a node's replica of a container; None when the node has none."""
    for path in cluster.device_path(node).glob("containers/*/*/*/*.db"):
        url = f"/{cluster.plan.device(node)}/{path.parts[-4]}/AUTH_test/{container}?format=json"
        response = cluster.raw("GET", url, port=cluster.plan.port("container", node))
        # A request to the partition of another container gets 400.
        assert response.status in (200, 400, 404), (node, response)
        if response.status == 200:
            return {row["name"] for row in response.json()}
    return None


def known_to_containers(cluster, container):
    """Return the names in any replica of the container or in a pending update."""
    names = {u.path.obj for u in pending_updates(cluster) if u.path.container == container}
    return names.union(*(listing_on(cluster, node, container) or () for node in cluster.plan.node_numbers()))


# --- kill -9 under load -----------------------------------------------------------------------------


class Load(threading.Thread):
    """A client that writes, changes, reads and deletes its own objects until it is stopped."""

    def __init__(self, cluster, number, stop):
        super().__init__(name=f"load-{number}")
        self.cluster = cluster
        self.number = number
        self.stop = stop
        self.random = random.Random(number)
        self.ledger = Ledger()
        self.statuses = Counter()
        self.permanent_names = []
        self.errors = []
        self.serial = 0

    def run(self):
        steps = (
            [self.put] * 4
            + [self.get] * 4
            + [self.post] * 2
            + [self.delete, self.put_permanent, self.check_permanent]
        )
        try:
            while not self.stop.is_set():
                self.random.choice(steps)(f"load/{self.number}-{self.random.randrange(10)}")
        except BaseException as error:
            self.errors.append(error)

    def send(self, method, name, headers=None, body=None):
        response = attempt(self.cluster, method, name, headers, body)
        status = response.status if response is not None else 0
        self.statuses[method, status] += 1
        return response, status

    def body(self, name):
        self.serial += 1
        text = f"{name} {self.serial} ".encode()
        size = self.random.choice((100, 5_000, 60_000, 150_000, 400_000))
        return (text * (size // len(text) + 1))[:size]

    def put(self, name):
        body, colour = self.body(name), f"put{self.serial}"
        _, status = self.send("PUT", name, {"X-Object-Meta-Colour": colour}, body)
        self.ledger[name].put(body, colour, status == 201)

    def post(self, name):
        self.serial += 1
        colour = f"post{self.serial}"
        _, status = self.send("POST", name, {"X-Object-Meta-Colour": colour})
        if status != 404:
            self.ledger[name].post(colour, status == 202)

    def delete(self, name):
        _, status = self.send("DELETE", name)
        self.ledger[name].delete(status in (204, 404))

    def get(self, name):
        response, _ = self.send("GET", name)
        self.ledger.check_loosely(name, response)

    def put_permanent(self, _name):
        """Write an object once and never change it again."""
        name = f"load/permanent-{self.number}-{self.serial}"
        body = self.body(name)
        _, status = self.send("PUT", name, {"X-Object-Meta-Colour": "grey"}, body)
        self.ledger[name].put(body, "grey", status == 201)
        if status == 201:
            self.permanent_names.append(name)

    def check_permanent(self, _name):
        """Check that an unchanged object is readable, whichever server is killed."""
        if self.permanent_names:
            name = self.random.choice(self.permanent_names)
            response, status = self.send("GET", name)
            if status not in (0, *TOLERATED):
                self.ledger.check(name, response)


def kill_in_turn(cluster, seconds):
    """Kill servers one at a time, each started again a moment later, for a while and six times at least."""
    names = [f"{kind}-{n}" for kind in ("object", "container", "account") for n in (1, 2, 3, 4)]
    names = ["object-1", "object-2", "object-3", "object-4", "proxy", "proxy", *names]
    chooser = random.Random(7)
    killed = 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline or killed < 6:
        name = chooser.choice(names)
        if name == "proxy":
            workers = children_of(cluster.pid("proxy"))
            os.kill(chooser.choice(workers), signal.SIGKILL)
        else:
            cluster.kill(name)
            # The pause is the fault: the server is down for this long.
            time.sleep(0.4)
            cluster.restart(name)
        killed += 1
        time.sleep(0.6)


@pytest.mark.long
def test_sigkill_of_any_server_under_load_loses_and_resurrects_nothing(tuned_cluster):
    cluster = tuned_cluster(error_suppression_interval=0.5)
    assert cluster.request("PUT", "load").status == 201
    stop = threading.Event()
    clients = [Load(cluster, number, stop) for number in range(THREADS)]
    for client in clients:
        client.start()
    try:
        kill_in_turn(cluster, LOAD_S)
    finally:
        stop.set()
        for client in clients:
            client.join(60)
    for client in clients:
        assert not client.errors, client.errors[0]
    statuses = sum((client.statuses for client in clients), Counter())
    failures = {s for _, s in statuses if s >= 500}
    assert failures <= TOLERATED, statuses
    answered = sum(count for (_, status), count in statuses.items() if 200 <= status < 300)
    assert answered > sum(statuses.values()) / 2, statuses

    # A proxy without recorded errors sends requests to every node.
    cluster.kill("proxy", signal.SIGTERM)
    cluster.restart("proxy")
    listed = known_to_containers(cluster, "load")
    assert listed, "no replica of the container is found"
    for client in clients:
        for name, entry in client.ledger.entries.items():
            client.ledger.check(name, cluster.request("GET", name, NEWEST))
            if None not in entry.bodies:
                assert name.removeprefix("load/") in listed, f"{name} is unknown to its container"
    assert_nothing_torn(cluster)
    assert_no_traceback(cluster)


# --- devices ----------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_vanished_device_loses_nothing(own_cluster):
    cluster = own_cluster
    early = fill_container(cluster, "c", 12)
    cluster.lose_device(1)
    assert_readable(cluster, early)
    late = {}
    for number in range(12):
        name = f"c/late{number}"
        late[name] = b"late %d" % number * 30_000
        assert cluster.request("PUT", name, body=late[name]).status == 201
    assert_readable(cluster, late)
    assert not cluster.device_path(1).exists(), "a server wrote to the disk below the mount point"
    assert cluster.request("POST", "c", {"X-Container-Meta-A": "b"}).status == 204
    assert cluster.request("PUT", "new").status == 201
    assert cluster.request("DELETE", "c/o0").status == 204
    listed = {row["name"] for row in cluster.request("GET", "c?format=json").json()}
    assert listed == {name[2:] for name in [*early, *late]} - {"o0"}
    cluster.return_device(1)
    del early["c/o0"]
    assert_readable(cluster, {**early, **late})
    assert cluster.request("GET", "c/o0", NEWEST).status == 404
    # The account's replica on this device may not list the new container yet.
    containers = {row["name"] for row in cluster.request("GET", "?format=json").json()}
    assert containers in ({"c"}, {"c", "new"})
    assert cluster.request("HEAD", "new").status == 204
    assert_no_traceback(cluster)


@pytest.fixture()
def xfs_cluster(tmp_path):
    """A cluster whose devices 1 and 2 are separate XFS images."""
    if os.geteuid() != 0 or shutil.which("mkfs.xfs") is None:
        pytest.skip("needs root and mkfs.xfs, to mount filesystems that can be full and read-only")
    live = LiveCluster(tmp_path / "data")
    make_cluster(live.plan)
    try:
        for node in (1, 2):
            mount_image(tmp_path / f"{node}.img", live.device_path(node))
        live.start()
        yield live
    finally:
        live.stop()
        for node in (1, 2):
            if os.path.ismount(live.device_path(node)):
                run("umount", live.device_path(node))


def mount_image(image, target):
    with open(image, "wb") as file:
        file.truncate(320 << 20)
    run("mkfs.xfs", "-q", "-f", image)
    done = subprocess.run(["mount", "-o", "loop", image, target], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount a loop device here: {done.stderr.strip()}")


def run(*command):
    subprocess.run(command, check=True, capture_output=True)


@contextlib.contextmanager
def without_databases(cluster, node):
    """Close all files that servers have open for writing, so that the device can be remounted."""
    names = [f"account-{node}", f"container-{node}"]
    for name in names:
        cluster.kill(name)
    yield
    for name in names:
        cluster.restart(name)


def replicas_of(cluster, body):
    """Return the nodes that store a body."""
    found = set()
    for node in cluster.plan.node_numbers():
        for path in cluster.device_path(node).glob("objects/*/*/*/*.data"):
            if path.stat().st_size == len(body) and path.read_bytes() == body:
                found.add(node)
    return found


@pytest.mark.long
def test_a_read_only_device_sends_writes_to_handoffs(xfs_cluster):
    cluster = xfs_cluster
    early = fill_container(cluster, "c", 8)
    with without_databases(cluster, 1):
        run("mount", "-o", "remount,ro", cluster.device_path(1))
    late = fill_container(cluster, "d", 8, size=3000)
    for number in range(2):
        name = f"d/large{number}"
        late[name] = os.urandom(1 << 20)
        assert cluster.request("PUT", name, body=late[name]).status == 201
    assert_readable(cluster, {**early, **late})
    for body in late.values():
        assert replicas_of(cluster, body) == {2, 3, 4}
    for name in list(early)[:3]:
        assert cluster.request("POST", name, {"X-Object-Meta-A": "b"}).status == 202
        assert cluster.request("DELETE", name).status == 204
        assert cluster.request("GET", name, NEWEST).status == 404
        del early[name]
    with without_databases(cluster, 1):
        run("mount", "-o", "remount,rw", cluster.device_path(1))
    assert_readable(cluster, {**early, **late})
    assert_nothing_torn(cluster)
    assert_no_traceback(cluster)


@pytest.mark.long
def test_a_full_device_sends_writes_to_handoffs(xfs_cluster):
    cluster = xfs_cluster
    early = fill_container(cluster, "c", 8)
    filler = cluster.device_path(2) / "filler"
    fill(filler)
    late = fill_container(cluster, "d", 8, size=3000)
    for number in range(2):
        name = f"d/large{number}"
        late[name] = os.urandom(1 << 20)
        assert cluster.request("PUT", name, body=late[name]).status == 201
    assert_readable(cluster, {**early, **late})
    for body in late.values():
        assert replicas_of(cluster, body) == {1, 3, 4}
    filler.unlink()
    assert_readable(cluster, {**early, **late})
    assert_nothing_torn(cluster)
    assert_no_traceback(cluster)


#: XFS_IOC_GOINGDOWN and its flag "not even the log": what a power cut leaves of a filesystem.
GOING_DOWN, NO_LOG_FLUSH = 0x8004587D, 2


@pytest.mark.long
def test_a_device_that_fails_without_a_flush_keeps_acknowledged_writes(xfs_cluster, tmp_path):
    cluster = xfs_cluster
    device = cluster.device_path(1)
    early = fill_container(cluster, "c", 20)
    assert cluster.request("DELETE", "c/o0").status == 204
    assert cluster.request("POST", "c/o1", {"X-Object-Meta-A": "b"}).status == 202
    acknowledged = {path.relative_to(device) for path in device.glob("objects/*/*/*/*.*")}
    descriptor = os.open(device, os.O_RDONLY)
    fcntl.ioctl(descriptor, GOING_DOWN, struct.pack("I", NO_LOG_FLUSH))
    os.close(descriptor)
    del early["c/o0"]
    assert_readable(cluster, early)
    late = fill_container(cluster, "d", 8, size=3000)
    assert_readable(cluster, late)
    with without_databases(cluster, 1):
        run("umount", device)
        run("mount", "-o", "loop", tmp_path / "1.img", device)
    survived = {path.relative_to(device) for path in device.glob("objects/*/*/*/*.*")}
    assert acknowledged <= survived, "a replica that was acknowledged is gone after the power cut"
    assert_nothing_torn(cluster)
    assert_readable(cluster, {**early, **late})
    assert cluster.request("GET", "c/o0", NEWEST).status == 404
    assert cluster.request("HEAD", "c/o1", NEWEST).headers["x-object-meta-a"] == "b"
    assert listing_on(cluster, 1, "c") in (None, {name[2:] for name in early})
    assert_no_traceback(cluster)


def fill(path):
    """Fill the device to the last block."""
    with open(path, "wb", buffering=0) as file:
        size = 16 << 20
        while size >= 512:
            try:
                while file.write(bytes(size)) == size:
                    continue
            except OSError:
                pass
            size //= 2


def test_a_device_that_refuses_files_sends_writes_to_handoffs(own_cluster):
    """Permissions affect other users like read-only mounts; as root, the XFS test above covers this."""
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere; the XFS tests cover it")
    cluster = own_cluster
    early = fill_container(cluster, "c", 6)
    top = cluster.device_path(1)
    closed = [path for path in (top, *top.rglob("*")) if path.is_dir()]
    try:
        for path in closed:
            path.chmod(0o555)
        late = fill_container(cluster, "d", 6, size=3000)
        assert_readable(cluster, {**early, **late})
    finally:
        for path in closed:
            path.chmod(0o755)
    assert_readable(cluster, {**early, **late})
    assert_nothing_torn(cluster)


# --- reads that lose their server -------------------------------------------------------------------


LARGE_BYTES = 50 << 20


def server_reading(cluster):
    """Return the object server that has a body open now, or None."""
    for node in cluster.plan.node_numbers():
        name = f"object-{node}"
        for link in Path(f"/proc/{cluster.pid(name)}/fd").iterdir():
            with contextlib.suppress(OSError):
                target = os.readlink(link)
                if target.endswith(".data") and f"/node{node}/" in target:
                    return name
    return None


@pytest.mark.long
@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_broken_get_is_completed_from_another_replica(tuned_cluster, sig):
    cluster = tuned_cluster(recoverable_node_timeout=1.5)
    assert cluster.request("PUT", "c").status == 201
    body = os.urandom(1 << 20) * (LARGE_BYTES >> 20)
    assert cluster.request("PUT", "c/large", body=body).status == 201
    connection = http.client.HTTPConnection(cluster.plan.ip, cluster.plan.proxy_port, timeout=30)
    stopped = None
    try:
        connection.request("GET", "/v1/AUTH_test/c/large", headers={"X-Auth-Token": cluster.token()})
        response = connection.getresponse()
        assert response.status == 200
        received = response.read(1 << 20)
        stopped = server_reading(cluster)
        assert stopped, "nobody has the object open in mid-body"
        if sig == signal.SIGKILL:
            cluster.kill(stopped)
        else:
            os.kill(cluster.pid(stopped), signal.SIGSTOP)
        received += response.read()
    finally:
        connection.close()
        if stopped and sig == signal.SIGSTOP:
            os.kill(cluster.pid(stopped), signal.SIGCONT)
    assert len(received) == LARGE_BYTES
    assert received == body
    assert_no_traceback(cluster)


# --- container updates ------------------------------------------------------------------------------


@pytest.mark.long
def test_updates_for_missing_containers_survive_sigkill_on_the_devices(own_cluster):
    cluster = own_cluster
    fill_container(cluster, "c", 1)
    containers = [f"container-{node}" for node in cluster.plan.node_numbers()]
    for name in containers:
        cluster.kill(name)
    body = b"acknowledged" * 100
    assert cluster.request("PUT", "c/waits", body=body).status == 201
    assert cluster.request("DELETE", "c/o0").status == 204

    def waiting():
        return {(update.op, update.path.obj) for update in pending_updates(cluster)}

    assert waiting() == {("PUT", "waits"), ("DELETE", "o0")}
    assert len({p.parts[-3:] for p in device_files(cluster, "async_pending/*/*")}) == 2
    before = len(pending_updates(cluster))
    for node in cluster.plan.node_numbers():
        cluster.kill(f"object-{node}")
        cluster.restart(f"object-{node}")
    assert len(pending_updates(cluster)) == before
    for name in containers:
        cluster.restart(name)
    assert_readable(cluster, {"c/waits": body})
    assert_no_traceback(cluster)


# --- races ------------------------------------------------------------------------------------------


@pytest.mark.long
def test_at_most_one_of_two_creators_gets_success(own_cluster):
    cluster = own_cluster
    assert cluster.request("PUT", "c").status == 201
    cluster.token()
    wins = 0
    for number in range(30):
        name = f"c/race{number}"
        bodies = [b"first" * 10, b"second" * 10]
        gate = threading.Barrier(2)
        responses = [None, None]

        def create(which, name=name, bodies=bodies, gate=gate, answers=responses):
            gate.wait(10)
            answers[which] = cluster.request("PUT", name, {"If-None-Match": "*"}, bodies[which])

        threads = [threading.Thread(target=create, args=(which,)) for which in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        statuses = [response.status for response in responses]
        assert set(statuses) <= {201, 202, 412, 503}, responses
        assert statuses.count(201) <= 1, f"both creators of {name} were told 201"
        found = cluster.request("GET", name, NEWEST)
        assert found.status == 200
        assert found.body in bodies
        if 201 in statuses:
            wins += 1
            assert found.body == bodies[statuses.index(201)], "the winner's body is not the one that stays"
    assert wins > 0
    assert isinstance(found, Answer)
    assert_no_traceback(cluster)


# --- a cache that goes away ---------------------------------------------------------------------------


def test_a_cluster_without_memcached_serves_all_clients(own_cluster):
    assert own_cluster.request("PUT", "c").status == 201
    own_cluster.kill("cache")
    assert own_cluster.request("PUT", "c/o", {}, b"abc").status == 201
    assert own_cluster.request("GET", "c/o").body == b"abc"
    assert own_cluster.request("GET", "c", user="test2:tester2").status == 403


@pytest.mark.long
def test_cached_tokens_work_again_once_memcached_is_back(tuned_cluster):
    def without_keys(live):
        conf = live.plan.etc / "proxy-server.conf"
        lines = conf.read_text().splitlines(keepends=True)
        conf.write_text("".join(line for line in lines if "fernet" not in line))

    live = tuned_cluster(without_keys)
    assert live.request("PUT", "c").status == 201
    live.kill("cache")
    # A worker still uses values that it has just read.
    live.await_true(
        lambda: {live.request("HEAD", "c").status for _ in range(20)} == {503},
        "no worker can check the token",
    )
    for _ in range(50):
        response = live.request("HEAD", "c")
        assert (response.status, response.headers.get("retry-after")) == (503, "1")
    live.restart("cache")
    # An empty cache has no tokens: clients need new ones. Each worker reconnects within a second.
    login = {"X-Auth-User": "test:tester", "X-Auth-Key": "testing"}

    def works():
        return {live.raw("GET", "/auth/v1.0", login).status for _ in range(10)} == {200}

    live.await_true(works, "every worker talks to it again", 5)
    live.tokens.clear()
    assert live.request("HEAD", "c").status == 204

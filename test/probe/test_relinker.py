"""A part power increase: every object is readable at every step, and the peer's relinker does the same."""

import json
import os
import shutil
import subprocess
import threading

import pytest

from swift.base.hashing import PathHasher
from swift.ring.builder import RingBuilder
from swift.ring.partpower import finish_increase, increase, prepare_increase
from test.support.cluster import LiveCluster, LoneServer
from test.support.peer import can_hide_etc, environment, needs_peer, peer_command, run
from test.support.tiers import tier_section

POWER = 3
COUNT = 24
HASHER = PathHasher(b"", b"s")


def part_of(name, power):
    return int(HASHER.hexdigest("a", "c", name)[:8], 16) >> (32 - power)


class Growing:
    """One object server and its ring, whose part power is increased; ``tier`` is a section of its file."""

    def __init__(self, root, tier="", swift_conf=""):
        self.root = root
        self.tier = tier
        self.server = LoneServer(root, "object", f"[swift-hash]\nswift_hash_path_suffix = s\n{swift_conf}")
        self.server.conf.write_text(f"{self.server.conf.read_text()}\n{tier}")
        self.builder = RingBuilder(POWER, 1, 0)
        self.builder.add_device(
            ip="127.0.0.1", port=self.server.port, device="sda", weight=1, region=1, zone=1, meta=""
        )
        self.builder.rebalance(seed=1)
        self.write_ring()

    def write_ring(self):
        self.builder.write_ring(f"{self.root}/object.ring.gz")

    def put(self, name, body, power):
        headers = {"Content-Type": "text/plain"}
        return self.server.ask("PUT", f"/sda/{part_of(name, power)}/a/c/{name}", headers, body).status

    def get(self, name, power):
        return self.server.ask("GET", f"/sda/{part_of(name, power)}/a/c/{name}").body

    def words(self, action, root=None):
        root = root or self.root
        return [action, "--swift-dir", str(self.root), "--devices", f"{root}/dev", "--skip-mount-check"]

    def relinker(self, action, *more):
        conf = self.root / "relinker.conf"
        conf.write_text(
            f"[object-relinker]\nrecon_cache_path = {self.root}\nlog_address = {self.root}/none\n{self.tier}"
        )
        done = run("swift-object-relinker", *self.words(action), str(conf), *more)
        assert "Traceback" not in done.stderr, done.stderr
        return done


def tree(root):
    """Return the data files below the devices by path and inode."""
    found = {}
    for path in sorted((root / "dev").rglob("objects/*/*/*/*")):
        found[str(path.relative_to(root))] = path.stat().st_ino
    return found


def places(found):
    return set(found)


def shapes(found):
    """Return the groups of names that are hard links to the same file."""
    by_inode = {}
    for name, inode in found.items():
        by_inode.setdefault(inode, set()).add(name)
    return {frozenset(names) for names in by_inode.values()}


@pytest.fixture()
def growing(tmp_path):
    made = Growing(tmp_path)
    made.server.start()
    yield made
    made.server.kill()


@pytest.fixture(params=["disks alone", "cache tier"])
def growing_either_way(request, tmp_path):
    tier = tier_section(tmp_path / "ssd", tmp_path / "state") if request.param == "cache tier" else ""
    made = Growing(tmp_path, tier)
    made.server.start()
    yield made
    made.server.kill()


PACKED = "[storage-policy:0]\nname = gold\ndefault = yes\ndiskfile_module = egg:swift#replication.packed\n"


@pytest.fixture(params=["disks alone", "cache tier", "packed"])
def growing_in_any_way(request, tmp_path):
    section = {
        "disks alone": "",
        "cache tier": tier_section(tmp_path / "ssd", tmp_path / "state"),
        "packed": f"[packed]\nstate_path = {tmp_path}/state\nobject_max_kb = 1\n",
    }[request.param]
    made = Growing(tmp_path, section, PACKED if request.param == "packed" else "")
    made.server.start()
    yield made
    made.server.kill()


def fill(growing):
    for number in range(COUNT):
        assert growing.put(f"o{number}", b"%d" % number, POWER) == 201
        if number % 3 == 0:
            path = f"/sda/{part_of(f'o{number}', POWER)}/a/c/o{number}"
            assert growing.server.ask("POST", path, {"X-Object-Meta-A": "b"}).status == 202
        if number % 4 == 3:
            path = f"/sda/{part_of(f'o{number}', POWER)}/a/c/o{number}"
            assert growing.server.ask("DELETE", path).status == 204


def test_objects_are_readable_at_every_step(growing_either_way):
    growing = growing_either_way
    fill(growing)
    live = [f"o{number}" for number in range(COUNT) if number % 4 != 3]
    nothing = growing.relinker("relink")
    assert nothing.returncode == 2, "no policy is being increased"
    # The log goes to syslog; the terminal names the missing ring, too.
    assert "swift-object-relinker: no ring here is prepared" in nothing.stderr
    prepare_increase(growing.builder)
    growing.write_ring()
    before = places(tree(growing.root))
    assert growing.relinker("relink").returncode == 0
    linked = tree(growing.root)
    assert places(linked) > before, "nothing went away"
    assert growing.relinker("relink").returncode == 0
    assert tree(growing.root) == linked, "again changes nothing"
    for name in live:
        assert growing.get(name, POWER) == growing.get(name, POWER + 1) == name[1:].encode()
    assert growing.relinker("cleanup").returncode == 2

    increase(growing.builder)
    growing.write_ring()
    assert growing.relinker("cleanup").returncode == 0
    left = tree(growing.root)
    assert len(set(left.values())) == len(left), "every file has one name again"
    for path in left:
        _dev, _sda, _objects, part, _suffix, name_hash, _file = path.split("/")
        assert int(part) == int(name_hash[:8], 16) >> (32 - POWER - 1)
    for name in live:
        assert growing.get(name, POWER + 1) == name[1:].encode()
    facts = json.loads((growing.root / "relinker.recon").read_text())["devices"]["sda"]
    assert (facts["stats"]["errors"], facts["policies"]["0"]["step"]) == (0, "cleanup")
    assert facts["parts_done"] == facts["total_parts"] > 0
    finish_increase(growing.builder)
    growing.write_ring()
    assert growing.relinker("cleanup").returncode == 2


def test_objects_written_during_the_increase_are_kept(growing_in_any_way):
    """Writers continue during the increase and switch to the new ring as a proxy does."""
    growing = growing_in_any_way
    fill(growing)
    growing.server.kill()
    growing.server.start()
    power, stop, written, failed = [POWER], threading.Event(), {}, []

    def write():
        number = 0
        while not stop.is_set():
            number += 1
            name, body = f"w{number % 40}", b"%d" % number
            status = growing.put(name, body, power[0])
            if status == 201:
                written[name] = body
            else:
                failed.append(status)

    prepare_increase(growing.builder)
    growing.write_ring()
    # Servers look at their rings every so often; the guide says to wait for that before relinking.
    growing.server.kill()
    growing.server.start()
    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert growing.relinker("relink").returncode == 0
        increase(growing.builder)
        growing.write_ring()
        power[0] = POWER + 1
        assert growing.relinker("cleanup").returncode == 0
    finally:
        stop.set()
        writer.join(60)
    assert growing.relinker("cleanup").returncode == 0
    assert (set(failed), len(written) > 5) == (set(), True)
    assert {name: growing.get(name, POWER + 1) for name in written} == written


def test_a_different_file_at_the_new_path_is_an_error_unless_clobbered(growing):
    assert growing.put("o1", b"old", POWER) == 201
    prepare_increase(growing.builder)
    growing.write_ring()
    (source,) = tree(growing.root)
    target = growing.root / source.replace(f"/{part_of('o1', POWER)}/", f"/{part_of('o1', POWER + 1)}/", 1)
    if str(target.relative_to(growing.root)) == source:
        pytest.fail("the object must move for this test")
    target.parent.mkdir(parents=True)
    target.write_bytes(b"other")
    assert growing.relinker("relink").returncode == 1
    assert target.read_bytes() == b"other"
    assert growing.relinker("relink", "--clobber-hardlink-collisions").returncode == 0
    assert target.read_bytes() == b"old"
    assert list((growing.root / "dev/sda/quarantined/objects").iterdir())


@pytest.mark.peer
@needs_peer
@pytest.mark.skipif(not can_hide_etc(), reason="needs root and unshare(1) for an /etc of its own")
def test_the_peers_relinker_does_the_same(growing, tmp_path):
    fill(growing)
    growing.server.kill()
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-a", f"{growing.root}/dev", f"{copy}-dev"], check=True)
    (copy).mkdir()
    shutil.move(f"{copy}-dev", copy / "dev")
    for step, action in ((prepare_increase, "relink"), (increase, "cleanup")):
        step(growing.builder)
        growing.write_ring()
        assert growing.relinker(action).returncode == 0
        shutil.rmtree(growing.root / "hidden-etc" / "swift", ignore_errors=True)
        command = peer_command("swift-object-relinker", *growing.words(action, copy), swift_dir=growing.root)
        done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
        assert done.returncode == 0, done.stderr
        ours, theirs = tree(growing.root), tree(copy)
        assert shapes(ours) == shapes(theirs), action
        state = [
            json.loads((root / "dev/sda/relink.objects.json").read_text()) for root in (growing.root, copy)
        ]
        assert state[0] == state[1]
        dirs = [sorted(os.listdir(root / "dev/sda/objects")) for root in (growing.root, copy)]
        assert dirs[0] == dirs[1], "the same partitions are left"


# --- erasure coded ------------------------------------------------------------------------------------------


@pytest.fixture
def coded(tmp_path):
    """A cluster with files: packed records cannot have a second name."""
    cluster = LiveCluster(tmp_path / "aio", nodes=3, ec="2+1", proxy_workers=0, packed=False)
    try:
        cluster.start()
        assert cluster.request("PUT", "c", {"X-Storage-Policy": "ec"}).status == 201
        yield cluster
    finally:
        cluster.stop()


def ring_step(cluster, *steps):
    """Change the ring of the erasure coded policy, and restart all processes that read it."""
    builder = str(cluster.plan.etc / "object-1.builder")
    for step in (*steps, "write_ring"):
        done = run("swift-ring-builder", builder, step)
        assert done.returncode == 0, done.stdout + done.stderr
    for process in cluster.plan.servers():
        if process.name.startswith(("object-", "proxy")):
            cluster.kill(process.name)
            cluster.restart(process.name)


def relink_all(cluster, action, *more, code=0):
    for node in cluster.plan.node_numbers():
        words = ["--swift-dir", str(cluster.plan.etc), "--devices", str(cluster.plan.devices(node))]
        conf = cluster.plan.root / f"relinker{node}.conf"
        conf.write_text(f"[object-relinker]\nrecon_cache_path = {cluster.plan.root}\n")
        done = run("swift-object-relinker", action, *words, "--skip-mount-check", str(conf), *more)
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr, done.stderr


@pytest.mark.long
def test_a_different_archive_at_the_new_path_is_an_error_unless_clobbered(coded):
    assert coded.request("PUT", "c/o", body=b"x" * 5000).status == 201
    for node in coded.plan.node_numbers():
        # Auditors would find the other file, and quarantine it.
        coded.kill(f"daemons-{node}")
    ring_step(coded, "prepare_increase_partition_power")
    power = coded.plan.part_power
    for path in coded.files("objects-1/*/*/*/*.data"):
        part = int(path.parts[-2][:8], 16) >> (32 - power - 1)
        target = path.parents[3] / str(part) / path.parts[-3] / path.parts[-2] / path.name
        assert target != path, "the object must move for this test"
        target.parent.mkdir(parents=True)
        target.write_bytes(b"other")
    relink_all(coded, "relink", code=1)
    relink_all(coded, "relink", "--clobber-hardlink-collisions")
    ring_step(coded, "increase_partition_power")
    relink_all(coded, "cleanup")
    assert coded.request("GET", "c/o").body == b"x" * 5000
    assert len(coded.files("quarantined/objects-1/*")) == 3

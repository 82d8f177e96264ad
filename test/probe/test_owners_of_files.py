"""Tools run by root create no files owned by root where servers run as another user."""

import os
import pwd
import shutil
import tempfile
import time
from pathlib import Path

import pytest

from swift.base.hashing import PathHasher
from swift.ring.builder import RingBuilder
from swift.ring.partpower import increase, prepare_increase
from test.support.cluster import LoneServer
from test.support.peer import run

USER = "nobody"
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
POWER = 3


def part_of(*names):
    return int(PathHasher(b"", b"s").hexdigest(*names)[:8], 16) >> (32 - POWER)


class Site:
    """Storage servers that run as another user, which owns the device, recon files and rings."""

    def __init__(self):
        # The other user must have access, which the permissions of tmp_path forbid.
        self.root = Path(tempfile.mkdtemp(prefix="swift-owner-"))
        self.root.chmod(0o755)
        self.etc, self.recon, self.lock = self.root / "etc", self.root / "recon", self.root / "lock"
        self.servers = {}
        for path in (self.etc, self.recon, self.lock):
            path.mkdir()
        for kind in ("container", "object"):
            server = self.servers[kind] = LoneServer(self.root / kind, kind)
            text = server.conf.read_text().replace("user = root", f"user = {USER}")
            text = text.replace(f"pipeline = {kind}-server", f"pipeline = recon {kind}-server")
            server.conf.write_text(
                text.replace("[DEFAULT]\n", f"[DEFAULT]\nrecon_cache_path = {self.recon}\n")
                + f"[filter:recon]\nuse = egg:swift#recon\nrecon_cache_path = {self.recon}\n"
                f"recon_lock_path = {self.lock}\n[{kind}-auditor]\n"
            )
        self.builder = RingBuilder(POWER, 1, 0)
        port = self.servers["object"].port
        self.builder.add_device(ip="127.0.0.1", port=port, device="sda", weight=1, region=1, zone=1, meta="")
        self.builder.rebalance(seed=1)
        self.save_ring()
        user = pwd.getpwnam(USER)
        for path in (self.root, *self.root.rglob("*")):
            os.chown(path, user.pw_uid, user.pw_gid)
        for server in self.servers.values():
            server.start()

    def save_ring(self):
        self.builder.save(f"{self.etc}/object.builder")
        self.builder.write_ring(f"{self.servers['object'].root}/object.ring.gz")

    @property
    def device(self):
        return self.servers["object"].device

    def put_object(self, name, stamp):
        headers = {"Content-Type": "text/plain", "X-Timestamp": f"{stamp:.5f}"}
        path = f"/sda/{part_of('a', 'c', name)}/a/c/{name}"
        assert self.servers["object"].ask("PUT", path, headers, b"x").status == 201

    def put_rows(self, names):
        base = f"/sda/{part_of('a', 'c')}/a/c"
        ask = self.servers["container"].ask
        stamp = {"X-Timestamp": f"{time.time():.5f}"}
        assert ask("PUT", base, stamp).status == 201
        row = {"X-Size": "1", "X-Etag": "e", "X-Content-Type": "text/plain"}
        for name in names:
            assert ask("PUT", f"{base}/{name}", {**stamp, **row}).status == 201

    def of_root(self):
        kept = (self.servers["object"].root / "log", self.servers["container"].root / "log")
        return [str(path) for path in self.root.rglob("*") if path.lstat().st_uid == 0 and path not in kept]

    def close(self):
        for server in self.servers.values():
            server.kill()
        shutil.rmtree(self.root)


@pytest.fixture(scope="module")
def site():
    made = Site()
    yield made
    made.close()


def ran(name, *words, code=0):
    done = run(name, *words)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_servers_create_nothing_as_root_before_they_change_their_user(site):
    assert (site.device / ".hash-path").exists()
    assert site.of_root() == []


def test_databases_are_changed_as_their_owner(site):
    site.put_rows(f"o{n}" for n in range(6))
    (path,) = site.servers["container"].device.rglob("*.db")
    ran("swift-container-info", path, "-d", site.servers["container"].root)
    path.with_name(".lock").unlink(missing_ok=True)
    ran("swift-manage-shard-ranges", path, "find_and_replace", "2", "--enable", "--force")
    assert site.of_root() == []


def test_daemons_audits_of_drives_and_counts_leave_recon_files_to_servers(site):
    ran("swift-container-auditor", site.servers["container"].conf, "once")
    ran("swift-object-auditor", site.servers["object"].conf, "once")
    # The state that an earlier release left.
    (site.lock / "swift-recon-object-cron").mkdir()
    (site.lock / "swift-recon-object-cron" / ".lock").touch()
    ran("swift-recon-cron", site.servers["object"].conf)
    conf = site.root / "drive-audit.conf"
    conf.write_text(f"[drive-audit]\nrecon_cache_path = {site.recon}\nlog_file_pattern = {site.root}/no\n")
    ran("swift-drive-audit", conf)
    conf.unlink()
    assert {"container.recon", "object.recon", "drive.recon"} <= set(os.listdir(site.recon))
    assert site.of_root() == []


def test_builders_rings_and_their_backups_get_the_owner_of_their_directory(site):
    ran("swift-ring-builder-safe", f"{site.etc}/object.builder", "set_info", "d0", "127.0.0.9:1/sda")
    ran("swift-ring-builder", f"{site.etc}/object.builder", "write_ring")
    assert len(list((site.etc / "backups").iterdir())) > 0
    assert site.of_root() == []


def test_objects_are_quarantined_and_freed_as_the_owner_of_the_device(site):
    devices = ("--devices", site.device.parent, "--swift-dir", site.servers["object"].root)
    site.put_object("bad", time.time())
    (path,) = site.device.glob("objects/*/*/*")
    none = ("--config", site.servers["object"].conf)
    ran("swift-quarantine", *none, "add", "--reason", "test", path)
    assert site.of_root() == []
    (path,) = site.device.glob("quarantined/objects/*")
    ran("swift-quarantine", *devices, "--user", USER, "restore", path)
    site.put_object("ahead", time.time() + 30)
    ran("swift-future", "--yes", "--ahead", "0", *devices)
    assert len(list(site.device.glob("quarantined/objects/*"))) > 0
    assert site.of_root() == []


def test_the_relinker_works_as_the_owner_of_the_devices(site):
    for number in range(8):
        site.put_object(f"r{number}", time.time())
    words = (
        "--swift-dir",
        site.servers["object"].root,
        "--devices",
        site.device.parent,
        "--skip-mount-check",
    )
    conf = site.root / "relinker.conf"
    conf.write_text(f"[DEFAULT]\nrecon_cache_path = {site.recon}\nlog_level = ERROR\n[object-relinker]\n")
    prepare_increase(site.builder)
    site.save_ring()
    ran("swift-object-relinker", "relink", conf, *words)
    increase(site.builder)
    site.save_ring()
    ran("swift-object-relinker", "cleanup", conf, *words)
    conf.unlink()
    assert max(int(path.name) for path in site.device.glob("objects/*[0-9]")) >= 1 << POWER
    assert site.of_root() == []

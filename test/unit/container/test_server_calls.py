"""Where a container server's calls run, and what others do to its databases meanwhile."""

import dataclasses
import json

from swift.container.server import ContainerServer
from swift.db.cache import BrokerCache
from swift.http.body import BytesBody
from swift.platform.disk import Disk
from test.unit.container.conftest import stamp


def test_a_container_that_waits_for_its_rows_is_not_closed_by_others(bench):
    bench.server.brokers = BrokerCache(bench.server._make_broker, open_max=1)
    for name in ("c", "d", "e"):
        assert bench("PUT", f"/sda/1/AUTH_a/{name}", at=1).status == 201
    row = {"name": "o", "created_at": stamp(2), "size": 1, "content_type": "a/b", "etag": "x"}

    class Slow(BytesBody):
        """While the body arrives others ask for other containers."""

        def read(self, size=-1):
            for name in ("d", "e"):
                assert bench("HEAD", f"/sda/1/AUTH_a/{name}").status == 204
            return super().read(size)

    assert bench("UPDATE", at=3, body=Slow(json.dumps([row]).encode())).status == 202
    assert bench("GET").read_body() == b"o\n"


def test_a_server_has_nothing_open_on_a_device_that_went_away(bench, tmp_path):
    assert bench("PUT", at=1).status == 201
    assert len(bench.server.brokers) == 1
    (tmp_path / "sda").rename(tmp_path / "away")
    assert bench("HEAD").status == 507
    assert len(bench.server.brokers) == 0


class Guarded(Disk):
    """A disk that may be touched only where its device's calls run."""

    def __init__(self):
        self.allowed = False
        self.touched = 0

    def run(self, function, *args):
        before, self.allowed = self.allowed, True
        try:
            return function(*args)
        finally:
            self.allowed = before

    def __getattribute__(self, name):
        if name in ("stat", "listdir", "open", "read", "flock", "mkdir", "fsync", "unlink", "rename"):
            assert self.allowed, name
            self.touched += 1
        return super().__getattribute__(name)


def test_everything_that_a_request_does_on_its_disk_runs_as_the_device_says(bench):
    disk = Guarded()

    class Pools:
        def run(self, _device):
            return disk.run

        def threads(self, _device, _purpose=""):
            return disk.run

    context = dataclasses.replace(bench.context, pools=Pools())
    bench.server = ContainerServer(context, disk=disk)
    asked = []

    def note(connection):
        asked.append(disk.allowed)
        return connection.execute("SELECT 1").fetchone()

    assert bench("PUT", at=1).status == 201
    for at in (2, 3):
        assert bench.put_object(f"o{at}", at).status == 201
        assert bench("GET").status == 200
        assert bench("POST", at=at, x_container_meta_a=str(at)).status == 204
        assert bench("HEAD").headers["x-container-meta-a"] == str(at)
    broker = bench.server.brokers.get(next(iter(bench.server.brokers._brokers)))
    broker.read(note)
    assert asked == [True]
    assert bench("DELETE", bench.path + "/o2", at=4).status == 204
    assert disk.touched > 20


def test_a_listing_shows_what_another_process_put_since_the_last_one(bench):
    other = ContainerServer(bench.context)
    assert bench("PUT", at=1).status == 201
    assert bench("GET").status == 204
    mine, bench.server = bench.server, other
    assert bench.put_object("o", 2).status == 201
    bench.server = mine
    assert bench("GET").read_body() == b"o\n"

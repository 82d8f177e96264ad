"""The container updater brings counts to accounts, by majority, and remembers (account-container.md §14)."""

import pytest

from swift.base.timestamp import Timestamp
from swift.cluster.transport import TransportError
from swift.container.server import ContainerServer
from swift.container.updater import ContainerUpdater, ContainerUpdaterSettings
from swift.http.request import Request
from test.support.daemons import DaemonFixture, ErrorLog, FakeRing
from test.support.disks import DamagedDisk

AT = 1_700_000_000


class Bench:
    """A container server that fills databases, and the updater on the same devices."""

    def __init__(self, root, devices=("sda",), log=None, **options):
        self.rig = DaemonFixture(root, devices, log)
        self.nodes = self.rig.nodes
        self.ring = FakeRing()
        # Nobody waits for containers to come to rest.
        self.settings = ContainerUpdaterSettings(**{"interval": 0.0, **options})
        self.task = ContainerUpdater(self.rig.context, self.ring, self.settings)
        self.server = ContainerServer(self.rig.context)
        self._tick = AT

    def ask(self, method, path, **headers):
        self._tick += 1
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent.setdefault("x-timestamp", Timestamp(self._tick).internal)
        response = self.server.handle(Request(method, path, sent, b""))
        assert response.status < 300, response
        return response

    def make(self, name="c", objects=(5,), account="AUTH_a", device="sda", **headers):
        path = f"/{device}/1/{account}/{name}"
        self.ask("PUT", path, **headers)
        for number, size in enumerate(objects):
            self.put(f"{path}/o{number}", size)
        return path

    def put(self, path, size):
        self.ask("PUT", path, x_size=str(size), x_etag="e", x_content_type="t/t")

    def run_once(self):
        seen = []
        report, self.task.report = self.task.report, lambda passed: seen.append(passed) or report(passed)
        assert self.rig.runner(self.task, self.settings.schedule, server_type="container").run_once()
        del self.task.report
        counts = {}
        for result in seen[0].results.values():
            for event, count in result.counts.items():
                counts[event] = counts.get(event, 0) + count
        return counts

    def sent(self):
        """What node 0 was told: container → (count, bytes)."""
        return {
            path: (headers["x-object-count"], headers["x-bytes-used"])
            for number, _, path, headers in self.nodes.requests
            if number == 0
        }


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def test_accounts_are_told_once_and_again_after_a_change(bench):
    path = bench.make("c%20%C3%A9", (5, 7))
    assert bench.run_once() == {"successes": 1}
    assert bench.nodes.asked == [0, 1, 2]
    number, method, where, headers = bench.nodes.requests[0]
    assert (method, where) == ("PUT", f"/d{number}/7/AUTH_a/c%20%C3%A9")
    assert headers["x-put-timestamp"] == Timestamp(AT + 1).internal
    assert headers["x-delete-timestamp"] == "0"
    assert (headers["x-object-count"], headers["x-bytes-used"]) == ("2", "12")
    assert headers["x-account-override-deleted"] == "yes"
    assert headers["x-backend-storage-policy-index"] == "0"
    assert headers["user-agent"].startswith("container-updater ")

    bench.nodes.requests.clear()
    assert bench.run_once() == {"no_changes": 1}
    assert bench.nodes.requests == []

    bench.put(f"{path}/another", 100)
    assert bench.run_once() == {"successes": 1}
    assert bench.sent() == {"/d0/7/AUTH_a/c%20%C3%A9": ("3", "112")}


def test_a_deletion_is_news(bench):
    path = bench.make("c", ())
    bench.run_once()
    bench.nodes.requests.clear()
    bench.ask("DELETE", path)
    assert bench.run_once() == {"successes": 1}
    headers = bench.nodes.requests[0][3]
    assert headers["x-delete-timestamp"] > headers["x-put-timestamp"]
    assert bench.run_once() == {"no_changes": 1}


def test_a_majority_is_enough(bench):
    bench.make()
    bench.nodes.answers = {1: TransportError("down")}
    assert bench.run_once() == {"successes": 1}
    assert bench.run_once() == {"no_changes": 1}


def test_a_server_that_is_away_is_told_of_once_and_not_for_each_container(tmp_path):
    log = ErrorLog()
    bench = Bench(tmp_path, log=log)
    bench.nodes.answers = {1: TransportError("down")}
    for number in range(3):
        bench.make(f"c{number}", account=f"AUTH_{number}")
    assert bench.run_once() == {"successes": 3}
    (said,) = log.sentences
    assert "account update failed" in said
    bench.rig.clock.advance(301)
    bench.make("c3")
    bench.run_once()
    assert log.sentences[1:] == [f"{said}; 2 more in the last 301 s"]


def test_without_a_majority_the_account_is_left_in_peace_for_a_while(bench):
    bench.make("c1")
    bench.make("c2")
    bench.make("other", account="AUTH_b")
    failing = dict.fromkeys((0, 1), lambda _m, path: 503 if "AUTH_a" in path else 201)
    bench.nodes.answers = failing
    # One at a time, so that the second container of the account comes after the first failed.
    bench.settings = ContainerUpdaterSettings(concurrency=1, containers_per_second=0)
    assert bench.run_once() == {"failures": 1, "successes": 1}
    bench.nodes.requests.clear()
    bench.rig.clock.advance(59)
    assert bench.run_once() == {"no_changes": 1}
    assert bench.nodes.requests == []
    bench.rig.clock.advance(2)
    bench.nodes.answers = {}
    assert bench.run_once() == {"successes": 2, "no_changes": 1}
    assert not bench.task.suppressed


def test_a_container_without_any_account_is_quarantined(bench):
    bench.make("orphan")
    bench.nodes.answers = dict.fromkeys(range(3), 404)
    assert bench.run_once() == {"failures": 1, "quarantines": 1}
    (moved,) = (bench.rig.root / "sda/quarantined/containers").iterdir()
    assert (moved / f"{moved.name}.db").exists()
    assert bench.run_once() == {}


def test_one_answer_other_than_404_keeps_it(bench):
    bench.make("c")
    bench.nodes.answers = {0: 404, 1: 404, 2: TransportError("down")}
    assert bench.run_once() == {"failures": 1}
    assert not (bench.rig.root / "sda/quarantined").exists()


def test_shards_report_that_they_hold_nothing(bench):
    bench.make("shard", (5, 6), account=".shards_AUTH_a", x_container_sysmeta_shard_quoted_root="AUTH_a/root")
    bench.make("root", (5,), x_container_sysmeta_shard_quoted_root="AUTH_a/root")
    assert bench.run_once() == {"successes": 2}
    assert bench.sent() == {
        "/d0/7/.shards_AUTH_a/shard": ("0", "0"),
        "/d0/7/AUTH_a/root": ("1", "5"),
    }
    assert bench.run_once() == {"no_changes": 2}


def test_all_devices_are_visited_at_the_pace(tmp_path):
    bench = Bench(tmp_path, ("sda", "sdb"), containers_per_second=2, concurrency=1)
    for number in range(6):
        bench.make(f"c{number}", device="sda")
    bench.make("c", device="sdb")
    assert bench.run_once() == {"successes": 7}
    assert bench.rig.clock.slept == pytest.approx(2.5, abs=0.01)
    assert bench.rig.recon("container").read()["container_updater_sweep"] == pytest.approx(2.5, abs=0.01)


def test_a_broken_database_is_quarantined_and_stops_nothing(bench):
    bench.make("good")
    bench.make("bad")
    (path,) = (
        p
        for p in bench.rig.root.rglob("*.db")
        if bench.rig.context.hasher.hexdigest("AUTH_a", "bad") in p.name
    )
    bench.server.brokers.close()
    path.write_bytes(b"this is no database at all" * 1000)
    assert bench.run_once() == {"errors": 1, "quarantines": 1, "successes": 1}
    (moved,) = (bench.rig.root / "sda/quarantined/containers").iterdir()
    assert moved.name in path.name


def test_a_directory_that_cannot_be_listed_is_an_error_and_the_others_are_walked(bench):
    bench.make()
    damaged = bench.rig.root / "sda/containers/2"
    damaged.mkdir()
    bench.task.disk = DamagedDisk(damaged)
    assert bench.run_once() == {"errors": 1, "successes": 1}


def test_strange_files_are_passed_over(bench):
    bench.make()
    root = bench.rig.root / "sda/containers"
    (root / "not-a-partition").mkdir()
    (root / "77").touch()
    (root / "1/zzz").touch()
    (root / "1/abc/0123").mkdir(parents=True)
    assert bench.run_once() == {"successes": 1}


def test_the_deprecated_rest_caps_the_pace():
    assert ContainerUpdaterSettings().schedule.units_per_second == 50
    assert ContainerUpdaterSettings(slowdown=0.09).schedule.units_per_second == pytest.approx(10)

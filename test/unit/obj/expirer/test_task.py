"""Expired objects go as of their moment, and tasks leave the queue when done (replication.md §8.2)."""

import contextlib
import json

import pytest

from swift.gateway.internal_client import UnexpectedResponse
from swift.obj.expirer.queue import ExpirerQueue
from swift.obj.expirer.settings import Delays, ObjectExpirerSettings
from swift.obj.expirer.task import ObjectExpirer
from test.support.daemons import DaemonFixture, FakeRing

#: The rig's clock.
NOW_S = 5_000_000_000
DUE = f"{NOW_S - 10}-a/c/o"
TIME = f"{NOW_S - 10}.00000"


class Client:
    """An internal client with a queue and answers for objects."""

    def __init__(self, tasks, answers):
        self.tasks, self.answers, self.asked = tasks, answers, []

    def containers(self, account):
        return iter([{"name": name} for name in sorted(self.tasks)])

    def objects(self, account, container):
        if self.tasks[container] is None:
            raise UnexpectedResponse("GET", f"{account}/{container}", 503, "away")
        yield from list(self.tasks[container])

    def delete(self, path, headers=None, *, accept):
        self.asked.append((str(path), dict(headers or {})))
        status = self.answers.get(str(path), 204)
        if status not in accept and status // 100 not in accept:
            raise UnexpectedResponse("DELETE", path, status, "no")
        return status


class Bench:
    def __init__(self, root, rows, answers=None, **options):
        self.rig = DaemonFixture(root)
        tasks = {"4999968000": [row if isinstance(row, dict) else {"name": row} for row in rows]}
        self.client = Client(tasks, answers or {})
        settings = ObjectExpirerSettings(**options)
        queue = ExpirerQueue(self.client, settings.account, Delays({}))
        self.task = ObjectExpirer(self.rig.context, FakeRing(), settings, self.client, queue)

    def run_once(self):
        assert self.rig.runner(self.task).run_once()
        path = self.rig.root.parent / "recon" / "object.recon"
        with contextlib.suppress(FileNotFoundError):
            return json.loads(path.read_text())

    @property
    def popped(self):
        return [(number, method, path) for number, method, path, _ in self.rig.nodes.requests]


def test_an_expired_object_is_deleted_as_of_its_moment_and_its_task_at_all_servers(tmp_path):
    bench = Bench(tmp_path, [DUE])
    told = bench.run_once()
    path, headers = bench.client.asked[0]
    assert path == "/a/c/o"
    assert headers == {
        "x-timestamp": TIME,
        "x-if-delete-at": TIME,
        "x-backend-clean-expiring-object-queue": "no",
    }
    where = f".expiring_objects/4999968000/{DUE}"
    assert sorted(bench.popped) == [(n, "DELETE", f"/d{n}/7/{where}") for n in range(3)]
    assert told["expired_last_pass"] == 1
    assert "object_expiration_pass" in told


@pytest.mark.parametrize(
    ("status", "is_done"), [(204, True), (409, True), (404, False), (412, False), (503, False)]
)
def test_a_task_stays_until_the_object_is_known_to_be_gone(tmp_path, status, is_done):
    bench = Bench(tmp_path, [DUE], {"/a/c/o": status})
    bench.run_once()
    assert bool(bench.popped) is is_done


@pytest.mark.parametrize("status", [404, 412])
def test_a_task_that_finds_nothing_is_given_up_one_day(tmp_path, status):
    bench = Bench(tmp_path, [DUE], {"/a/c/o": status}, reclaim_age=5)
    bench.run_once()
    assert bench.popped


@pytest.mark.parametrize(("status", "is_done"), [(204, True), (404, True), (409, True), (503, False)])
def test_what_a_client_left_to_us_is_deleted_whatever_the_object_says(tmp_path, status, is_done):
    row = {"name": f"{NOW_S - 10}.54355-a/c/seg", "content_type": "application/async-deleted"}
    bench = Bench(tmp_path, [row], {"/a/c/seg": status})
    bench.run_once()
    assert bench.client.asked[0] == ("/a/c/seg", {"x-timestamp": f"{NOW_S - 10}.54355"})
    assert bool(bench.popped) is is_done


def test_one_failure_does_not_keep_the_others(tmp_path):
    bench = Bench(tmp_path, [DUE, f"{NOW_S - 9}-a/c/p"], {"/a/c/o": 503})
    bench.run_once()
    assert len(bench.popped) == 3
    assert all(path.endswith("/p") for _number, _method, path in bench.popped)


def test_a_container_of_the_queue_that_cannot_be_read_does_not_keep_the_others(tmp_path):
    bench = Bench(tmp_path, [DUE])
    bench.client.tasks["4999881600"] = None
    bench.run_once()
    assert len(bench.popped) == 3


def test_an_empty_container_of_the_queue_is_removed(tmp_path):
    bench = Bench(tmp_path, [])
    bench.run_once()
    assert bench.client.asked == [("/.expiring_objects/4999968000", {})]
    busy = Bench(tmp_path / "busy", [f"{NOW_S + 10}-a/c/o"]) if (tmp_path / "busy").mkdir() is None else None
    busy.run_once()
    assert busy.client.asked == []

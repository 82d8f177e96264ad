"""A share does its part of a phase: against a store in memory."""

import threading
import time

import pytest

from swift import green
from swift.load.api import Api, OperationFailed
from swift.load.endpoint import LoadEndpoint
from swift.load.share import NEW_NUMBERS_FROM, LoadJob, LoadShare, share_count
from swift.load.workload import parse

TEXT = """
[objects]
containers = 2
per_container = 5
size = {min = 1, max = 2000}
part_size = 300
[[phase]]
kind = "init"
[[phase]]
kind = "prepare"
clients = 3
[[phase]]
kind = "main"
clients = 4
operations = 200
mix = {get = 3, put = 2, head = 1, delete = 2, list = 1, post = 1, multipart = 1}
verify = true
[[phase]]
kind = "cleanup"
"""


class MemoryApi(Api):
    """Containers as dictionaries; each request may be made to fail or to take time."""

    def __init__(self):
        self.containers = {}
        self.asked = []
        self.on_get = lambda name: None

    def _headers(self, method, path, query):
        return {}

    def make_container(self, container, policy):
        self.containers[container] = {}

    def remove_container(self, container):
        if self.containers.get(container):
            raise OperationFailed("409")
        self.containers.pop(container, None)

    def listing(self, container, after):
        return sorted(name for name in self.containers.get(container, {}) if name > after)[:1000]

    def post(self, container, name):
        self.head(container, name)

    def multipart(self, container, name, sizes, part):
        for number in range(len(sizes)):
            self.containers[container][f"{name}/{number}"] = b"".join(part(number)())
        self.containers[container][name] = b""

    def put(self, container, name, size, body):
        green.sleep(0)
        self.asked.append(("put", name))
        self.containers[container][name] = data = b"".join(body())
        assert len(data) == size

    def get(self, container, name, take):
        green.sleep(0)
        self.on_get(name)
        data = self.containers[container][name]
        if not take(memoryview(data)):
            raise OperationFailed("wrong bytes")
        return len(data)

    def head(self, container, name):
        if name not in self.containers[container]:
            raise OperationFailed("404")

    def delete(self, container, name):
        self.asked.append(("delete", name))
        del self.containers[container][name]


@pytest.fixture
def run():
    """Runs phases of a text in a thread with an event loop of its own; the API and the results."""

    def phases(text, numbers, shares=1, api=None, **options):
        api = api or MemoryApi()
        found = []

        def work():
            workload = parse(text, "w").with_options(**options)
            for number in numbers:
                for share in range(shares):
                    job = LoadJob(
                        workload, text, options, number, share, shares, LoadEndpoint("http://h"), "load-x"
                    )
                    found.append(LoadShare(job, api, stale_s=0.001).run(lambda _result: None))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join(60)
        assert len(found) == len(numbers) * shares
        return api, found

    return phases


def test_shares_prepare_every_object_once_and_cleanup_leaves_nothing(run):
    api, found = run(TEXT, [0, 1], shares=3)
    assert sorted(len(names) for names in api.containers.values()) == [5, 5]
    assert len(api.asked) == 10
    run(TEXT, [3], shares=3, api=api)
    assert api.containers == {}


class LateApi(MemoryApi):
    """Lists what was removed for some looks more."""

    def __init__(self, looks):
        super().__init__()
        self.looks = looks

    def delete(self, container, name):
        self.asked.append(("delete", name))

    def listing(self, container, after):
        self.looks -= 1
        if self.looks < 0:
            self.containers[container].clear()
        return super().listing(container, after)


def test_cleanup_waits_for_late_listings_without_asking_to_remove_again(run):
    api, found = run(TEXT, [0, 1, 3], api=LateApi(20))
    assert len([name for verb, name in api.asked if verb == "delete"]) == 10
    assert api.containers == {} and not found[-1].of("cleanup").errors


def test_cleanup_ends_where_listings_never_tell_the_truth(run):
    api, found = run(TEXT, [0, 1, 3], api=LateApi(1 << 30))
    assert dict(found[-1].of("cleanup").errors) == {"still listed after it was removed": 10}
    assert len(api.containers) == 2


def test_a_mix_does_each_operation_and_removes_only_what_it_wrote_itself(run):
    api, found = run(TEXT, [0, 1, 2])
    result = found[-1]
    done = {name: (one.count, one.failed) for name, one in result.operations.items()}
    assert sum(count for count, _failed in done.values()) == 200 and not any(f for _count, f in done.values())
    assert set(done) == {"get", "put", "head", "delete", "list", "post", "multipart"}
    removed = {name for verb, name in api.asked if verb == "delete"}
    assert removed and all(int(name[1:]) >= NEW_NUMBERS_FROM for name in removed)


def test_wrong_bytes_are_a_failure_of_their_own_kind(run):
    api, _found = run(TEXT, [0, 1])
    for names in api.containers.values():
        for name in names:
            names[name] = bytes(len(names[name]))
    text = TEXT.replace(
        "get = 3, put = 2, head = 1, delete = 2, list = 1, post = 1, multipart = 1", "get = 1"
    )
    _api, found = run(text, [2], api=api)
    assert set(found[-1].of("get").errors) == {"wrong bytes"}


OPEN = TEXT.replace("operations = 200", "seconds = 1\nrate = 50").replace(
    "get = 3, put = 2, head = 1, delete = 2, list = 1, post = 1, multipart = 1", "get = 1"
)


def test_in_an_open_loop_a_stall_is_in_the_latency_of_all_who_waited(run):
    api, _found = run(OPEN, [0, 1])
    stalled = []

    def stall_once(_name):
        if not stalled:
            stalled.append(True)
            # The whole process stands still, as behind a server that does.
            time.sleep(0.5)

    api.on_get = stall_once
    _api, found = run(OPEN, [2], api=api)
    result = found[-1]
    assert result.late > 5 and result.latest_s > 0.2
    assert result.of("get").latency_ms(75) > 50


def test_what_ends_in_the_time_of_ramping_up_is_not_counted(run):
    text = OPEN.replace("rate = 50", "rampup = 0.5").replace("seconds = 1", "seconds = 0.5")
    api, _found = run(text, [0, 1])
    reads = []
    api.on_get = reads.append
    _api, found = run(text, [2], api=api)
    assert 0 < found[-1].count < len(reads)
    assert 0.4 < found[-1].seconds < 2


def test_a_share_that_is_stopped_ends_though_its_next_operation_is_far_away(run):
    text = OPEN.replace("rate = 50", "rate = 0.001").replace("seconds = 1", "seconds = 1000")
    workload = parse(text, "w")
    share = LoadShare(LoadJob(workload, text, {}, 2, 0, 1, LoadEndpoint("http://h"), "load-x"), MemoryApi())
    ended = []

    def work():
        green.spawn_after(0.1, share.stop)
        ended.append(share.run(lambda _result: None))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(20)
    assert ended and ended[0].count == 0


@pytest.mark.parametrize("shares", [1, 2, 3, 7])
def test_parts_of_all_shares_are_the_whole(shares):
    assert sum(share_count(10, share, shares) for share in range(shares)) == 10


def test_a_job_travels_as_json():
    job = LoadJob(
        parse(TEXT, "workload"), TEXT, {}, 2, 1, 3, LoadEndpoint("http://h/v1/a", "token"), "load-x"
    )
    assert LoadJob.from_json(job.to_json()) == job

"""What is said to a node about one database, and how a whole one is brought to it."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from swift.base.clock import ManualClock
from swift.cluster.direct import DirectClient
from swift.cluster.health import ABSENT_S, NodeHealth
from swift.cluster.transport import BackendResponse, TimedOut, TransportError
from swift.dbsync.remote import NodeAccess, NodeFailed, NodeSkipped, RemoteDatabase
from swift.dbsync.settings import ReplicatorSettings
from swift.http.body import InMemoryBody
from swift.platform.disk import Disk
from swift.platform.diskhandle import DiskHandle
from test.support.daemons import make_node

HASH = "ab" * 16
UPLOADS = {"x-backend-database-upload": "true"}
#: Stands for rsync: notes its arguments and ends as it is told.
RSYNC = "#!/bin/sh\necho $* > {calls}\necho words >&2\nexit {code}\n"


class Network:
    """One node; ``answer`` is what it says to messages, ``upload_answer`` to an upload."""

    def __init__(self):
        self.answer = self.upload_answer = BackendResponse(204, UPLOADS)
        self.asked, self.uploaded = [], b""
        self.aborted = 0

    def request(self, request):
        ip, port, method = request.node.ip, request.node.port, request.method
        path, headers, body = request.path, request.headers, request.body
        self.asked.append((ip, port, method, path, headers, body, request.timeouts.node_timeout))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def stream(self, request):
        ip, port = request.node.ip, request.node.port
        method, path, headers = request.method, request.path, request.headers
        self.asked.append((ip, port, method, path, headers, b"", None))
        return self

    # the exchange

    def send(self, data):
        if isinstance(self.upload_answer, Exception):
            raise self.upload_answer
        self.uploaded += bytes(data)

    def response(self):
        return BackendResponse(self.upload_answer.status, {}, stream=InMemoryBody(b""))

    def abort(self):
        self.aborted += 1


class Opened(Disk):
    """Counts the files that are open."""

    def __init__(self):
        self.open_now = 0

    def open(self, *how):
        self.open_now += 1
        return super().open(*how)

    def close(self, fd):
        self.open_now -= 1
        super().close(fd)


@pytest.fixture
def network():
    return Network()


@pytest.fixture
def disk():
    return Opened()


@pytest.fixture
def clock():
    return ManualClock(5.0)


@pytest.fixture
def make(network, disk, clock):
    health = NodeHealth(clock)

    def make(module="{replication_ip}::account", other_region=False, **changes):
        settings = ReplicatorSettings(node_timeout=7.0, conn_timeout=3.0, **changes)
        access = NodeAccess(DirectClient(network, "test", settings), settings, module, health)
        to = replace(make_node(1), device="sd ö")
        return RemoteDatabase(access, to, 7, HASH, disk=DiskHandle(disk), is_remote_region=other_region)

    return make


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "some.db"
    path.write_bytes(os.urandom((2 << 20) + 5))
    return path


def test_a_message_is_a_list_of_json_to_the_replication_address(make, network):
    make().say("sync", 5, "ö\ud800", None, more_time_s=2.0)
    ((ip, port, method, path, headers, body, timeout_s),) = network.asked
    assert (ip, port, method, path) == ("127.0.0.1", 6201, "REPLICATE", f"/sd%20%C3%B6/7/{HASH}")
    assert json.loads(body.decode("ascii")) == ["sync", 5, "ö\ud800", None]
    assert (headers["content-type"], timeout_s) == ("application/json", 9.0)


@pytest.mark.parametrize("status", [204, 404, 500])
def test_whoever_only_says_something_hears_every_status(make, network, status):
    network.answer = BackendResponse(status)
    assert make().say("sync").status == status


@pytest.mark.parametrize(
    "answer",
    [
        BackendResponse(404, reason="Not Found"),
        BackendResponse(301),
        BackendResponse(507),
        TransportError("cut"),
    ],
)
def test_whoever_tells_something_wants_it_done(make, network, answer):
    network.answer = answer
    with pytest.raises(NodeFailed):
        make().tell("merge_syncs", [])
    with pytest.raises(NodeFailed):
        make().send_items("[]", "us")


def test_a_node_that_let_a_question_time_out_is_left_alone_for_a_while(make, network, clock):
    network.answer = TimedOut("late")
    for _ in range(3):
        with pytest.raises(NodeFailed):
            make().say("sync")
    with pytest.raises(NodeSkipped):
        make().send_items("[]", "us")
    assert len(network.asked) == 1
    network.answer = BackendResponse(200)
    clock.advance(ABSENT_S)
    assert make().say("sync").status == 200


def test_a_node_that_refuses_is_asked_about_the_next_database(make, network):
    network.answer = TransportError("refused")
    for _ in range(3):
        with pytest.raises(NodeFailed):
            make().say("sync")
    assert len(network.asked) == 3


def test_rows_that_are_json_already_are_sent_as_they_are(make, network):
    make().send_items('[{"name": "ö"}]', 'us"')
    body = network.asked[0][5]
    assert json.loads(body) == ["merge_items", [{"name": "ö"}], 'us"']


def test_a_file_goes_over_the_connection_to_a_node_that_takes_uploads(make, network, disk, database):
    remote = make()
    remote.say("sync")
    worth_s = remote.bring(str(database), "our-id")
    headers = network.asked[1][4]
    assert headers["content-length"] == str((2 << 20) + 5)
    assert headers["x-backend-database-upload"] == "our-id"
    assert network.uploaded == database.read_bytes()
    assert 0.5 < worth_s < 0.6, "seconds at the slowest pace"
    assert (disk.open_now, network.aborted) == (0, 0)


@pytest.mark.parametrize(
    "answer", [BackendResponse(200), BackendResponse(400), BackendResponse(507), TransportError("cut")]
)
def test_an_upload_that_was_not_taken_is_a_failure_and_leaves_nothing_open(
    make, network, disk, database, answer
):
    network.upload_answer = answer
    remote = make()
    remote.say("sync")
    with pytest.raises(NodeFailed):
        remote.bring(str(database), "our-id")
    assert disk.open_now == 0
    assert network.aborted == isinstance(answer, TransportError)


def test_a_file_that_is_gone_is_our_own_error(make, network, tmp_path):
    remote = make()
    remote.say("sync")
    with pytest.raises(FileNotFoundError):
        remote.bring(str(tmp_path / "none"), "our-id")


@pytest.mark.process
class TestByRsync:
    """Nodes that do not say that they take uploads."""

    @pytest.fixture
    def rsync(self, tmp_path, monkeypatch, network):
        network.answer = BackendResponse(204)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

        def ends_with(code):
            program = tmp_path / "rsync"
            program.write_text(RSYNC.format(calls=tmp_path / "calls", code=code))
            program.chmod(0o755)
            return tmp_path / "calls"

        return ends_with

    @pytest.mark.parametrize(("compress", "other_region"), [(True, True), (True, False), (False, True)])
    def test_it_arrives_by_rsync_compressed_only_on_the_long_way(
        self, make, rsync, database, compress, other_region
    ):
        calls = rsync(0)
        remote = make(rsync_compress=compress, other_region=other_region)
        remote.say("sync")
        remote.bring(str(database), "our-id")
        words = calls.read_text()
        assert words.strip().endswith(f"{database} 127.0.0.1::account/sd ö/tmp/our-id")
        assert "--timeout=7 --contimeout=3" in words
        assert ("--compress" in words) == (compress and other_region)

    def test_one_that_fails_is_a_failure(self, make, rsync, database):
        rsync(10)
        with pytest.raises(NodeFailed):
            make().bring(str(database), "our-id")

    def test_what_was_heard_last_decides(self, make, network, rsync, database):
        calls = rsync(0)
        remote = make()
        network.answer = BackendResponse(204, UPLOADS)
        remote.say("sync")
        network.answer = BackendResponse(204)
        remote.say("sync")
        remote.bring(str(database), "our-id")
        assert calls.exists() and network.uploaded == b""

"""Workers of one address take about as many connections each."""

import re

from swift import green
from swift.platform import sockets
from swift.runtime.acceptshares import YIELDS_MAX, AcceptShare, AcceptShares
from swift.runtime.httpd import HttpServer
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry
from test.support.stub_servers import HttpClient


def connections_of(telemetry):
    return int(re.search(r"^swift_http_connections (\d+)", telemetry.metrics.render(), re.MULTILINE)[1])


def test_a_worker_is_ahead_of_peers_with_fewer_connections_and_of_no_others():
    shares = AcceptShares(4)
    first = shares.register_worker(0, (0, 1))
    first.update(3)
    assert not first.is_ahead()
    second = shares.register_worker(1, (0, 1))
    shares.register_worker(2, (2, 3))
    assert first.is_ahead() and not second.is_ahead()
    second.update(3)
    assert not first.is_ahead() and not second.is_ahead()
    second.update(2)
    second.leave()
    assert not first.is_ahead()


def test_a_worker_that_took_nothing_during_many_waits_is_not_waited_for_until_it_moves():
    shares = AcceptShares(3)
    first, hung, third = (shares.register_worker(slot, range(3)) for slot in range(3))
    first.update(3)
    third.update(3)
    assert [first.is_ahead() for _ in range(YIELDS_MAX + 2)] == [True] * YIELDS_MAX + [False] * 2
    third.update(2)
    assert first.is_ahead()
    third.update(3)
    assert not first.is_ahead()
    hung.update(1)
    assert first.is_ahead()


def test_a_worker_of_short_connections_is_waited_for():
    shares = AcceptShares(2)
    first, second = (shares.register_worker(slot, (0, 1)) for slot in (0, 1))
    first.update(3)
    for _ in range(2 * YIELDS_MAX):
        second.update(1)
        second.update(0)
        assert first.is_ahead()


class StoppedWhileItWaits(AcceptShare):
    """A share whose server is stopped while it leaves a connection to another worker."""

    server = None

    def is_ahead(self):
        green.spawn(self.server.stop, 0.0)
        return True


def test_a_worker_that_is_stopped_while_it_waits_accepts_no_more():
    shares, listener = AcceptShares(2), sockets.listen("127.0.0.1", 0, 64)
    other = shares.register_worker(1, (0, 1))
    share = StoppedWhileItWaits(shares._counts, shares._changes, 0, (0, 1))
    share.server = HttpServer(lambda _request: None, Telemetry(silent_log()), share=share)
    client = HttpClient(listener.getsockname()[1])
    share.server.serve(listener)
    client.close()
    listener.close()
    other.update(5)
    assert not other.is_ahead()


def test_two_servers_on_one_socket_share_what_arrives_and_what_ends():
    shares = AcceptShares(2)
    listener = sockets.listen("127.0.0.1", 0, 64)
    open_connections = [shares.register_worker(slot, (0, 1)) for slot in (0, 1)]
    telemetries = [Telemetry(silent_log()) for _ in open_connections]
    servers = [
        HttpServer(lambda _request: None, telemetry, share=share)
        for telemetry, share in zip(telemetries, open_connections, strict=True)
    ]
    tasks = [green.spawn(server.serve, listener) for server in servers]
    clients = [HttpClient(listener.getsockname()[1]) for _ in range(9)]
    try:
        with green.Timeout(10):
            while sum(map(connections_of, telemetries)) < 9:
                green.sleep(0.001)
        assert set(map(connections_of, telemetries)) == {4, 5}
    finally:
        for client in clients:
            client.close()
        for server, task in zip(servers, tasks, strict=True):
            server.stop(grace_s=2.0)
            task.kill()
        listener.close()
    assert not any(share.is_ahead() for share in open_connections)

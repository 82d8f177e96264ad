"""Many servers are asked at the same time; one that says nothing good is an error of its own."""

import pytest

from swift import green
from swift.cluster.transport import BackendResponse, TransportError
from swift.operations.recon.client import AT_ONCE, Host, ReconClient, unique_hosts
from swift.ring.device import Device


class Servers:
    """Answers by port; counts how many are asked at the same time."""

    def __init__(self, answers):
        self.answers, self.asked, self.now, self.most = answers, [], 0, 0

    def request(self, request):
        port, method, path, headers = request.node.port, request.method, request.path, request.headers
        self.asked.append((method, path, headers["user-agent"], *request.timeouts))
        self.now += 1
        self.most = max(self.most, self.now)
        green.sleep()
        self.now -= 1
        answer = self.answers.get(port, BackendResponse(200, body=b"{}"))
        if isinstance(answer, Exception):
            raise answer
        return answer


def replies(answer, **more):
    servers = Servers({1: answer})
    (reply,) = ReconClient(5.0, transport=servers).request_all([Host("10.0.0.1", 1)], "recon/mem", **more)
    return reply, servers


def test_what_a_server_says_is_its_content():
    reply, servers = replies(BackendResponse(200, headers={"a": "b"}, body=b'{"x": [1]}'))
    assert (reply.content, reply.error, reply.headers) == ({"x": [1]}, "", {"a": "b"})
    assert reply.url == "http://10.0.0.1:1/recon/mem"
    assert servers.asked == [("GET", "/recon/mem", "swift-recon", 5.0, 5.0)]


@pytest.mark.parametrize(
    "answer, error",
    [
        (TransportError("timed out"), "timed out"),
        (BackendResponse(503, reason="Service Unavailable"), "HTTP Error 503: Service Unavailable"),
        (BackendResponse(200, body=b"<html>"), "the answer is not JSON"),
        (BackendResponse(200, body=b"\xff"), "the answer is not JSON"),
        (BackendResponse(200, body=b"[" * 100_000), "the answer is not JSON"),
        (BackendResponse(200), "the answer is not JSON"),
    ],
)
def test_what_is_no_answer_is_an_error(answer, error):
    reply, _ = replies(answer)
    assert reply.content is None and reply.error == error


def test_a_reply_that_comes_for_ever_is_an_error():
    class Dripping:
        def request(self, _request):
            while True:
                green.sleep(0.01)

    (reply,) = ReconClient(0.05, transport=Dripping()).recon([Host("10.0.0.1", 1)], "mem")
    assert (reply.content, reply.error) == (None, "the reply takes too long")


def test_of_other_methods_the_status_counts():
    reply, servers = replies(BackendResponse(405, headers={"server": "x"}), method="OPTIONS")
    assert (reply.content, reply.error, reply.headers) == (405, "", {"server": "x"})


def test_answers_are_in_the_order_of_the_hosts_and_not_all_are_asked_at_once():
    hosts = [Host("10.0.0.1", port) for port in range(1, 2 * AT_ONCE)]
    servers = Servers({7: TransportError("gone")})
    found = ReconClient(1.0, transport=servers, agent="x").recon(hosts, "async")
    assert [reply.host for reply in found] == hosts
    assert [reply.host.port for reply in found if reply.error] == [7]
    assert servers.most == AT_ONCE


def test_a_server_of_several_devices_is_one_host():
    def device(number, region, ip):
        return Device(number, region, 1, ip, 6200, ip, 6200, f"d{number}", 1.0, "")

    devices = [device(0, 1, "10.0.0.2"), None, device(2, 1, "10.0.0.2"), device(3, 2, "::1")]
    assert unique_hosts(devices) == [Host("10.0.0.2", 6200), Host("::1", 6200)]
    assert unique_hosts(devices, region=2) == [Host("::1", 6200)]
    assert unique_hosts(devices, zone=2) == []
    assert str(Host("::1", 6200)) == "[::1]:6200"

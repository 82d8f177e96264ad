"""A storage server refuses requests that no server of its cluster has signed."""

import pytest

from swift.base.clock import ManualClock
from swift.cluster.serverauth import ServerSecrets, Signer
from swift.config.cluster import ServerAuthSettings
from swift.http.request import Request
from swift.http.response import Response
from swift.platform.devices import Devices
from swift.runtime.backendapp import BackendApp, BackendContext
from swift.runtime.serverguard import (
    LOG_EVERY_S,
    OTHER_HOST_S,
    AuthCounts,
    OwnHosts,
    ServerGuard,
    SharedNonces,
)
from swift.telemetry.recon import ReconFile
from swift.telemetry.telemetry import Telemetry
from test.support.filters import Log

HOST = "10.0.0.1:6200"
PATH = "/sda/1/a/c/o"


class Server(BackendApp):
    """A storage server that serves GET."""

    server_type = "object"

    def verbs(self):
        return {"GET": lambda request: Response(200, {}, b"served")}


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def secrets(tmp_path, clock):
    path = tmp_path / "server.secret"
    path.touch(0o600)
    path.write_text(f"1 {'11' * 32}\n")
    return ServerSecrets(str(path), clock=clock)


@pytest.fixture
def log():
    return Log()


@pytest.fixture
def make_server(tmp_path, secrets, clock, log):
    def make(mode="require", exempt="", counts=None):
        settings = ServerAuthSettings.parse({"mode": mode, "exempt": exempt})
        nonces = SharedNonces(str(tmp_path), settings.window, log.error)
        telemetry = Telemetry(log)
        own = OwnHosts(lambda: frozenset(("10.0.0.1",)), 6200, clock=clock)
        guard = ServerGuard("object", settings, secrets, nonces, own, telemetry, counts, clock=clock)
        return Server(BackendContext(Devices(str(tmp_path)), telemetry=telemetry, guard=guard))

    return make


def request(secrets=None, clock=None, method="GET", host=HOST, address="10.0.0.9"):
    headers = {"host": host}
    if secrets is not None:
        signer = Signer(secrets, clock)
        line = signer.line(signer.text_of(method, PATH, host, headers)).decode()
        name, _, value = line.rstrip().partition(": ")
        headers[name.lower()] = value
    return Request(method, PATH, headers, remote_addr=address)


def results(server):
    text = server.context.telemetry.metrics.render()
    lines = [line for line in text.splitlines() if line.startswith("swift_server_auth_requests_total{")]
    counts = {line.split('result="')[1].split('"')[0]: float(line.split()[-1]) for line in lines}
    return {name: count for name, count in counts.items() if count}


def test_a_signed_request_is_served_once(make_server, secrets, clock):
    server = make_server()
    signed = request(secrets, clock)
    assert server.handle(signed).status == 200
    again = server.handle(signed)
    assert (again.status, again.body) == (
        403,
        b"Refused: a request with this signature was served before.\n",
    )
    assert results(server) == {"signed": 1, "replayed": 1}


def test_workers_share_the_nonces_and_so_does_the_next_image(make_server, secrets, clock):
    signed = request(secrets, clock)
    assert make_server().handle(signed).status == 200
    assert make_server().handle(signed).status == 403


def test_require_refuses_a_request_without_signature(make_server):
    server = make_server("require")
    assert server.handle(request()).status == 403
    assert results(server) == {"unsigned": 1}


def test_accept_serves_it_and_counts_it(make_server, secrets, clock):
    server = make_server("accept")
    assert server.handle(request()).status == 200
    assert results(server) == {"served_unsigned": 1}


@pytest.mark.parametrize("mode", ["accept", "require"])
def test_a_wrong_signature_is_refused_in_both_modes(make_server, secrets, clock, mode):
    server = make_server(mode)
    wrong = request(secrets, clock)
    wrong.raw_path = "/sda/1/a/c/other"
    assert server.handle(wrong).status == 403
    assert results(server) == {"wrong_signature": 1}


def test_exempt_addresses_need_no_signature_but_no_wrong_one(make_server, secrets, clock):
    server = make_server(exempt="10.0.1.0/24, fd00::/8")
    exempt, others = (
        ("10.0.1.7", "fd00::1", "::ffff:10.0.1.7"),
        ("10.0.2.7", "::ffff:10.0.2.7", "::10.0.1.7", ""),
    )
    for address, status in (*((each, 200) for each in exempt), *((each, 403) for each in others)):
        assert server.handle(request(address=address)).status == status, address
    wrong = request(secrets, clock, address="10.0.1.7")
    wrong.method = "HEAD"
    assert server.handle(wrong).status == 403


def test_options_are_open(make_server):
    response = make_server().handle(request(method="OPTIONS"))
    assert (response.status, response.headers["allow"]) == (200, "GET, OPTIONS")


def test_unknown_verbs_and_broken_paths_are_refused_as_well(make_server):
    assert make_server().handle(request(method="SSYNC")).status == 403
    assert make_server().handle(Request("GET", "/%ff", {})).status == 403


def test_a_refusal_is_logged_once_a_minute_and_address(make_server, clock, log):
    server = make_server()
    for _ in range(5):
        server.handle(request(address="10.0.0.8"))
        server.handle(request(address="10.0.0.9"))
    assert len(log.lines) == 2
    assert "refused GET from 10.0.0.8: the request has no signature" in log.lines[0]
    clock.advance(LOG_EVERY_S)
    server.handle(request(address="10.0.0.8"))
    assert len(log.lines) == 3


def test_counts_of_all_processes_add_up_in_the_recon_file(make_server, tmp_path, clock, log):
    recon = ReconFile(str(tmp_path), "object", log)
    for _ in range(2):
        counts = AuthCounts(recon, now_s=clock.time)
        server = make_server(counts=counts)
        for _ in range(3):
            server.handle(request())
        counts.flush()
    refused = recon.read()["server_auth"]["refused"]
    assert refused == {
        "count": 6,
        "since": clock.now_s,
        "last": clock.now_s,
        "address": "10.0.0.9",
        "reason": "the request has no signature of a server",
    }
    clock.advance(100_000)
    make_server(counts=AuthCounts(recon, now_s=clock.time)).handle(request())
    assert recon.read()["server_auth"]["refused"]["count"] == 1


def test_without_memory_for_nonces_one_process_still_notices(make_server, secrets, clock, tmp_path, log):
    server = make_server()
    (tmp_path / f"swift-nonces-{__import__('os').geteuid()}").mkdir()
    signed = request(secrets, clock)
    assert [server.handle(signed).status for _ in range(2)] == [200, 403]
    assert "is only noticed if the same process gets it" in log.lines[0]


# --- addresses --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("10.0.0.1:6200", True),
        ("10.0.0.2:6200", False),
        ("10.0.0.1:6201", False),
        ("10.0.0.1", False),
        ("", False),
        ("[fd00::1]:6200", True),
        ("[fd00:0:0::1]:6200", True),
        ("[fd00::2]:6200", False),
        ("localhost:6200", True),
        ("no.such.host.invalid:6200", False),
    ],
)
def test_a_host_is_an_address_and_the_port_of_this_server(host, is_own):
    addresses = frozenset(("10.0.0.1", "fd00::1", "127.0.0.1"))
    assert OwnHosts(lambda: addresses, 6200)(host) is is_own


def test_any_port_is_that_of_a_server_with_several():
    own = OwnHosts(lambda: frozenset(("10.0.0.1",)), 0)
    assert own("10.0.0.1:6201")
    assert not own("10.0.0.2:6201")


def test_an_address_that_is_added_counts_soon():
    addresses, clock = set(), ManualClock()
    own = OwnHosts(lambda: frozenset(addresses), 6200, clock=clock)
    assert not own(HOST)
    addresses.add("10.0.0.1")
    clock.advance(OTHER_HOST_S)
    assert own(HOST)

"""Root secrets in Barbican and in a KMIP service: fetched, refused, and shared with the peer."""

import urllib.request
from functools import partial

import pytest

from swift.aio.make import make_cluster
from swift.aio.plan import PORTS_PER_NODE, new_plan
from swift.base.errors import ConfigError
from test.support.cluster import with_filters
from test.support.key_services import KMS_BIN, SERVICES, fetch, needs_key_services
from test.support.peer import can_hide_etc, needs_peer
from test.support.processes import free_ports, free_range
from test.support.record_transcripts import program_of
from tools.bench.contestants import Contestant

pytestmark = [pytest.mark.peer, needs_key_services]
ONE, TWO = bytes(range(32)), bytes(range(32, 64))


@pytest.fixture(scope="module", params=SERVICES)
def service(request, tmp_path_factory):
    running = SERVICES[request.param](tmp_path_factory.mktemp(request.param) / "service")
    yield running
    running.close()


def test_several_secrets_are_fetched_at_once(service):
    ids = [service.add(ONE), service.add(TWO)]
    assert fetch(service.service, service.options, ids) == dict(zip(ids, (ONE, TWO), strict=True))


@pytest.mark.parametrize(("algorithm", "bits", "secret"), [("aes", 128, ONE[:16]), ("blowfish", 256, ONE)])
def test_only_keys_of_aes_256_are_root_secrets(service, algorithm, bits, secret):
    key_id = service.add(secret, algorithm=algorithm, bits=bits)
    with pytest.raises(ConfigError, match=f"{key_id} is no AES key of 256 bits but"):
        fetch(service.service, service.options, [key_id])


def test_a_missing_key_is_an_error_of_one_line(service):
    with pytest.raises(ConfigError) as caught:
        fetch(service.service, service.options, ["00000000-0000-0000-0000-000000000000"])
    assert "\n" not in str(caught.value) and str(caught.value)


def test_an_unreachable_service_is_an_error_of_one_line(service):
    away = {"auth_endpoint": "http://127.0.0.1:1/v3", "port": "1"}
    with pytest.raises(ConfigError, match="(?i)connect|refused"):
        fetch(service.service, {**service.options, **away}, ["1"])


def test_keystone_decides_who_gets_a_secret_of_barbican(service):
    if service.service != "kms":
        pytest.skip("a KMIP service knows its clients by their certificates")
    key_id = service.add(ONE)
    for wrong in ({"password": "x"}, {"user_domain_name": "Other"}, {"barbican_region_name": "away"}):
        with pytest.raises(ConfigError):
            fetch("kms", {**service.options, **wrong}, [key_id])
    endpoint = f"http://127.0.0.1:{service.ports['barbican']}"
    chosen = {"barbican_region_name": "away", "barbican_endpoint": endpoint}
    assert fetch("kms", {**service.options, **chosen}, [key_id]) == {key_id: ONE}


def our_program(kind, conf):
    return [f"{KMS_BIN}/swift-{kind}-server", conf, "-v"]


@needs_peer
@pytest.mark.skipif(not can_hide_etc(), reason="needs root and unshare(1) for an /etc of its own")
def test_objects_of_the_peer_are_read_and_it_reads_ours(service, tmp_path):
    name = f"{service.service}_keymaster"
    keys = {"key_id": service.add(ONE), "key_id_two": service.add(TWO), "active_root_secret_id": "two"}
    section = "".join(f"{option} = {value}\n" for option, value in {**service.options, **keys}.items())
    (tmp_path / "keymaster.conf").write_text(f"[{name}]\n{section}")
    pointer = f"use = egg:swift#{name}\nkeymaster_config_path = {tmp_path}/keymaster.conf\n"
    proxy_port, cache_port = free_ports(2)
    plan = new_plan(
        tmp_path / "data",
        ec="2+1",
        proxy_port=proxy_port,
        cache_port=cache_port,
        base_port=free_range(PORTS_PER_NODE * 5),
    )
    make_cluster(plan)
    conf = plan.etc / "proxy-server.conf"
    places = {name: "proxy-server", "encryption": "proxy-server"}
    conf.write_text(with_filters(conf.read_text(), places, f"[filter:{name}]\n{pointer}"))
    running = Contestant("peer", plan, partial(program_of, swift_dir=plan.etc))

    def get(path):
        request = urllib.request.Request(
            f"http://{running.host}{path}", headers={"X-Auth-Token": running.token}
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.read(), response.headers["X-Object-Meta-Color"]

    color = {"X-Object-Meta-Color": "blue"}
    try:
        running.start_servers()
        running.request("PUT", "/v1/AUTH_test/c")
        running.request("PUT", "/v1/AUTH_test/c/theirs", b"of the peer" * 1000, color)
        running.stop_servers()
        stored = b"".join(path.read_bytes() for path in plan.root.rglob("*.data"))
        assert stored and b"of the peer" not in stored
        running = Contestant("ours", plan, our_program)
        running.start_servers()
        assert get("/v1/AUTH_test/c/theirs") == (b"of the peer" * 1000, "blue")
        running.request("PUT", "/v1/AUTH_test/c/ours", b"of ours" * 1000, color)
        running.stop_servers()
        running = Contestant("peer", plan, partial(program_of, swift_dir=plan.etc))
        running.start_servers()
        assert get("/v1/AUTH_test/c/ours") == (b"of ours" * 1000, "blue")
    finally:
        running.stop()

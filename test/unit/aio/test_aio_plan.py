"""What an all-in-one cluster consists of is decided, and refused, before anything is made of it."""

import json

import pytest

from swift.aio.plan import (
    PLAN_FILE,
    ClusterPlan,
    daemon_options,
    new_plan,
    parse_ec,
    saved_plan,
)
from swift.base.errors import ConfigError
from swift.config.declared import daemons


def test_every_cluster_has_a_secret_of_its_own(tmp_path):
    assert new_plan(tmp_path).hash_suffix != new_plan(tmp_path).hash_suffix
    assert new_plan(tmp_path, nodes=None, disks=2).nodes == ClusterPlan(tmp_path).nodes


def test_nothing_listens_on_a_port_of_something_else(tmp_path):
    plan = new_plan(tmp_path, nodes=6)
    ports = [port for _, port in plan.ports()]
    assert len(ports) == len(set(ports)) == 2 + 6 * 6 + 1
    assert {server.port for server in plan.servers()} <= set(ports)


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"nodes": 0}, "--nodes must be at least 1"),
        ({"disks": 0}, "--disks must be at least 1"),
        ({"disks": 26}, "--disks must be at most 25"),
        ({"replicas": 5}, "5 replicas need at least as many devices"),
        ({"proxy_workers": -1}, "--workers must be at least 0"),
        ({"ip": "300.1.1.1"}, "not an address of this machine"),
        ({"ip": "host name"}, "not an address of this machine"),
        ({"ip": "\udcff"}, "not an address of this machine"),
        ({"base_port": 65530}, "is beyond 65535"),
        ({"base_port": -5}, "port -5 .* is none"),
        ({"proxy_port": 0}, r"port 0 \(proxy\) is none"),
        ({"proxy_port": 6211}, "container-1 and proxy would both listen on port 6211"),
        ({"cache_port": 8080}, "cache and proxy would both listen on port 8080"),
    ],
)
def test_what_cannot_work_is_refused_in_one_sentence(tmp_path, choices, words):
    with pytest.raises(ConfigError, match=words):
        new_plan(tmp_path, **choices).check()


@pytest.mark.parametrize("text", ["9" * 5000 + "+1", "1+" + "9" * 5000, "²+1", "٣+1", " 4+2"])
def test_numbers_of_a_code_are_plain_digits(text):
    with pytest.raises(ConfigError, match=r"an erasure code is K\+M"):
        parse_ec(text)


def test_a_plan_is_found_again_as_it_was_made(tmp_path):
    assert saved_plan(tmp_path) is None
    plan = new_plan(tmp_path, nodes=5, ec="2+1", ip="127.0.0.1")
    plan.save()
    assert saved_plan(tmp_path) == plan
    assert (tmp_path / PLAN_FILE).stat().st_mode & 0o077 == 0, "it holds a key"


def test_a_plan_of_before_a_choice_has_what_was_the_default(tmp_path):
    path = tmp_path / PLAN_FILE
    new_plan(tmp_path, disks=1).save()
    values = json.loads(path.read_text())
    del values["disks"], values["storage_workers"]
    path.write_text(json.dumps(values))
    assert (saved_plan(tmp_path).disks, saved_plan(tmp_path).storage_workers) == (1, 0)


@pytest.mark.parametrize(
    "values",
    [{"version": 2}, {"nodes": "4"}, {"nodes": 4.0}, {"nodes": True}, {"xfs": 1}, {"more": 1}, {"key": None}],
)
def test_values_that_no_plan_has_are_those_of_something_else(tmp_path, values):
    new_plan(tmp_path).save()
    path = tmp_path / PLAN_FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
    with pytest.raises(ConfigError, match="aio.json"):
        saved_plan(tmp_path)


@pytest.mark.parametrize(
    "text", [b"", b"null", b"[]", b"{}", b"5", b"\xff", b"[" * 100_000, b'{"version": 1}']
)
def test_a_file_that_is_no_plan_is_told(tmp_path, text):
    (tmp_path / PLAN_FILE).write_bytes(text)
    with pytest.raises(ConfigError, match="is not a plan of swift-aio"):
        saved_plan(tmp_path)


def test_what_is_not_of_a_cluster_is_named(tmp_path):
    plan = new_plan(tmp_path, nodes=2)
    for name in ("etc", "node1", "node2", "node3", "photos", PLAN_FILE):
        (tmp_path / name).mkdir()
    assert plan.foreign_entries() == ["node3", "photos"]


def test_daemons_of_which_one_is_enough_run_on_the_first_node(tmp_path):
    first, *others = new_plan(tmp_path, nodes=3).daemons()
    names = [[word.partition("=")[0] for word in process.args[3:]] for process in (first, *others)]
    assert names[0] == list(daemons())
    many = [name for name, daemon in daemons().items() if not daemon.once_per_cluster]
    assert names[1:] == [many, many] and "object-expirer" not in many
    assert [process.port for process in (first, *others)] == [None] * 3


def test_daemons_leave_the_machine_to_requests():
    for name in daemons():
        options = daemon_options(name)
        assert options["interval"] > 0 and options["nice_priority"] == 10
    assert daemon_options("object-auditor")["files_per_second"] == 2


def test_devices_are_named_once_in_the_cluster(tmp_path):
    plan = new_plan(tmp_path, nodes=3, disks=2)
    paths = plan.device_paths()
    assert len({path.name for path in paths}) == len(paths) == plan.disks_in_all == 6
    assert plan.device_path("sdc2") == tmp_path / "node2" / "sdc2"
    with pytest.raises(KeyError):
        plan.device_path("sdd2")


def test_addresses_of_either_kind_make_urls(tmp_path):
    plan = new_plan(tmp_path, ip="::1", user="acct:user")
    assert (plan.url, plan.storage_url) == ("http://[::1]:8080", "http://[::1]:8080/v1/AUTH_acct")


def test_accounts_are_told_of_many_new_containers_soon():
    assert daemon_options("container-updater")["containers_per_second"] == 50
    assert daemon_options("container-sharder")["databases_per_second"] == 10

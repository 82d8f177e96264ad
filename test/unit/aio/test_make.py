"""The files of an all-in-one cluster: made together or not at all, moved to other ports, removed."""

import dataclasses
import stat

import pytest

from swift.aio.make import create_cluster, make_cluster, move_cluster, remove_cluster
from swift.aio.plan import new_plan, saved_plan
from swift.base.errors import ConfigError
from swift.config.files import read_sections
from swift.ring.ring import Ring


def plan_in(root, **more):
    return new_plan(root, **{"nodes": 2, "replicas": 2, "part_power": 2, **more})


def files(root):
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def ports(root):
    """Every port in every configuration file."""
    found = []
    for path in sorted((root / "etc").rglob("*.conf")):
        for name, section in read_sections(path).items():
            keys = ("bind_port", "metrics_bind_port", "memcache_servers")
            found += [(path.name, name, key, section[key]) for key in keys if key in section]
    return found


def test_a_cluster_is_remembered_and_made_again_without_changes(tmp_path):
    plan = plan_in(tmp_path / "data")
    create_cluster(plan)
    assert saved_plan(plan.root) == plan
    before = files(plan.root)
    make_cluster(plan)
    assert files(plan.root) == before


def test_others_of_the_machine_read_neither_keys_nor_what_is_stored(tmp_path):
    plan = plan_in(tmp_path / "data")
    create_cluster(plan)
    secret = [plan.etc / "swift.conf", plan.etc / "proxy-server.conf", plan.root / "aio.json"]
    for path in (*secret, *plan.device_paths()):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_after_a_failure_the_directory_is_as_it_was(tmp_path):
    # More partitions than a ring file can have.
    for root, remains in ((tmp_path / "new", False), (tmp_path / "there", True)):
        if remains:
            root.mkdir()
        with pytest.raises(Exception, match="."):
            create_cluster(plan_in(root, part_power=99))
        assert root.exists() is remains and not (remains and list(root.iterdir()))


def test_a_cluster_that_moved_has_the_ports_of_one_made_there(tmp_path):
    old = plan_in(tmp_path / "old")
    create_cluster(old)
    choices = {"proxy_port": 18080, "base_port": 17200, "cache_port": 21311}
    moved = dataclasses.replace(old, **choices)
    move_cluster(old, moved)
    fresh = plan_in(tmp_path / "fresh", **choices)
    create_cluster(fresh)
    assert ports(old.root) == ports(fresh.root) and len(ports(fresh.root)) > 14
    assert saved_plan(old.root) == moved
    ring = [[node.port for node in Ring(str(p.etc / "object.ring.gz")).view().devices] for p in (old, fresh)]
    assert ring[0] == ring[1]


def test_the_proxy_of_a_cluster_can_be_given_another_address(tmp_path):
    old = plan_in(tmp_path / "data")
    create_cluster(old)
    move_cluster(old, dataclasses.replace(old, ip="0.0.0.0"))
    bound = {
        (path.parent.name if path.name != "proxy-server.conf" else "proxy", ip)
        for path in old.etc.rglob("*.conf")
        for section in read_sections(path).values()
        if (ip := section.get("bind_ip"))
    }
    assert bound == {("proxy", "0.0.0.0")} | {
        (f"{kind}-server", "127.0.0.1") for kind in ("account", "container", "object")
    }
    assert saved_plan(old.root).ip == "0.0.0.0"


def test_what_the_operator_changed_stays_when_a_cluster_moves(tmp_path):
    old = plan_in(tmp_path / "data")
    create_cluster(old)
    conf = old.etc / "proxy-server.conf"
    conf.write_text(conf.read_text() + "\n[filter:mine]\nbind_port = 1234\nx = 8080\n")
    move_cluster(old, dataclasses.replace(old, proxy_port=18080))
    assert conf.read_text().endswith("\n[filter:mine]\nbind_port = 1234\nx = 8080\n")
    assert read_sections(conf)["DEFAULT" if "DEFAULT" in read_sections(conf) else "filter:mine"]


def test_addresses_of_ipv6_are_bracketed_in_urls_and_for_the_cache(tmp_path):
    plan = plan_in(tmp_path / "data", ip="::1")
    assert plan.auth_url == "http://[::1]:8080/auth/v1.0"
    assert plan.storage_url == "http://[::1]:8080/v1/AUTH_test"
    create_cluster(plan)
    cache = read_sections(plan.etc / "proxy-server.conf")["filter:cache"]
    assert cache["memcache_servers"] == "[::1]:11311"
    assert read_sections(plan.etc / "proxy-server.conf")["app:proxy-server"]["bind_ip"] == "::1"


def test_removing_follows_no_links_and_stops_at_strangers(tmp_path):
    plan = plan_in(tmp_path / "data")
    create_cluster(plan)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("x")
    (plan.root / "node1" / "sdb1").rmdir()
    (plan.root / "node1" / "sdb1").symlink_to(elsewhere)
    (plan.root / "mine").write_text("x")
    with pytest.raises(ConfigError, match=r"not of a cluster \(mine\)"):
        remove_cluster(plan)
    (plan.root / "mine").unlink()
    remove_cluster(plan)
    assert not plan.root.exists() and (elsewhere / "precious").exists()


def test_requests_without_a_signature_mean_the_account_of_the_user(tmp_path):
    plan = plan_in(tmp_path / "data", user="acme:ann")
    create_cluster(plan)
    [proxy] = plan.etc.rglob("proxy-server.conf")
    assert read_sections(proxy)["filter:s3api"]["anonymous_account"] == "AUTH_acme"

"""Servers and daemons take the configurations of the projects that deploy OpenStack Swift."""

import shutil
import sys
import types

import pytest

from swift.base.errors import ConfigError
from swift.config.unknown import unknown_options
from swift.runtime.pipeline import load_app
from swift.runtime.service.daemonize import find_daemon, prepare_daemon
from test.support.deployments import DAEMONS, PROXIES, SERVERS, STORAGE, proxy_conf, storage_conf, write_conf
from test.unit.ring.conftest import GOLDEN


@pytest.fixture
def swift_dir(tmp_path):
    (tmp_path / "swift.conf").write_text(
        "[swift-hash]\nswift_hash_path_suffix = s\nswift_hash_path_prefix = p\n"
        "[storage-policy:0]\nname = Policy-0\ndefault = yes\n"
    )
    for name in (*SERVERS,):
        shutil.copyfile(GOLDEN / "e0-base.ring.gz", tmp_path / f"{name}.ring.gz")
    return tmp_path


def default_of(swift_dir):
    return {
        "swift_dir": str(swift_dir),
        "devices": str(swift_dir / "srv"),
        "recon_cache_path": str(swift_dir),
        "mount_check": "true",
        "bind_ip": "127.0.0.1",
        "bind_port": "6200",
        "workers": "2",
        "log_level": "INFO",
    }


def container_conf(swift_dir, section, options):
    path = swift_dir / "container-server.conf"
    sections = storage_conf("openstack-helm", "container", default_of(swift_dir))
    write_conf(path, {**sections, section: options})
    return str(path)


@pytest.fixture
def foreign_filters(monkeypatch):
    """Filters of other distributions, which pass every request on."""
    for package, module in (("keystonemiddleware", "auth_token"), ("ceilometermiddleware", "swift")):
        stub = types.ModuleType(f"{package}.{module}")
        stub.filter_factory = lambda _global_conf, **_options: lambda app: app
        monkeypatch.setitem(sys.modules, package, types.ModuleType(package))
        monkeypatch.setitem(sys.modules, stub.__name__, stub)


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("project", STORAGE)
def test_storage_servers_and_daemons_take_the_configuration_of_a_project(swift_dir, project, server):
    path = swift_dir / f"{server}-server.conf"
    write_conf(path, storage_conf(project, server, default_of(swift_dir)))
    assert load_app(str(path), {})
    for name in DAEMONS[server]:
        assert prepare_daemon(find_daemon(name), str(path), verbose=True).tasks


@pytest.mark.parametrize("project", PROXIES)
def test_a_proxy_takes_the_configuration_of_a_project(swift_dir, foreign_filters, project):
    path = swift_dir / "proxy-server.conf"
    write_conf(path, proxy_conf(project, default_of(swift_dir)))
    assert load_app(str(path), {})


def test_container_sync_needs_no_internal_client_conf(swift_dir, capfd):
    """The one of openstack-helm has none."""
    path = container_conf(swift_dir, "container-sync", {})
    assert prepare_daemon(find_daemon("container-sync"), path, verbose=True).tasks
    assert "using the built-in pipeline" in capfd.readouterr().err


def test_an_internal_client_conf_that_is_named_must_exist(swift_dir):
    missing = str(swift_dir / "none.conf")
    path = container_conf(swift_dir, "container-sync", {"internal_client_conf_path": missing})
    with pytest.raises(ConfigError, match=missing):
        prepare_daemon(find_daemon("container-sync"), path, verbose=True)


def test_sections_of_other_software_are_not_looked_at(swift_dir):
    path = swift_dir / "object-server.conf"
    sections = storage_conf("openstack-helm", "object", default_of(swift_dir))
    sections["keystone_authtoken"] = {"www_authenticate_uri": "http://127.0.0.1:5000"}
    write_conf(path, sections)
    assert list(unknown_options(str(path))) == []

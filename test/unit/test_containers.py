"""The files of the container images fit each other."""

import getpass
import grp
import os
import stat
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest
import yaml

from swift.entry import commands

CONTAINERS = Path(__file__).parents[2] / "containers"
INSIDE = "/usr/share/swift/container/"


@pytest.mark.parametrize("name", ["compose.yaml", "compose-three.yaml"])
def test_services_run_what_the_image_has(name):
    image = (CONTAINERS / "Containerfile").read_text()
    for service in yaml.safe_load((CONTAINERS / name).read_text())["services"].values():
        program = service.get("command", ["swift-aio"])[0]
        if program.startswith(INSIDE):
            script = program.removeprefix(INSIDE)
            assert (CONTAINERS / script).stat().st_mode & 0o111
            assert f" {script} " in image
        else:
            assert program == "memcached" or program in commands()


def test_the_example_of_the_environment_has_each_secret_that_the_configuration_needs():
    given = {
        line.split("=")[0] for line in (CONTAINERS / "compose-three.env.example").read_text().splitlines()
    }
    script = (CONTAINERS / "cluster").read_text()
    needed = {part.split('"')[0] for part in script.replace("'", '"').split('secret("')[1:]}
    assert needed and needed <= given


def test_the_file_of_secrets_is_its_owners_alone_and_never_committed():
    repository = CONTAINERS.parent
    assert "/containers/compose-three.env" in (repository / ".gitignore").read_text().splitlines()
    command = "install -m 600 containers/compose-three.env.example containers/compose-three.env"
    for page in ("doc/howto/install.md", "containers/compose-three.yaml"):
        assert command in (repository / page).read_text()


@pytest.fixture
def kolla():
    """The module kolla_set_configs."""
    loader = SourceFileLoader("kolla_set_configs", str(CONTAINERS / "kolla_set_configs"))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


@pytest.fixture
def copy(kolla):
    """The function that copies one entry of ``config_files``."""
    return kolla.copy


@pytest.fixture
def owner():
    return f"{getpass.getuser()}:{grp.getgrgid(os.getgid()).gr_name}"


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_kolla_copies_files_with_owner_and_mode(tmp_path, copy, owner):
    (tmp_path / "swift.conf").write_text("new")
    target = tmp_path / "etc" / "swift.conf"
    copy(str(tmp_path / "swift.conf"), str(target), owner=owner, perm="0640")
    assert (target.read_text(), mode_of(target)) == ("new", 0o640)


def test_kolla_copies_directories_and_patterns_into_a_folder(tmp_path, copy, owner):
    (tmp_path / "rings").mkdir()
    for name in ("account.ring.gz", "object.ring.gz"):
        (tmp_path / "rings" / name).write_text(name)
    (tmp_path / "etc").mkdir()
    copy(f"{tmp_path}/rings/*.gz", f"{tmp_path}/etc/", owner=owner, perm="0600")
    assert sorted(path.name for path in (tmp_path / "etc").iterdir()) == ["account.ring.gz", "object.ring.gz"]
    copy(f"{tmp_path}/rings", f"{tmp_path}/copy", owner=owner, perm="0640")
    assert mode_of(tmp_path / "copy") == 0o750
    assert mode_of(tmp_path / "copy" / "object.ring.gz") == 0o640


def test_kolla_follows_no_link_that_the_services_made(tmp_path, copy, owner):
    foreign = tmp_path / "foreign"
    foreign.write_text("foreign")
    foreign.chmod(0o600)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "swift.conf").write_text("new")
    for name in ("linked", "folder/file"):
        (tmp_path / "conf" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "conf" / name).write_text("new")
    (tmp_path / "etc").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "etc" / "folder").symlink_to(tmp_path / "elsewhere")
    for link in ("swift.conf", "swift.conf.new", "old", "linked"):
        (tmp_path / "etc" / link).symlink_to(foreign)
    copy(f"{tmp_path}/conf/swift.conf", f"{tmp_path}/etc/swift.conf", owner=owner, perm="0644")
    copy(f"{tmp_path}/conf", f"{tmp_path}/etc", owner=owner, perm="0644", merge=True)
    assert (foreign.read_text(), mode_of(foreign)) == ("foreign", 0o600)
    for name in ("swift.conf", "linked", "folder/file"):
        assert (tmp_path / "etc" / name).read_text() == "new"
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_kolla_changes_what_it_opened_and_not_what_takes_its_place(tmp_path, kolla, owner):
    """A service may exchange a file for a link at any moment, also after the script looked at it."""
    foreign, folder = tmp_path / "foreign", tmp_path / "etc"
    foreign.write_text("foreign")
    foreign.chmod(0o600)
    folder.mkdir()
    for name in ("a", "b"):
        (folder / name).write_text(name)
    (folder / "link").symlink_to(foreign)
    for fd in kolla.below(str(folder)):
        for name in ("a", "b"):
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(foreign)
        kolla.set_owner(fd, owner, "0644")
    assert mode_of(foreign) == 0o600 and mode_of(folder) == 0o755


def test_kolla_keeps_properties_that_are_to_be_kept(tmp_path, copy):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "a").write_text("a")
    (tmp_path / "conf" / "a").chmod(0o604)
    (tmp_path / "conf").chmod(0o705)
    os.utime(tmp_path / "conf" / "a", (1, 2))
    copy(f"{tmp_path}/conf", f"{tmp_path}/etc", preserve_properties=True)
    assert (mode_of(tmp_path / "etc"), mode_of(tmp_path / "etc" / "a")) == (0o705, 0o604)
    assert (tmp_path / "etc" / "a").stat().st_mtime == 2


def test_the_services_may_not_choose_how_the_script_of_root_runs():
    """CVE-2022-38060: with setenv, PYTHONPATH would make anything of the services root's."""
    image = (CONTAINERS / "Containerfile.openstack").read_text()
    assert "setenv'" not in image and "SETENV" not in image
    assert 'env_keep += "KOLLA_CONFIG_STRATEGY"' in image
    assert "sudo -E" not in (CONTAINERS / "kolla_start").read_text()
    assert (CONTAINERS / "kolla_set_configs").read_text().startswith("#!/usr/bin/python3 -I\n")


SETTINGS = {
    "SWIFT_HASH_PATH_PREFIX": "a",
    "SWIFT_HASH_PATH_SUFFIX": "b",
    "SWIFT_USER": "test:tester",
    "SWIFT_KEY": "key",
    "AWS_ACCESS_KEY_ID": "access",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "MEMCACHE_SERVERS": "memcached:11211",
}


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, f"x:y\n{name.lower()} = z") for name in SETTINGS),
        *((name, "x:y\r[app:z]") for name in SETTINGS),
        ("SWIFT_KEY", "key .reseller_admin"),
        ("SWIFT_USER", "test:tester = x"),
        ("SWIFT_USER", "test_a:tester"),
        ("SWIFT_USER", "test"),
        ("SWIFT_KEY", "change-me"),
        ("AWS_ACCESS_KEY_ID", "a=b"),
    ],
)
def test_values_that_would_be_other_options_end_the_configuration_of_a_cluster(name, value):
    done = subprocess.run(
        [sys.executable, CONTAINERS / "cluster", "one", "two", "three"],
        env={**SETTINGS, name: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and done.stderr.startswith("cluster: ") and name in done.stderr
    assert value not in done.stderr


def test_kolla_refuses_a_missing_file_unless_it_is_optional(tmp_path, copy, owner):
    copy(f"{tmp_path}/none", f"{tmp_path}/etc/none", owner=owner, perm="0600", optional=True)
    with pytest.raises(SystemExit, match="none does not exist"):
        copy(f"{tmp_path}/none", f"{tmp_path}/etc/none", owner=owner, perm="0600")

"""The files of the container images fit each other."""

import getpass
import grp
import os
import stat
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


@pytest.fixture
def copy():
    """The function of kolla_set_configs that copies one entry of ``config_files``."""
    loader = SourceFileLoader("kolla_set_configs", str(CONTAINERS / "kolla_set_configs"))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module.copy


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


def test_kolla_refuses_a_missing_file_unless_it_is_optional(tmp_path, copy, owner):
    copy(f"{tmp_path}/none", f"{tmp_path}/etc/none", owner=owner, perm="0600", optional=True)
    with pytest.raises(SystemExit, match="none does not exist"):
        copy(f"{tmp_path}/none", f"{tmp_path}/etc/none", owner=owner, perm="0600")

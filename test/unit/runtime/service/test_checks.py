"""Faults of this machine that --test-config finds: users, addresses, directories, sandboxes of units."""

import os
import pwd
import tempfile
from pathlib import Path

import pytest

from swift.config.common import ServerSettings
from swift.config.written import written_paths
from swift.runtime.service.checks import machine_problems, unit_of

USER = pwd.getpwuid(os.getuid()).pw_name
CONF = """
[DEFAULT]
devices = {0}/srv
recon_cache_path = {0}/recon
[pipeline:main]
pipeline = audit_log unused proxy-server
[app:proxy-server]
use = egg:swift#proxy
[filter:audit_log]
use = egg:swift#audit_log
path = {0}/log/audit.log
[filter:elsewhere]
use = egg:swift#audit_log
path = {0}/none/audit.log
[filter:unused]
use = egg:swift#audit_log
path = {0}/none/audit.log
syslog = yes
[packed]
index_path = {0}/ssd
[cache-tier]
enabled = {1}
path = {0}/cache
"""


@pytest.fixture
def conf(tmp_path):
    for name in ("srv/sda", "srv/sdb", "recon", "log", "ssd"):
        (tmp_path / name).mkdir(parents=True)
    path = tmp_path / "object-server.conf"
    path.write_text(CONF.format(tmp_path, "false"))
    return path


def problems(path, *, show=lambda _unit: {}, listens=False, **settings):
    found = ServerSettings(**{"user": USER, **settings})
    return list(machine_problems("object-server", str(path), found, listens=listens, show=show))


def test_directories_are_those_of_the_sections_that_are_used(conf, tmp_path):
    assert {each.directory.removeprefix(f"{tmp_path}/") for each in written_paths(conf)} == {
        *("srv", "recon", "log", "ssd")
    }
    # The default of a filter that is used, and of a section that is turned on.
    conf.write_text(
        "[pipeline:main]\npipeline = a\n[filter:a]\nuse = egg:swift#audit_log\n[cache-tier]\nenabled = 1\n"
    )
    assert [(each.directory, each.option.partition(" ")[2]) for each in written_paths(conf)] == [
        ("/var/log/swift", "[filter:a] path"),
        ("/srv/cache/swift", "[cache-tier] path"),
    ]


def test_a_directory_that_cannot_be_written_to_is_named_with_its_option(conf, tmp_path):
    assert problems(conf) == []
    (tmp_path / "ssd").rmdir()
    (tmp_path / "log").rmdir()
    (tmp_path / "log").write_text("")
    conf.write_text(CONF.format(tmp_path, "true"))
    found = problems(conf)
    for option, name, reason in (
        ("[filter:audit_log] path", "log", "Not a directory"),
        ("[packed] index_path", "ssd", "No such file or directory"),
        ("[cache-tier] path", "cache", "No such file or directory"),
    ):
        (line,) = (line for line in found if option in line)
        assert line.startswith(f"{conf} {option}: the user ") and line.endswith(
            f"cannot write to {tmp_path}/{name}: {reason}"
        )
    assert len(found) == 3


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, who becomes another user")
def test_the_user_of_the_configuration_must_be_able_to_write(conf, tmp_path):
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    for name in ("srv/sda", "recon", "log"):
        os.chown(tmp_path / name, pwd.getpwnam("nobody").pw_uid, -1)
    # One device of the two is enough: a device that fails is no fault of the configuration.
    assert problems(conf, user="nobody") == [
        f"{conf} [packed] index_path: the user nobody cannot write to {tmp_path}/ssd: Permission denied"
    ]


@pytest.mark.skipif(os.getuid() != 0, reason="the user counts for root only")
def test_an_unknown_user_is_named_with_the_nearest(conf):
    assert problems(conf, user="nobodi") == [
        f"{conf} [DEFAULT] user: unknown user nobodi; did you mean nobody?"
    ]


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("192.0.2.77", "no interface of this machine has 192.0.2.77"),
        ("2001:db8::77", "no interface of this machine has 2001:db8::77"),
        ("127.0.0", ""),
        ("no such host", "no such host is no address"),
    ],
)
def test_an_address_must_be_one_of_this_machine(conf, address, reason):
    assert problems(conf, listens=True, bind_ip="0.0.0.0") == []
    found = problems(conf, listens=True, bind_ip=address)
    assert found == ([f"{conf} [DEFAULT] bind_ip: {reason}"] if reason else [])


def test_every_configuration_has_a_unit(tmp_path, monkeypatch):
    def unit(path):
        return unit_of("object-server", path, str(tmp_path))

    assert unit(f"{tmp_path}/object-server.conf") == "swift-object-server.service"
    assert unit(f"{tmp_path}/object-server/1.conf") == "swift-object-server@1.service"
    assert unit("/elsewhere/deep/1.conf") == ""
    monkeypatch.chdir(tmp_path)
    assert unit("object-server.conf") == "swift-object-server.service"


def test_the_unit_must_be_allowed_to_write_there():
    # Not in /dev, which every unit may write to.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        path = f"{folder}/object-server.conf"
        Path(path).write_text(f"[packed]\nindex_path = {folder}\n")

        def found(paths, protect="strict", **others):
            shown = {"ProtectSystem": protect, "ReadWritePaths": paths, **others}
            return list(
                machine_problems(
                    "object-server",
                    path,
                    ServerSettings(user=USER),
                    listens=False,
                    show=lambda unit: {"swift-object-server.service": shown}[unit],
                    swift_dir=folder,
                )
            )

        assert found("-/srv -/var/tmp/other") == [
            f"{path} [packed] index_path: swift-object-server.service may not write to {folder}; "
            "run swift-config --units, then restart the unit"
        ]
        assert found("-/srv -/var/tmp") == found(f"+{folder}") == found("", "full") == []
        # A drop-in does not help where the unit has a tree of its own.
        lost = found(f"-{folder}", PrivateTmp="yes", ProtectHome="yes")
        assert lost == found("", "full", PrivateTmp="yes") and len(lost) == 1
        assert "has another /var/tmp (PrivateTmp)" in lost[0]
        assert found(f"-{folder}", PrivateTmp="no", ProtectHome="yes") == []


def test_the_default_directory_of_devices_must_be_there_for_a_server(tmp_path):
    path = tmp_path / "object-server.conf"
    path.write_text("[DEFAULT]\nbind_port = 1\n")
    expected = [] if os.path.isdir("/srv/node") else ["No such file or directory"]
    assert [line.rpartition(": ")[2] for line in problems(path, listens=True)] == expected
    assert problems(path) == []

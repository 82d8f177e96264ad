"""rsync is told what the peer tells it; when it fails, a sentence says why."""

import os
import stat
from dataclasses import replace

import pytest

from swift.base.errors import ConfigError
from swift.dbsync import rsync
from swift.dbsync.settings import ReplicatorSettings
from test.support.daemons import make_node


def six(device):
    return replace(device, ip="fe80::1", replication_ip="fe80::2")


@pytest.mark.parametrize(
    ("template", "device", "module"),
    [
        ("{replication_ip}::container", make_node(1), "127.0.0.1::container"),
        ("{replication_ip}::c_{device}", make_node(1), "127.0.0.1::c_d1"),
        ("rsync://{ip}:{replication_port}/{region}{zone}{id}", make_node(2), "rsync://10.0.0.1:6202/112"),
        ("{replication_ip}::container", six(make_node(1)), "[fe80::2]::container"),
    ],
)
def test_modules_may_name_keys_of_devices(template, device, module):
    assert rsync.module_of(template, device) == module


@pytest.mark.parametrize("template", ["{host}::x", "{", "{}", "{0}"])
def test_other_keys_are_refused_when_the_configuration_is_read(template):
    with pytest.raises(ConfigError, match="rsync_module"):
        ReplicatorSettings.parse({"rsync_module": template})


def test_the_command_is_the_peers():
    args = rsync.command("db", "m/d/tmp/x", conn_timeout_s=0.5, io_timeout_s=10, compress=False)
    assert args == [
        "rsync",
        "--quiet",
        "--no-motd",
        "--timeout=10",
        "--contimeout=1",
        "--whole-file",
        "db",
        "m/d/tmp/x",
    ]
    assert "--compress" in rsync.command("a", "b", conn_timeout_s=1, io_timeout_s=1, compress=True)


def test_options_have_the_peers_names_and_defaults():
    settings = ReplicatorSettings.parse({"run_pause": "7", "handoff_delete": "auto"})
    assert (settings.interval, settings.handoff_delete, settings.schedule.concurrency) == (7.0, 0, 8)
    assert ReplicatorSettings.parse({"handoff_delete": "2"}).handoff_delete == 2
    with pytest.raises(ConfigError):
        ReplicatorSettings.parse({"per_diff": "0"})


def script(tmp_path, text):
    path = tmp_path / "program"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return [str(path), "m::x/d/tmp/id"]


@pytest.mark.process
def test_what_a_failing_rsync_said_is_in_the_error(tmp_path):
    rsync.run(script(tmp_path, "exit 0"), 5)
    with pytest.raises(rsync.RsyncFailed, match="m::x/d/tmp/id failed with exit status 5: no such module"):
        rsync.run(script(tmp_path, "echo no such module >&2; exit 5"), 5)


@pytest.mark.process
def test_a_missing_rsync_is_explained(tmp_path):
    with pytest.raises(rsync.RsyncFailed, match="install it"):
        rsync.run([str(tmp_path / "nothing"), "m::x"], 5)


@pytest.mark.process
def test_a_hanging_rsync_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(rsync, "_GRACE_S", 0.0)
    with pytest.raises(rsync.RsyncFailed, match="was killed"):
        rsync.run(script(tmp_path, f"exec sleep {60 + os.getpid() % 7}"), 0.05)

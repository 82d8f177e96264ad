"""swift-drive-audit counts errors by device within its time, and comments out what it unmounts."""

import json
import time

import pytest

from swift.base.errors import ConfigError
from swift.cli import drive_audit
from swift.cli.drive_audit import MountedDevice

NOW_S = time.mktime((2026, 1, 1, 0, 10, 0, 0, 0, -1))
MOUNTS = "/dev/sda1 / ext4 rw 0 0\n/dev/sdb1 /srv/node/one xfs rw 0 0\n/dev/sdc /srv/node/two xfs rw 0 0\n"


def patterns():
    return drive_audit.read_conf_patterns({})


def test_devices_are_those_mounted_below_the_directory():
    assert drive_audit.mounted_below("/srv/node", MOUNTS) == [
        MountedDevice("/srv/node/one", "sdb1"),
        MountedDevice("/srv/node/two", "sdc"),
    ]


@pytest.mark.parametrize(
    ("line", "age_s"),
    [
        ("Jan  1 00:00:00 host kernel: x", 600),
        ("Dec 31 23:50:00 host kernel: x", 1200),
        ("2026-01-01T00:09:00 host kernel: x", 60),
        ("nothing that says when", None),
    ],
)
def test_lines_say_when_they_were_written(line, age_s):
    moment = drive_audit.parse_log_time(line, NOW_S)
    assert (None if moment is None else NOW_S - moment) == age_s


def test_errors_are_counted_by_device_and_disk_within_the_time(tmp_path):
    log = tmp_path / "kern.log"
    log.write_text(
        "Dec 31 20:00:00 host kernel: sdb1 I/O error, long ago\n"
        "Jan  1 00:01:00 host kernel: Buffer I/O error on device sdb1, logical block 1\n"
        "Jan  1 00:02:00 host kernel: blk_update_request: I/O error, dev sdb, sector 1\n"
        "Jan  1 00:03:00 host kernel: all is well with sdc\n"
    )
    lines = drive_audit.lines_since([str(log)], "auto", NOW_S - 3600, NOW_S)
    errors = drive_audit.count_errors(lines, patterns())
    assert errors == {"sdb1": 1, "sdb": 1}
    one, two = drive_audit.mounted_below("/srv/node", MOUNTS)
    assert (drive_audit.device_errors(one, errors), drive_audit.device_errors(two, errors)) == (2, 0)


def test_what_is_unmounted_is_commented_out():
    fstab = "/dev/sda1 / ext4 rw 0 0\nLABEL=x /srv/node/one xfs rw 0 0\n#old /srv/node/one xfs rw 0 0\n"
    assert drive_audit.comment_out_mount(fstab, "/srv/node/one") == (
        "/dev/sda1 / ext4 rw 0 0\n#LABEL=x /srv/node/one xfs rw 0 0\n#old /srv/node/one xfs rw 0 0\n"
    )


def test_a_run_tells_recon(tmp_path, capsys):
    conf = tmp_path / "drive-audit.conf"
    conf.write_text(
        f"[drive-audit]\ndevice_dir = {tmp_path}/none\nlog_file_pattern = {tmp_path}/kern.*\n"
        f"recon_cache_path = {tmp_path}\nunmount_failed_device = false\nlog_address = {tmp_path}/none\n"
    )
    assert drive_audit.main([str(conf), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {}
    assert json.loads((tmp_path / "drive.recon").read_text()) == {"drive_audit_errors": 0}


@pytest.mark.parametrize(
    "text", ["", "[drive-audit]\nregex_pattern_1 = (\n", "[drive-audit]\nregex_pattern_1 = x\n"]
)
def test_a_configuration_that_is_no_good_is_refused(tmp_path, text):
    conf = tmp_path / "drive-audit.conf"
    conf.write_text(text)
    with pytest.raises(ConfigError):
        drive_audit.read_conf(str(conf))
    assert drive_audit.main([str(conf)]) == 1
    assert drive_audit.main([]) == 1
    assert drive_audit.main([str(tmp_path / "nosuch")]) == 1

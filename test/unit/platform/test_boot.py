"""The kernel's run is known, or it is said that it is not."""

import time

from swift.platform.disk import Boot, Disk, read_boot


def test_this_machine_tells_its_run_and_when_it_began():
    boot = Disk().boot()
    assert boot == read_boot()
    assert boot == Boot() or 0 < boot.began_s <= time.time() + 1


def test_a_machine_that_does_not_tell_has_no_run(tmp_path):
    assert read_boot(str(tmp_path / "no"), str(tmp_path / "no")) == Boot()
    (tmp_path / "id").write_text("abc\n")
    (tmp_path / "stat").write_text("cpu 1 2\n")
    assert read_boot(str(tmp_path / "id"), str(tmp_path / "stat")) == Boot()
    (tmp_path / "stat").write_text("cpu 1 2\nbtime 1700000000\n")
    assert read_boot(str(tmp_path / "id"), str(tmp_path / "stat")) == Boot("abc", 1_700_000_000.0)

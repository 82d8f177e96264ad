"""Daemons that cannot share a process are refused with a sentence."""

import subprocess
import sys


def run(*words):
    return subprocess.run(
        [sys.executable, "-m", "swift.aio.daemons", *words], capture_output=True, text=True, check=False
    )


def test_an_unknown_daemon_is_named():
    done = run("object-dancer=/etc/none.conf")
    assert (done.returncode, done.stderr) == (1, "swift-aio daemons: there is no daemon 'object-dancer'\n")


def test_a_daemon_that_forks_workers_is_refused(tmp_path):
    (tmp_path / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = s\n")
    conf = tmp_path / "object.conf"
    conf.write_text(f"[DEFAULT]\nswift_dir = {tmp_path}\n[object-updater]\nupdater_workers = 3\n")
    done = run(f"object-updater={conf}")
    assert done.returncode == 1
    assert "cannot do beside other daemons" in done.stderr
    assert "Traceback" not in done.stderr

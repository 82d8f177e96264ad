"""All daemons of a node in one process: which ones, and what is refused with a sentence."""

import os
import pwd
import subprocess
import sys


def run(*words):
    return subprocess.run(
        [sys.executable, "-m", "swift.cli.daemons", *words], capture_output=True, text=True, check=False
    )


def test_an_unknown_daemon_is_named():
    done = run("object-dancer=/etc/none.conf")
    assert (done.returncode, done.stderr) == (1, "swift-daemons: there is no daemon 'object-dancer'\n")


def test_a_daemon_that_forks_workers_is_refused(tmp_path):
    (tmp_path / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = s\n")
    conf = tmp_path / "object.conf"
    conf.write_text(f"[DEFAULT]\nswift_dir = {tmp_path}\n[object-updater]\nupdater_workers = 3\n")
    done = run(f"object-updater={conf}")
    assert done.returncode == 1
    assert "cannot do beside other daemons" in done.stderr
    assert "Traceback" not in done.stderr


def node(tmp_path, **sections):
    (tmp_path / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = s\n")
    for kind, names in sections.items():
        text = f"[DEFAULT]\nswift_dir = {tmp_path}\n" + "".join(f"[{name}]\n" for name in names)
        (tmp_path / f"{kind}-server.conf").write_text(text)
    return f"--swift-dir={tmp_path}"


def test_those_run_whose_section_is_there_but_for_those_left_out(tmp_path):
    etc = node(tmp_path, account=["account-reaper"], object=["object-updater", "object-auditor"])
    (tmp_path / "object-server").mkdir()
    (tmp_path / "object-server" / "replication.conf").write_text("[object-updater]\n")
    done = run("--test-config", "--except", "object-auditor", etc)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"account-reaper {tmp_path}/account-server.conf",
        f"object-updater {tmp_path}/object-server.conf",
    ]


def test_daemons_of_several_users_are_refused(tmp_path):
    etc = node(tmp_path, account=["account-reaper"], object=["object-updater"])
    with (tmp_path / "object-server.conf").open("a") as file:
        file.write("user = nobody\n")
    done = run("--test-config", etc)
    assert (done.returncode, done.stdout) == (1, "")
    assert "name several users (nobody, swift)" in done.stderr


def test_the_daemon_that_cannot_be_prepared_is_named(tmp_path):
    done = run("--test-config", node(tmp_path, object=["object-updater]\ninterval = soon\n[x"]))
    assert done.returncode == 1
    assert done.stderr.startswith("swift-daemons: object-updater: ")
    assert "Traceback" not in done.stderr


def test_the_others_run_beside_a_daemon_that_cannot(tmp_path):
    user = pwd.getpwuid(os.geteuid()).pw_name
    paths = f"user = {user}\ndevices = {tmp_path}\nrecon_cache_path = {tmp_path}\n"
    etc = node(tmp_path, account=[], object=["object-updater]\ninterval = soon\n[x"])
    (tmp_path / "account-server.conf").write_text(
        f"[DEFAULT]\nswift_dir = {tmp_path}\n{paths}[account-auditor]\ninterval = 3600\n"
    )
    words = [sys.executable, "-m", "swift.cli.daemons", "-v", etc]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as running:
        lines = []
        for line in running.stderr:
            lines.append(line)
            if "account-auditor: Starting" in line:
                running.terminate()
    assert running.returncode == 0
    assert any(line.startswith("swift-daemons: object-updater: ") for line in lines)


def test_a_node_without_daemons_and_an_unknown_one_left_out_are_errors(tmp_path):
    etc = node(tmp_path, account=[])
    done = run(etc)
    assert (done.returncode, done.stderr) == (
        1,
        f"swift-daemons: no file in {tmp_path} has the section of a daemon\n",
    )
    assert run("--except", "object-dancer", etc).returncode == 1
    etc = node(tmp_path, account=["account-reaper"])
    assert "has the section of another daemon" in run("--except", "account-reaper", etc).stderr

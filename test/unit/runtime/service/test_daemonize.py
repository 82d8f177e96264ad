"""Console scripts of daemons: what they accept, what they say about bad input."""

import json
import subprocess
import sys

import pytest


@pytest.fixture
def conf(tmp_path):
    """A node without devices' content; the file's text can be appended to."""
    for name in ("srv/sda", "recon"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = s\n")
    path = tmp_path / "server.conf"
    path.write_text(
        f"[DEFAULT]\nswift_dir = {tmp_path}\ndevices = {tmp_path}/srv\nmount_check = false\n"
        f"recon_cache_path = {tmp_path}/recon\nuser = root\n\n"
    )
    return path


def run(module, *args):
    """The script in a process of its own, whose standard library it makes cooperative."""
    command = [sys.executable, "-m", "swift.cli.daemon", module.replace("_", "-"), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


DAEMONS = {
    name: f"swift-{name.replace('_', '-')}"
    for name in (
        "object_replicator",
        "object_reconstructor",
        "object_updater",
        "container_updater",
        "container_auditor",
        "container_reconciler",
        "container_sharder",
        "container_sync",
        "account_auditor",
        "account_reaper",
        "s3_lifecycle",
        "s3_notifier",
    )
}


@pytest.mark.long
@pytest.mark.parametrize(("module", "command"), DAEMONS.items(), ids=DAEMONS.values())
def test_a_missing_configuration_is_said_in_a_sentence(module, command, tmp_path):
    for args, words in (((), "missing config path argument"), (("none.conf",), "unable to locate none.conf")):
        done = run(module, *args)
        assert done.returncode == 1
        assert done.stdout.startswith(f"usage: {command}")
        assert done.stdout.endswith(f"Error: {words}\n")


@pytest.mark.parametrize(("module", "command"), DAEMONS.items(), ids=DAEMONS.values())
def test_help_shows_an_example(module, command):
    done = run(module, "--help")
    assert done.returncode == 0
    assert f"example: {command} /etc/swift/" in done.stdout


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("interval = soon", "option interval must be a number"),
        ("concurrency = 0", "option concurrency must be a whole number of at least 1"),
    ],
)
def test_a_bad_value_is_refused_by_name(conf, section, words):
    conf.write_text(conf.read_text() + f"[object-updater]\n{section}\n")
    done = run("object_updater", conf, "once")
    assert done.returncode == 1
    assert words in done.stderr
    assert "[object-updater]" in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_a_hash_secret_nothing_starts(conf):
    (conf.parent / "swift.conf").write_text("[swift-hash]\n")
    done = run("object_updater", conf, "once")
    assert done.returncode == 1
    assert "swift_hash_path_suffix" in done.stderr


@pytest.mark.parametrize("options", [("once", "verbose"), ("--once", "-v")])
def test_once_does_a_pass_and_ends(conf, options):
    conf.write_text(conf.read_text() + "[object-updater]\nconcurency = 3\n")
    done = run("object_updater", conf, *options)
    assert done.returncode == 0
    # Each begins with its time.
    lines = [line.partition(" ")[2] for line in done.stderr.splitlines()]
    assert any("[object-updater]: unknown option concurency" in line for line in lines)
    assert any(line.startswith("object-updater: Starting ") for line in lines)
    # Nobody made a ring: an error in a sentence, and the pass goes on to the end.
    assert any("ERROR cannot go on with sda: " in line and "container.ring.gz" in line for line in lines)
    assert lines[-1].startswith("object-updater: Exited ")
    assert "Traceback" not in done.stderr
    assert (conf.parent / "recon/object.recon").exists()


def test_workers_in_processes_do_the_same(conf):
    conf.write_text(conf.read_text() + "[object-updater]\nupdater_workers = 4\n")
    done = run("object_updater", conf, "once", "verbose")
    assert done.returncode == 0
    assert "ERROR cannot go on with sda: " in done.stderr
    assert (conf.parent / "recon/object-updater.prom").read_text().count('event="errors"} 1') == 1


def test_an_auditor_run_by_hand_says_what_it_did(conf):
    done = run("container_auditor", conf, "once", "verbose")
    assert done.returncode == 0, done.stderr
    facts = json.loads((conf.parent / "recon" / "container.recon").read_text())
    assert (facts["container_audits_passed"], facts["container_audits_failed"]) == (0, 0)


def test_a_damaged_ring_file_is_no_good_configuration(conf):
    conf.write_text(conf.read_text() + "[object-updater]\n")
    assert run("object_updater", conf, "--test-config").returncode == 0
    (conf.parent / "object.ring.gz").write_bytes(b"not a ring")
    done = run("object_updater", conf, "--test-config")
    assert done.returncode == 1
    assert "object.ring.gz cannot be used" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("module", "words", "told"),
    [
        ("object_replicator", ["onec"], "onec is none of once, verbose; did you mean once?"),
        ("object_replicator", ["--onec"], "unrecognized arguments: --onec; did you mean --once?"),
        ("object_auditor", ["once", "--devices=sdz"], "there is no device sdz among sda; did you mean sda?"),
        ("object_auditor", ["once", "--policies=9"], "there is no policy 9; policies: 0 (Policy-0)"),
    ],
)
def test_words_that_are_not_understood_are_refused_with_the_nearest(conf, module, words, told):
    done = run(module, conf, *words)
    assert done.returncode and told in done.stderr, done.stderr


def test_the_configuration_of_another_server_is_refused(conf):
    conf.write_text(
        conf.read_text()
        + "[pipeline:main]\npipeline = object-server\n[app:object-server]\nuse = egg:swift#object\n"
    )
    done = run("container_sharder", conf, "once")
    assert done.returncode == 1
    assert "is the configuration of the object-server; name that of the container-server" in done.stderr
    words = [sys.executable, "-m", "swift.cli.account_server", str(conf)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "is the configuration of the object-server, not of the account-server" in done.stderr


@pytest.mark.long
def test_a_check_tells_what_is_not_used_and_what_this_machine_lacks(conf, tmp_path):
    text = conf.read_text() + "[object-updater]\nconcurency = 1\ninterval = 5\ninterval = 6\n"
    conf.write_text(text)
    done = run("object_updater", conf, "--test-config")
    assert done.returncode == 0
    assert (
        "warning: " in done.stderr and "unknown option concurency; did you mean concurrency?" in done.stderr
    )
    assert "[object-updater]: option interval stands in lines " in done.stderr
    conf.write_text(text.replace("= root", "= roott"))
    done = run("object_updater", conf, "--test-config")
    assert done.returncode == 1
    conf.write_text(text.replace(f"{tmp_path}/srv", f"{tmp_path}/none"))
    done = run("object_updater", conf, "--test-config")
    assert done.returncode == 1 and f"cannot write to {tmp_path}/none: No such file" in done.stderr

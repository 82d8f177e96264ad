"""swift-aio: what it refuses before anything is made, and what it says of clusters that do not run."""

import fcntl
import json
import shlex
import sys

import pytest

from swift.aio.make import create_cluster
from swift.aio.plan import new_plan, saved_plan
from swift.base.errors import ConfigError
from swift.cli.aio import follow_start, main, make_parser, plans_from_args, welcome
from swift.ring.ringfile import load_table
from swift.ring.view import RingView
from test.support.processes import free_ports


@pytest.fixture
def run(capsys):
    def call(*words):
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def data(tmp_path):
    """A cluster that was made and does not run."""
    create_cluster(new_plan(tmp_path / "data", nodes=1, replicas=1, part_power=2))
    return tmp_path / "data"


@pytest.mark.parametrize("command", ["status", "stop", "clean"])
def test_where_no_cluster_is_every_command_says_how_to_make_one(run, tmp_path, command):
    code, _out, err = run(command, tmp_path / "none")
    assert code == 1 and err.endswith(f"create one with: swift-aio start {tmp_path}/none\n")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 99}', '{"version": 1}', "[" * 100_000])
def test_a_plan_that_cannot_be_read_is_one_line_and_stays(run, data, content):
    (data / "aio.json").write_text(content)
    for command in ("status", "stop", "clean", "start"):
        code, _out, err = run(command, data)
        assert code == 1 and err.startswith("swift-aio: ") and err.count("\n") == 1
    assert (data / "aio.json").read_text() == content


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--nodes", "0"], "--nodes must be at least 1"),
        (["--disks", "99"], "--disks must be at most"),
        (["--nodes", "2", "--replicas", "3"], "3 replicas need at least as many devices"),
        (["--ip", "203.0.113.77"], "is not an address of this machine"),
        (["--ip", "\u20ac"], "is not an address of this machine"),
        (["--base-port", "65000", "--nodes", "60"], "choose a lower --base-port"),
        (["--port", "11311"], "would both listen on port 11311"),
        (["--port", "6200"], "proxy and metrics of proxy would both listen on port 6200"),
        (["--ec", "x"], "an erasure code is K+M"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_made(run, tmp_path, words, text):
    code, _out, err = run("start", tmp_path / "new", *words)
    assert code == 1 and text in err and err.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_a_cluster_on_xfs_is_not_made_where_it_cannot_be_mounted(run, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _out, err = run("start", tmp_path / "new", "--xfs")
    assert code == 1 and "--xfs needs " in err and err.count("\n") == 1
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("port", ["0", "65536", "-1", "x", "\u00b2"])
def test_a_port_is_a_port(tmp_path, port, capsys):
    with pytest.raises(SystemExit):
        main(["start", str(tmp_path / "new"), f"--port={port}"])
    assert "is not a port" in capsys.readouterr().err


def test_a_directory_with_something_else_is_left_alone(run, tmp_path):
    (tmp_path / "precious").write_text("x")
    code, _out, err = run("start", tmp_path)
    assert code == 1 and "is not empty and not a cluster" in err
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_what_is_fixed_when_a_cluster_is_made_cannot_be_changed(run, data):
    code, _out, err = run("start", data, "--nodes", 2, "--replicas", 2)
    assert code == 1 and "other values of --nodes, --replicas" in err
    # The rings name the address of the storage servers, which is on loopback as well.
    code, _out, err = run("start", data, "--ip", "127.0.0.9")
    assert code == 1 and "other values of --ip" in err


def test_the_proxy_of_a_stopped_cluster_may_get_another_address(data):
    old, new = plans_from_args(make_parser().parse_args(["start", "--ip", "0.0.0.0", str(data)]))
    assert (old.ip, new.ip, new.storage_ip) == ("127.0.0.1", "0.0.0.0", "127.0.0.1")


def test_an_interrupted_start_ends_what_it_started(data, capsys):
    def words():
        yield "progress 1/14 cache is up"
        raise KeyboardInterrupt

    ended = []
    assert follow_start(saved_plan(data), words(), lambda: ended.append(True)) == 130
    assert ended == [True] and "its processes are stopped" in capsys.readouterr().err


def test_a_cluster_that_does_not_run_says_so(run, data):
    assert run("status", data)[:2] == (3, f"not running: {data}\n")
    code, out, _err = run("status", data, "--format", "json")
    told = json.loads(out)
    assert code == 3 and (told["running"], told["supervisor"], told["processes"]) == (False, None, [])
    assert told["cluster"]["endpoint"] == "http://127.0.0.1:8080/v1/AUTH_test"
    assert run("stop", data)[:2] == (0, "not running\n")


def test_one_whose_supervisor_has_not_yet_said_its_pid_is_not_taken_for_stopped(run, data):
    with open(data / "run" / "aio.pid", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        code, out, err = run("stop", data)
        assert (code, out) == (1, "") and "just been started" in err
        assert run("clean", data, "--yes")[0] == 1
        assert (data / "aio.json").exists()


def test_nothing_is_removed_unless_somebody_agrees(run, data):
    code, _out, err = run("clean", data)
    assert code == 1 and "add --yes" in err and (data / "aio.json").exists()
    (data / "photo.jpg").write_text("x")
    code, _out, err = run("clean", data, "--yes")
    assert code == 1 and "photo.jpg" in err and (data / "node1").exists()
    (data / "photo.jpg").unlink()
    assert run("clean", data, "--yes")[:2] == (0, f"removed {data}\n")
    assert not data.exists()


def test_a_port_that_another_program_has_stops_the_start_before_anything_is_made(run, tmp_path):
    import socket

    port, cache_port = free_ports(2)
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", port))
        sock.listen()
        code, _out, err = run("start", tmp_path / "new", "--port", port, "--cache-port", cache_port)
    assert code == 1 and "--port " in err and not (tmp_path / "new").exists()


def test_the_welcome_tells_of_devices_not_of_nodes(tmp_path):
    plan = new_plan(tmp_path, nodes=2, disks=3, ec="4+2")
    assert "is up: 6 devices, 3 replicas, or 4+2 erasure coded." in welcome(plan)
    assert "is up: 1 device, 1 replica." in welcome(new_plan(tmp_path, nodes=1, replicas=1))


def try_lines(text):
    return [shlex.split(line) for line in text.partition("Try next:\n")[2].splitlines()]


def test_the_lines_to_try_are_few_can_be_pasted_and_name_what_is_installed(tmp_path, monkeypatch):
    plan = new_plan(tmp_path / "a b", key="secret")
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    lines = try_lines(welcome(plan))
    assert [words[0] for words in lines] == ["curl", "curl", sys.executable, "swift-aio"]
    assert lines[-1] == ["swift-aio", "stop", str(tmp_path / "a b")]
    for name in ("swift", "rclone"):
        (programs / name).write_text("")
        (programs / name).chmod(0o755)
    lines = try_lines(welcome(plan))
    assert [words[0] for words in lines] == ["swift", "swift", "rclone", "swift-aio"]
    assert lines[0][1:] == ["-A", plan.auth_url, "-U", "test:tester", "-K", "secret", "stat"]


def test_a_cluster_on_all_addresses_names_one_that_others_can_use_and_has_a_key_of_its_own(tmp_path):
    args = make_parser().parse_args(["start", str(tmp_path / "one"), "--ip", "0.0.0.0"])
    keys = {plans_from_args(args)[1].key for _ in range(2)}
    assert len(keys) == 2 and min(map(len, keys)) >= 20
    plan = plans_from_args(args)[1]
    assert "0.0.0.0" not in welcome(plan)
    create_cluster(plan)
    for conf in (tmp_path / "one" / "etc").rglob("*.conf"):
        lines = [line for line in conf.read_text().splitlines() if "_ip = " in line or "servers = " in line]
        for line in lines:
            is_proxy = conf.name == "proxy-server.conf" and line.startswith("bind_ip")
            assert ("0.0.0.0" if is_proxy else "127.0.0.1") in line, (conf, line)
    view = RingView(load_table(str(tmp_path / "one/etc/object.ring.gz")))
    assert {device.ip for device in view.devices} == {"127.0.0.1"}
    assert oct((tmp_path / "one/aio.json").stat().st_mode)[-3:] == "600"
    assert "testing" not in (tmp_path / "one/etc/proxy-server.conf").read_text()
    assert " = admin" not in (tmp_path / "one/etc/proxy-server.conf").read_text()


def test_logins_come_from_the_environment_of_containers(tmp_path, monkeypatch):
    monkeypatch.setenv("SWIFT_USER", "demo:me")
    monkeypatch.setenv("SWIFT_KEY", "secret")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA_1")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3/secret")
    args = make_parser().parse_args(["start", str(tmp_path / "one"), "--from-environment", "--tempauth"])
    plan = plans_from_args(args)[1]
    create_cluster(plan)
    conf = (tmp_path / "one/etc/proxy-server.conf").read_text()
    assert "user_demo_me = secret .admin\n" in conf and "s3_key_AKIA_1 = demo:me s3/secret\n" in conf
    assert "reseller_admin" not in conf, "nothing that follows from the key has more rights"
    assert "access key AKIA_1" in welcome(plan) and "s3/secret" not in welcome(plan)
    assert "secret" not in welcome(plan).replace("secret key", "")
    assert plans_from_args(args) == (plan, plan), "a later start finds the same cluster"
    without = make_parser().parse_args(["start", str(tmp_path / "two")])
    assert plans_from_args(without)[1].user == "test:tester"


def test_users_of_a_new_cluster_are_in_it(tmp_path):
    args = make_parser().parse_args(["start", str(tmp_path / "one"), "--key", "very-secret"])
    plan = plans_from_args(args)[1]
    create_cluster(plan)
    conf = (tmp_path / "one/etc/proxy-server.conf").read_text()
    assert "[filter:swiftauth]" in conf
    assert "tempauth" not in conf
    assert "very-secret" not in conf
    assert plan.key_file.stat().st_mode & 0o777 == 0o600
    text = (tmp_path / "one/aio.json").read_text().replace('"tempauth": false', '"tempauth": true')
    (tmp_path / "one/aio.json").write_text(text)
    assert plans_from_args(args)[1].tempauth, "an older cluster keeps its users"


@pytest.mark.parametrize(
    ("choices", "text"),
    [
        ({"user": "demo"}, "--user is ACCOUNT:NAME"),
        ({"user": "de mo:me"}, "--user is ACCOUNT:NAME"),
        ({"user": "de_mo:me"}, "--user is ACCOUNT:NAME"),
        ({"key": "a b"}, "--key must not"),
        ({"access_key": "a"}, "given together"),
        ({"access_key": "a b", "secret_key": "c"}, "must not have spaces"),
        ({"access_key": "a:b", "secret_key": "c"}, "colons"),
        ({"access_key": "a", "secret_key": " "}, "given together"),
        ({"access_key": "a", "secret_key": "c\n[x]"}, "printable"),
        ({"access_key": "a", "secret_key": "c\ruser_e_e = x .reseller_admin"}, "printable"),
        ({"key": "x\u00a0.reseller_admin"}, "printable"),
        ({"user": "a=b:c"}, "--user is ACCOUNT:NAME"),
    ],
)
def test_logins_that_no_configuration_file_can_hold_are_refused(tmp_path, choices, text):
    with pytest.raises(ConfigError, match=text):
        new_plan(tmp_path, **choices).check()

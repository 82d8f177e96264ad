"""Which ports a cluster on one machine needs is known before anything is installed."""

import ast
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import swift.aio.ports as ports
from swift.aio.plan import new_plan, plan_listeners
from swift.aio.ports import LOOPBACK
from test.support.processes import free_ports


def test_python_alone_suffices():
    tree = ast.parse(Path(ports.__file__).read_text())
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in modules} <= sys.stdlib_module_names
    done = subprocess.run(
        [sys.executable, "-S", "-m", "swift.aio.ports", "status", "x"],
        cwd=Path(ports.__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_taken_port_is_named_unless_the_cluster_is_there_already(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        words = ["start", str(tmp_path / "new"), "--cache-port", str(port), "--xfs"]
        assert ports.main(words) == 1
        # Another cluster on this machine may have the other ports.
        said = capsys.readouterr().err
        assert said.startswith("swift-aio: port") and f"{port} (cache)" in said and "--cache-port " in said
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "aio.json").touch()
        assert ports.main(words) == 0


def test_all_taken_ports_are_named_at_once_with_free_ones_to_choose(tmp_path):
    proxy, base = free_ports(2)
    rows = [("cache", LOOPBACK, base), ("proxy", LOOPBACK, proxy), ("account-1", LOOPBACK, base + 1)]
    with socket.create_server((LOOPBACK, base)), socket.create_server((LOOPBACK, proxy)):
        text = ports.taken_ports_message(iter(rows))
    assert text.startswith(f"ports {base} (cache), {proxy} (proxy) are taken; choose others, such as --port ")
    words = text.partition("such as ")[2].split()
    assert words[::2] == ["--port", "--cache-port"]
    assert all(ports.port_is_free(LOOPBACK, int(port)) for port in words[1::2])
    assert ports.taken_ports_message(iter(rows[:0])) == ""


def test_many_taken_ports_are_counted():
    with socket.create_server((LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
        text = ports.taken_ports_message((f"object-{n}", LOOPBACK, port) for n in range(5))
    assert f"{port} (object-2) and 2 more are taken" in text


@pytest.mark.parametrize(
    "words", [[], ["status", "x"], ["start"], ["start", "x", "--port", "many"], ["--help"]]
)
def test_what_cannot_be_used_is_left_to_the_command(words):
    assert ports.main(words) == 0


@pytest.mark.parametrize(
    ("ip", "inner"),
    [("127.0.0.1", "127.0.0.1"), ("127.0.0.9", "127.0.0.9"), ("::1", "::1")]
    + [(ip, "127.0.0.1") for ip in ("0.0.0.0", "10.0.0.5", "::", "2001:db8::7")],
)
def test_only_the_proxy_listens_where_others_can_reach_it(tmp_path, ip, inner):
    assert {name: at for name, at, _port in plan_listeners(new_plan(tmp_path, ip=ip)) if at != inner} == (
        {} if ip == inner else {"proxy": ip}
    )

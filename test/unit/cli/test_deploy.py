"""swift-deploy: exit codes, the sample, and what is asked before anything changes."""

import json

import pytest

from swift.cli.deploy import main
from test.support.deploy import INVENTORY, MemoryHosts


@pytest.fixture
def hosts():
    return MemoryHosts()


@pytest.fixture
def inventory(tmp_path):
    path = tmp_path / "cluster.toml"
    path.write_text(INVENTORY)
    return str(path)


def test_the_sample_is_an_inventory_and_is_not_overwritten(tmp_path, capsys, hosts):
    path = str(tmp_path / "new.toml")
    assert main(["init", path]) == 0
    assert main(["plan", path], hosts) == 0
    assert "host three: create /etc/swift/swift.conf" in capsys.readouterr().out
    assert main(["init", path]) == 2
    assert "exists" in capsys.readouterr().err


def test_apply_and_check_tell_what_they_did(inventory, capsys, hosts):
    assert main(["check", inventory], hosts) == 1
    assert main(["apply", inventory, "--yes"], hosts) == 0
    capsys.readouterr()
    assert main(["apply", inventory, "--yes"], hosts) == 0
    assert capsys.readouterr().out.startswith("nothing to do")
    assert main(["check", inventory], hosts) == 0
    hosts.spoil("two", "/etc/swift/swift.conf")
    capsys.readouterr()
    assert main(["check", inventory, "--format", "json"], hosts) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["drift"] == ["host two: /etc/swift/swift.conf differs"]
    assert told["hosts"]["two"]["change"] == ["/etc/swift/swift.conf"]


def test_nothing_changes_without_a_yes(inventory, capsys, hosts):
    assert main(["apply", inventory], hosts) == 2
    assert "give --yes" in capsys.readouterr().err
    assert hosts.calls == []


def test_nothing_changes_while_a_host_is_unreachable(inventory, capsys, hosts):
    hosts.failing = {("inspect", "three")}
    assert main(["apply", inventory, "--yes"], hosts) == 1
    assert "nothing is changed" in capsys.readouterr().err
    assert hosts.calls == []
    assert main(["apply", inventory, "--yes", "--host", "one"], hosts) == 0


def test_a_bad_inventory_is_one_line_and_changes_nothing(tmp_path, inventory, capsys, hosts):
    (tmp_path / "cluster.toml").write_text(INVENTORY.replace("zone = 2", "zone = 'x'"))
    assert main(["apply", inventory, "--yes"], hosts) == 2
    told = capsys.readouterr()
    assert told.out == "" and len(told.err.splitlines()) == 1
    assert told.err.startswith(f"swift-deploy: {inventory}: [[host]] 2 (two): zone must be")
    assert hosts.calls == [] and [path.name for path in tmp_path.iterdir()] == ["cluster.toml"]


def test_a_missing_inventory_is_one_line(tmp_path, capsys):
    assert main(["plan", str(tmp_path / "none.toml")]) == 2
    assert "none.toml" in capsys.readouterr().err

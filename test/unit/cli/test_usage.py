"""swift-usage, in this process: configuration, exit codes, and the line of progress."""

import json

import pytest

from swift.account.broker import AccountBroker
from swift.account.rows import ContainerRow
from swift.base.hashing import PathHasher
from swift.base.timestamp import Timestamp
from swift.cli.usage import main
from swift.db.broker import Engine
from swift.db.files import DatabasePath
from swift.ring.builder import RingBuilder
from test.support.peer import SWIFT_CONF


class Node:
    """An account server with a device and an account on it."""

    def __init__(self, folder):
        self.conf = folder / "account-server.conf"
        (folder / "swift.conf").write_text(SWIFT_CONF)
        builder = RingBuilder(4, 1, 1)
        builder.add_device(region=1, zone=1, ip="127.0.0.1", port=6202, device="sda", weight=1.0)
        builder.rebalance(seed=1)
        builder.write_ring(str(folder / "account.ring.gz"))
        (folder / "node" / "sda").mkdir(parents=True)
        self.write_conf()
        name_hash = PathHasher(b"", b"s").hexdigest("AUTH_a")
        partition = str(int(name_hash[:8], 16) >> 28)
        self.place = DatabasePath(str(folder / "node" / "sda"), "accounts", partition, name_hash)
        broker = AccountBroker(self.place, Engine(), "AUTH_a")
        broker.create(Timestamp(5), created_at=Timestamp(5))
        broker.put_rows([ContainerRow("c", Timestamp(6).internal, "0", 2, 10, storage_policy_index=1)])
        broker.close()

    def write_conf(self, port=6202):
        folder = self.conf.parent
        self.conf.write_text(
            f"[DEFAULT]\nswift_dir = {folder}\ndevices = {folder}/node\nmount_check = false\n"
            f"bind_ip = 127.0.0.1\nbind_port = {port}\n[app:account-server]\nuse = egg:swift#account\n"
        )


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def test_the_usage_of_a_node_is_printed(node, capsys):
    assert main([str(node.conf)]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head == "time,account,policy,objects,bytes"
    assert row.endswith("Z,AUTH_a,silver,2,10")
    assert main([str(node.conf), "--containers", "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["container"], found["bytes"]) == ("c", 10)


def test_what_cannot_be_read_makes_the_output_incomplete(node, capsys):
    with open(node.place.file(), "r+b") as file:
        file.write(b"x" * 4096)
    assert main([str(node.conf)]) == 1
    said = capsys.readouterr()
    assert said.out == "time,account,policy,objects,bytes\n"
    assert node.place.directory in said.err and said.err.endswith("the output is incomplete\n")


def test_a_node_that_has_no_device_in_the_ring_counts_nothing(node, capsys):
    node.write_conf(port=1)
    assert main([str(node.conf)]) == 2
    said = capsys.readouterr()
    assert said.out == "" and "run it on an account server" in said.err
    assert main([str(node.conf), "--all-replicas"]) == 0
    assert "AUTH_a" in capsys.readouterr().out


@pytest.mark.parametrize("away", ["127.0.0.1/sdb", "sda"])
def test_a_device_that_the_ring_does_not_have_is_refused(node, capsys, away):
    assert main([str(node.conf), "--away", away]) == 2
    assert f"no device {away}" in capsys.readouterr().err

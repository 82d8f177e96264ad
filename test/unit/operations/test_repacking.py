"""swift-object-repack on a node: refusals, state, interruption, and the way back."""

from __future__ import annotations

import json
import os
import pwd
import time

import pytest

from swift.base.clock import SystemClock
from swift.cli.object_repack import main
from swift.operations.packed import PackedNode, engine_option
from swift.operations.repacking import PACKED, RepackRefused, check_servers, convert, jobs_of
from swift.platform.devices import Devices
from swift.runtime.service.processes import RunningProcess
from swift.store.packed.repack import Repacker
from swift.store.registry import EngineParts, file_store
from test.contract.test_store import EC, GOLD, HASHER, NOW_S, key_of, put, read, ts


class PackedNodeBench:
    """A node with one device and a policy of each kind."""

    def __init__(self, root):
        self.root = root
        (root / "srv" / "sda").mkdir(parents=True)
        user = pwd.getpwuid(os.geteuid()).pw_name
        self.conf = root / "object-server.conf"
        self.conf.write_text(
            f"[DEFAULT]\ndevices = {root}/srv\nmount_check = false\nswift_dir = {root}\nuser = {user}\n"
            f"[app:object-server]\nuse = egg:swift#object\n"
            f"[packed]\nstate_path = {root}/memory\nobject_max_kb = 2\n"
        )
        self.use("packed")
        self.files = file_store(
            EngineParts(
                devices=Devices(str(root / "srv"), mount_check=False), hasher=HASHER, clock=SystemClock()
            )
        )

    def use(self, engine):
        (self.root / "swift.conf").write_text(
            "[swift-hash]\nswift_hash_path_prefix = p\nswift_hash_path_suffix = s\n"
            "[storage-policy:0]\nname = gold\ndefault = yes\n"
            f"diskfile_module = egg:swift#replication.{engine}\n"
            "[storage-policy:1]\nname = ec\npolicy_type = erasure_coding\n"
            "ec_type = liberasurecode_rs_vand\nec_num_data_fragments = 4\nec_num_parity_fragments = 2\n"
            f"diskfile_module = egg:swift#erasure_coding.{engine}\n"
        )

    def open(self):
        return PackedNode(str(self.conf), lambda _text: None)

    def fill(self, count=10):
        for number in range(count):
            put(self.files, key_of(f"o{number}"), ts(NOW_S), b"x" * (number * 300))


@pytest.fixture
def node(tmp_path):
    return PackedNodeBench(tmp_path)


@pytest.fixture
def say(node, capsys):
    def run(*words, code=0):
        assert main(["--conf", str(node.conf), "--format", "json", *words]) == code
        said = capsys.readouterr()
        if code == 1 and not said.out:
            assert len(said.err.splitlines()) == 1
            return said.err
        return json.loads(said.out)

    return run


def states(say):
    return {row["policy"]: row["state"] for row in say("--status")}


@pytest.mark.long
def test_devices_are_packed_and_made_files_again(node, say):
    node.fill()
    assert states(say) == {"gold": "files", "ec": "files"}
    done = say("--to", "packed")
    assert done["is_done"] and [row["converted"] for row in done["devices"]] == [10, 0]
    (gold, _ec) = say("--status")
    assert (gold["state"], gold["packed"], gold["files"]) == ("packed", 7, 3)
    back = say("--to", "files")
    assert back["is_done"] and engine_option(EC, "fs") in back["next"][0]
    assert states(say) == {"gold": "files", "ec": "files"}
    node.use("fs")
    assert say("--to", "files") == {"removed": ["sda"]}
    assert not (node.root / "srv/sda/packed").exists()
    assert say("--to", "files") == {"removed": []}
    assert [len(read(node.files, key_of(f"o{number}"))) for number in range(10)] == list(range(0, 3000, 300))


def test_the_engine_of_the_policy_must_be_packed(node, say):
    node.use("fs")
    told = say("--to", "packed", code=1)
    assert engine_option(GOLD, "packed") in told and "restart" in told
    assert not (node.root / "srv/sda/packed").exists()


def test_servers_that_are_older_than_swift_conf_must_be_restarted_first(node):
    conf = str(node.conf)
    swift_conf = node.root / "swift.conf"
    os.utime(swift_conf, (time.time() - 60, time.time() - 60))
    before, after, other = (
        RunningProcess(pid, 1, 1, ("/usr/bin/python3", "-m", "swift.cli.object_server", path), age_s)
        for pid, path, age_s in ((7, conf, 90.0), (8, conf, 30.0), (9, f"{conf}.d", 90.0))
    )
    opened = node.open()
    check_servers(opened, [after, other])
    with pytest.raises(RepackRefused, match="pid 7.*restart"):
        check_servers(opened, [before, after, other])
    opened.close()


@pytest.mark.long
def test_a_policy_of_files_beside_a_packed_one_is_reported_as_files(node, say):
    node.fill()
    put(node.files, key_of("archive", EC), ts(NOW_S), b"x", fragment=0)
    text = (node.root / "swift.conf").read_text()
    (node.root / "swift.conf").write_text(text.replace("erasure_coding.packed", "erasure_coding.fs"))
    say("--to", "packed")
    assert states(say) == {"gold": "packed", "ec": "files"}


@pytest.mark.long
def test_volumes_with_objects_are_not_removed(node, say):
    node.fill()
    say("--to", "packed")
    node.use("fs")
    assert "7 packed objects of policy gold" in say("--to", "files", code=1)
    assert (node.root / "srv/sda/packed").exists()


@pytest.mark.long
def test_volumes_that_a_server_has_open_are_not_removed(node, say):
    node.fill()
    say("--to", "packed")
    say("--to", "files")
    server = node.open()
    server.devices.device("sda")
    node.use("fs")
    assert "restart the object server" in say("--to", "files", code=1)
    server.close()
    assert say("--to", "files") == {"removed": ["sda"]}


def test_unknown_devices_and_policies_are_refused(node, say):
    assert "sdz is no mounted device; mounted there: sda" in say("--to", "packed", "--device", "sdz", code=1)
    assert "silver" in say("--to", "packed", "--policy", "silver", code=1)


@pytest.mark.long
def test_a_conversion_that_is_stopped_says_so_and_goes_on_later(node, say):
    node.fill()
    opened = node.open()
    converted = []
    (job,) = jobs_of(opened, PACKED, [], ["gold"])

    def stopped():
        return len(converted) >= 3

    repacker = Repacker(
        opened.devices, job.device, job.policy, pace=converted.append, stopped=stopped, settle_s=0
    )
    assert list(repacker.run(packs=True))[-1].converted == 3
    opened.close()
    assert states(say)["gold"] == "packing"
    assert say("--to", "packed")["is_done"]
    assert states(say)["gold"] == "packed"


def test_a_slow_conversion_ends_at_once_when_it_is_stopped(node):
    node.fill(30)
    opened = node.open()
    begun = []

    def stopped():
        begun.append(1)
        return len(begun) > 10

    jobs = jobs_of(opened, PACKED, [], ["gold"])
    (done,) = convert(opened, jobs, PACKED, rate=0.001, stopped=stopped, tell=lambda *_args: None)
    opened.close()
    assert 0 < done[1].converted < 10 and not done[2]

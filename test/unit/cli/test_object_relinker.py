"""swift-object-relinker: what is left to do on a device, whatever became of the file that says so."""

import json
import time

import pytest

from swift.base.errors import ConfigError
from swift.cli.object_relinker import (
    CLEANUP,
    RELINK,
    FilePace,
    RelinkJob,
    RelinkProgress,
    main,
    make_parser,
    relink_jobs,
)
from swift.compose import cluster_of
from swift.policy.policy import Policy
from swift.ring.builder import RingBuilder
from swift.ring.partpower import increase, prepare_increase
from test.support.peer import SWIFT_CONF, make_rings

POLICY = Policy(1, "silver")


class Notes:
    def __init__(self):
        self.warnings = []

    def warning(self, text):
        self.warnings.append(text)


def job(action=RELINK, power=4):
    return RelinkJob(POLICY, action, power, 5)


def kept(root, content):
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    (root / "relink.objects-1.json").write_bytes(text)
    return str(root)


def test_without_a_file_everything_that_is_there_is_to_be_done(tmp_path):
    progress = RelinkProgress.load(str(tmp_path), job(), ["3", "15", "16"])
    # What is beyond the old power was linked by servers; there is nothing to link there.
    assert progress.state == {"3": False, "15": False}


def test_what_was_done_is_remembered(tmp_path):
    progress = RelinkProgress.load(str(tmp_path), job(), ["3", "7"])
    progress.state["3"] = True
    progress.save()
    again = RelinkProgress.load(str(tmp_path), job(), ["3", "7"])
    assert again.state == {"3": True, "7": False}


def test_partitions_that_came_after_the_relinking_began_were_linked_by_servers(tmp_path):
    path = kept(tmp_path, {"part_power": 4, "next_part_power": 5, "state": {"3": True}})
    assert RelinkProgress.load(path, job(), ["3", "9"]).state == {"3": True, "9": True}


def test_the_cleanup_does_what_the_relinking_did_and_what_came_since(tmp_path):
    path = kept(tmp_path, {"part_power": 4, "next_part_power": 5, "state": {"3": True}})
    progress = RelinkProgress.load(path, job(CLEANUP, power=5), ["3", "9", "20"])
    assert progress.prev_part_power == 4
    assert progress.state == {"3": False, "9": False}


def test_progress_of_another_increase_counts_for_nothing(tmp_path):
    path = kept(tmp_path, {"part_power": 3, "next_part_power": 4, "state": {"3": True}})
    assert RelinkProgress.load(path, job(), ["3"]).state == {"3": False}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"part_pow',
        b"\xff",
        b"[" * 100_000,
        [],
        {"part_power": 4, "next_part_power": 5},
        {"part_power": 4, "next_part_power": 5, "state": ["3"]},
        {"part_power": 4, "next_part_power": 5, "state": {"3": True, "x": False}},
        {"part_power": 4, "next_part_power": 5, "state": {"3": True, "-1": False}},
        {"part_power": 4, "next_part_power": 5, "state": {"3": True, "\u00b2": False}},
        {"part_power": 4, "next_part_power": 5, "state": {"3": True, "9" * 5000: False}},
    ],
)
def test_a_damaged_file_has_everything_done_again(tmp_path, content):
    assert RelinkProgress.load(kept(tmp_path, content), job(), ["3", "9"]).state == {"3": False, "9": False}


@pytest.mark.parametrize("power", ["4", -1, 1 << 40, [], 4.5])
def test_a_power_that_is_none_leaves_no_partition_out(tmp_path, power):
    path = kept(tmp_path, {"part_power": power, "next_part_power": 5, "state": {}})
    progress = RelinkProgress.load(path, job(CLEANUP, power=5), ["3", "31"])
    assert progress.state == {"3": False, "31": False} and progress.prev_part_power is None


def test_without_a_limit_nobody_waits():
    began_s = time.monotonic()
    for per_second in (0.0, -5.0):
        FilePace(per_second).take(1_000_000_000)
    assert time.monotonic() - began_s < 60


@pytest.fixture
def etc(tmp_path):
    (tmp_path / "swift.conf").write_text(SWIFT_CONF)
    make_rings(tmp_path, [("10.0.0.1", 6200, "sda")], replicas=1, names=("object",))
    builder = RingBuilder(4, 1, 0)
    builder.add_device(ip="10.0.0.1", port=6200, device="sda", weight=1, region=1, zone=1, meta="")
    builder.rebalance(seed=1)
    prepare_increase(builder)
    builder.write_ring(str(tmp_path / "object-1.ring.gz"))
    return tmp_path, builder


def found(etc, action, *names):
    cluster = cluster_of({"swift_dir": str(etc)})
    return [
        (j.policy.name, j.part_power, j.next_part_power)
        for j in relink_jobs(action, cluster, names, str(etc), Notes())
    ]


def test_only_policies_whose_power_is_being_increased_have_work(etc):
    root, builder = etc
    assert found(root, RELINK) == [("silver", 4, 5)] == found(root, RELINK, "1", "gold")
    assert found(root, CLEANUP) == []
    increase(builder)
    builder.write_ring(str(root / "object-1.ring.gz"))
    assert found(root, CLEANUP, "grey") == [("silver", 5, 5)]
    assert found(root, RELINK) == []


@pytest.mark.parametrize("name", ["7", "lead", "\u00b2", "-1", ""])
def test_a_policy_that_is_not_there_is_named(etc, name):
    with pytest.raises(ConfigError, match="there is no storage policy"):
        found(etc[0], RELINK, name)


def test_a_policy_without_a_ring_is_left_out_unless_it_was_named(etc, capsys):
    root, _builder = etc
    (root / "object.ring.gz").unlink()
    assert found(root, RELINK) == [("silver", 4, 5)]
    assert main(["relink", "--swift-dir", str(root), "--policy", "gold"]) == 1
    assert "object.ring.gz" in capsys.readouterr().err


def test_nothing_to_do_is_an_exit_status_of_its_own(etc):
    assert main(["cleanup", "--swift-dir", str(etc[0])]) == 2


@pytest.mark.parametrize("workers", ["-1", "two", "\u00b2", ""])
def test_workers_are_a_number_or_auto(workers):
    with pytest.raises(SystemExit):
        make_parser().parse_args(["relink", f"--workers={workers}"])
    assert make_parser().parse_args(["relink", "--workers=AUTO"]).workers == 0


def test_a_packed_policy_needs_the_file_that_names_its_index(tmp_path, capsys):
    (tmp_path / "swift.conf").write_text(
        "[swift-hash]\nswift_hash_path_suffix = s\n[storage-policy:0]\nname = gold\ndefault = yes\n"
        "diskfile_module = egg:swift#replication.packed\n"
    )
    builder = RingBuilder(3, 1, 0)
    builder.add_device(ip="127.0.0.1", port=6200, device="sda", weight=1, region=1, zone=1, meta="")
    builder.rebalance(seed=1)
    prepare_increase(builder)
    builder.write_ring(f"{tmp_path}/object.ring.gz")
    words = [RELINK, "--swift-dir", str(tmp_path), "--devices", str(tmp_path), "--skip-mount-check"]
    assert main(words) == 1
    assert "gold has the packed engine: name the configuration file" in capsys.readouterr().err

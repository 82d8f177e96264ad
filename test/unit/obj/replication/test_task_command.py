"""The commands of object replicator and reconstructor on a node, with and without worker processes."""

import json
import os
import pwd
from array import array

import pytest

from swift.ring.ringfile import save_table
from swift.ring.table import RingTable
from test.support.peer import record, run, with_ec
from test.support.processes import free_ports

pytestmark = pytest.mark.process


@pytest.fixture
def node(tmp_path):
    """Three devices of one node whose servers do not run, with a partition each of both policies."""
    [port] = free_ports(1)
    records = tuple(record(n, port, f"d{n}") for n in range(3))
    rows = tuple(array("H", [n] * 4) for n in range(3))
    for name in ("object", "object-1"):
        table = RingTable(records=records, rows=rows, part_shift=30)
        save_table(table, str(tmp_path / f"{name}.ring.gz"))
    for n in range(3):
        for objects in ("objects", "objects-1"):
            place = tmp_path / f"srv/d{n}/{objects}/1/abc" / ("0" * 29 + "abc")
            place.mkdir(parents=True)
            (place / "9000000000.00000.ts").touch()
    (tmp_path / "swift.conf").write_text(with_ec(2, 1))

    def run_once(module, options, *words):
        section = module.replace("_", "-")
        conf = tmp_path / "object-server.conf"
        conf.write_text(
            f"[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = {port}\nswift_dir = {tmp_path}\n"
            f"user = {pwd.getpwuid(os.geteuid()).pw_name}\ndevices = {tmp_path}/srv\nmount_check = false\n"
            f"recon_cache_path = {tmp_path}\n[{section}]\n{options}\n"
        )
        done = run(f"swift-{section}", conf, "-o", "-v", *words)
        assert "Traceback" not in done.stderr + done.stdout
        recon = tmp_path / "object.recon"
        return done, json.loads(recon.read_text()) if recon.exists() else {}

    return run_once


@pytest.mark.parametrize("workers", [0, 2])
def test_a_replicator_counts_what_it_could_not_do_by_device(node, workers):
    done, facts = node("object_replicator", f"replicator_workers = {workers}")
    assert done.returncode == 0, done.stderr
    stats = facts["replication_stats"]
    assert (stats["attempted"], stats["failure"]) == (3, 6)
    assert stats["failure_nodes"]["127.0.0.1"] == {"d0": 2, "d1": 2, "d2": 2}
    disks = facts.get("object_replication_per_disk", {})
    assert sorted(disks) == (["d0", "d1", "d2"] if workers else [])


@pytest.mark.parametrize("workers", [0, 2])
def test_a_reconstructor_tells_when_it_was_through(node, workers):
    done, facts = node("object_reconstructor", f"reconstructor_workers = {workers}")
    assert done.returncode == 0, done.stderr
    assert facts["object_reconstruction_last"] > 0
    assert sorted(facts.get("object_reconstruction_per_disk", {})) == (["d0", "d1", "d2"] if workers else [])


@pytest.mark.parametrize("module", ["object_replicator", "object_reconstructor"])
def test_a_part_of_the_work_tells_recon_nothing(node, module):
    done, facts = node(module, "", "-d", "d1", "-p", "1", "-i", "0,1")
    assert (done.returncode, facts) == (0, {})
    assert "d1: 1 done" in done.stderr
    assert "d0: 1 done" not in done.stderr


@pytest.mark.parametrize(
    ("module", "options", "words"),
    [
        ("object_replicator", "sync_method = carrier", "sync_method"),
        ("object_replicator", "rsync_module = {nonsense}", "nonsense"),
        ("object_replicator", "handoff_delete = some", "handoff_delete"),
        ("object_reconstructor", "request_node_count = 2 * nodes", "request_node_count"),
        ("object_reconstructor", "rebuild_handoff_node_count = -2", "rebuild_handoff_node_count"),
    ],
)
def test_a_bad_option_is_one_line(node, module, options, words):
    done, _facts = node(module, options)
    assert done.returncode == 1
    assert words in done.stderr
    assert done.stderr.count("\n") == 1

"""Clusters that benches compare: made alike, and gone with what they stored."""

import pytest

from swift.base.errors import ConfigError
from tools.bench.contestants import LAYOUTS, family_of, install_peer, make_contestants, usage_of
from tools.bench.wrk import Load


@pytest.fixture
def pair(tmp_path):
    return make_contestants(tmp_path, tmp_path / "peer" / "bin", "per-device")


def test_both_have_the_same_layout_and_no_port_in_common(pair):
    ours, theirs = (contestant.plan for contestant in pair)
    assert (ours.nodes, ours.disks, ours.ec) == (theirs.nodes, theirs.disks, theirs.ec)
    assert not {process.port for process in ours.servers()} & {process.port for process in theirs.servers()}
    assert ours.root != theirs.root


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_an_earlier_run_left_is_not_measured(tmp_path, layout):
    (tmp_path / "ours" / "old").mkdir(parents=True)
    make_contestants(tmp_path, tmp_path / "bin", layout)
    assert not (tmp_path / "ours").exists()


def test_what_was_stored_goes_with_the_cluster_and_logs_stay(pair):
    ours, _ = pair
    ours.prepare()
    (ours.plan.root / "images").mkdir()
    assert all(path.is_dir() for path in ours.plan.device_paths())
    ours.stop()
    left = {path.name for path in ours.plan.root.iterdir()}
    assert "images" not in left and not left & {f"node{number}" for number in ours.plan.node_numbers()}
    assert {ours.plan.logs.name, ours.plan.etc.name} <= left


def test_each_is_started_by_programs_of_its_own(pair, tmp_path):
    for contestant, program in zip(
        pair, ("swift.cli.object_server", f"{tmp_path}/peer/bin/swift-object-server"), strict=True
    ):
        contestant.prepare()
        conf = str(contestant.plan.etc / "object-server" / "1.conf")
        assert program in " ".join(contestant._program("object", conf))


def test_a_load_that_deletes_ends_with_what_was_written(pair):
    ours, _ = pair
    put = Load("PUT", "/v1/a/c/o", 1, 1.0, order="counting")
    delete = Load("DELETE", "/v1/a/c/o", 1, 1.0, order="counting")
    assert ours.bounded(delete).count == 2
    ours.note(put, 40)
    assert ours.bounded(delete).count == 40
    assert ours.bounded(put) is put


def test_a_peer_that_cannot_be_installed_is_one_sentence(tmp_path):
    (tmp_path / "venv").write_text("in the way")
    messages = []
    with pytest.raises(ConfigError, match="failed"):
        install_peer(tmp_path / "venv", messages.append)
    assert len(messages) == 1


def test_a_process_that_has_ended_has_used_nothing():
    assert usage_of(2**22 + 1) == (0.0, 0) and family_of(2**22 + 1) == [2**22 + 1]

"""The installed peer opens what we write (needs SWIFT_PEER_BIN, the directory of its commands)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from swift.cli import ring_builder, ring_composer
from swift.ring.builder import RingBuilder
from test.support.peer import PEER_BIN, environment

DATA = Path(__file__).parent.parent / "data" / "rings"
BUILDERS = ["a", "b", "c", "d-ec6", "e2-increased", "f", "h1", "h2", "i"]

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(
        not PEER_BIN, reason="SWIFT_PEER_BIN does not name the directory of the peer's commands"
    ),
]


def peer(folder: Path, *words: str, command: str = "swift-ring-builder") -> tuple[int, str]:
    """Exit code and stdout of a command of the peer."""
    done = subprocess.run(
        [os.path.join(PEER_BIN, command), *words],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("name", BUILDERS)
def test_the_peer_reads_a_saved_builder_like_its_own(tmp_path, name):
    (tmp_path / "x.builder").write_bytes((DATA / f"{name}.builder").read_bytes())
    before = peer(tmp_path, "x.builder"), peer(tmp_path, "x.builder", "dispersion", "-v")
    RingBuilder.load(str(tmp_path / "x.builder")).save(str(tmp_path / "x.builder"))
    assert (peer(tmp_path, "x.builder"), peer(tmp_path, "x.builder", "dispersion", "-v")) == before
    assert peer(tmp_path, "x.builder", "validate") == (0, "")


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("name", BUILDERS)
def test_the_peer_finds_our_rings_up_to_date(tmp_path, name, version):
    builder = RingBuilder.load(str(DATA / f"{name}.builder"))
    builder.save(str(tmp_path / "x.builder"))
    builder.write_ring(str(tmp_path / "x.ring.gz"), format_version=version)
    assert "Ring file x.ring.gz is up-to-date" in peer(tmp_path, "x.builder")[1]
    code, out = peer(tmp_path, "x.ring.gz", "version")
    assert (code, f"Serialization version: {version} " in out) == (0, True)


@pytest.mark.parametrize("name", ["a", "c", "d-ec6", "i"])
def test_builders_can_be_rebalanced_by_turns(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.builder").write_bytes((DATA / f"{name}.builder").read_bytes())
    for turn in range(2):
        words = ["add", f"r1z7-10.7.7.{turn}:6200/sda", "100"]
        assert ring_builder.main(["x.builder", *words]) == 0
        assert ring_builder.main(["x.builder", "rebalance", "--seed", "1", "--format-version", "2"]) in (0, 1)
        assert peer(tmp_path, "x.builder", "validate") == (0, "")
        assert peer(tmp_path, "x.builder", "pretend_min_part_hours_passed") == (0, "")
        assert peer(tmp_path, "x.builder", "set_weight", "z7", "50", "--yes")[0] == 0
        assert peer(tmp_path, "x.builder", "rebalance", "--seed", "1", "--format-version", "1")[0] in (0, 1)
        builder = RingBuilder.load("x.builder")
        builder.validate()
        graph = builder.dispersion_graph, builder.dispersion
        builder.measure_dispersion()
        assert (builder.dispersion_graph, builder.dispersion) == graph
        assert ring_builder.main(["x.builder", "pretend_min_part_hours_passed"]) == 0


def test_the_peer_goes_on_with_our_composite_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("h1", "h2"):
        builder = RingBuilder.load(str(DATA / f"{name}.builder"))
        builder.rebalance(seed=1)
        builder.save(f"{name}.builder")
    argv = ["c", "compose", "h1.builder", "h2.builder", "--output", "object.ring.gz"]
    assert ring_composer.main(argv) == 0
    ours = (tmp_path / "object.ring.gz").read_bytes()
    again = ("c", "compose", "--output", "object.ring.gz", "--force")
    assert peer(tmp_path, *again, command="swift-ring-composer")[0] == 0
    assert (tmp_path / "object.ring.gz").read_bytes() == ours
    assert peer(tmp_path, "c", "show", command="swift-ring-composer")[1].endswith('"version": 2\n}\n')

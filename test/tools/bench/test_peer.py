"""How the benchmarks run the peer's programs (bench/peer.py)."""

import os
import subprocess
from pathlib import Path

import pytest

from swift.base.errors import ConfigError
from test.support.peer import can_hide_etc
from tools.bench.peer import OwnEtc


@pytest.fixture
def configuration(tmp_path):
    folder = tmp_path / "etc"
    folder.mkdir()
    (folder / "swift.conf").write_text("[swift-hash]\n")
    return folder


@pytest.mark.skipif(not can_hide_etc(), reason="needs root and unshare(1) for an /etc of its own")
def test_a_program_reads_the_clusters_files_in_etc_swift_and_nobody_else_does(tmp_path, configuration):
    command = OwnEtc(tmp_path, configuration).command(Path("/bin/cat"), "/etc/swift/swift.conf")
    assert subprocess.check_output(command, text=True) == "[swift-hash]\n"
    outside = Path("/etc/swift/swift.conf")
    assert not outside.exists() or outside.read_text() != "[swift-hash]\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may")
def test_without_root_it_says_what_is_missing(tmp_path, configuration):
    with pytest.raises(ConfigError, match="needs root"):
        OwnEtc(tmp_path, configuration).command(Path("/bin/cat"))

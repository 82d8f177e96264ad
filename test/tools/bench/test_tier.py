"""The bench of the cache tier: what it says where it cannot measure, and how it tells what it measured."""

import os

import pytest

from swift.config.files import read_sections
from swift.store.tier.conf import settings_of
from tools.bench.tier import MeasuredWork, main, table
from tools.bench.tiersite import AROUND, TierSite, write_etc


def test_the_peer_needs_its_commands(capsys, tmp_path):
    assert main(["--root", str(tmp_path), "--only", "peer"]) == 1
    assert "--peer" in capsys.readouterr().err


def test_without_root_it_says_so(capsys, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may")
    assert main(["--root", str(tmp_path)]) == 1
    assert "root" in capsys.readouterr().err


def test_contestants_differ_in_their_tier_and_in_nothing_else(tmp_path):
    site = TierSite(tmp_path, 16200, None, lambda: None)
    around = f"metadata+hashes{AROUND}"
    write_etc(site, {"untiered": 0, "metadata": 0, around: 2})
    assert not settings_of(str(site.conf("untiered"))).enabled
    assert settings_of(str(site.conf("metadata"))).classes == ("metadata",)
    found = settings_of(str(site.conf(around)))
    assert (found.classes, found.metadata_mode) == (("metadata", "hashes"), "write-around")
    apps = [read_sections(str(site.conf(name)))["app:object-server"] for name in ("untiered", "metadata")]
    assert apps[0] == apps[1]


def test_each_figure_stands_beside_that_of_the_untiered_store():
    rows = [
        MeasuredWork("untiered", "HEAD", 64 << 20, requests=10, p50_ms=20.0, disk_reads=50, disk_writes=20),
        MeasuredWork("metadata", "HEAD", 64 << 20, requests=10, p50_ms=1.0, disk_reads=0),
        MeasuredWork("metadata", "GET 64 KiB", 64 << 20, requests=10, p50_ms=1.0),
    ]
    lines = list(table(rows))[2:]
    assert lines[0].endswith("| 50 | 5.00 | 2.00 | +0% |")
    assert lines[1].endswith("| 0 | 0.00 | 0.00 | -95% |")
    assert lines[2].endswith("| 0 | 0.00 | 0.00 |  |")

"""A section of a configuration file makes a tier, or says what is wrong with it; what it counts is told."""

from __future__ import annotations

import os

import pytest

from swift.base.errors import ConfigError
from swift.platform.disk import Disk
from swift.store.tier.conf import make_tier, node_figures, publisher, settings_of, tier_factory
from swift.store.tier.settings import TierSettings
from swift.telemetry.metrics import CounterMetric, GaugeMetric, Registry
from test.support.tiers import tier_settings


@pytest.fixture
def conf(tmp_path):
    def write(*lines):
        path = tmp_path / "object-server.conf"
        path.write_text("\n".join(["[DEFAULT]", "devices = /srv", *lines, ""]))
        return str(path)

    return write


def test_a_file_without_the_section_has_no_tier(conf):
    assert settings_of(conf()) == TierSettings() == settings_of("")
    assert not TierSettings().enabled


def test_the_section_is_read(conf):
    settings = settings_of(conf("[cache-tier]", "enabled = yes", "size_mb = 64", "classes = metadata"))
    assert (settings.enabled, settings.size_mb, settings.classes) == (True, 64, ("metadata",))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("size_mb = 5", "size_mb"),
        ("size_mb = plenty", "size_mb"),
        ("metadata_mode = write-back", "write-back"),
        ("metadata_mode = sideways", "metadata_mode"),
        ("classes = metadata, videos", "videos"),
        ("metadata_admission = never", "metadata_admission"),
    ],
)
def test_what_cannot_be_is_refused_with_its_name_and_file(conf, line, said):
    path = conf("[cache-tier]", "enabled = yes", line)
    with pytest.raises(ConfigError) as caught:
        settings_of(path)
    assert said in str(caught.value) and path in str(caught.value)


def test_a_tier_that_is_off_is_none_and_wraps_nothing():
    ended = []
    made = make_tier(TierSettings(), disk=Disk(), notice=print, at_exit=ended.append)
    assert made is None and ended == [] and tier_factory(None) is None


def test_a_tier_is_closed_with_its_process_and_opens_nothing_before_it_is_used(tmp_path):
    ended = []
    tier = make_tier(tier_settings(tmp_path), disk=Disk(), notice=print, at_exit=ended.append)
    assert tier is not None and len(ended) == 1
    assert list(tmp_path.iterdir()) == []
    ended[0]()


def test_counters_grow_by_what_was_counted_since_they_were_told():
    metrics = Registry()
    tell = publisher(metrics)
    tell({("metadata", "sda", "hits"): 3}, "")
    tell({("metadata", "sda", "hits"): 5}, "no space")
    counter = CounterMetric("swift_cache_tier_hits_total", "", ("class", "device")).of(
        metrics, **{"class": "metadata", "device": "sda"}
    )
    assert counter.value == 5
    assert GaugeMetric("swift_cache_tier_up", "").of(metrics).value == 0


def test_a_node_without_processes_has_counted_nothing(tmp_path):
    found = node_figures(tier_settings(tmp_path))
    assert found["processes"] == 0 and found["failures"] == []
    assert all(set(each) > {"hit_rate"} for each in found["classes"].values())


def test_the_state_of_each_user_has_a_directory_of_its_own(tmp_path):
    """Commands that root runs find that of the servers by the SSD's directory."""
    root = TierSettings(path=str(tmp_path))
    assert root.state_directory == f"/dev/shm/swift-cache-tier-{os.stat(tmp_path).st_uid}"
    missing = TierSettings(path=str(tmp_path / "missing"))
    assert missing.state_directory == f"/dev/shm/swift-cache-tier-{os.geteuid()}"
    assert TierSettings(state_path="/run/swift").state_directory == "/run/swift"

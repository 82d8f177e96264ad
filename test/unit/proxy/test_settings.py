"""Options of the proxy with forms of their own (cli-and-config.md §6)."""

import pytest

from swift.base.errors import ConfigError
from swift.proxy.settings import ProxySettings


@pytest.mark.parametrize(("text", "value"), [("auto", None), (" Auto ", None), ("0", 0), ("3", 3)])
def test_the_number_of_local_handoffs_of_deletions(text, value):
    settings = ProxySettings.parse({"write_affinity_handoff_delete_count": text})
    assert settings.write_affinity_handoff_delete_count == value


@pytest.mark.parametrize(("text", "value"), [("", None), ("true", True), ("0", False)])
def test_the_legacy_checksum_may_be_left_open(text, value):
    assert ProxySettings.parse({"write_legacy_ec_crc": text}).write_legacy_ec_crc is value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("write_affinity_handoff_delete_count", "many"),
        ("account_existence_skip_cache_pct", "101"),
        ("container_existence_skip_cache_pct", "-1"),
        ("concurrent_ec_extra_requests", "-1"),
    ],
)
def test_bad_values_are_refused_with_the_option_s_name(name, text):
    with pytest.raises(ConfigError, match=name):
        ProxySettings.parse({name: text})

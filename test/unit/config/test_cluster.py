"""swift.conf: what all nodes of a cluster share."""

import hashlib
from pathlib import Path

import pytest

from swift.base.errors import ConfigError
from swift.base.limits import Limits
from swift.config.cluster import parse_limits, read_cluster_config


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "swift.conf"
        path.write_text(text)
        return str(path)

    return write


def test_the_secrets_and_limits_of_a_cluster_are_read(written):
    path = written(
        "[swift-hash]\nswift_hash_path_suffix = end\nswift_hash_path_prefix = begin\n"
        "[swift-constraints]\nmax_file_size = 1000\nvalid_api_versions = v1, v2 ,\n"
        "[storage-policy:0]\nname = gold\n"
    )
    config = read_cluster_config(path)
    assert config.hasher.digest("a") == hashlib.md5(b"begin/aend").digest()
    assert (config.limits.max_file_size, config.limits.valid_api_versions) == (1000, ("v1", "v2"))
    assert config.limits.max_meta_count == Limits().max_meta_count
    assert config.sections["storage-policy:0"]["name"] == "gold"


@pytest.mark.parametrize("text", ["", "[swift-hash]\n", "[swift-hash]\nswift_hash_path_suffix =\n"])
def test_a_cluster_without_a_secret_does_not_start(written, text):
    with pytest.raises(ConfigError, match="swift_hash_path_suffix and swift_hash_path_prefix are missing"):
        read_cluster_config(written(text))


@pytest.mark.parametrize("option", ["swift_hash_path_prefix", "swift_hash_path_suffix"])
def test_the_secrets_of_the_sample_are_no_secrets(written, option):
    sample = (Path(__file__).parents[3] / "etc" / "swift.conf-sample").read_text()
    other = {"swift_hash_path_prefix", "swift_hash_path_suffix"} - {option}
    text = sample.replace(f"{other.pop()} = <random text>", "")
    assert f"{option} = <random text>" in text
    with pytest.raises(ConfigError, match="text of the sample, <random text>: choose random values"):
        read_cluster_config(written(text))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.conf"):
        read_cluster_config(str(tmp_path / "none.conf"))


@pytest.mark.parametrize("value", ["many", "-1", "1.5", "", "\u0665", "1_0"])
def test_a_limit_that_is_no_whole_number_names_its_option_and_file(value):
    with pytest.raises(ConfigError, match=r"here\.conf: max_meta_count must be a whole number"):
        parse_limits({"max_meta_count": value}, "here.conf")


def test_what_is_no_limit_is_left_alone():
    assert parse_limits({"max_moods": "3"}, "here.conf") == Limits()

"""The command line that brings suffixes to a node: what is asked of rsync, and where files come to lie."""

from __future__ import annotations

import fnmatch
from dataclasses import replace

import pytest

from swift.obj.replicator.delivery import EXCLUDED, rsync_command, rsync_target
from swift.obj.replicator.settings import ObjectReplicatorSettings
from swift.policy.policy import ErasureCode, Policy
from test.support.daemons import make_node

GOLD = Policy(0, "gold", is_default=True)
CODED = Policy(3, "ec", ec=ErasureCode("liberasurecode_rs_vand", 4, 2))


def words(suffixes=("abc", "def"), other_region=False, **options):
    settings = ObjectReplicatorSettings(**options)
    return rsync_command(
        settings, "/srv/sda/objects/7", suffixes, "there::object/d1/objects/7", other_region=other_region
    )


def test_every_suffix_is_named_and_then_where_they_go():
    assert words()[-3:] == ["/srv/sda/objects/7/abc", "/srv/sda/objects/7/def", "there::object/d1/objects/7"]


def test_what_is_there_is_not_written_again_and_metadata_goes_along():
    assert {"--recursive", "--whole-file", "--xattrs", "--ignore-existing"} < set(words())


def test_waiting_and_pace_come_from_the_options_whole_seconds_at_least():
    assert {"--timeout=31", "--contimeout=31", "--bwlimit=500"} < set(
        words(rsync_io_timeout=30.2, rsync_bwlimit="500")
    )


@pytest.mark.parametrize(("compress", "other_region"), [(True, True), (True, False), (False, True)])
def test_only_the_way_to_another_region_is_worth_compressing(compress, other_region):
    asked = words(rsync_compress=compress, other_region=other_region)
    assert ("--compress" in asked) == (compress and other_region)


@pytest.mark.parametrize(
    ("name", "is_left"),
    [
        (".1402436408.91203.data.a1B2c3", True),
        (".hashes.pkl.AAAAAA", True),
        ("1402436408.91203.data", False),
        ("1402436408.91203#0#d.data", False),
        ("hashes.pkl", False),
        (".lock", False),
        (".1402436408.91203.data.a1B2c", False),
    ],
)
def test_files_that_are_still_arriving_here_are_left_here(name, is_left):
    assert f"--exclude={EXCLUDED}" in words()
    assert fnmatch.fnmatchcase(name, EXCLUDED) == is_left


def test_the_target_is_the_partition_of_the_policy_on_the_node_s_device():
    settings = ObjectReplicatorSettings(rsync_module="{replication_ip}::object_{device}")
    assert rsync_target(settings, make_node(1), GOLD, 7) == "127.0.0.1::object_d1/d1/objects/7"
    assert rsync_target(settings, make_node(1), CODED, 7) == "127.0.0.1::object_d1/d1/objects-3/7"


def test_an_address_of_ipv6_has_brackets():
    settings = ObjectReplicatorSettings(rsync_module="{replication_ip}::object")
    assert (
        rsync_target(settings, replace(make_node(1), replication_ip="fe80::1"), GOLD, 7)
        == "[fe80::1]::object/d1/objects/7"
    )

"""Names of hidden containers and of versions, as the peer makes them."""

import pytest

from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.gateway.info import ContainerInfo
from swift.middleware.versioned_writes.names import (
    Version,
    get_versions_container,
    hidden_container,
    quote_container_name,
    unquote_container_name,
    visible_container,
    visible_path,
    visible_url,
)
from test.support.checks import every

NAMES = ("o", "a/b", "a//", "é", "\u2603/x", "a b", "1795229429.28498", "o\n", "x" * 1000, "\udcff")


def test_a_version_has_the_name_that_the_peer_gives_it():
    version = Version("o", Timestamp("1795229429.28498"))
    assert version.name == "\0o\x008204770570.71501"
    assert version.id == "1795229429.28498"


@every("name", NAMES)
@every("time", ("0000000000.00000", "1795229429.28498", "9999999999.99999"))
def test_a_version_is_known_by_its_name(name, time):
    version = Version(name, Timestamp(time))
    assert Version.from_hidden_name(version.name) == version


def test_newer_versions_are_listed_before_older_ones_and_names_are_not_mixed():
    times = [Timestamp.from_raw(raw) for raw in (1, 500, 179522942928498, 179522942928499)]
    names = [Version("o", time).name for time in times]
    assert sorted(names) == names[::-1]
    assert sorted([Version("o", times[0]).name, Version("o/", times[3]).name])[0] == names[0]


@pytest.mark.parametrize(
    "name", ("", "o", "\0", "\0o", "\0o\0", "\0o\0x", "\0\x008204770570.71501", "o\0x\0001")
)
def test_other_names_are_no_versions(name):
    assert Version.from_hidden_name(name) is None


@pytest.mark.parametrize("name", ("c", "é", "a b", "%41"))
def test_a_hidden_container_belongs_to_one(name):
    hidden = hidden_container(name)
    assert visible_container(hidden) == name
    assert unquote_container_name(quote_container_name(hidden)) == hidden


def test_other_containers_are_not_hidden_ones():
    assert visible_container("c") is None
    assert visible_container("\0other\0c") is None


def test_metadata_keep_the_name_as_the_peer_does():
    assert quote_container_name(hidden_container("ov")) == "%00versions%00ov"
    assert (
        get_versions_container(ContainerInfo(204, sysmeta={"versions-container": "%00versions%00ov"}))
        == "\0versions\0ov"
    )
    assert get_versions_container(ContainerInfo(204)) is None


def test_clients_see_the_object_and_the_id():
    hidden = EntityPath("a", "\0versions\0c", "\0o\x008204770570.71501")
    assert visible_path(hidden) == (EntityPath("a", "c", "o"), "1795229429.28498")
    assert visible_path(EntityPath("a", "c", "o")) is None
    url = "/v1/a/%00versions%00c/%00x%2Fy%3F%008204770570.71501"
    assert visible_url(url) == "/v1/a/c/x/y%3F?version-id=1795229429.28498"
    assert visible_url("/v1/a/c/o") is None
    assert visible_url("/v1/a/c/%00o") is None

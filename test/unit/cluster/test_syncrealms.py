"""Container sync realms and targets (account-container.md §17)."""

import os

import pytest

from swift.cluster.syncrealms import Realms, SyncTo, SyncToError, validate_sync_to

FILE = """
[DEFAULT]
mtime_check_interval = 0
[realm1]
key = realm1key
key2 = other
cluster_name1 = http://127.0.0.1:16080/v1/
"""


@pytest.fixture()
def realms(tmp_path):
    path = tmp_path / "container-sync-realms.conf"
    path.write_text(FILE)
    return Realms.of_file(str(path))


def test_realms_and_clusters_have_names_in_any_case(realms):
    assert realms.names() == ["REALM1"]
    realm = realms.get("Realm1")
    assert (realm.key, realm.key2, dict(realm.clusters)) == (
        "realm1key",
        "other",
        {"NAME1": "http://127.0.0.1:16080/v1/"},
    )


def test_a_realm_target_becomes_a_url(realms):
    target = validate_sync_to("//realm1/name1/AUTH_b/c2", (), realms)
    assert target == SyncTo("http://127.0.0.1:16080/v1/AUTH_b/c2", "REALM1", "realm1key")


def test_a_url_of_an_allowed_host(realms):
    target = validate_sync_to("http://127.0.0.1/v1/a/c/", ("127.0.0.1",), realms)
    assert target == SyncTo("http://127.0.0.1/v1/a/c")


@pytest.mark.parametrize("value", ["", "/", "  "])
def test_nothing_unsets(realms, value):
    assert validate_sync_to(value, (), realms) is None


@pytest.mark.parametrize(
    "value, text",
    [
        ("//foo/bar", "Invalid X-Container-Sync-To format '//foo/bar'"),
        ("http://foo/bar", "Invalid host 'foo' in X-Container-Sync-To"),
        ("//r/c/a/c", "No realm key for 'r'"),
        ("//realm1/c/a/c", "No cluster endpoint for 'realm1' 'c'"),
        (
            "ftp://127.0.0.1/x",
            'Invalid scheme \'ftp\' in X-Container-Sync-To, must be "//", "http", or "https".',
        ),
        ("http://127.0.0.1", "Path required in X-Container-Sync-To"),
        ("http://[/a", "Invalid URL in X-Container-Sync-To: Invalid IPv6 URL"),
        ("http://127.0.0.1/a;b", "Params, queries, and fragments not allowed in X-Container-Sync-To"),
        ("http://127.0.0.1/a#b", "Params, queries, and fragments not allowed in X-Container-Sync-To"),
    ],
)
def test_errors(realms, value, text):
    with pytest.raises(SyncToError) as caught:
        validate_sync_to(value, ("127.0.0.1",), realms)
    assert str(caught.value) == text


def test_a_changed_file_is_read_again_and_a_missing_one_is_fine(tmp_path, realms):
    path = tmp_path / "container-sync-realms.conf"
    assert realms.names() == ["REALM1"]
    path.write_text(FILE.replace("realm1]", "realm2]"))
    os.utime(path, (1, 1))
    assert realms.names() == ["REALM2"]
    path.write_text("[broken")
    os.utime(path, (2, 2))
    assert realms.names() == ["REALM2"]
    path.unlink()
    assert realms.names() == []
    assert Realms.of_file(str(tmp_path / "none")).get("x") is None

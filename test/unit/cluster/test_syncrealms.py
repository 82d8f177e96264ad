"""Container sync realms and targets (account-container.md §17)."""

import os

import pytest

from swift.cluster.outbound import Trust
from swift.cluster.syncrealms import Realms, SyncTo, SyncToError, validate_sync_to
from swift.container.accounts import ContainerSettings
from swift.container.sync.task import ContainerSyncSettings

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
    assert target == SyncTo("http://127.0.0.1:16080/v1/AUTH_b/c2", "REALM1", "realm1key", Trust.OPERATOR)


def test_a_url_of_an_allowed_host(realms):
    target = validate_sync_to("http://127.0.0.1/v1/a/c/", ("127.0.0.1",), realms)
    assert target == SyncTo("http://127.0.0.1/v1/a/c", trust=Trust.CLIENT)


@pytest.mark.parametrize(
    ("allowed", "value", "trust"),
    [
        ("far", "http://FAR:8080/v1/a/c", Trust.CLIENT),
        ("far:8080", "http://far:8080/v1.0/a/c", Trust.OPERATOR),
        ("far:443", "https://far/v1/a/c", Trust.OPERATOR),
        ("[::1]:8080", "http://[::1]:8080/v1/a/c", Trust.OPERATOR),
    ],
)
def test_only_a_host_with_its_port_is_the_operators_word(realms, allowed, value, trust):
    found = validate_sync_to(value, (allowed,), realms)
    assert found is not None and found.trust is trust


def test_another_port_of_an_endpoint_is_refused(realms):
    with pytest.raises(SyncToError, match="Invalid host 'far'"):
        validate_sync_to("http://far:6200/v1/a/c", ("far:8080",), realms)


@pytest.mark.parametrize(
    "path",
    [
        *("/sda/77/AUTH_b/c", "/v1/AUTH_b", "/v1/AUTH_b/c/o", "/v1//c", "//v1/a/c", "/v2/a/c", "/x"),
        *("/v1/../c", "/v1/a/%2e%2e", "/v1/a/b%2Fc", "/v1/a/c d", "/v1/a/c\r\nx"),
    ],
)
def test_a_url_leads_into_a_container_and_nowhere_else(realms, path):
    with pytest.raises(SyncToError):
        validate_sync_to(f"http://far{path}", ("far",), realms)


@pytest.mark.parametrize("names", ["../..", "a/.", "a/c?x", "a/c#x", "a/c%2f..", "a/b c"])
def test_names_in_a_realm_do_not_lead_out_of_its_endpoint(realms, names):
    with pytest.raises(SyncToError):
        validate_sync_to(f"//realm1/name1/{names}", (), realms)


@pytest.mark.parametrize("host", ["far:0", "far:x", "far:99999", "user@far", "far:80@evil"])
def test_odd_hosts_are_refused(realms, host):
    with pytest.raises(SyncToError):
        validate_sync_to(f"http://{host}/v1/a/c", ("far", "evil"), realms)


def test_no_host_is_allowed_by_default(realms):
    for settings in (ContainerSettings(), ContainerSyncSettings()):
        assert settings.allowed_sync_hosts == ()


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

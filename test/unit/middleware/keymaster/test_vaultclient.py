"""Requests to Vault: log-in and renewal, and what counts as an outage or a refusal."""

import shutil
import ssl
from contextlib import contextmanager

import pytest

from swift.base.clock import ManualClock
from swift.base.errors import ConfigError
from swift.middleware.keymaster.vaultclient import (
    VaultClient,
    VaultKeymasterSettings,
    VaultRefused,
    VaultUnavailable,
    check_vault_settings,
    is_wrapped,
    make_tls,
)
from test.support.stub_servers import TlsServer, make_certificate
from test.support.vault import KEY, VAULTS, FakeVault

SECRET = bytes(range(32))


@contextmanager
def running(kind, folder):
    vault = kind(folder)
    try:
        vault.make_key()
        yield vault
    finally:
        vault.close()


@pytest.fixture
def vault(tmp_path):
    with running(FakeVault, tmp_path) as made:
        yield made


@pytest.fixture(params=VAULTS)
def any_vault(request, tmp_path):
    with running(request.param, tmp_path) as made:
        yield made


def token_client(vault, folder, token, **options):
    file = folder / "token"
    file.write_text(f"{token}\n")
    return make_client(vault, token_file=str(file), **options)


def role_client(vault, folder, role, secret, **options):
    file = folder / "secret-id"
    file.write_text(secret)
    return make_client(vault, role_id=role, secret_id_file=str(file), **options)


def make_client(vault, *, clock=None, later=None, tls=None, **options):
    settings = VaultKeymasterSettings.parse(
        {"vault_url": vault.url, "transit_key": KEY, "vault_timeout": "2", **options}
    )
    check_vault_settings(settings, "test")
    return VaultClient(settings, tls, later=later, **({"clock": clock} if clock else {}))


# --- both kinds of service ------------------------------------------------------------------------------


def test_a_wrapped_secret_is_unwrapped_by_token_and_by_role(any_vault, tmp_path):
    wrapped = any_vault.wrap(SECRET)
    assert is_wrapped(wrapped)
    for client in (
        token_client(any_vault, tmp_path, any_vault.make_token()),
        role_client(any_vault, tmp_path, *any_vault.make_approle()),
    ):
        assert client.unwrap(wrapped) == SECRET
        new = client.make_wrapped_secret()
        assert is_wrapped(new) and len(client.unwrap(new)) == 32


def test_a_sealed_or_absent_service_is_an_outage_and_comes_back(any_vault, tmp_path):
    client, wrapped = token_client(any_vault, tmp_path, any_vault.make_token()), any_vault.wrap(SECRET)
    any_vault.seal()
    with pytest.raises(VaultUnavailable) as caught:
        client.unwrap(wrapped)
    assert caught.value.reason == "the key service is sealed"
    any_vault.unseal()
    assert client.unwrap(wrapped) == SECRET
    any_vault.stop()
    with pytest.raises(VaultUnavailable) as caught:
        client.unwrap(wrapped)
    assert caught.value.reason == "the key service does not respond"
    any_vault.start()
    assert client.unwrap(wrapped) == SECRET


def test_old_versions_of_the_key_unwrap_until_they_are_disallowed(any_vault, tmp_path):
    client, wrapped = token_client(any_vault, tmp_path, any_vault.make_token()), any_vault.wrap(SECRET)
    any_vault.rotate_key()
    assert client.unwrap(wrapped) == SECRET
    any_vault.rotate_key(least=2)
    with pytest.raises(VaultRefused):
        client.unwrap(wrapped)
    assert client.unwrap(any_vault.wrap(SECRET)) == SECRET


def test_a_deleted_key_a_revoked_token_and_a_revoked_role_are_refusals(any_vault, tmp_path):
    wrapped, token = any_vault.wrap(SECRET), any_vault.make_token()
    client = token_client(any_vault, tmp_path, token)
    assert client.unwrap(wrapped) == SECRET
    any_vault.revoke_token(token)
    with pytest.raises(VaultRefused) as caught:
        client.unwrap(wrapped)
    assert "403" in caught.value.reason and token not in str(caught.value)
    role, secret = any_vault.make_approle()
    any_vault.revoke_approle(role)
    with pytest.raises(VaultRefused) as caught:
        role_client(any_vault, tmp_path, role, secret).unwrap(wrapped)
    assert secret not in str(caught.value)
    client = token_client(any_vault, tmp_path, any_vault.make_token())
    any_vault.delete_key()
    with pytest.raises(VaultRefused):
        client.unwrap(wrapped)


# --- the log-in -----------------------------------------------------------------------------------------


def test_a_new_token_in_the_file_is_used(vault, tmp_path):
    wrapped, token = vault.wrap(SECRET), vault.make_token()
    client = token_client(vault, tmp_path, token)
    assert client.unwrap(wrapped) == SECRET
    vault.revoke_token(token)
    (tmp_path / "token").write_text(vault.make_token())
    assert client.unwrap(wrapped) == SECRET


def test_a_role_logs_in_again_when_its_token_is_gone(vault, tmp_path):
    wrapped = vault.wrap(SECRET)
    client = role_client(vault, tmp_path, *vault.make_approle())
    assert client.unwrap(wrapped) == client.unwrap(wrapped) == SECRET
    assert vault.count("auth/approle/login") == 1
    vault.revoke_all_tokens()
    assert client.unwrap(wrapped) == SECRET
    assert vault.count("auth/approle/login") == 2


def test_a_log_in_is_renewed_before_it_ends_without_requests(vault, tmp_path):
    clock, timers = ManualClock(), []
    client = role_client(
        vault,
        tmp_path,
        *vault.make_approle(lifetime_s=90),
        clock=clock.monotonic,
        later=lambda seconds, call: timers.append((seconds, call)),
    )
    client.unwrap(vault.wrap(SECRET))
    [(seconds, renew)] = timers
    assert seconds == pytest.approx(60)
    renew()
    assert vault.count("auth/token/renew-self") == 0
    clock.advance(60)
    renew()
    assert vault.count("auth/token/renew-self") == 1 and len(timers) == 2
    vault.seal()
    clock.advance(60)
    timers[-1][1]()
    # Tried again soon; the token may still be good.
    assert timers[-1][0] < 60
    vault.unseal()
    clock.advance(20)
    timers[-1][1]()
    assert vault.count("auth/token/renew-self") == 3
    assert vault.count("auth/approle/login") == 1


def test_a_role_whose_token_has_a_longest_lifetime_logs_in_again_in_time(vault, tmp_path):
    clock = ManualClock()
    client = role_client(
        vault, tmp_path, *vault.make_approle(lifetime_s=90, longest_s=40), clock=clock.monotonic
    )
    wrapped = vault.wrap(SECRET)
    client.unwrap(wrapped)
    for token in vault._tokens.values():
        # Of its forty seconds ten are left.
        token[3] -= 30
    clock.advance(30)
    assert client.unwrap(wrapped) == SECRET
    assert vault.count("auth/approle/login") == 2


def test_a_token_that_cannot_be_renewed_serves_as_it_is(vault, tmp_path):
    client = token_client(vault, tmp_path, vault.make_token(renewable=False))
    for _ in range(3):
        assert client.unwrap(vault.wrap(SECRET)) == SECRET
    assert vault.count("auth/token/renew-self") == 1


@pytest.mark.parametrize("content", [None, "", "two\nlines", "\xff"])
def test_an_unusable_token_file_is_an_outage_that_names_the_file_in_the_log_only(vault, tmp_path, content):
    client = token_client(vault, tmp_path, "x")
    path = tmp_path / "token"
    path.unlink() if content is None else path.write_text(content, encoding="latin-1")
    with pytest.raises(VaultUnavailable) as caught:
        client.unwrap(vault.wrap(SECRET))
    assert str(path) in str(caught.value) and str(path) not in caught.value.reason


# --- requests -------------------------------------------------------------------------------------------


def test_namespace_mount_and_path_of_the_url_are_sent(vault, tmp_path):
    vault.namespace = "team/a"
    client = token_client(vault, tmp_path, vault.make_token(), vault_namespace="team/a")
    assert client.unwrap(vault.wrap(SECRET)) == SECRET
    client = token_client(
        vault, tmp_path, vault.make_token(), vault_mount="keys/two", vault_url=f"{vault.url}/base/"
    )
    with pytest.raises(VaultRefused):
        client.unwrap(vault.wrap(SECRET))
    assert vault.asked[-1][0] == f"/base/v1/keys/two/decrypt/{KEY}"


def test_a_service_that_hangs_is_given_up_in_time(vault, tmp_path):
    client = token_client(vault, tmp_path, vault.make_token(), vault_timeout="0.2")
    vault.delay_s = 1.0
    with pytest.raises(VaultUnavailable) as caught:
        client.unwrap(vault.wrap(SECRET))
    assert caught.value.reason == "the key service does not respond"


def test_a_short_secret_is_refused(vault, tmp_path):
    client = token_client(vault, tmp_path, vault.make_token())
    with pytest.raises(VaultRefused, match="fewer than 32 bytes"):
        client.unwrap(vault.wrap(b"short"))


@pytest.mark.process
@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl(1) to make a certificate")
def test_the_certificate_of_the_service_is_verified(vault, tmp_path):
    certificate, key = make_certificate(tmp_path, "127.0.0.1")
    front = TlsServer(("127.0.0.1", vault.port), certificate, key)
    try:
        options = {"vault_url": f"https://127.0.0.1:{front.port}", "transit_key": KEY}
        for authority, is_good in ((str(certificate), True), ("", False)):
            settings = VaultKeymasterSettings.parse({**options, "vault_ca_file": authority})
            tls = make_tls(settings, "test")
            assert tls.verify_mode is ssl.CERT_REQUIRED and tls.check_hostname
            client = token_client(vault, tmp_path, vault.make_token(), tls=tls, **options)
            if is_good:
                assert client.unwrap(vault.wrap(SECRET)) == SECRET
            else:
                with pytest.raises(VaultUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
                    client.unwrap(vault.wrap(SECRET))
    finally:
        front.stop()


GOOD = {"vault_url": "https://vault:8200", "transit_key": "swift", "token_file": "/token"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"vault_url": ""},
        {"vault_url": "ftp://vault"},
        {"vault_url": "https://user:word@vault"},
        {"vault_url": "https://vault:port"},
        {"vault_url": "https://vault/?a=b"},
        {"transit_key": ""},
        {"transit_key": "../sys"},
        {"vault_mount": "transit/../sys"[:0]},
        {"vault_mount": "/transit"},
        {"token_file": ""},
        {"role_id": "r", "secret_id_file": "/s"},
        {"role_id": "r", "token_file": ""},
    ],
)
def test_bad_options_are_refused_at_the_start(wrong):
    check_vault_settings(VaultKeymasterSettings.parse(GOOD), "[filter:x]")
    with pytest.raises(ConfigError, match=r"\[filter:x\]"):
        check_vault_settings(VaultKeymasterSettings.parse({**GOOD, **wrong}), "[filter:x]")


def test_a_ca_file_that_cannot_be_read_is_refused_at_the_start():
    with pytest.raises(ConfigError, match="vault_ca_file"):
        make_tls(VaultKeymasterSettings.parse({**GOOD, "vault_ca_file": "/nowhere"}), "[filter:x]")

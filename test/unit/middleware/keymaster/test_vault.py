"""Unwrapped root secrets: how long they serve, and what requests get without them."""

import json

import pytest

from swift import green
from swift.base.clock import ManualClock
from swift.base.errors import ConfigError
from swift.base.limits import Limits
from swift.http import environkeys
from swift.http.body import BytesBody
from swift.http.cryptokeys import EncryptionKeysUnavailable, KeyServiceUnavailable
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.encryption.filter import Encryption, EncryptionSettings
from swift.middleware.keymaster import vault as keymaster
from swift.middleware.keymaster.filter import Keymaster as PlainKeymaster
from swift.middleware.keymaster.filter import KeymasterSettings, parse_secrets
from swift.middleware.keymaster.vault import RETRY_S, make_vault_keymaster
from swift.middleware.keymaster.vaultclient import VaultRefused, VaultUnavailable
from swift.telemetry.log import silent_log

CONF = {
    "vault_url": "https://vault:8200",
    "transit_key": "swift",
    "token_file": "/token",
    "wrapped_root_secret": "vault:v1:AAAA",
    "wrapped_root_secret_two": "vault:v1:BBBB",
    "active_root_secret_id": "two",
}
SECRETS = {"vault:v1:AAAA": b"A" * 32, "vault:v1:BBBB": b"B" * 32}


class Unwrap:
    """Unwraps until it fails."""

    def __init__(self):
        self.calls = 0
        self.error = None
        self.refused = ()

    def __call__(self, wrapped):
        self.calls += 1
        if self.error:
            raise self.error
        if wrapped in self.refused:
            raise VaultRefused("the key service refuses the request with 400")
        return SECRETS[wrapped]


class App:
    def __init__(self):
        self.requests = []

    def handle(self, request):
        self.requests.append(request)
        self.fetch = request.env[environkeys.FETCH_CRYPTO_KEYS]
        return Response(201 if request.method == "PUT" else 200)


class Fixture:
    def __init__(self, app=None, **options):
        self.app, self.unwrap, self.clock = app or App(), Unwrap(), ManualClock()
        self.filter = make_vault_keymaster(
            self.app,
            {**CONF, "secret_seconds": "100", "outage_seconds": "1000", **options},
            silent_log(),
            unwrap=self.unwrap,
            clock=self.clock.monotonic,
        )

    def fetch(self, key_id=None):
        self.filter.handle(Request("GET", "/v1/a/c/o"))
        return self.app.fetch(key_id)


def test_keys_are_those_of_the_same_secrets_in_the_configuration():
    fixture = Fixture()
    keys = fixture.fetch()
    assert keys["id"] == {"v": "2", "path": "/a/c/o", "secret_id": "two"}
    text = {"encryption_root_secret_two": "QkJC" * 10 + "QkI=", "active_root_secret_id": "two"}
    plain_app = App()
    plain = PlainKeymaster(plain_app, parse_secrets(text, KeymasterSettings.parse(text)))
    plain.handle(Request("GET", "/v1/a/c/o"))
    assert plain_app.fetch(None) == {**keys, "all_ids": [keys["id"]]}
    old = fixture.fetch({"v": "2", "path": "/a/c/o"})
    assert old["object"] != keys["object"]


def test_nothing_is_unwrapped_before_a_key_is_needed_and_then_once():
    fixture = Fixture()
    fixture.filter.handle(Request("GET", "/v1/a/c/o"))
    assert fixture.unwrap.calls == 0
    for _ in range(3):
        fixture.fetch()
    assert fixture.unwrap.calls == 2


def test_secrets_are_unwrapped_again_after_their_time():
    fixture = Fixture()
    fixture.fetch()
    fixture.clock.advance(99)
    fixture.fetch()
    assert fixture.unwrap.calls == 2
    fixture.clock.advance(1)
    fixture.fetch()
    assert fixture.unwrap.calls == 4


def test_a_service_that_was_never_there_gives_no_keys_until_it_is():
    fixture = Fixture()
    fixture.unwrap.error = VaultUnavailable("the key service is sealed", "vault:8200 responded 503")
    for _ in range(2):
        with pytest.raises(KeyServiceUnavailable) as caught:
            fixture.fetch()
        assert str(caught.value) == "the key service is sealed"
    # A try a moment ago is not repeated.
    assert fixture.unwrap.calls == 1
    fixture.unwrap.error = None
    fixture.clock.advance(RETRY_S)
    assert fixture.fetch()["id"]["secret_id"] == "two"


def test_known_secrets_serve_during_an_outage_for_a_stated_time():
    fixture = Fixture()
    fixture.fetch()
    fixture.unwrap.error = VaultUnavailable("the key service does not respond")
    fixture.clock.advance(100)
    fixture.fetch()
    calls = fixture.unwrap.calls
    fixture.clock.advance(999)
    # Requests do not wait for it any more.
    fixture.fetch()
    assert fixture.unwrap.calls == calls
    green.sleep(0.01)
    assert fixture.unwrap.calls == calls + 1
    fixture.clock.advance(1)
    with pytest.raises(KeyServiceUnavailable, match="does not respond"):
        fixture.fetch()
    fixture.unwrap.error = None
    fixture.clock.advance(RETRY_S)
    fixture.fetch()


def test_after_an_outage_secrets_are_refreshed_in_the_background():
    fixture = Fixture()
    fixture.fetch()
    fixture.unwrap.error = VaultUnavailable("away")
    fixture.clock.advance(100)
    fixture.fetch()
    fixture.unwrap.error = None
    fixture.clock.advance(RETRY_S)
    fixture.fetch()
    green.sleep(0.01)
    calls = fixture.unwrap.calls
    fixture.clock.advance(99)
    fixture.fetch()
    assert fixture.unwrap.calls == calls


def test_a_refused_secret_is_forgotten_at_once_and_the_others_serve():
    fixture = Fixture()
    fixture.fetch()
    fixture.unwrap.refused = ("vault:v1:AAAA",)
    fixture.clock.advance(100)
    assert fixture.fetch()["id"]["secret_id"] == "two"
    with pytest.raises(KeyServiceUnavailable, match="refuses"):
        fixture.fetch({"v": "2", "path": "/a/c/o"})
    fixture.unwrap.refused = ()
    fixture.clock.advance(20)
    fixture.fetch({"v": "2", "path": "/a/c/o"})


def test_requests_wait_for_one_unwrapping_together():
    fixture = Fixture()
    unwrap = fixture.unwrap

    class Slow(Unwrap):
        def __call__(self, wrapped):
            green.sleep(0.01)
            return super().__call__(wrapped)

    slow = Slow()
    fixture.filter._secrets._unwrap = slow
    green.gather([fixture.fetch] * 5)
    assert slow.calls == 2 and unwrap.calls == 0


def test_an_unknown_secret_is_looked_for_in_the_next_keymaster_and_an_unavailable_one_is_not():
    fixture = Fixture()
    with pytest.raises(EncryptionKeysUnavailable) as caught:
        fixture.fetch({"v": "2", "path": "/a/c/o", "secret_id": "other"})
    assert caught.value.unknown_secret and not isinstance(caught.value, KeyServiceUnavailable)
    fixture.clock.advance(100)
    fixture.unwrap.refused = ("vault:v1:AAAA",)
    with pytest.raises(KeyServiceUnavailable) as caught:
        fixture.fetch({"v": "2", "path": "/a/c/o"})
    assert not caught.value.unknown_secret


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"active_root_secret_id": "three"}, "wrapped_root_secret_three"),
        ({"active_root_secret_id": "", "wrapped_root_secret": ""}, "option wrapped_root_secret"),
        ({"wrapped_root_secret_two": "c2VjcmV0"}, "wrapped_root_secret_two"),
        ({"vault_url": "vault"}, "vault_url"),
        ({"secret_seconds": "0"}, "secret_seconds"),
    ],
)
def test_bad_options_stop_the_start_and_show_no_secret(options, text):
    with pytest.raises(ConfigError, match=text) as caught:
        make_vault_keymaster(App(), {**CONF, **options}, silent_log(), unwrap=Unwrap())
    assert "c2VjcmV0" not in str(caught.value)


def test_a_file_of_its_own_has_the_options(tmp_path):
    path = tmp_path / "keymaster.conf"
    text = "".join(f"{name} = {value}\n" for name, value in CONF.items())
    path.write_text(f"[{keymaster.NAME}]\n{text}")
    settings, wrapped = keymaster.read_vault_section({"keymaster_config_path": str(path)})
    assert wrapped == {None: "vault:v1:AAAA", "two": "vault:v1:BBBB"}
    assert settings.transit_key == "swift"


# --- requests -------------------------------------------------------------------------------------------


class Stored:
    """An app that has one encrypted object, and counts what is stored."""

    def __init__(self):
        self.headers, self.body, self.puts = {}, b"", 0

    def handle(self, request):
        if request.method == "PUT":
            self.puts += 1
            self.body = request.body.read()
            footers = {}
            request.env[environkeys.UPDATE_FOOTERS](footers)
            kept = ("x-object-sysmeta-", "x-object-transient-")
            self.headers = {k: v for k, v in {**request.headers, **footers}.items() if k.startswith(kept)}
            return Response(201, {"etag": "stored"})
        if request.method == "GET" and request.entity.path.obj is None:
            rows = [{"name": "o", "hash": self.headers["x-object-sysmeta-container-update-override-etag"]}]
            return Response(200, {"content-type": "application/json"}, json.dumps(rows).encode())
        return Response(200, {**self.headers, "etag": "stored"}, self.body)


def test_requests_that_need_keys_get_503_with_the_reason_and_nothing_plain_is_stored():
    stored = Stored()
    encryption = Encryption(stored, EncryptionSettings(), Limits(), silent_log())
    fixture = Fixture(encryption, outage_seconds="0")

    def send(method, path, body=b"", **headers):
        request = Request(method, path, {"content-length": str(len(body)), **headers}, BytesBody(body))
        return fixture.filter.handle(request)

    assert send("PUT", "/v1/a/c/o", b"text").status == 201
    assert send("GET", "/v1/a/c/o").read_body() == b"text"
    fixture.unwrap.error = VaultUnavailable("the key service is sealed", "vault:8200 responded 503")
    fixture.clock.advance(100)
    for method, path, headers in (
        ("PUT", "/v1/a/c/o", {}),
        ("POST", "/v1/a/c/o", {"x-object-meta-a": "b"}),
        ("GET", "/v1/a/c/o", {}),
        ("HEAD", "/v1/a/c/o", {}),
        ("GET", "/v1/a/c", {}),
        ("GET", "/v1/a/c/o", {"if-none-match": '"x"'}),
    ):
        response = send(method, path, b"plain" if method == "PUT" else b"", **headers)
        assert (response.status, response.headers["x-encryption-error"]) == (503, "the key service is sealed")
        assert b"8200" not in response.read_body()
    assert stored.puts == 1
    assert send("DELETE", "/v1/a/c/o").status == 200

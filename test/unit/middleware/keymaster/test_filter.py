"""The keymaster filter: stacked keymasters and options that are wrong (middleware.md §17)."""

import base64

import pytest

from swift.base.errors import ConfigError
from swift.http import environkeys
from swift.http.cryptokeys import EncryptionKeysUnavailable
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.keymaster.derivation import RootSecrets
from swift.middleware.keymaster.filter import Keymaster, KeymasterSettings, parse_secrets, read_options
from test.support.filters import ONE, TWO


def test_an_unknown_secret_is_looked_for_in_the_next_keymaster():
    class App:
        def handle(self, request):
            self.fetch = request.env[environkeys.FETCH_CRYPTO_KEYS]
            return Response(204)

    app = App()
    inner = Keymaster(app, RootSecrets({None: b"A" * 32}, None, "2"))
    Keymaster(inner, RootSecrets({"two": b"B" * 32}, "two", "2")).handle(Request("GET", "/v1/a/c/o"))
    key_id = {"v": "2", "path": "/a/c/o"}
    assert app.fetch(key_id)["object"] != app.fetch({**key_id, "secret_id": "two"})["object"]
    for unknown in ({**key_id, "secret_id": "no"}, {"v": "9", "path": "/a/c/o"}, {"v": "2", "path": "x"}):
        with pytest.raises(EncryptionKeysUnavailable):
            app.fetch(unknown)


GOOD = base64.b64encode(b"x" * 32).decode()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "encryption_root_secret"),
        ({"encryption_root_secret": "short"}, "encryption_root_secret must be base64"),
        ({"encryption_root_secret": GOOD[:40]}, "at least 32 bytes"),
        ({"encryption_root_secret_a": "!" * 50}, "encryption_root_secret_a"),
        ({"encryption_root_secret": GOOD, "active_root_secret_id": "b"}, "encryption_root_secret_b"),
        ({"encryption_root_secret_b": GOOD}, "active_root_secret_id"),
    ],
)
def test_bad_options_are_named_and_no_secret_is_shown(options, said):
    with pytest.raises(ConfigError) as error:
        parse_secrets(options, KeymasterSettings.parse(options))
    assert said in str(error.value)
    assert not any(value in str(error.value) for value in options.values() if len(value) > 20)


def test_a_file_of_its_own_has_all_options(tmp_path):
    path = tmp_path / "keymaster.conf"
    path.write_text(f"[keymaster]\nencryption_root_secret = {GOOD}\n")
    conf = {"keymaster_config_path": str(path)}
    assert read_options(conf, KeymasterSettings, "keymaster")["encryption_root_secret"] == GOOD
    with pytest.raises(ConfigError, match="belongs into"):
        read_options({**conf, "encryption_root_secret": GOOD}, KeymasterSettings, "keymaster")


@pytest.mark.parametrize("in_own_file", [True, False])
def test_a_secret_that_stands_twice_is_refused(tmp_path, in_own_file):
    """Objects that the first secret encrypted would be unreadable."""
    section = "keymaster" if in_own_file else "filter:keymaster"
    path = tmp_path / "some.conf"
    path.write_text(f"[{section}]\nencryption_root_secret = {ONE}\nencryption_root_secret = {TWO}\n")
    conf = {"keymaster_config_path": str(path)} if in_own_file else {"__file__": str(path)}
    conf |= {} if in_own_file else {"encryption_root_secret": TWO}
    told = "option encryption_root_secret stands in lines 2 and 3; remove one, or give it an id of its own"
    with pytest.raises(ConfigError, match=told) as refused:
        read_options(conf, KeymasterSettings, "keymaster")
    assert ONE not in str(refused.value) and TWO not in str(refused.value)
    path.write_text(f"[{section}]\nencryption_root_secret = {ONE}\nencryption_root_secret_2 = {TWO}\n")
    assert read_options(conf, KeymasterSettings, "keymaster")

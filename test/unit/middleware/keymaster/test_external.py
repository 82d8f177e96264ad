"""Root secrets of a key service: which keys are asked for, and what is said when they cannot be had."""

import sys

import pytest

from swift.base.errors import ConfigError
from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.keymaster.external import fetch_in_process, parse_key_ids
from swift.middleware.keymaster.kmip import make_kmip_keymaster

KEYS = {"k1": b"A" * 32, "k2": b"B" * 32}


class App:
    """Keeps how keys are fetched."""

    def handle(self, request):
        self.fetch = request.env[environkeys.FETCH_CRYPTO_KEYS]
        return Response(204)


class Service:
    """Gives the keys that it has."""

    def __init__(self, error=None):
        self.asked = []
        self.error = error

    def __call__(self, service, options, key_ids):
        self.asked.append((service, options, key_ids))
        if self.error:
            raise self.error
        return {key_id: KEYS[key_id] for key_id in key_ids if key_id in KEYS}


def script(text):
    return [sys.executable, "-c", text]


def test_several_secrets_come_with_one_question_and_the_active_one_encrypts():
    app, service = App(), Service()
    conf = {"key_id": "k1", "key_id_two": "k2", "active_root_secret_id": "two", "host": "kms.example"}
    keymaster = make_kmip_keymaster(app, {**conf, "meta_version_to_write": "3"}, service)
    ((name, options, key_ids),) = service.asked
    assert (name, key_ids, options["host"], options["port"]) == ("kmip", ["k1", "k2"], "kms.example", "5696")
    assert "active_root_secret_id" not in options and "meta_version_to_write" not in options
    keymaster.handle(Request("PUT", "/v1/a/c/o"))
    keys = app.fetch(None)
    assert keys["id"] == {"v": "3", "path": "/a/c/o", "secret_id": "two"}
    assert keys["object"] != app.fetch({"v": "3", "path": "/a/c/o"})["object"]


def test_a_file_of_its_own_has_the_options_in_a_section_of_the_filters_name(tmp_path):
    path, service = tmp_path / "keymaster.conf", Service()
    path.write_text("[keymaster]\nkey_id = no\n[kmip_keymaster]\nkey_id = k1\nhost = kms.example\n")
    make_kmip_keymaster(App(), {"keymaster_config_path": str(path)}, service)
    assert [(options["host"], ids) for _service, options, ids in service.asked] == [("kms.example", ["k1"])]
    for double in ("host", "key_id", "key_id_two"):
        with pytest.raises(ConfigError, match=f"option {double} belongs into"):
            make_kmip_keymaster(App(), {"keymaster_config_path": str(path), double: "x"}, service)


def test_a_service_that_is_away_stops_the_start_with_its_words_and_no_secret():
    conf = {"key_id": "k1", "password": "s3cret"}
    with pytest.raises(ConfigError) as caught:
        make_kmip_keymaster(App(), conf, Service(ConfigError("connection refused")))
    assert str(caught.value) == ("[filter:kmip_keymaster] cannot fetch the root secrets: connection refused")
    with pytest.raises(ConfigError, match="no key 'k9'"):
        make_kmip_keymaster(App(), {"key_id": "k9"}, Service())


@pytest.mark.parametrize(
    ("options", "active", "lacking"),
    [
        ({}, None, "key_id"),
        ({"key_id": ""}, None, "key_id"),
        ({"key_id_two": "x"}, None, "key_id"),
        ({"key_id": "x"}, "two", "key_id_two"),
    ],
)
def test_the_active_secret_needs_a_key(options, active, lacking):
    with pytest.raises(ConfigError, match=f"needs the option {lacking}$"):
        parse_key_ids(options, active, "kms_keymaster")


@pytest.mark.process
def test_secrets_are_fetched_in_a_process_of_its_own():
    echo = (
        "import json, sys; sent = json.load(sys.stdin); assert sent['options'] == {'host': 'h'}; "
        "print(json.dumps({key_id: 'QUFBQQ==' for key_id in sent['key_ids']}))"
    )
    fetched = fetch_in_process("kmip", {"host": "h"}, ["k1", "k2"], command=script(echo))
    assert fetched == {"k1": b"AAAA", "k2": b"AAAA"}


@pytest.mark.process
@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import sys; sys.exit('warning: x' + chr(10) + 'KmipError: refused')", "^KmipError: refused$"),
        ("import os; os._exit(3)", "status 3"),
        ("print('nonsense')", "cannot be read"),
        ("import json; print(json.dumps({'k': '!'}))", "cannot be read"),
        ("import sys; sys.stdin.read(); import time; time.sleep(60)", "did not answer within 0.5 s"),
    ],
)
def test_what_goes_wrong_there_is_one_line(code, words):
    with pytest.raises(ConfigError, match=words):
        fetch_in_process("kms", {}, ["k"], command=script(code), timeout_s=0.5 if "time" in code else 30)

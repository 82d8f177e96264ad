"""Tokens that need no cache (middleware.md §1.1)."""

import base64
import sys

import pytest
from cryptography import fernet

from swift.base.errors import ConfigError
from swift.middleware.tempauth.fernet import make_fernet_tokens
from test.unit.middleware.tempauth.test_filter import Bench

KEYS = {f"fernet_key_{n}": base64.urlsafe_b64encode(bytes([n]) * 32).decode() for n in (1, 2)}
ACTIVE = {**KEYS, "active_fernet_key_id": "1"}


def test_without_the_package_one_sentence_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    monkeypatch.setitem(sys.modules, "cryptography.fernet", None)
    with pytest.raises(ConfigError, match="fernet_key_1 needs the Python package cryptography"):
        make_fernet_tokens(KEYS, "1", life_s=60)


def test_without_keys_there_are_no_such_tokens():
    assert make_fernet_tokens({"user_a_b": "c"}, "", life_s=60) is None


def test_an_active_key_must_exist():
    with pytest.raises(ConfigError, match="names '9', but there is no fernet_key_9"):
        make_fernet_tokens(KEYS, "9", life_s=60)


class TestTokens:
    def test_a_key_of_another_shape_is_refused(self):
        with pytest.raises(ConfigError, match="fernet_key_x must be 32 bytes in URL-safe base64"):
            make_fernet_tokens({"fernet_key_x": "c2hvcnQ="}, "x", life_s=60)

    @pytest.mark.parametrize(("groups", "form"), [("a,a:b", "ftk"), ("group," * 60, "zftk")])
    def test_the_shorter_form_is_used(self, groups, form):
        tokens = make_fernet_tokens(KEYS, "1", life_s=60)
        token = tokens.create_token(groups)
        assert token.startswith(form)
        assert tokens.read_token(token) == groups

    def test_tokens_of_any_key_are_accepted_and_of_no_other(self):
        old = make_fernet_tokens(KEYS, "2", life_s=60).create_token("g")
        assert make_fernet_tokens(KEYS, "1", life_s=60).read_token(old) == "g"
        alone = make_fernet_tokens({"fernet_key_1": KEYS["fernet_key_1"]}, "1", life_s=60)
        assert alone.read_token(old) is None
        assert (
            alone.read_token("ftk") is None
            and alone.read_token("ü") is None
            and alone.read_token("zftk" + old[3:]) is None
        )

    def test_a_token_has_one_text(self):
        tokens = make_fernet_tokens(KEYS, "1", life_s=60)
        token = tokens.create_token("g")
        assert tokens.read_token(token) == "g"
        digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        stem = token.rstrip("=")
        # The last digit has bits that are no part of the bytes.
        others = [stem[:-1] + digit + token[len(stem) :] for digit in digits if digit != stem[-1]]
        others += [token + "=", stem, token[:9] + "\n" + token[9:], token[:9] + "!" + token[9:], token + " "]
        assert [text for text in others if tokens.read_token(text) is not None] == []

    def test_tokens_run_out(self, monkeypatch):
        token = make_fernet_tokens(KEYS, "1", life_s=60).create_token("g")
        later = fernet.time.time() + 61
        monkeypatch.setattr(fernet.time, "time", lambda: later)
        assert make_fernet_tokens(KEYS, "1", life_s=60).read_token(token) is None

    def test_remembered_tokens_run_out_too(self, monkeypatch):
        tokens = make_fernet_tokens(KEYS, "1", life_s=60)
        short, long = tokens.create_token("g"), tokens.create_token("group," * 60)
        assert (tokens.read_token(short), tokens.read_token(long)) == ("g", "group," * 60)
        now = fernet.time.time()
        monkeypatch.setattr(fernet.time, "time", lambda: now + 58)
        assert (tokens.read_token(short), tokens.read_token(long)) == ("g", "group," * 60)
        monkeypatch.setattr(fernet.time, "time", lambda: now + 62)
        assert (tokens.read_token(short), tokens.read_token(long)) == (None, None)

    def test_only_some_tokens_are_remembered(self):
        tokens = make_fernet_tokens(KEYS, "1", life_s=60)
        many = [tokens.create_token(f"g{n}") for n in range(1500)]
        assert [tokens.read_token(token) for token in many] == [f"g{n}" for n in range(1500)]
        assert [tokens.read_token(token) for token in many[:5]] == [f"g{n}" for n in range(5)]

    def test_users_work_with_them_and_the_cache_stays_empty(self):
        bench = Bench(**ACTIVE)
        answer = bench.login("test:tester")
        assert answer.headers["x-auth-token"].startswith(("AUTH_ftk", "AUTH_zftk"))
        assert answer.headers["x-auth-token-expires"] == "86400"
        assert bench.status("test:tester", "PUT", "/v1/AUTH_test/c") == 299
        assert bench.status("test2:tester2", "PUT", "/v1/AUTH_test/c") == 403
        assert not [key for key in bench.cache.values if "/token/" in key or "/user/" in key]

    def test_they_need_no_cache_at_all(self):
        bench = Bench(**ACTIVE)
        token = bench.login("test:tester").headers["x-auth-token"]
        headers = {"x-auth-token": token}
        assert bench.ask("GET", "/v1/AUTH_test", headers, {"swift.cache": None}).status == 299
        headers = {"x-auth-token": "AUTH_tk" + "0" * 32}
        assert bench.ask("GET", "/v1/AUTH_test", headers, {"swift.cache": None}).status == 401

    def test_remembered_tokens_stay_valid_when_keys_are_introduced(self):
        bench = Bench()
        token = bench.token("test:tester")
        bench.make(**ACTIVE)
        assert bench.ask("GET", "/v1/AUTH_test", {"x-auth-token": token}).status == 299

    def test_keys_without_an_active_one_only_read(self):
        bench = Bench(**KEYS)
        assert bench.token("test:tester").startswith("AUTH_tk")
        sealed = "AUTH_" + make_fernet_tokens(KEYS, "2", life_s=60).create_token("test,test:tester,AUTH_test")
        assert bench.ask("GET", "/v1/AUTH_test", {"x-auth-token": sealed}).status == 299

"""What filters that decide who may do what have in common."""

import pytest

from swift.http import environkeys
from swift.http.request import Request
from swift.middleware.authorization import (
    has_valid_sync_key,
    match_prefix,
    normalise_prefixes,
    unauthorized_response,
)


@pytest.mark.parametrize(
    ("items", "prefixes"),
    [
        ((), [""]),
        (("AUTH",), ["AUTH_"]),
        (("AUTH_", "AUTH"), ["AUTH_"]),
        (("''", "SERVICE"), ["", "SERVICE_"]),
    ],
)
def test_prefixes_end_in_an_underscore_and_are_there_once(items, prefixes):
    assert normalise_prefixes(items) == prefixes


@pytest.mark.parametrize(
    ("account", "prefix"),
    [("AUTH_a", "AUTH_"), ("SERVICE_a", "SERVICE_"), ("other", ""), ("AUTHa", ""), ("", "")],
)
def test_no_prefix_is_what_matches_nothing_else(account, prefix):
    assert match_prefix(account, ["", "AUTH_", "SERVICE_"]) == prefix


def test_without_an_empty_prefix_an_account_may_have_none():
    assert match_prefix("other", ["AUTH_"]) is None


@pytest.mark.parametrize(
    ("key", "headers", "has"),
    [
        ("k", {"x-container-sync-key": "k", "x-timestamp": "1"}, True),
        ("k", {"x-container-sync-key": "k"}, False),
        ("k", {"x-container-sync-key": "other", "x-timestamp": "1"}, False),
        ("k", {"x-timestamp": "1"}, False),
        (None, {"x-container-sync-key": "", "x-timestamp": "1"}, False),
        ("", {"x-container-sync-key": "", "x-timestamp": "1"}, False),
        ("\u00e9", {"x-container-sync-key": "\u00e9", "x-timestamp": "1"}, True),
    ],
)
def test_container_sync_shows_the_key_and_a_time(key, headers, has):
    env = {} if key is None else {environkeys.SYNC_KEY: key}
    assert has_valid_sync_key(Request("PUT", "/v1/a/c/o", headers, env=env)) is has


@pytest.mark.parametrize(
    ("path", "realm", "told"),
    [
        ("/v1/AUTH_a/c", None, "AUTH_a"),
        ("/v1/a%22b", None, "a%22b"),
        ("/v1/%C3%A9", None, "%C3%A9"),
        ("/v1/%ff", None, "%FF"),
        ("/v1", None, "unknown"),
        ("/v1/a", 'x"\r\ny\\', "x%22%0D%0Ay%5C"),
    ],
)
def test_the_challenge_names_the_account_and_cannot_be_broken_out_of(path, realm, told):
    response = unauthorized_response(Request("GET", path), realm)
    assert response.status == 401
    assert response.headers["www-authenticate"] == f'Swift realm="{told}"'

"""Where memcached keys live and how values are written: the check values of proxy.md §15."""

import pytest

from swift.wire.memcache import ServerRing, decode_value, expiry, set_command, wire_key

SERVERS = [f"10.0.0.{n}:11211" for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("key", "hashed", "order"),
    [
        ("account/AUTH_test", "05fad1c218a819c6507731ef4698a285", "132"),
        ("container/AUTH_test/c1", "9cb54b3060fac19a04d19b8067d29c88", "312"),
        ("shard-listing-v2/AUTH_test/c1", "c1698b11e668a7ed6a346e2633282a9a", "321"),
        ("shard-updating-v2/AUTH_test/c1", "0eb995392a9b7d5627daffad34020265", "231"),
        ("AUTH_/user/test:tester", "e092c6d30af64b1720ad76dc3f742420", "132"),
    ],
)
def test_keys_find_the_servers_of_the_peer(key, hashed, order):
    assert wire_key(key) == hashed
    assert "".join(s[7] for s in ServerRing(SERVERS).servers_for(hashed)) == order
    assert "".join(s[7] for s in ServerRing(reversed(SERVERS)).servers_for(hashed)) == order
    assert "".join(s[7] for s in ServerRing(SERVERS, tries=1).servers_for(hashed)) == order[0]


def test_one_server_has_everything():
    assert list(ServerRing(SERVERS[:1]).servers_for("0" * 32)) == SERVERS[:1]


def test_values_are_ascii_json_with_flag_2():
    assert set_command("ab", {"ü": 1}, 60) == b'set ab 2 60 13\r\n{"\\u00fc": 1}\r\n'
    assert set_command("ab", 5, 0, raw=True) == b"set ab 0 0 1\r\n5\r\n"


@pytest.mark.parametrize(
    ("flags", "data", "value"),
    [
        (2, b'{"a": 1}', {"a": 1}),
        (2, b"{broken", None),
        (1, b"pickled", None),
        (0, b"5", "5"),
        (3, b"1", None),
    ],
)
def test_what_cannot_be_trusted_reads_as_a_miss(flags, data, value):
    assert decode_value(flags, data) == value


def test_long_lives_are_sent_as_moments():
    assert expiry(60, 1000) == 60
    assert expiry(0, 1000) == 0
    assert expiry(30 * 86400, 1000) == 30 * 86400
    assert expiry(30 * 86400 + 1, 1000) == 30 * 86400 + 1001

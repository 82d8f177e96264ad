"""A node finds itself in a ring by any spelling of its addresses."""

from swift.platform.addresses import names_any_of, normalized, own_addresses


def test_any_address_means_all_interfaces():
    for bind_ip in ("", "0.0.0.0", "::"):
        assert "127.0.0.1" in own_addresses(bind_ip)


def test_a_bound_address_means_only_itself():
    assert own_addresses("10.1.2.3") == {"10.1.2.3"}
    assert not names_any_of("127.0.0.1", own_addresses("10.1.2.3"))


def test_spellings_of_an_address_are_one():
    assert normalized("[2001:0DB8::0001]") == "2001:db8::1"
    assert names_any_of("2001:0db8:0:0::1", frozenset(("2001:db8::1",)))


def test_host_names_are_resolved():
    assert names_any_of("localhost", own_addresses("127.0.0.1")) or names_any_of("localhost", own_addresses())
    assert not names_any_of("no-such-host.invalid", own_addresses())

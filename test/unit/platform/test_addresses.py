"""A node finds itself in a ring by any spelling of its addresses."""

from swift.platform.addresses import matches_any_address, normalize_address, own_addresses


def test_any_address_means_all_interfaces():
    for bind_ip in ("", "0.0.0.0", "::"):
        assert "127.0.0.1" in own_addresses(bind_ip)


def test_a_bound_address_means_only_itself():
    assert own_addresses("10.1.2.3") == {"10.1.2.3"}
    assert not matches_any_address("127.0.0.1", own_addresses("10.1.2.3"))


def test_spellings_of_an_address_are_one():
    assert normalize_address("[2001:0DB8::0001]") == "2001:db8::1"
    assert matches_any_address("2001:0db8:0:0::1", frozenset(("2001:db8::1",)))


def test_host_names_are_resolved():
    assert matches_any_address("localhost", own_addresses("127.0.0.1")) or matches_any_address(
        "localhost", own_addresses()
    )
    assert not matches_any_address("no-such-host.invalid", own_addresses())

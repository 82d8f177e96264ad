"""The MD5 of a body is computed once."""

import pytest

from swift.wire.etagtrailer import CRC32, ETAG, OFFER, SUMS, is_offered, trailers


@pytest.mark.parametrize(
    ("headers", "offered"),
    [({}, False), ({OFFER: CRC32}, True), ({OFFER: "md5"}, False), ({OFFER: ""}, False)],
)
def test_only_the_checksum_that_is_known_is_an_offer(headers, offered):
    assert is_offered(headers) is offered


def test_the_trailers_bring_both_sums():
    assert trailers("e" * 32, "s") == {ETAG: "e" * 32, SUMS: "s"}


def test_all_of_it_stays_inside_the_cluster():
    from swift.http.internal import is_internal

    assert all(map(is_internal, (OFFER, ETAG, SUMS)))

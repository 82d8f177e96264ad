"""Who gives way when all places are taken: those whom it costs nothing, then those who hold too many."""

from types import SimpleNamespace

import pytest

from swift.runtime.httpd import (
    HEAD_GRACE_S,
    INCOMPLETE_HEAD_SHARE,
    STALL_GRACE_S,
    connection_to_close,
    incomplete_heads_max,
)

PLACES = 4 * INCOMPLETE_HEAD_SHARE
NOW = 100.0


def connection(address="a", **how):
    usual = {"head_started_at": 0.0, "stalled_since": 0.0, "lingering_since": 0.0, "is_parked": False}
    return SimpleNamespace(**{**usual, **how}, peer=(address, 1))


def parked(since, address="a"):
    return connection(address, head_started_at=since, is_parked=True)


def head(since, address="a"):
    return connection(address, head_started_at=since)


def at_work(address="a", stalled_since=0.0):
    return connection(address, stalled_since=stalled_since)


def lingering(since, stalled_since=0.0):
    return connection(lingering_since=since, stalled_since=stalled_since)


@pytest.mark.parametrize(("places", "most"), [(0, 1), (1, 1), (7, 1), (8, 2), (4096, 1024)])
def test_an_address_has_a_part_of_the_places_for_heads_and_one_at_least(places, most):
    assert incomplete_heads_max(places) == most


def test_the_longest_parked_goes_first_whoever_else_there_is():
    connections = [
        head(1.0),
        parked(5.0),
        parked(3.0),
        parked(4.0),
        at_work(),
        *[head(2.0) for _ in range(9)],
    ]
    assert connection_to_close(connections, PLACES, NOW) is connections[2]


def test_a_refused_upload_that_is_dropped_goes_before_all_others():
    connections = [parked(1.0), lingering(9.0), lingering(8.0, stalled_since=NOW), head(1.0), at_work()]
    assert connection_to_close(connections, PLACES, NOW) is connections[2]


def test_nobody_gives_way_who_is_at_work():
    assert connection_to_close([at_work() for _ in range(PLACES)], PLACES, NOW) is None
    assert connection_to_close([], PLACES, NOW) is None


def test_young_heads_within_their_share_stay():
    assert connection_to_close([head(NOW - HEAD_GRACE_S / 2) for _ in range(4)], PLACES, NOW) is None


def test_the_oldest_head_goes_once_it_is_old_whatever_its_address():
    """Many addresses with few heads each take all places as well."""
    connections = [head(NOW - number / 2, address=f"10.0.0.{number}") for number in range(9)]
    assert connection_to_close(connections, PLACES, NOW) is connections[-1]


@pytest.mark.parametrize(("stalled_s", "goes"), [(STALL_GRACE_S, True), (STALL_GRACE_S - 0.1, False)])
def test_a_body_without_progress_goes_once_it_has_stalled_for_long(stalled_s, goes):
    stalled = at_work(stalled_since=NOW - stalled_s)
    connections = [at_work(), at_work(stalled_since=NOW - 0.5), stalled, head(NOW)]
    assert connection_to_close(connections, PLACES, NOW) is (stalled if goes else None)


def test_of_an_address_with_too_many_heads_the_oldest_goes():
    connections = [*[head(1.0, "honest") for _ in range(4)], *[head(9.0 - n, "greedy") for n in range(5)]]
    assert connection_to_close(connections, PLACES, NOW) is connections[-1]


def test_each_client_behind_a_name_that_is_no_text_counts_for_itself():
    connections = [head(NOW - n, address=number) for n in (0.1, 0.2) for number in (1, 2, None)]
    assert connection_to_close(connections, 4, NOW) in connections
    assert connection_to_close(connections, PLACES, NOW) is None


def test_one_address_may_not_keep_all_places_with_heads_that_it_never_ends():
    connections = [head(float(n), "evil") for n in range(1, PLACES + 1)]
    assert connection_to_close(connections, PLACES, NOW) is connections[0]

"""Which idle connection is used again."""

from types import SimpleNamespace

from swift.cluster.pool import IdleConnections

HERE, THERE = ("10.0.0.1", 6200), ("10.0.0.2", 6200)


def connection(address=HERE):
    return SimpleNamespace(address=address, idle_since=0.0)


def test_the_freshest_connection_comes_first():
    pool = IdleConnections()
    older, newer = connection(), connection()
    pool.put(older, 1)
    pool.put(newer, 2)
    assert pool.get(HERE, 3) == (newer, [])
    assert pool.get(HERE, 3) == (older, [])
    assert pool.get(HERE, 3) == (None, [])


def test_connections_to_another_address_are_not_used():
    pool = IdleConnections()
    pool.put(connection(THERE), 1)
    assert pool.get(HERE, 1) == (None, [])
    assert len(pool) == 1


def test_what_is_too_old_is_handed_back_to_be_closed():
    pool = IdleConnections(idle_max_s=30)
    old = [connection(), connection()]
    for each in old:
        pool.put(each, 0)
    assert pool.get(HERE, 30)[0] is old[1]
    assert pool.get(HERE, 30.5) == (None, [old[0]])
    assert len(pool) == 0


def test_an_address_keeps_a_bounded_number_and_drops_the_oldest():
    pool = IdleConnections(per_address_max=2)
    three = [connection() for _ in range(3)]
    assert [pool.put(each, n) for n, each in enumerate(three)] == [None, None, three[0]]
    assert len(pool) == 2


def test_after_a_fork_everything_is_let_go():
    pool = IdleConnections()
    all_of_them = [connection(), connection(THERE)]
    for each in all_of_them:
        pool.put(each, 0)
    assert pool.clear() == all_of_them
    assert len(pool) == 0

"""What keeps an all-in-one cluster alive: pauses between starts, a cache within its bounds."""

from swift.cli.aio.cache import Store
from swift.cli.aio.supervisor import PAUSE_MAX_S, PAUSE_MIN_S, SETTLED_S, Pauses


def test_a_process_that_dies_again_and_again_is_started_ever_more_rarely():
    pauses, now, waited = Pauses(), 0.0, []
    for _ in range(9):
        waited.append(pauses.after(now))
        now += waited[-1]
        pauses.began(now)
        now += 1
    assert waited[:4] == [PAUSE_MIN_S, 2 * PAUSE_MIN_S, 4 * PAUSE_MIN_S, 8 * PAUSE_MIN_S]
    assert waited[-1] == PAUSE_MAX_S
    assert pauses.after(now + SETTLED_S) == PAUSE_MIN_S


def test_the_cache_forgets_what_was_used_least_recently_when_its_bytes_are_full():
    store = Store(bytes_max=10_000)
    for name in (b"a", b"b", b"c"):
        store.set(name, b"0", b"x" * 2500, 0)
    assert store.get(b"a") is not None
    store.set(b"d", b"0", b"x" * 2500, 0)
    assert store.get(b"b") is None
    assert [name for name in (b"a", b"c", b"d") if store.get(name)] == [b"a", b"c", b"d"]
    assert store.size_bytes <= 10_000


def test_the_cache_counts_its_bytes_whatever_happens_to_an_entry():
    store = Store()
    store.set(b"n", b"0", b"9", 0)
    once = store.size_bytes
    assert store.change(b"n", 1) == b"10"
    assert store.size_bytes == once + 1
    store.set(b"n", b"0", b"1", 0)
    assert store.size_bytes == once
    store.set(b"gone", b"0", b"v", -1)
    assert store.get(b"gone") is None
    assert store.delete(b"n")
    assert store.size_bytes == 0

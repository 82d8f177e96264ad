"""Places are limited, shared, and free again whatever becomes of their holder."""

import gc
import os

import pytest

from swift.platform.slots import SharedSlots


def descriptors():
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def test_there_are_as_many_as_were_made_and_a_closed_one_is_free_again():
    places = SharedSlots(2)
    first, second = places.take(), places.take()
    assert first is not None
    assert second is not None
    assert places.take() is None
    first.close()
    first.close()
    third = places.take()
    assert third is not None
    assert places.take() is None


def test_a_dropped_place_is_free_again():
    places = SharedSlots(1)
    taken = places.take()
    assert places.take() is None
    del taken
    gc.collect()
    assert places.take() is not None


def test_no_number_is_any_number():
    places = SharedSlots(0)
    assert None not in [places.take() for _ in range(100)]


@pytest.mark.process
def test_another_process_takes_from_the_same_and_its_end_gives_back():
    places = SharedSlots(1)
    told, tell = os.pipe()
    leave, let_go = os.pipe()
    child = os.fork()
    if child == 0:
        taken = places.take()
        os.write(tell, b"t" if taken is not None else b"f")
        os.read(leave, 1)
        os._exit(0)
    assert os.read(told, 1) == b"t"
    assert places.take() is None
    os.write(let_go, b"x")
    os.waitpid(child, 0)
    assert places.take() is not None
    for fd in (told, tell, leave, let_go):
        os.close(fd)


@pytest.mark.long
def test_nothing_stays_open():
    before = descriptors()
    places = SharedSlots(3)
    taken = [places.take() for _ in range(5)]
    assert descriptors() == before + 6
    del places, taken
    assert descriptors() == before

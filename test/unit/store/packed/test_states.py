"""swift/store/packed/states.py: the tables say what follows from what a writer and its index have done."""

from __future__ import annotations

from contextlib import suppress
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swift.base.errors import LockTimeout, NoSpace
from swift.store.lmdbindex import IndexFailed
from swift.store.packed.record import ALIGNMENT
from swift.store.packed.states import (
    INDEX,
    WRITER,
    Completeness,
    Event,
    IndexEvent,
    InvalidTransition,
    Volume,
    after,
    index_after,
)
from test.unit.store.packed.test_device import Bench

# A writer's model: its volume's end and the end of what is indexed, both counted in batches, and whether
# the index has refused the last one. None: it holds no volume.
FACTS = {
    Volume.NONE: None,
    Volume.READY: (1, 1, False),
    Volume.WRITTEN: (1, 0, False),
    Volume.BEHIND: (1, 0, True),
}


def happened(facts, event):
    """The knowledge of a writer after an event; raises ``AssertionError`` if that must not happen."""
    if event is Event.TAKE:
        assert facts is None, "a second volume would be forgotten"
        return (1, 1, False)
    assert facts is not None, "there is no volume"
    end, indexed, is_refused = facts
    is_indexed = end == indexed
    match event:
        case Event.WRITE:
            assert is_indexed, "records that are not acknowledged would be in the midst of the volume"
            return (1, 0, False)
        case Event.REFUSE:
            assert is_indexed
            return facts
        case Event.FAIL:
            assert is_indexed
            return None
        case Event.PUBLISH:
            assert not is_indexed and not is_refused, "only replaying tells what the volume has"
            return (1, 1, False)
        case Event.MISS:
            assert not is_indexed and not is_refused
            return (1, 0, True)
        case Event.REPLAY:
            return (1, 1, False)
        case Event.LOSE:
            return None
        case Event.LET_GO:
            assert is_indexed, "records would never be indexed"
            return None
    raise AssertionError(event)


@pytest.mark.parametrize(("state", "event"), list(product(Volume, Event)))
def test_every_pair_of_state_and_event_follows_from_what_the_writer_knows(state, event):
    try:
        expected = happened(FACTS[state], event)
    except AssertionError:
        with pytest.raises(InvalidTransition, match=event.value):
            after(state, event)
        return
    assert FACTS[after(state, event)] == expected


@pytest.mark.parametrize(("state", "event"), list(product(Completeness, IndexEvent)))
def test_every_pair_of_an_index_follows_from_what_it_has(state, event):
    is_open = state is not Completeness.CLOSED
    is_possible = is_open or event in (IndexEvent.OPEN, IndexEvent.OPEN_PARTLY)
    if not is_possible:
        with pytest.raises(InvalidTransition, match=event.value):
            index_after(state, event)
        return
    lacks = event is IndexEvent.OPEN_PARTLY
    closed, kept = Completeness.CLOSED, Completeness.PARTIAL if lacks else Completeness.WHOLE
    assert index_after(state, event) is (closed if event is IndexEvent.CLOSE else kept)


def test_the_tables_have_every_state():
    assert set(WRITER) == set(Volume) and set(INDEX) == set(Completeness)


STEPS = {
    "put": None,
    "sync fails": ("fdatasync", OSError(5, "no")),
    "no room": ("pwrite", OSError(28, "full")),
    "commit fails": ("commit", IndexFailed("no")),
    "index is lost": None,
    "idle": None,
    "removed": None,
}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(list(STEPS)), min_size=1, max_size=8))
def test_a_writer_is_always_in_the_state_that_its_volume_says(steps):
    bench = Bench()
    acknowledged = []
    for second, step in enumerate(steps, 1):
        device = bench.process()
        writer = device.writer
        if step == "idle":
            # It compares the index with a volume that was removed perhaps.
            with suppress(OSError):
                writer.let_go_of_idle_volume(idle_s=0.0)
        elif step == "index is lost":
            bench.machine.file = None
        elif step == "removed":
            if writer.appender is not None:
                acknowledged.clear()
                for number in device.volumes.numbers():
                    bench.machine.disk.unlink(device.volumes.path(number))
        else:
            if STEPS[step] is not None:
                bench.fail(*STEPS[step])
            with suppress(OSError, NoSpace, LockTimeout, IndexFailed):
                bench.put(second)
                acknowledged.append(second)
            bench.mend()
        appender = writer.appender
        if appender is None:
            assert writer.state is Volume.NONE
        else:
            is_indexed = appender.published == appender.end
            assert (writer.state is Volume.READY) == is_indexed and appender.end >= ALIGNMENT
    bench.process().read_index(lambda index, _spaces: index.get(b"any"))
    assert set(acknowledged) <= set(bench.seconds())

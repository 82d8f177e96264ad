"""What a broker may do without another look at its directory."""

import pytest

from swift.db.broker import FileState, Freshness

#: Equal names that are not one object, as from two looks at a directory that was not at rest.
NAMES, AGAIN = tuple("a"), tuple(iter("a"))


@pytest.fixture
def known():
    return Freshness()


def test_nobody_writes_before_somebody_looked(known):
    assert known.state is FileState.UNKNOWN and not known.is_fresh


def test_files_are_fresh_when_the_next_look_tells_the_very_same(known):
    known.saw(NAMES)
    assert known.state is FileState.OPENED
    known.opened = NAMES
    known.saw(NAMES)
    assert known.is_fresh


def test_equal_names_of_a_directory_that_is_not_at_rest_are_not_fresh(known):
    known.opened = NAMES
    known.saw(AGAIN)
    assert known.state is FileState.OPENED


@pytest.mark.parametrize(
    ("event", "state"),
    [
        (lambda known: known.saw(()), FileState.ABSENT),
        (lambda known: known.lost(), FileState.UNKNOWN),
        (lambda known: known.closed(), FileState.UNKNOWN),
    ],
)
def test_what_went_away_is_not_fresh(known, event, state):
    known.opened = NAMES
    known.saw(NAMES)
    event(known)
    assert known.state is state and not known.is_fresh


def test_a_broker_that_was_closed_is_not_fresh_by_names_of_before(known):
    known.opened = NAMES
    known.closed()
    known.saw(NAMES)
    assert not known.is_fresh


def test_rows_that_were_put_during_a_look_count_for_more_than_the_look(known):
    known.has_pending = True
    known.learn_pending(False)
    assert known.has_pending
    known.has_pending = None
    known.learn_pending(False)
    assert known.has_pending is False


def test_it_shows_what_it_knows(known):
    known.opened = NAMES
    known.saw(NAMES)
    known.has_pending = False
    assert repr(known) == "<Freshness fresh, nothing pending>"

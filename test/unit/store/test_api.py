"""What is known of an object without its body, and what follows from that."""

from __future__ import annotations

import pytest

from swift.base.timestamp import ZERO, Timestamp
from swift.store.api import ABSENT, DELETED, EXPIRED, LIVE, ObjectState, ReadOptions

DATA, POSTED = Timestamp(5), Timestamp(9)


def state(kind, **metadata):
    named = {name.replace("_", "-"): text for name, text in metadata.items()}
    return ObjectState(kind, named, timestamp=POSTED, data_timestamp=DATA)


def test_nothing_is_known_of_what_is_not_there():
    nothing = ObjectState()
    assert (nothing.kind, nothing.exists, nothing.etag, nothing.delete_at) == (ABSENT, False, None, None)
    assert nothing.write_timestamp == ZERO


@pytest.mark.parametrize(
    ("kind", "exists"), [(LIVE, True), (EXPIRED, False), (DELETED, False), (ABSENT, False)]
)
def test_only_what_lives_can_be_served(kind, exists):
    assert state(kind).exists == exists


def test_a_write_must_be_newer_than_the_body_and_not_than_what_was_posted_to_it():
    assert state(LIVE).write_timestamp == DATA
    assert state(DELETED).write_timestamp == POSTED, "of a tombstone its own"
    assert state(EXPIRED).write_timestamp == POSTED


@pytest.mark.parametrize(("kind", "etag"), [(LIVE, "e"), (EXPIRED, "e"), (DELETED, None), (ABSENT, None)])
def test_a_checksum_belongs_to_a_body(kind, etag):
    assert state(kind, ETag="e").etag == etag


@pytest.mark.parametrize(("text", "moment"), [("2000", 2000), ("0000000100", 100), ("", None), (None, None)])
def test_when_it_expires_is_a_number_or_not_known(text, moment):
    found = state(LIVE, X_Delete_At=text) if text is not None else state(LIVE)
    assert found.delete_at == moment


def test_states_share_no_metadata():
    first = ObjectState()
    first.metadata["a"] = "b"
    assert ObjectState().metadata == {}


def test_who_says_nothing_else_sees_what_is_durable_and_not_expired():
    assert ReadOptions(5.0) == (5.0, False, None, None)

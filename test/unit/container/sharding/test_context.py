"""How far a file's rows were brought to shards: kept in metadata, and begun anew when that cannot be read."""

from __future__ import annotations

import json

import pytest

from swift.base.timestamp import Timestamp
from swift.container.sharding.context import PREFIX, CleaveContext
from test.support.databases import make_container

NONE = CleaveContext("ref", max_row=7)


def stored(text):
    return {PREFIX + "ref": (text, "1.00000")}


@pytest.fixture
def broker(tmp_path):
    made = make_container(tmp_path)
    yield made
    made.close()


def load(broker, max_row=7):
    return CleaveContext.load(broker.info().metadata, "ref", max_row)


def test_what_is_stored_is_found_again_with_the_rows_that_there_are_now(broker):
    context = CleaveContext("ref", "m", 3, 5, 2, True, True, 4, 1, 2.5)
    context.store(broker, Timestamp(10))
    context.max_row = 7
    assert load(broker) == context


def test_each_file_has_a_progress_of_its_own(broker):
    CleaveContext("other", "m").store(broker, Timestamp(10))
    assert load(broker) == NONE


def test_what_was_forgotten_is_none(broker):
    context = CleaveContext("ref", "m")
    context.store(broker, Timestamp(10))
    context.delete(broker, Timestamp(11))
    assert load(broker) == NONE
    context.store(broker, Timestamp(10))
    assert load(broker) == NONE, "what is older does not come back"


def test_a_peer_s_progress_is_read_whatever_else_it_says():
    text = json.dumps(
        {"ref": "another", "cursor": "m", "cleave_to_row": 5, "cleaving_done": False, "new": [1]}
    )
    found = CleaveContext.load(stored(text), "ref", 7)
    assert (found.ref, found.cursor, found.cleave_to_row, found.max_row) == ("ref", "m", 5, 7)
    assert CleaveContext.load(stored('{"cursor": null, "cleave_to_row": null}'), "ref", 7) == NONE


@pytest.mark.parametrize(
    "text",
    ["", "{", "[" * 100_000, "[]", "5", "null", '"text"', "\ud800"]
    + ['{"cursor": 5}', '{"cursor": []}', '{"cleave_to_row": "5"}', '{"cleave_to_row": 1.5}']
    + [
        '{"cleaving_done": "no"}',
        '{"ranges_done": null}',
        '{"ranges_todo": {}}',
        '{"last_cleave_to_row": true}',
    ],
)
def test_what_cannot_be_read_is_none(text):
    assert CleaveContext.load(stored(text), "ref", 7) == NONE


def test_beginning_again_takes_up_all_rows_and_remembers_those_of_last_time():
    context = CleaveContext("ref", "m", 3, 5, 2, True, True, 4, 1)
    context.start(9)
    assert (context.cursor, context.cleave_to_row, context.last_cleave_to_row) == ("", 9, 5)
    assert (context.cleaving_done, context.ranges_done, context.ranges_todo) == (False, 0, 0)

"""Declarations of internal names are values."""

import dataclasses

import pytest

from swift.http.field import Direction, Field, FieldKind

ONE = Field("x-backend-a", FieldKind.TIME, Direction.TO_NODE, "When.")


def test_two_that_say_the_same_are_the_same():
    assert Field("x-backend-a", FieldKind.TIME, Direction.TO_NODE, "When.") == ONE
    assert len({ONE, dataclasses.replace(ONE), dataclasses.replace(ONE, kind=FieldKind.TEXT)}) == 2


@pytest.mark.parametrize("name", ["name", "kind", "direction", "doc"])
def test_nobody_changes_a_declaration(name):
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(ONE, name, "other")


@pytest.mark.parametrize("words", [FieldKind, Direction])
def test_each_has_words_of_its_own_for_the_reference(words):
    texts = [member.value for member in words]
    assert all(texts) and len(set(texts)) == len(texts)
    assert list(words.__members__.values()) == list(words), "none is another's alias"

"""What the names of a hash directory mean, and how files are taken out of consideration."""

from __future__ import annotations

from swift.base.timestamp import Timestamp
from swift.store.api import FragmentPreference
from swift.store.chooser import Choice, exclude
from swift.store.layout import parse_name


def file(name):
    return parse_name(name)


DATA, META, TOMBSTONE = (
    file("0000000005.00000.data"),
    file("0000000007.00000.meta"),
    file("0000000003.00000.ts"),
)


def test_nothing_is_there_without_data_and_tombstone():
    assert Choice().is_empty
    assert Choice(meta=META, obsolete=[DATA]).is_empty, "metadata of nothing is nothing"
    assert not Choice(data=DATA).is_empty
    assert not Choice(tombstone=TOMBSTONE).is_empty


def test_what_is_obsolete_leaves_its_group_and_the_others_keep_their_order():
    groups = {".data": [DATA, file("0000000002.00000.data")], ".ts": [TOMBSTONE], ".meta": [META]}
    choice = Choice(obsolete=[META])
    exclude(groups, choice, lambda each: each.timestamp < Timestamp(5))
    assert groups == {".data": [DATA], ".ts": [], ".meta": [META]}
    assert [each.name for each in choice.obsolete] == [META.name, "0000000002.00000.data", TOMBSTONE.name]


def test_choices_share_no_lists():
    first = Choice()
    first.obsolete.append(DATA)
    assert Choice().obsolete == []


def test_a_preference_without_indexes_excludes_none():
    assert FragmentPreference(Timestamp(5)).exclude == frozenset()

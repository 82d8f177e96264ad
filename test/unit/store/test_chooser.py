"""The choosers keep their promises for any set of names (spec: object-disk.md §6)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from swift.base.timestamp import Timestamp
from swift.policy.policy import ErasureCode
from swift.store.api import FragmentPreference
from swift.store.chooser import choose
from swift.store.layout import data_name, meta_name, parse_name, tombstone_name

EC = ErasureCode("liberasurecode_rs_vand", 4, 2)

_TIMES = st.builds(Timestamp.from_raw, st.integers(1, 12), st.integers(0, 1))
_METAS = st.builds(meta_name, _TIMES, st.one_of(st.none(), st.builds(Timestamp.from_raw, st.integers(1, 12))))
_ODD = st.sampled_from(["garbage", ".5.data.Xy09zA", "0000000003.00000.other"])
REPLICATED = st.lists(
    st.one_of(st.builds(data_name, _TIMES), st.builds(tombstone_name, _TIMES), _METAS, _ODD),
    unique=True,
    max_size=8,
)
_ARCHIVES = st.builds(
    lambda at, index, durable: data_name(at, index, durable=durable), _TIMES, st.integers(0, 6), st.booleans()
)
_LEGACY = st.builds(lambda at: f"{at.internal}.durable", _TIMES)
ARCHIVED = st.lists(
    st.one_of(_ARCHIVES, _ARCHIVES, st.builds(tombstone_name, _TIMES), _METAS, _LEGACY, _ODD),
    unique=True,
    max_size=8,
)
_PREFERENCES = st.one_of(
    st.none(),
    st.lists(st.builds(FragmentPreference, _TIMES, st.frozensets(st.integers(0, 5), max_size=6)), max_size=3),
)


def kept(choice):
    return [file for file in (choice.data, choice.meta, choice.ctype, choice.tombstone) if file is not None]


def check_common(names, choice):
    assert {file.name for file in kept(choice)} <= set(names)
    obsolete = {file.name for file in choice.obsolete}
    assert len(obsolete) == len(choice.obsolete)
    assert not obsolete & {file.name for file in kept(choice)}
    assert not obsolete & set(choice.unexpected)
    if choice.meta is not None or choice.ctype is not None:
        assert choice.data is not None
    assert choice.data is None or choice.tombstone is None


_PLAIN = st.builds(Timestamp.from_raw, st.integers(1, 4))
_PAIRS = st.lists(
    st.one_of(st.builds(data_name, _PLAIN), st.builds(tombstone_name, _PLAIN), st.builds(data_name, _TIMES)),
    unique=True,
    min_size=2,
    max_size=2,
)


@given(_PAIRS)
def test_two_files_mean_the_same_whether_or_not_there_is_another_one_that_means_nothing(names):
    alone, accompanied = choose(names), choose([*names, "garbage"])
    assert alone == replace(accompanied, unexpected=[])


@given(REPLICATED)
def test_of_replicated_files_the_newest_of_body_and_tombstone_wins(names):
    choice = choose(names)
    check_common(names, choice)
    bodies = [Timestamp(name[:-5]) for name in names if name.endswith(".data") and name[0] == "0"]
    graves = [Timestamp(name[:-3]) for name in names if name.endswith(".ts")]
    newest_body, newest_grave = max(bodies, default=None), max(graves, default=None)
    if newest_body is not None and (newest_grave is None or newest_body > newest_grave):
        assert choice.data.timestamp == newest_body
    else:
        assert choice.data is None
        assert (choice.tombstone.timestamp if choice.tombstone else None) == newest_grave


@given(REPLICATED, st.randoms(use_true_random=False))
def test_the_order_of_a_directory_does_not_matter(names, rng):
    shuffled = list(names)
    rng.shuffle(shuffled)
    assert choose(names) == choose(shuffled)
    assert choose(names, EC) == choose(shuffled, EC)


@given(REPLICATED)
def test_cleaning_up_does_not_change_what_is_served(names):
    before = choose(names)
    gone = {file.name for file in before.obsolete}
    after = choose([name for name in names if name not in gone])
    assert kept(after) == kept(before)
    assert after.obsolete == []


def _merged(left, right):
    """What two directories amount to together: as they are, and each cleaned up before."""

    def cleaned(names):
        gone = {file.name for file in choose(names).obsolete}
        return [name for name in names if name not in gone]

    return choose(sorted({*left, *right})), choose(sorted({*cleaned(left), *cleaned(right)}))


@given(REPLICATED, REPLICATED)
def test_merging_two_directories_keeps_body_tombstone_and_newest_post_whether_cleaned_before_or_not(
    left, right
):
    plain, cleaned = _merged(left, right)
    assert (cleaned.data, cleaned.tombstone) == (plain.data, plain.tombstone)
    times = [choice.meta.timestamp if choice.meta else None for choice in (plain, cleaned)]
    assert times[0] == times[1]


@given(REPLICATED, REPLICATED)
def test_merging_two_directories_is_the_same_in_all_when_no_post_is_older_than_what_it_changes(left, right):
    bodies = [
        parse_name(name).timestamp
        for name in {*left, *right}
        if name.endswith((".data", ".ts")) and name[0] == "0"
    ]
    newest = max(bodies, default=Timestamp(0))

    def without_hidden(names):
        return [name for name in names if not name.endswith(".meta") or parse_name(name).timestamp > newest]

    plain, cleaned = _merged(without_hidden(left), without_hidden(right))
    assert kept(cleaned) == kept(plain)


def test_a_post_that_is_older_than_the_body_still_takes_the_place_of_a_content_type():
    """The peer's order of rules: both must choose alike, or their suffix hashes would never agree.

    Metas are chosen before bodies hide any. What was so lost is offered again by the replica that has it.
    """
    body, newest = data_name(Timestamp(5)), meta_name(Timestamp(9), None)
    typed = meta_name(Timestamp(6), Timestamp(7))
    hidden = meta_name(Timestamp(4), Timestamp(8))
    assert choose([body, newest, typed]).ctype is not None
    assert choose([body, newest, typed, hidden]).ctype is None


@given(ARCHIVED, _PREFERENCES, st.one_of(st.none(), st.integers(0, 5)))
def test_archives_are_chosen_only_as_allowed(names, preferences, index):
    choice = choose(names, EC, preferences=preferences, fragment=index)
    orphaned = choice.durable_timestamp is None and any(name.endswith(".durable") for name in names)
    if not orphaned:
        # Before a lone .durable every archive is obsolete, yet one may still be asked for.
        check_common(names, choice)
    if choice.data is None:
        return
    listed = dict(choice.fragment_sets)
    assert choice.data in listed[choice.data.timestamp]
    if preferences is None:
        assert choice.durable_timestamp == choice.data.timestamp
        assert index is None or choice.data.fragment == index


@given(ARCHIVED)
def test_without_preferences_nothing_older_than_a_committed_archive_survives(names):
    choice = choose(names, EC)
    if choice.durable_timestamp is None:
        return
    gone = {file.name for file in choice.obsolete} | set(choice.unexpected)
    left = [name for name in names if name not in gone]
    for name in left:
        stamp = name.partition("#")[0].partition("+")[0].partition("-")[0]
        stamp = stamp.removesuffix(".data").removesuffix(".ts").removesuffix(".meta")
        stamp = stamp.removesuffix(".durable").removesuffix(".other")
        assert Timestamp(stamp) >= choice.durable_timestamp


@given(ARCHIVED)
def test_a_tombstone_hides_every_archive_that_is_not_newer(names):
    choice = choose(names, EC, preferences=[])
    graves = [Timestamp(name[:-3]) for name in names if name.endswith(".ts")]
    if graves and choice.data is not None:
        assert choice.data.timestamp > max(graves)

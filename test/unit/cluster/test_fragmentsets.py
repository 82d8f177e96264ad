"""Fragment archives are grouped, ranked and asked for by the rules of proxy.md §13."""

import json

import pytest

from swift.base.timestamp import Timestamp
from swift.cluster.fragmentsets import FoundArchive, FragmentSets


def stamp(number):
    return Timestamp(1700000000 + number)


def holding(spec, *, etag="e", source=None):
    """``1#0#d`` is index 0 of upload 1, durable; ``1#0@2`` tells of a durable upload 2; ``1#0+3`` lists 3."""
    spec, _, listed = spec.partition("+")
    spec, _, durable = spec.partition("@")
    upload, index, *committed = spec.split("#")
    durable = upload if committed else durable
    internal = stamp(int(upload)).internal
    headers = {
        "x-backend-data-timestamp": internal,
        "x-object-sysmeta-ec-etag": etag,
        "x-object-sysmeta-ec-frag-index": index,
        "x-backend-fragments": json.dumps({internal: [int(index), *map(int, listed)]}),
    }
    if durable:
        headers["x-backend-durable-timestamp"] = stamp(int(durable)).internal
    return FoundArchive.of(headers, source or spec)


def sets(*specs, need=2):
    found = FragmentSets(need)
    for spec in specs:
        found.add(holding(spec))
    return found


def picture(found):
    """``1d01 2p3``: uploads by rank, durable or pending, with their indexes."""
    return " ".join(
        f"{int(g.timestamp.seconds) - 1700000000}{'d' if g.durable else 'p'}"
        + "".join(map(str, sorted(g.members)))
        for g in found.ranked()
    )


@pytest.mark.parametrize(
    ("responses", "expected"),
    [
        ((), ""),
        (("1#0#d", "1#1"), "1d01"),
        # durable before complete, complete before promising, promising before new
        (("2#0", "2#1", "1#0#d"), "1d0 2p01"),
        (("2#0#d", "1#0#d", "1#1"), "1d01 2d0"),
        (("2#0", "1#0", "1#1"), "1p01 2p0"),
        (("2#0", "1#0+3"), "1p0 2p0"),
        (("2#0", "1#0"), "2p0 1p0"),
        (("2#0#d", "2#1", "1#0#d", "1#1"), "2d01 1d01"),
        # another node's answer tells that an upload was committed
        (("1#0", "2#1@1"), "1d0 2p1"),
        (("2#1@1", "1#0"), "1d0 2p1"),
    ],
)
def test_uploads_are_ranked(responses, expected):
    assert picture(sets(*responses)) == expected


@pytest.mark.parametrize(
    ("responses", "complete", "shortfall"),
    [
        ((), False, 2),
        (("1#0#d",), False, 1),
        (("1#0#d", "1#0"), False, 1),
        (("1#0#d", "1#3"), True, 0),
        # enough, but never committed as far as is known: somebody else may know more
        (("1#0", "1#3"), False, 1),
    ],
)
def test_an_object_is_complete_with_k_distinct_archives_of_a_durable_upload(responses, complete, shortfall):
    found = sets(*responses)
    assert ((found.complete is not None), found.shortfall) == (complete, shortfall)


def test_a_second_archive_of_an_index_is_spare():
    found = sets("1#0#d")
    assert found.add(holding("1#0", source="other")) is False
    assert [s.source for s in found.best.spares] == ["other"]


def test_an_archive_of_another_object_at_the_same_time_is_left_out():
    found = sets("1#0#d")
    assert found.add(holding("1#1", etag="different")) is False
    assert picture(found) == "1d0"


def test_uploads_older_than_a_tombstone_do_not_count():
    found = sets("1#0#d", "1#1", "3#0#d")
    found.record_deletion(stamp(2))
    assert picture(found) == "3d0"
    assert found.add(holding("1#1")) is False
    found.record_deletion(stamp(3))
    assert picture(found) == ""


def test_the_next_request_says_what_is_held():
    found = sets("2#5", "1#0#d", "1#3")
    assert json.loads(found.preferences()) == [
        {"timestamp": stamp(1).internal, "exclude": [0, 3]},
        {"timestamp": stamp(2).internal, "exclude": [5]},
    ]
    assert FragmentSets(2).preferences() == "[]"


def test_nodes_that_list_further_indexes_are_alternates_once_for_each():
    found = FragmentSets(4)
    found.add(holding("1#0#d+023", source="a"))
    found.add(holding("1#1+3", source="b"))
    assert list(found.best.alternates()) == ["a", "a"]
    found.add(holding("1#2", source="c"))
    assert list(found.best.alternates()) == ["a"]


def test_an_alternate_is_taken_once_until_its_node_answers_again():
    found = FragmentSets(4)
    found.add(holding("1#0#d+023", source="a"))
    assert [found.best.pop_alternate(), found.best.pop_alternate()] == ["a", None]
    found.add(holding("1#2+03", source="a again"))
    assert found.best.pop_alternate() == "a again"


@pytest.mark.parametrize(
    "spoil",
    [
        {"x-object-sysmeta-ec-frag-index": ""},
        {"x-object-sysmeta-ec-frag-index": "²"},
        {"x-object-sysmeta-ec-etag": ""},
        {"x-backend-data-timestamp": "yesterday"},
        {"x-backend-durable-timestamp": "never"},
    ],
)
def test_an_answer_without_its_facts_is_no_archive(spoil):
    headers = {**holding("1#0#d").headers, **spoil}
    assert FoundArchive.of(headers, None) is None


def test_an_older_durable_upload_that_nodes_list_is_asked_for_first():
    found = FragmentSets(2)
    for index, source in ((0, "a"), (1, "b")):
        response = holding(f"2#{index}@1", source=source)
        listed = {stamp(2).internal: [index], stamp(1).internal: [index]}
        headers = {**response.headers, "x-backend-fragments": json.dumps(listed)}
        found.add(FoundArchive.of(headers, source))
    assert picture(found) == "1d 2p01"
    assert found.complete is None
    assert list(found.best.alternates()) == ["a", "b"]
    assert json.loads(found.preferences())[0] == {"timestamp": stamp(1).internal, "exclude": []}


def test_malformed_lists_of_fragments_are_no_lists():
    headers = {**holding("1#0#d").headers, "x-backend-fragments": "[1"}
    assert FoundArchive.of(headers, None).listed == {}

"""What all holders of a split container's rows say together, while the rows wander between them."""

import json
import random
from urllib.parse import parse_qsl

import pytest

from swift.base.errors import InvalidValue
from swift.base.shardrange import ShardRange, State
from swift.proxy.listing.merge import ReplicaRows, merge, parse_replica_rows
from swift.proxy.listing.plan import listing_parameters
from swift.proxy.listing.sources import SplitPage

ROOT = "a/c"
NAMES = [f"{letter}{number}" for letter in "abcdefgh" for number in range(4)]


def shard(name, lower="", upper="", *, state=State.ACTIVE, deleted=False):
    return ShardRange(name, "1700000000.00000", lower, upper, state=state, deleted=deleted)


def stored(name, time, deleted=False):
    created_at = f"17000{time:05d}.00000"
    if deleted:
        return {"name": name, "created_at": created_at, "deleted": True}
    return {"name": name, "created_at": created_at, "last_modified": str(time), "bytes": time}


def split_page(request_rows, root, params, wanted):
    def request(name, query, may_lack):
        return request_rows(name, dict(parse_qsl(query, keep_blank_values=True)), wanted, may_lack)

    texts = {name: text for name, text in params.items() if name != "marker"}
    return SplitPage(request, root, listing_parameters(texts), params.get("marker", ""), wanted).run()


# --- a model of servers that move rows -----------------------------------------------------------------


class Model:
    """Containers of three servers each; rows go from one to another as sharders move them."""

    def __init__(self, chance, ranges):
        self.chance = chance
        self.ranges = {item.name: item for item in ranges}
        self.rows = {name: [{}, {}, {}] for name in (ROOT, *self.ranges)}
        self.known = {name: [set(), set(), set()] for name in self.rows}
        for number in self.majority():
            # What a majority of the root knows is all that clients and sharders make use of.
            self.known[ROOT][number] |= set(self.ranges)
        self.clock = 0
        self.acknowledged = {}
        self.moved = set()

    def majority(self):
        return self.chance.sample(range(3), self.chance.choice((2, 3)))

    def homes(self, name):
        return [ROOT, *(item.name for item in self.ranges.values() if item.includes(name))]

    def write(self, container, name, deleted):
        self.clock += 1
        for number in self.majority():
            self.take(container, number, name, deleted)
        self.acknowledged[name] = not deleted

    def take(self, container, number, name, deleted, time=None):
        time = time or self.clock
        have = self.rows[container][number].get(name)
        if have is None or have[0] < time:
            self.rows[container][number][name] = (time, deleted)

    def client(self):
        name = self.chance.choice(NAMES)
        self.write(self.chance.choice(self.homes(name)), name, self.chance.random() < 0.4)

    def move(self):
        """One server gives a row to a majority of another container, which it names from then on."""
        container = self.chance.choice(list(self.rows))
        number = self.chance.randrange(3)
        rows = self.rows[container][number]
        names = [name for name in rows if name not in self.moved]
        if not names:
            return
        name = self.chance.choice(names)
        to = self.chance.choice([each for each in self.homes(name) if each != container] or [container])
        if to == container:
            return
        self.moved.add(name)
        self.known[container][number].add(to)
        time, deleted = rows.pop(name)
        for taker in self.majority():
            self.take(to, taker, name, deleted, time)

    def ask(self, name, params, wanted, may_lack):
        responses = []
        for number in self.majority():
            if self.chance.random() < 0.5:
                self.move()
            responses.append(self.answer(name, number, params, wanted))
        return responses

    def answer(self, container, number, params, wanted):
        reverse, marker = params.get("reverse") == "true", params.get("marker", "")
        held = sorted(self.rows[container][number], reverse=reverse)
        held = [each for each in held if not marker or (each < marker if reverse else each > marker)]
        ends, shown = [], []
        for deleted in (False, True):
            page = [each for each in held if self.rows[container][number][each][1] == deleted][:wanted]
            ends += page[-1:] if len(page) == wanted else []
            shown += page
        end = (max(ends) if reverse else min(ends)) if ends else ""
        rows = [
            stored(each, *self.rows[container][number][each])
            for each in shown
            if not end or (each >= end if reverse else each <= end)
        ]
        ranges = []
        for other in self.known[container][number]:
            item = self.ranges.get(other) or shard(ROOT)
            low, high = (marker and "", marker) if reverse else (marker, "")
            if (not item.upper or item.upper > low) and (not high or item.lower < high):
                ranges.append(item)
        return ReplicaRows(rows, end, ranges)


def listing(model, wanted, *, reverse):
    """All pages: what is sure, and what is in doubt."""
    sure, doubted, marker = [], [], ""
    for _ in range(200):
        params = {"marker": marker, **({"reverse": "true"} if reverse else {})}
        model.moved.clear()
        page = split_page(model.ask, ROOT, params, wanted)
        for row, is_sure in page.rows:
            (sure if is_sure else doubted).append(row["name"])
        if not page.end:
            return sure, doubted
        assert page.end != marker
        marker = page.end
    raise AssertionError("a listing without end")


SPLIT = [shard("s/1", "", "c1"), shard("s/2", "c1", "f"), shard("s/3", "f", "")]
#: A shard that has become two, and a neighbour that took another one in.
RESPLIT = [
    shard("s/old", "", "d", state=State.SHARDED, deleted=True),
    shard("s/1", "", "b2"),
    shard("s/2", "b2", "d"),
    shard("s/shrunk", "d", "e9", state=State.SHRUNK, deleted=True),
    shard("s/3", "d", ""),
]


@pytest.mark.long
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("ranges", [[], SPLIT, RESPLIT], ids=["whole", "split", "resplit"])
def test_what_was_acknowledged_is_found_however_rows_wander_meanwhile(ranges, reverse):
    for seed in range(300):
        chance = random.Random(seed)
        model = Model(chance, ranges)
        for _ in range(60):
            model.client()
            model.moved.clear()
            if chance.random() < 0.5:
                model.move()
        sure, doubted = listing(model, chance.choice((1, 3, 7, 100)), reverse=reverse)
        there = {name for name, is_there in model.acknowledged.items() if is_there}
        assert there <= {*sure, *doubted}, seed
        assert set(sure) <= there, seed
        assert sure == sorted(sure, reverse=reverse) and len({*sure, *doubted}) == len(sure + doubted), seed


def test_where_all_servers_agree_nothing_is_in_doubt_and_each_is_asked_once():
    model = Model(random.Random(1), SPLIT)
    model.majority = lambda: range(3)
    model.move = lambda: None
    for number, name in enumerate(NAMES):
        home = next(each for each in model.homes(name) if each != ROOT)
        model.write(home, name, deleted=number % 5 == 0)
        # What it was before lies at the root still.
        model.rows[ROOT][number % 3][name] = (0, False)
    requests = []

    def ask(name, params, wanted, may_lack):
        requests.append(name)
        return model.ask(name, params, wanted, may_lack)

    page = split_page(ask, ROOT, {}, 1000)
    assert [row["name"] for row, _ in page.rows] == [n for i, n in enumerate(NAMES) if i % 5]
    assert all(is_sure for _, is_sure in page.rows) and not page.end
    assert requests == [ROOT, "s/1", "s/2", "s/3"]


# --- who is asked -----------------------------------------------------------------------------------------


class Script:
    """Servers with fixed rows and ranges; remembers who was asked."""

    def __init__(self, ranges, rows=None):
        self.ranges, self.rows, self.asked = ranges, rows or {}, []

    def __call__(self, name, params, wanted, may_lack):
        self.asked.append((name, may_lack))
        return [ReplicaRows(list(self.rows.get(name, ())), "", list(self.ranges.get(name, ())))] * 2


def asked_of(script, params=None, wanted=100):
    split_page(script, ROOT, params or {}, wanted)
    return [name for name, _ in script.asked]


@pytest.mark.parametrize(
    "params, expected",
    [
        ({}, ["s/1", "s/2", "s/3"]),
        ({"reverse": "true"}, ["s/3", "s/2", "s/1"]),
        ({"marker": "d"}, ["s/2", "s/3"]),
        ({"marker": "d", "reverse": "true"}, ["s/2", "s/1"]),
        ({"end_marker": "c"}, ["s/1"]),
        ({"end_marker": "g", "reverse": "true"}, ["s/3"]),
        ({"prefix": "d"}, ["s/2"]),
        ({"prefix": "c"}, ["s/1", "s/2"]),
        ({"path": "z"}, ["s/3"]),
        ({"path": ""}, ["s/1", "s/2", "s/3"]),
    ],
)
def test_only_shards_that_can_have_what_is_asked_for_are_asked(params, expected):
    assert asked_of(Script({ROOT: SPLIT}), params) == [ROOT, *expected]


def test_shards_behind_a_full_page_are_not_asked():
    script = Script({ROOT: SPLIT}, {"s/1": [stored("a1", 1), stored("a2", 2)]})
    assert asked_of(script, wanted=2) == [ROOT, "s/1"]


def test_shards_of_one_common_prefix_are_skipped_once_it_was_seen():
    ranges = [shard("s/1", "", "m/b"), shard("s/2", "m/b", "m/d"), shard("s/3", "m/d", "")]
    script = Script({ROOT: ranges}, {"s/1": [{"subdir": "m/"}]})
    assert asked_of(script, {"delimiter": "/"}) == [ROOT, "s/1", "s/3"]


def test_a_page_that_ends_within_a_common_prefix_goes_on_behind_it():
    script = Script({ROOT: [shard("s/1", "", "m/b"), shard("s/2", "m/b", "")]}, {"s/1": [{"subdir": "m/"}]})
    page = split_page(script, ROOT, {"delimiter": "/"}, 1)
    assert page.rows == [({"subdir": "m/"}, False)] and page.end == "m/"


def test_shards_that_only_shards_know_are_asked_too():
    script = Script({ROOT: [shard("s/1")], "s/1": [shard("s/child", "", "m")]})
    assert asked_of(script) == [ROOT, "s/1", "s/child"]


def test_a_shard_has_the_widest_bounds_that_anybody_says():
    script = Script({ROOT: [shard("s/1", "", "m"), shard("s/1", "c", "d"), shard("s/1", "", "p")]})
    assert asked_of(script, {"marker": "n"}) == [ROOT, "s/1"]
    assert asked_of(Script({ROOT: [shard("s/1", "m", ""), shard("s/1", "m", "p")]}), {"marker": "q"})[1:]


def test_who_was_asked_before_somebody_who_names_it_is_asked_again():
    script = Script({ROOT: [shard("s/1"), shard("s/2", "m", "")], "s/2": [shard("s/1"), shard(ROOT)]})
    assert asked_of(script) == [ROOT, "s/1", "s/2", ROOT, "s/1", "s/2"]


def test_new_shards_and_those_that_have_gone_may_be_missing():
    found, gone = shard("s/1", "", "m", state=State.FOUND), shard("s/2", "m", "", deleted=True)
    script = Script({ROOT: [found, gone, shard("s/3")]})
    asked_of(script)
    assert dict(script.asked) == {ROOT: False, "s/1": True, "s/2": True, "s/3": False}


# --- verdicts ---------------------------------------------------------------------------------------------


def verdicts(reported):
    pages = [[ReplicaRows(rows, "", []) for rows in responses] for responses in reported]
    return [(row["name"], is_sure) for row, is_sure in merge(pages, "", reverse=False).rows]


def test_a_row_that_all_servers_of_one_container_have_is_sure():
    row = stored("o", 1)
    assert verdicts([[[], []], [[row], [row]]]) == [("o", True)]
    assert verdicts([[[row], []], [[row], []]]) == [("o", False)]


def test_a_newer_tombstone_makes_doubt_and_one_that_all_have_makes_sure():
    row, tombstone = stored("o", 1), stored("o", 2, True)
    assert verdicts([[[row], [row]], [[tombstone], []]]) == [("o", False)]
    assert verdicts([[[row], [row]], [[tombstone], [tombstone]]]) == []
    assert verdicts([[[tombstone], [tombstone]]]) == []


def test_rows_older_than_a_tombstone_do_not_speak_for_one_that_is_newer():
    old, tombstone, new = stored("o", 1), stored("o", 2, True), stored("o", 3)
    assert verdicts([[[old], [old]], [[tombstone], [new]]]) == [("o", False)]
    assert verdicts([[[old], [old]], [[new], [new]]]) == [("o", True)]


def test_a_tombstone_that_all_have_does_not_speak_against_rows_that_are_newer():
    gone, row, again = stored("o", 1, True), stored("o", 2), stored("o", 3, True)
    assert verdicts([[[gone], [gone]], [[row], [again]]]) == [("o", False)]


def test_the_newest_row_is_shown_without_what_clients_do_not_know():
    old, new = stored("o", 1), stored("o", 3)
    (row, _), *_ = merge([[ReplicaRows([new, old], "", [])]], "", reverse=False).rows
    assert row == {"name": "o", "last_modified": "3", "bytes": 3}


def test_a_row_whose_time_says_nothing_is_older_than_all_others():
    odd = {"name": "o", "created_at": "nonsense", "last_modified": "z"}
    (row, _), *_ = merge([[ReplicaRows([odd, stored("o", 1)], "", [])]], "", reverse=False).rows
    assert row["bytes"] == 1


# --- documents --------------------------------------------------------------------------------------------


def test_a_document_is_read():
    document = {"rows": [stored("o", 1)], "end": "o", "ranges": [shard("s/1", "", "m").as_dict()]}
    held = ReplicaRows([stored("o", 1)], "o", [shard("s/1", "", "m")])
    assert parse_replica_rows(json.dumps(document).encode()) == held


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b"{}",
        b'{"rows": 1, "end": "", "ranges": []}',
        b'{"rows": [], "end": "", "ranges": [{}]}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_what_is_none_is_refused(document):
    with pytest.raises(InvalidValue):
        parse_replica_rows(document)

"""Who needs work first: the fewer copies the earlier, whatever the name; one question for many partitions."""

import pytest

from swift.cluster.direct import DirectClient, NodeTimeouts
from swift.obj.compare.partners import NO_ANSWER, Partners, differing, differing_archives
from swift.obj.compare.survey import Asked, Standing, SurveyVerdict, survey, verdict_on
from test.support.object_servers import GOLD, ObjectNodes


@pytest.fixture
def nodes(tmp_path):
    made = ObjectNodes(tmp_path, 3)
    yield made
    made.stop()


def partners_of(node):
    direct = DirectClient(node.context.transport, "test", NodeTimeouts(1, 5))
    return Partners(direct, answer_s=5, clock=node.clock, log=node.telemetry.log)


def node_of(nodes, number):
    return next(n for n in nodes.rings().object(GOLD).view().primaries(0) if n.id == number)


@pytest.mark.parametrize(
    ("mine", "theirs", "verdict"),
    [
        ("a", "a", SurveyVerdict.EQUAL),
        ("a", "b", SurveyVerdict.DIFFERENT),
        ("a", "", SurveyVerdict.NOTHING),
        ("", "", SurveyVerdict.EQUAL),
        ("a", None, SurveyVerdict.UNKNOWN),
        (None, "b", SurveyVerdict.DIFFERENT),
    ],
)
def test_two_digests_say_what_the_other_has(mine, theirs, verdict):
    assert verdict_on(mine, theirs) is verdict


def test_the_fewer_copies_the_less_a_partition_stands_on():
    alone = Standing({1: SurveyVerdict.NOTHING, 2: SurveyVerdict.NOTHING})
    behind = Standing({1: SurveyVerdict.NOTHING, 2: SurveyVerdict.DIFFERENT})
    silent = Standing({1: SurveyVerdict.EQUAL, 2: SurveyVerdict.UNKNOWN})
    whole = Standing({1: SurveyVerdict.EQUAL, 2: SurveyVerdict.EQUAL})
    ordered = sorted([whole, silent, behind, alone], key=lambda standing: standing.copies)
    assert ordered == [alone, behind, silent, whole]
    assert [standing.is_settled for standing in ordered] == [False, False, False, True]


def test_what_a_node_lacks_is_what_it_has_otherwise_and_not_what_only_it_has():
    assert differing({"abc": "1", "def": "2", "fff": None}, {"abc": "1", "def": "3", "eee": "4"}) == [
        "def",
        "fff",
    ]


def test_archives_are_compared_by_the_index_of_each_side():
    mine = {"abc": {None: "d", 0: "x"}, "def": {0: "x"}, "eee": {None: "t"}}
    theirs = {"abc": {None: "d", 2: "x"}, "def": {2: "other"}}
    assert differing_archives(mine, 0, theirs, 2) == ["def", "eee"]


def test_a_node_is_asked_once_about_all_of_its_partitions(nodes):
    for part in range(6):
        for number in (0, 1):
            nodes[number].ask("PUT", f"/{part}/a/c/o{part}", 1e9 + part, b"x")
    book = nodes[0].app._digest_book
    store = nodes[0].stores.engine(GOLD)
    asked = [Asked(part, book.entry(store, "d0", part, GOLD).digest) for part in range(6)]
    questions = {number: (node_of(nodes, number), asked) for number in (1, 2)}
    standings = survey(partners_of(nodes[0]), GOLD, questions, lambda *_: None)
    assert {str(standing) for standing in standings.values()} == {"1: equal, 2: nothing"}
    assert [len(node.heard) for node in nodes.nodes] == [0, 1, 1]


def test_a_silent_node_costs_one_timeout(nodes):
    nodes[1].stop()
    partners, node = partners_of(nodes[0]), node_of(nodes, 1)
    statuses = []
    asked = [Asked(part, "x") for part in range(3)]
    standings = survey(partners, GOLD, {1: (node, asked)}, lambda _node, status: statuses.append(status))
    assert {standing.says(node) for standing in standings.values()} == {SurveyVerdict.UNKNOWN}
    assert statuses == [NO_ANSWER]
    assert partners.is_absent(node)
    nodes[1].start()
    assert partners.hashes(node, GOLD, 1) == (NO_ANSWER, {})
    nodes.clock.ahead_s += 61
    assert partners.hashes(node, GOLD, 1) == (200, {})


def test_a_server_that_knows_no_digests_is_asked_partition_by_partition(nodes):
    node = node_of(nodes, 1)
    nodes[1].app._digests = None
    handle = nodes[1].app.handle

    def old(request):
        request.headers.pop("x-backend-partition-digests", None)
        return handle(request)

    nodes[1].app.handle = old
    partners = partners_of(nodes[0])
    assert partners.digests(node, GOLD, {1: None, 2: None}) == (200, {})
    assert partners.digests(node, GOLD, {3: None}) == (200, {})
    assert len(nodes[1].heard) == 1
    assert partners.hashes(node, GOLD, 1) == (200, {})

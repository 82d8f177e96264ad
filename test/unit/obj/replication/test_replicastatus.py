"""Who needs work first: the fewer copies the earlier, whatever the name; one question for many partitions."""

import pytest

from swift.cluster.direct import DirectClient, NodeTimeouts
from swift.obj.replication.remotenodes import (
    NO_RESPONSE,
    RemoteNodes,
    differing_archive_suffixes,
    differing_suffixes,
)
from swift.obj.replication.replicastatus import (
    CopyState,
    DigestQuery,
    ReplicaStatus,
    compare_digests,
    request_status,
)
from test.support.object_servers import GOLD, ObjectNodes


@pytest.fixture
def nodes(tmp_path):
    made = ObjectNodes(tmp_path, 3)
    yield made
    made.stop()


def remote_nodes_of(node):
    direct = DirectClient(node.context.transport, "test", NodeTimeouts(1, 5))
    return RemoteNodes(direct, response_s=5, clock=node.clock, log=node.telemetry.log)


def node_of(nodes, number):
    return next(n for n in nodes.rings().object(GOLD).view().primaries(0) if n.id == number)


@pytest.mark.parametrize(
    ("mine", "theirs", "verdict"),
    [
        ("a", "a", CopyState.EQUAL),
        ("a", "b", CopyState.DIFFERENT),
        ("a", "", CopyState.MISSING),
        ("", "", CopyState.EQUAL),
        ("a", None, CopyState.UNKNOWN),
        (None, "b", CopyState.DIFFERENT),
    ],
)
def test_two_digests_say_what_the_other_has(mine, theirs, verdict):
    assert compare_digests(mine, theirs) is verdict


def test_the_fewer_copies_the_less_a_partition_stands_on():
    alone = ReplicaStatus({1: CopyState.MISSING, 2: CopyState.MISSING})
    behind = ReplicaStatus({1: CopyState.MISSING, 2: CopyState.DIFFERENT})
    silent = ReplicaStatus({1: CopyState.EQUAL, 2: CopyState.UNKNOWN})
    whole = ReplicaStatus({1: CopyState.EQUAL, 2: CopyState.EQUAL})
    in_work_order = sorted([whole, silent, behind, alone], key=lambda replica_status: replica_status.copies)
    assert in_work_order == [alone, behind, silent, whole]
    assert [replica_status.is_in_sync for replica_status in in_work_order] == [False, False, False, True]


def test_what_a_node_lacks_is_what_it_has_otherwise_and_not_what_only_it_has():
    assert differing_suffixes(
        {"abc": "1", "def": "2", "fff": None}, {"abc": "1", "def": "3", "eee": "4"}
    ) == [
        "def",
        "fff",
    ]


def test_archives_are_compared_by_the_index_of_each_side():
    mine = {"abc": {None: "d", 0: "x"}, "def": {0: "x"}, "eee": {None: "t"}}
    theirs = {"abc": {None: "d", 2: "x"}, "def": {2: "other"}}
    assert differing_archive_suffixes(mine, 0, theirs, 2) == ["def", "eee"]


def test_a_node_is_asked_once_about_all_of_its_partitions(nodes):
    for part in range(6):
        for number in (0, 1):
            nodes[number].ask("PUT", f"/{part}/a/c/o{part}", 1e9 + part, b"x")
    digest_cache = nodes[0].app._digest_cache
    store = nodes[0].stores.engine(GOLD)
    asked = [DigestQuery(part, digest_cache.entry(store, "d0", part, GOLD).digest) for part in range(6)]
    questions = {number: (node_of(nodes, number), asked) for number in (1, 2)}
    statuses = request_status(remote_nodes_of(nodes[0]), GOLD, questions, lambda *_: None)
    assert {str(replica_status) for replica_status in statuses.values()} == {"1: equal, 2: missing"}
    assert [len(node.heard) for node in nodes.nodes] == [0, 1, 1]


def test_a_silent_node_costs_one_timeout(nodes):
    nodes[1].stop()
    remote_nodes, node = remote_nodes_of(nodes[0]), node_of(nodes, 1)
    refusals = []
    asked = [DigestQuery(part, "x") for part in range(3)]
    statuses = request_status(
        remote_nodes, GOLD, {1: (node, asked)}, lambda _node, status: refusals.append(status)
    )
    assert {replica_status.state_of(node) for replica_status in statuses.values()} == {CopyState.UNKNOWN}
    assert refusals == [NO_RESPONSE]
    assert remote_nodes.is_absent(node)
    nodes[1].start()
    assert remote_nodes.hashes(node, GOLD, 1) == (NO_RESPONSE, {})
    nodes.clock.ahead_s += 61
    assert remote_nodes.hashes(node, GOLD, 1) == (200, {})


def test_a_server_that_knows_no_digests_is_asked_partition_by_partition(nodes):
    node = node_of(nodes, 1)
    nodes[1].app._digests = None
    handle = nodes[1].app.handle

    def old(request):
        request.headers.pop("x-backend-partition-digests", None)
        return handle(request)

    nodes[1].app.handle = old
    remote_nodes = remote_nodes_of(nodes[0])
    assert remote_nodes.digests(node, GOLD, {1: None, 2: None}) == (200, {})
    assert remote_nodes.digests(node, GOLD, {3: None}) == (200, {})
    assert len(nodes[1].heard) == 1
    assert remote_nodes.hashes(node, GOLD, 1) == (200, {})

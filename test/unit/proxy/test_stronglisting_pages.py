"""Pages of strong listings: who is asked, and whose answers are believed."""

import json
from types import SimpleNamespace

import pytest

from swift.base.entity import EntityPath
from swift.base.shardrange import ShardRange, State
from swift.cluster.transport import BackendResponse
from swift.http.request import Request
from swift.http.response import HTTPError
from swift.proxy.stronglisting import ReplicaRowsUnsupported, SplitContainer, StrongPages

ROW = {"name": "o", "last_modified": "1", "created_at": "1700000001.00000"}


def held(*rows, ranges=()):
    document = {"rows": list(rows), "end": "", "ranges": [item.as_dict() for item in ranges]}
    return BackendResponse(200, headers={"x-backend-record-type": "held"}, body=json.dumps(document).encode())


def plain(*rows, **headers):
    headers = {
        "x-backend-record-type": "object",
        **{name.replace("_", "-"): v for name, v in headers.items()},
    }
    return BackendResponse(
        200 if rows else 204, headers=headers, body=json.dumps(rows).encode() if rows else b""
    )


class Servers:
    """Three servers of each container; ``responses`` are those of one, by its name."""

    def __init__(self, **answers):
        self.responses = {name.replace("__", "/"): list(given) for name, given in answers.items()}
        self.asked = []

    def make_request(self, node, part, method, path, headers, query):
        return node, f"{path.account}/{path.container}", query, headers

    def request(self, request):
        node, *asked = request
        self.asked.append(tuple(asked))
        return self.responses[asked[0]][node]

    def pages(self, **headers):
        view = SimpleNamespace(partition_of=lambda _digest: 7, primaries=lambda _part: (0, 1, 2))
        context = SimpleNamespace(
            rings=SimpleNamespace(container=SimpleNamespace(view=lambda: view)),
            hasher=SimpleNamespace(digest=lambda *_path: b""),
            agent="proxy",
        )
        request = Request("GET", "/v1/a/c", {"x-timestamp": "1700000009.00000", **headers}, env={})
        return StrongPages(context, self, request, EntityPath("a", "c"))


def test_what_all_replicas_have_is_sure():
    servers = Servers(a__c=[plain(ROW), plain(ROW), None])
    page = servers.pages().page_of_replicas({"prefix": "o"}, 10)
    assert page.rows == [(ROW, True)] and not page.marker
    name, query, headers = servers.asked[0]
    assert (name, query) == ("a/c", "prefix=o&format=json&limit=10")
    assert headers["x-backend-record-type"] == "object" and headers["x-backend-shards-known"] == "true"


@pytest.mark.parametrize(
    "answers", [[plain(ROW), None, None], [plain(ROW), BackendResponse(404), BackendResponse(404)]]
)
def test_a_minority_is_not_believed(answers):
    with pytest.raises(HTTPError) as caught:
        Servers(a__c=answers).pages().page_of_replicas({}, 10)
    assert caught.value.response.status == 503


@pytest.mark.parametrize(
    "said", [{"x_backend_sharding_state": "sharding"}, {"x_backend_shards_known": "true"}]
)
def test_who_knows_of_shards_ends_it_whatever_the_others_say(said):
    with pytest.raises(SplitContainer):
        Servers(a__c=[plain(ROW), plain(ROW), plain(**said)]).pages().page_of_replicas({}, 10)


SHARD = ShardRange("s/1", "1700000000.00000", state=State.ACTIVE)


def test_of_a_split_container_its_shards_are_asked_with_its_policy():
    servers = Servers(a__c=[held(ranges=[SHARD]), held(), None], s__1=[held(ROW), held(ROW), None])
    page = servers.pages().page_of_shards("3", {}, 10)
    assert page.rows == [({"name": "o", "last_modified": "1"}, True)]
    name, _, headers = servers.asked[-1]
    assert name == "s/1" and headers["x-backend-storage-policy-index"] == "3"
    assert headers["x-backend-override-deleted"] == "true"


def test_a_shard_that_should_be_there_and_is_not_is_not_believed_to_be_empty():
    servers = Servers(
        a__c=[held(ranges=[SHARD])] * 3, s__1=[held(ROW), BackendResponse(404), BackendResponse(404)]
    )
    with pytest.raises(HTTPError) as caught:
        servers.pages().page_of_shards("0", {}, 10)
    assert caught.value.response.status == 503


@pytest.mark.parametrize(
    "state, deleted", [(State.FOUND, False), (State.CLEAVED, False), (State.SHARDED, True)]
)
def test_one_that_is_new_or_has_gone_may_be_missing(state, deleted):
    item = ShardRange("s/1", "1700000000.00000", state=state, deleted=deleted)
    servers = Servers(a__c=[held(ROW, ranges=[item])] * 3, s__1=[BackendResponse(404)] * 3)
    assert [row["name"] for row, _ in servers.pages().page_of_shards("0", {}, 10).rows] == ["o"]


def test_where_most_servers_are_the_peers_nobody_can_tell():
    with pytest.raises(ReplicaRowsUnsupported):
        Servers(a__c=[held(ROW), plain(ROW), plain(ROW)]).pages().page_of_shards("0", {}, 10)
    assert Servers(a__c=[held(ROW), held(ROW), plain(ROW)]).pages().page_of_shards("0", {}, 10).rows


def test_answers_that_are_none_do_not_count():
    odd = BackendResponse(200, headers={"x-backend-record-type": "held"}, body=b"{")
    with pytest.raises(HTTPError) as caught:
        Servers(a__c=[held(ROW), odd, odd]).pages().page_of_shards("0", {}, 10)
    assert caught.value.response.status == 503

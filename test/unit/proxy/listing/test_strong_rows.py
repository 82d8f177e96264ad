"""Pages of strong listings: who is asked, and whose answers are believed."""

import json
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from swift.base.entity import EntityPath
from swift.base.limits import Limits
from swift.base.shardrange import ShardRange, State
from swift.cluster.transport import BackendResponse
from swift.http import environkeys
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.policy.policy import Policies, Policy
from swift.proxy.listing.plan import Finding, listing_parameters
from swift.proxy.listing.response import ContainerRead
from swift.proxy.listing.sources import Primaries, StrongRows
from swift.proxy.settings import ProxySettings

LISTED = {"name": "o", "last_modified": "1"}
ROW = {**LISTED, "created_at": "1700000001.00000"}


def held(*rows, ranges=()):
    document = {"rows": list(rows), "end": "", "ranges": [item.as_dict() for item in ranges]}
    return BackendResponse(
        200, headers={"x-backend-record-type": "replica-rows"}, body=json.dumps(document).encode()
    )


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
        #: Objects that exist, and names whose nodes were requested.
        self.objects, self.checked = set(), []
        #: Common prefix → the responses to its listing.
        self.below = {}
        #: Record type → the responses to requests for it.
        self.by_record_type = {}

    def make_request(self, node, part, method, path, headers, query):
        return node, f"{path.account}/{path.container}", query, headers

    def request(self, request):
        node, *asked = request
        self.asked.append(tuple(asked))
        below = next(
            (found for prefix, found in self.below.items() if quote(prefix, safe="") in asked[1]), None
        )
        of_type = self.by_record_type.get(asked[2]["x-backend-record-type"])
        return (below or of_type or self.responses[asked[0]])[node]

    def page(self, params=None, *, policy_index="0", is_split=False):
        request = Request("GET", "/v1/a/c", {"x-timestamp": "1700000009.00000"}, env={})
        primaries = Primaries(self.context(), self, request, policy_index=policy_index)
        parameters = listing_parameters(params or {})
        return StrongRows(primaries, "a/c", parameters, self.exists, is_split=is_split).page("", 10)

    def context(self, **values):
        view = SimpleNamespace(partition_of=lambda _digest: 7, primaries=lambda _part: (0, 1, 2))
        return SimpleNamespace(
            rings=SimpleNamespace(container=SimpleNamespace(view=lambda: view)),
            hasher=SimpleNamespace(digest=lambda *_path: b""),
            agent="proxy",
            **values,
        )

    def exists(self, name):
        """Answer for the nodes of an object."""
        self.checked.append(name)
        return name in self.objects


def test_what_all_replicas_have_is_sure():
    servers = Servers(a__c=[plain(LISTED), plain(LISTED), None])
    page = servers.page({"prefix": "o"})
    assert page == ([LISTED], None) and not servers.checked
    name, query, headers = servers.asked[0]
    assert (name, query) == ("a/c", "prefix=o&format=json&limit=10")
    assert headers["x-backend-record-type"] == "object" and headers["x-backend-shards-known"] == "true"


def test_objects_that_only_some_have_are_listed_if_their_nodes_have_them():
    gone = {**ROW, "name": "p"}
    servers = Servers(a__c=[plain(ROW, gone), plain(), None])
    servers.objects.add("o")
    assert servers.page().rows == [LISTED]
    assert sorted(servers.checked) == ["o", "p"]


def test_a_common_prefix_is_listed_if_an_object_below_it_exists():
    prefix, row = plain({"subdir": "d/"}), plain({"name": "d/o", "last_modified": "1"})
    for objects in (set(), {"d/o"}):
        servers = Servers(a__c=[prefix, prefix, None])
        servers.objects = objects
        servers.below = {"d/": [row, plain(), None]}
        assert [r["subdir"] for r in servers.page({"delimiter": "/"}).rows] == ["d/"] * len(objects)
        assert servers.asked[3][1] == "prefix=d%2F&format=json&limit=1"


@pytest.mark.parametrize(
    "responses", [[plain(ROW), None, None], [plain(ROW), BackendResponse(404), BackendResponse(404)]]
)
def test_a_minority_is_not_believed(responses):
    with pytest.raises(HTTPError) as caught:
        Servers(a__c=responses).page()
    assert caught.value.response.status == 503


@pytest.mark.parametrize(
    "message", [{"x_backend_sharding_state": "sharding"}, {"x_backend_shards_known": "true"}]
)
def test_who_knows_of_shards_ends_it_whatever_the_others_say(message):
    assert Servers(a__c=[plain(ROW), plain(ROW), plain(**message)]).page() is Finding.SPLIT


SHARD = ShardRange("s/1", "1700000000.00000", state=State.ACTIVE)


def test_of_a_split_container_its_shards_are_asked_with_its_policy():
    servers = Servers(a__c=[held(ranges=[SHARD]), held(), None], s__1=[held(ROW), held(ROW), None])
    page = servers.page(policy_index="3", is_split=True)
    assert page.rows == [LISTED] and not servers.checked
    name, _, headers = servers.asked[-1]
    assert name == "s/1" and headers["x-backend-storage-policy-index"] == "3"
    assert headers["x-backend-override-deleted"] == "true"


def test_a_shard_that_should_be_there_and_is_not_is_not_believed_to_be_empty():
    servers = Servers(
        a__c=[held(ranges=[SHARD])] * 3, s__1=[held(ROW), BackendResponse(404), BackendResponse(404)]
    )
    with pytest.raises(HTTPError) as caught:
        servers.page(is_split=True)
    assert caught.value.response.status == 503


@pytest.mark.parametrize(
    "state, deleted", [(State.FOUND, False), (State.CLEAVED, False), (State.SHARDED, True)]
)
def test_one_that_is_new_or_has_gone_may_be_missing(state, deleted):
    item = ShardRange("s/1", "1700000000.00000", state=state, deleted=deleted)
    servers = Servers(a__c=[held(ROW, ranges=[item])] * 3, s__1=[BackendResponse(404)] * 3)
    assert servers.page(is_split=True).rows == [LISTED]


def test_where_most_servers_are_the_peers_nobody_can_tell():
    assert Servers(a__c=[held(ROW), plain(ROW), plain(ROW)]).page(is_split=True) is Finding.PEER
    assert Servers(a__c=[held(ROW), held(ROW), plain(ROW)]).page(is_split=True).rows


def test_answers_that_are_none_do_not_count():
    odd = BackendResponse(200, headers={"x-backend-record-type": "replica-rows"}, body=b"{")
    with pytest.raises(HTTPError) as caught:
        Servers(a__c=[held(ROW), odd, odd]).page(is_split=True)
    assert caught.value.response.status == 503


@pytest.mark.parametrize("is_text", [False, True])
def test_a_container_of_mixed_servers_is_listed_from_the_shards_that_any_of_them_knows(is_text):
    """The first server of the container does not know of its split, and too few can report all rows."""
    shards = [{"name": "s/1", "lower": "", "upper": ""}]
    known = BackendResponse(
        200,
        headers={"x-backend-record-type": "shard", "x-backend-sharding-state": "sharded"},
        body=json.dumps(shards).encode(),
    )
    servers = Servers(a__c=[plain(ROW), plain(), plain(x_backend_sharding_state="sharded")])
    servers.by_record_type = {"auto": [plain(ROW), plain(), known]}
    request = Request("GET", "/v1/a/c", {"x-timestamp": "1700000009.00000"}, query="format=json", env={})
    if is_text:
        request.env[environkeys.LISTING_TEXT] = True
    context = servers.context(
        settings=ProxySettings(),
        policies=Policies([Policy(0, "gold", is_default=True)]),
        limits=Limits(),
        lists_strongly=lambda _mark: True,
    )

    def forward(sub):
        assert sub.raw_path == "/v1/s/1" and "format=json" in sub.query
        return Response(200, {}, json.dumps([LISTED]).encode())

    read = ContainerRead(context, servers, forward, request, EntityPath("a", "c"))
    response = read.respond(lambda _query, _headers: Response(200, {}, b"o\n" if is_text else b"[]"))
    assert response.read_body() == (b"o\n" if is_text else json.dumps([LISTED]).encode())
    assert response.headers["x-backend-sharding-state"] == "sharded"

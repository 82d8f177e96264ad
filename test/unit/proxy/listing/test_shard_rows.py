"""The listings of shards make one, as if nothing had ever been split; a row goes to the shard of its name."""

from __future__ import annotations

import json
from types import SimpleNamespace
from urllib.parse import parse_qs, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift.base.entity import EntityPath
from swift.base.limits import Limits
from swift.base.namespace import Namespace
from swift.http import environkeys, fields
from swift.http.request import Request
from swift.http.response import HTTPError, Response
from swift.policy.policy import Policies, Policy
from swift.proxy.listing.merge import all_rows
from swift.proxy.listing.plan import Finding, listing_parameters
from swift.proxy.listing.response import ContainerRead
from swift.proxy.listing.sources import ShardRows
from swift.proxy.settings import ProxySettings

ROOT = EntityPath("a", "c")
#: Headers of a root's response with its shards.
SPLIT = {fields.BACKEND_RECORD_TYPE: "shard"}
LETTERS = "abcdefgh"


def listing(names, params):
    """Return the listing of a container with these names, without delimiters."""
    marker, end, prefix = (params.get(name, "") for name in ("marker", "end_marker", "prefix"))
    low, high = (end, marker) if params.get("reverse") == "true" else (marker, end)
    found = [n for n in names if (not low or n > low) and (not high or n < high) and n.startswith(prefix)]
    found.sort(reverse=params.get("reverse") == "true")
    return [{"name": name, "bytes": 1} for name in found[: int(params.get("limit") or 10_000)]]


class Shards:
    """Containers that know the names between their bounds, and are asked for them by sub-requests."""

    def __init__(self, names, bounds):
        edges = ["", *bounds, ""]
        self.spaces = [
            Namespace(f".shards_a/c-{number}", low, high)
            for number, (low, high) in enumerate(zip(edges, edges[1:], strict=False))
        ]
        self.names = {space.name: [name for name in names if space.includes(name)] for space in self.spaces}
        self.asked = []
        #: Headers of each request.
        self.headers = []
        #: Name of a shard → its answer, if not its listing.
        self.responses = {}

    def __call__(self, request):
        name = request.path.removeprefix("/v1/")
        self.asked.append(name)
        self.headers.append(dict(request.headers))
        if name in self.responses:
            return self.responses[name]
        params = {key: values[0] for key, values in parse_qs(request.query).items()}
        body = json.dumps(listing(self.names[name], params)).encode()
        return Response(200, {"content-type": "application/json"}, body)

    def list(self, params, *, headers=None):
        query = urlencode({"format": "json", **params})
        request = Request("GET", "/v1/a/c", dict(headers or {}), query=query)
        rows = [space.as_dict() for space in self.spaces]
        return respond(request, self, [Response(200, SPLIT, json.dumps(rows).encode())])


def respond(request, shards, roots):
    """Return the listing of a container whose root responds with each of ``roots`` in turn."""
    context = SimpleNamespace(
        limits=Limits(),
        settings=ProxySettings(),
        policies=Policies([Policy(0, "gold", is_default=True)]),
        lists_strongly=lambda _mark: False,
    )
    roots = iter(roots)
    return ContainerRead(context, None, shards, request, ROOT).respond(lambda _query, _headers: next(roots))


NAMES = st.lists(st.text(LETTERS, min_size=1, max_size=3), max_size=12, unique=True)
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "marker": st.text(LETTERS, max_size=3),
        "end_marker": st.text(LETTERS, max_size=3),
        "prefix": st.text(LETTERS, max_size=2),
        "limit": st.integers(1, 6).map(str),
        "reverse": st.just("true"),
    },
)


@given(NAMES, st.lists(st.text(LETTERS, min_size=1, max_size=2), max_size=4, unique=True).map(sorted), PARAMS)
def test_a_listing_is_that_of_a_container_that_was_never_split(names, bounds, params):
    response = Shards(names, bounds).list(params)
    expected = listing(names, params)
    assert response.status == (200 if response.read_body() else 204)
    assert json.loads(response.read_body() or b"[]") == expected


def test_shards_beside_the_wanted_names_are_not_asked():
    shards = Shards(["a1", "b1", "c1", "d1"], ["b", "c", "d"])
    shards.list({"marker": "b1", "end_marker": "c2"})
    assert shards.asked == [".shards_a/c-1", ".shards_a/c-2"]
    shards.asked.clear()
    shards.list({"limit": "1"})
    assert shards.asked == [".shards_a/c-0"]
    shards.asked.clear()
    shards.list({"prefix": "c"})
    assert shards.asked == [".shards_a/c-1", ".shards_a/c-2"]


def test_a_whole_listing_says_how_much_there_is_and_a_part_does_not():
    shards = Shards(["a1", "b1", "c1"], ["b"])
    assert shards.list({}).headers["x-container-object-count"] == "3"
    assert shards.list({}).headers["x-container-bytes-used"] == "3"
    assert "x-container-object-count" not in shards.list({"marker": "a1"}).headers


@pytest.mark.parametrize(
    "response",
    [
        Response(503),
        Response(404),
        Response(200, {}, b"no JSON"),
        Response(200, {}, b"[" * 100_000),
        Response(200, {}, b'{"name": "a"}'),
        Response(200, {}, b"[1]"),
        Response(200, {}, b'[{"bytes": 1}]'),
        Response(200, {fields.BACKEND_RECORD_STORAGE_POLICY_INDEX: "7"}, b"[]"),
    ],
)
def test_no_listing_has_a_hole_where_a_shard_cannot_be_listed(response):
    shards = Shards(["a1", "b1"], ["b"])
    shards.responses[".shards_a/c-1"] = response
    with pytest.raises(HTTPError) as caught:
        shards.list({})
    assert caught.value.response.status == 503


@pytest.mark.parametrize(
    "headers", [{fields.BACKEND_SHARD_RETIRED: "true"}, {fields.BACKEND_SHARDING_STATE: "sharded"}]
)
def test_shards_that_were_remembered_and_have_gone_are_noticed(headers):
    shards = Shards(["a1", "b1"], ["b"])
    shards.responses[".shards_a/c-1"] = Response(200, headers, b"[]")
    source = ShardRows(
        Request("GET", "/v1/a/c"),
        shards,
        ROOT,
        listing_parameters({}),
        shards.spaces,
        policy_index="0",
        is_cached=True,
    )
    assert all_rows(source, "", 10) is Finding.OUTDATED
    assert shards.list({}).status == 200


@pytest.mark.parametrize("name", ["x-newest", fields.BACKEND_LISTING_DIRECTORIES])
def test_shards_are_asked_for_what_the_container_is_asked_for(name):
    shards = Shards(["a", "m"], ["f"])
    shards.list({}, headers={name: "true"})
    assert [headers.get(name) for headers in shards.headers] == ["true", "true"]
    shards.headers.clear()
    shards.list({})
    assert [headers.get(name) for headers in shards.headers] == [None, None]


def text_listing(second):
    """Return the text listing if the root's second response, in JSON, is of another replica."""
    request = Request("GET", "/v1/a/c", query="format=json")
    request.env[environkeys.LISTING_TEXT] = True
    return respond(request, Shards(["a1", "b1"], ["b"]), [Response(200, SPLIT, b"c-0\n"), second])


def test_a_text_listing_comes_from_a_replica_that_is_not_split_yet():
    headers = {fields.BACKEND_RECORD_TYPE: "object", "content-type": "application/json"}
    rows = json.dumps([{"name": "a1", "bytes": 1}, {"name": "b1", "bytes": 1}]).encode()
    response = text_listing(Response(200, headers, rows))
    assert (response.status, response.read_body()) == (200, b"a1\nb1\n")
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert text_listing(Response(200, headers, b"[]")).status == 204


@pytest.mark.parametrize("second", [Response(404, {}), Response(200, {}, b"{}"), Response(503, {})])
def test_a_text_listing_is_unavailable_if_the_root_cannot_be_read_again(second):
    with pytest.raises(HTTPError) as caught:
        text_listing(second)
    assert caught.value.response.status == 503

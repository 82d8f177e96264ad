"""The list_endpoints filter returns the primaries of objects (middleware.md §15)."""

import json

import pytest

from swift.http.request import Request
from swift.middleware.list_endpoints import ListEndpoints, ListEndpointsSettings


@pytest.fixture
def ask(sim):
    sim("PUT", "/a/c")
    context = sim.context
    filter_ = ListEndpoints(sim.app, ListEndpointsSettings(), context.rings, context.hasher, context.policies)

    def ask(path, method="GET"):
        return filter_.handle(Request(method, path, env={"swift.cache": sim.cache}))

    return ask


@pytest.mark.parametrize(
    ("path", "names"),
    [("a", ("a",)), ("a/c", ("a", "c")), ("a/c/", ("a", "c")), ("a/c/o%20x/y", ("a", "c", "o x/y"))],
)
def test_the_primaries_are_returned(ask, sim, path, names):
    kind = ("account", "container", "object")[len(names) - 1]
    quoted = "/".join(name.replace(" ", "%20") for name in names)
    for version in ("", "v1/"):
        places = json.loads(ask(f"/endpoints/{version}{path}").body)
        devices = [place.split("/")[3] for place in places]
        assert devices == [f"sdb{n}" for n in sim.primaries(kind, *names)]
        assert all(place.startswith("http://10.0.0.1:6") and place.endswith(f"/{quoted}") for place in places)
    told = json.loads(ask(f"/endpoints/v2/{path}").body)
    assert told["endpoints"] == places
    assert told["headers"] == ({"X-Backend-Storage-Policy-Index": "0"} if kind == "object" else {})


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/endpoints/", b"No account specified"),
        ("/endpoints/v2/", b"No account specified"),
        ("/endpoints//a", b"No account specified"),
        ("/endpoints/v9/a", b"Unsupported version 'v9'"),
    ],
)
def test_other_paths_are_refused(ask, path, text):
    response = ask(path)
    assert (response.status, response.body) == (400, text)


def test_only_get_is_allowed(ask):
    assert ask("/endpoints/a", "PUT").headers["allow"] == "GET"
    assert ask("/endpoints/a/%ff/o").status == 400
    assert ask("/v1/a/c").status == 200

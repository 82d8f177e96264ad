"""The internal client of daemons and tools, over a simulated cluster."""

import time

import pytest

from swift import green
from swift.base.entity import EntityPath
from swift.gateway.internal_client import InternalClient, UnexpectedResponse
from swift.http.body import BytesBody
from swift.http.response import Response

ACCOUNT = EntityPath("a")
CONTAINER = EntityPath("a", "c\u00e4 %")
OBJECT = EntityPath("a", "c\u00e4 %", "o/\u2603?x")


def client_of(forward, **options):
    return InternalClient(forward, "test-daemon", backoff_s=0.0, **{"tries": 3, **options})


@pytest.fixture
def client(sim):
    return client_of(sim.app.handle)


def test_an_object_is_stored_read_described_and_deleted(client):
    assert not client.exists(CONTAINER)
    client.create(CONTAINER, {"x-container-meta-a": "1"})
    client.create(CONTAINER)
    assert client.exists(CONTAINER)
    assert (
        client.put(OBJECT, b"body", {"content-type": "text/x"})["etag"] == "841a2d689ad86bd1611447453c22c6fc"
    )
    with client.get(OBJECT, {"range": "bytes=1-2"}) as response:
        assert (response.status, response.read_body()) == (206, b"od")
    assert client.delete(OBJECT) == 204
    assert client.delete(OBJECT) == 404
    assert client.head(OBJECT) is None
    assert client.metadata(OBJECT) is None


def test_a_body_can_be_created_again_for_every_retry(client):
    client.create(CONTAINER)
    client.put(OBJECT, lambda: BytesBody(b"x" * 100_000))
    client.put(OBJECT, lambda: BytesBody(b"y" * 100_000, chunked=True))
    with client.get(OBJECT) as response:
        assert response.read_body() == b"y" * 100_000


def test_system_metadata_and_reserved_names_are_reachable(client):
    hidden = EntityPath("a", "\0versions\0c")
    client.create(hidden, {"x-container-sysmeta-x": "1"})
    assert client.metadata(hidden, "x-container-sysmeta-") == {"x": "1"}
    assert "\0versions\0c" in [row["name"] for row in client.containers("a")]


def test_listings_are_followed_to_their_end(client, sim):
    client.create(CONTAINER)
    names = [f"{n:02d}\u00e4&" for n in range(25)]
    for name in names:
        client.put(EntityPath(*CONTAINER[:2], name), b"")
    paged = client_of(lambda request: sim.app.handle(limited(request)))
    assert [row["name"] for row in paged.objects(*CONTAINER[:2])] == names
    assert [row["name"] for row in paged.objects(*CONTAINER[:2], prefix="1")] == names[10:20]
    between = paged.objects(*CONTAINER[:2], marker=names[3], end_marker=names[7])
    assert [row["name"] for row in between] == names[4:7]
    assert [row["name"] for row in paged.containers("a")] == ["c", CONTAINER.container]
    assert list(client.objects("a", "absent")) == []


def limited(request):
    if request.method == "GET":
        request.set_query(f"{request.query}&limit=7")
    return request


class Flaky:
    """Responds with these statuses in turn, then repeats the last one."""

    def __init__(self, *statuses):
        self.statuses = list(statuses)
        self.requests = []

    def __call__(self, request):
        self.requests.append((request, request.body.read()))
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return Response(status, {}, b"text")


def test_server_errors_are_retried():
    flaky = Flaky(503, 500, 201)
    client_of(flaky).put(OBJECT, b"body")
    assert [body for _, body in flaky.requests] == [b"body"] * 3
    request = flaky.requests[0][0]
    assert (request.headers["user-agent"], request.headers["content-length"]) == ("test-daemon", "4")


@pytest.mark.parametrize(("status", "tries"), [(503, 3), (409, 1), (301, 1)])
def test_unexpected_statuses_raise_an_error_that_names_them(status, tries):
    flaky = Flaky(status)
    with pytest.raises(UnexpectedResponse, match=f"PUT .* responded {status}: text") as failure:
        client_of(flaky).put(OBJECT, b"body")
    assert failure.value.status == status
    assert len(flaky.requests) == tries


def test_single_statuses_may_be_accepted():
    assert client_of(Flaky(409)).delete(OBJECT, accept=(2, 409)) == 409


def test_a_call_with_its_retries_ends_after_its_timeout():
    def forward(request):
        green.sleep(0.05)
        return Response(503)

    started = time.monotonic()
    with pytest.raises(UnexpectedResponse):
        client_of(forward, tries=1000, timeout_s=0.2).put(OBJECT, b"")
    assert time.monotonic() - started < 5


def test_the_replication_network_is_used():
    flaky = Flaky(204)
    client_of(flaky, use_replication_network=True).exists(ACCOUNT)
    assert flaky.requests[0][0].headers["x-backend-use-replication-network"] == "true"


def test_no_response_is_left_open(client, sim):
    client.create(CONTAINER)
    client.put(OBJECT, b"x" * 300_000)
    with client.get(OBJECT) as response:
        next(iter(response.body))
    with pytest.raises(KeyError), client.get(OBJECT):
        raise KeyError
    assert all(download.closed for download in sim.transport.downloads)

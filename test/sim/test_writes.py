"""Writes with failures: quorums, handoffs, responses to clients and requests to storage servers."""

import re
from hashlib import md5

import pytest

from swift.http.body import BodyError, BytesBody, ClientDisconnected, RequestBody
from test.support.sim import node_port

SMALL, LARGE = b"small", b"large" * 40_000


@pytest.fixture(params=[SMALL, LARGE], ids=["small", "large"])
def body(request):
    return request.param


def put(sim, body, headers=None, path="/a/c/o"):
    return sim("PUT", path, {"content-type": "text/plain", **(headers or {})}, body)


def object_nodes(sim):
    return sim.primaries("object", "a", "c", "o")


def test_an_object_is_on_all_primaries_when_it_is_acknowledged(sim, body):
    response = put(sim, body)
    assert response.status == 201
    assert response.headers["etag"] and "last-modified" in response.headers
    assert sim.holders() == sorted(object_nodes(sim))
    assert sim("GET", "/a/c/o").body == body


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_handoffs_take_over_from_nodes_that_refuse(sim, body, failing):
    nodes = object_nodes(sim)
    with sim.refusing("object", *nodes[:failing]):
        assert put(sim, body).status == 201
        expected = nodes[failing:] + sim.handoffs("a", "c", "o")[:failing]
        assert sim.holders() == sorted(expected)
        assert sim("GET", "/a/c/o").body == body


@pytest.mark.parametrize("status", [500, 503, 507])
def test_handoffs_take_over_from_nodes_that_answer_an_error(sim, body, status):
    nodes = object_nodes(sim)
    with sim.responding("object", status, nodes[1]):
        assert put(sim, body).status == 201
    assert sim.holders() == sorted([nodes[0], nodes[2], sim.handoffs("a", "c", "o")[0]])


def test_two_of_three_are_enough(sim, body):
    nodes = object_nodes(sim)
    with sim.refusing("object", nodes[0], *sim.handoffs("a", "c", "o")):
        assert put(sim, body).status == 201
    assert sim.holders() == sorted(nodes[1:])


def test_one_of_three_is_503(sim, body):
    nodes = object_nodes(sim)
    with sim.refusing("object", *nodes[:2], *sim.handoffs("a", "c", "o")):
        assert put(sim, body).status == 503


def test_none_of_three_is_503(sim, body):
    with sim.refusing("object", *range(1, 7)):
        assert put(sim, body).status == 503
    assert sim.holders() == []


def test_a_node_that_responds_507_is_avoided(sim):
    nodes = object_nodes(sim)
    with sim.responding("object", 507, nodes[0]):
        put(sim, SMALL)
    put(sim, SMALL)
    assert nodes[0] not in sim.asked("object", "PUT")


def test_a_node_that_stops_reading_an_upload_is_dropped(sim):
    nodes = object_nodes(sim)
    sim.faults.stops_taking_after[node_port("object", nodes[0])] = 100_000
    assert put(sim, LARGE).status == 201
    assert sim.holders() == sorted(nodes[1:])


def test_an_upload_that_two_nodes_stop_reading_is_503_and_leaves_nothing(sim):
    nodes = object_nodes(sim)
    for n in nodes[:2]:
        sim.faults.stops_taking_after[node_port("object", n)] = 100_000
    assert put(sim, LARGE).status == 503
    assert sim.holders() == []


class Broken(RequestBody):
    """An upload that is aborted after some bytes."""

    def __init__(self, data, length, error):
        self.length = length
        self._data = data
        self._error = error

    def read(self, size=-1):
        data, self._data = self._data[:size], self._data[size:]
        if not data:
            raise self._error
        return data


@pytest.mark.parametrize("length", [100, 200_000, None])
def test_a_client_that_vanishes_leaves_no_object_and_no_row(sim, length):
    headers = {"transfer-encoding": "chunked"} if length is None else {"content-length": str(length)}
    response = sim("PUT", "/a/c/o", headers, Broken(b"x" * 50, length, ClientDisconnected("gone")))
    assert response.status == 499
    assert sim.holders() == []
    assert sim("GET", "/a/c?format=json").body == b"[]"


class Dribbling:
    """A body that arrives in pieces of so many bytes."""

    trailers = {}

    def __init__(self, data, piece):
        self.length = len(data)
        self._data = data
        self._piece = piece

    def read(self, size=-1):
        size = min(self._piece, size if size >= 0 else self._piece)
        data, self._data = self._data[:size], self._data[size:]
        return data


@pytest.mark.parametrize("piece", [1, 7, 1000])
@pytest.mark.parametrize("size", [1, 30, 3000])
def test_a_body_that_arrives_in_pieces_is_stored_completely(sim, size, piece):
    body = bytes(n % 251 for n in range(size))
    assert sim("PUT", "/a/c/o", {"content-length": str(size)}, Dribbling(body, piece)).status == 201
    assert sim("GET", "/a/c/o").body == body


@pytest.mark.parametrize("status", [404, 412, 500, 503])
def test_early_responses_are_not_left_open(sim, status):
    nodes = object_nodes(sim)
    with sim.responding("object", status, nodes[0]):
        put(sim, LARGE)
    assert sim.transport.downloads
    assert [d for d in sim.transport.downloads if d.length and not d.closed] == []


@pytest.mark.parametrize("size", [0, 5, 200_000])
def test_a_chunked_upload_of_any_size_is_stored(sim, size):
    class Chunked(Broken):
        def read(self, size=-1):
            data, self._data = self._data[:size], self._data[size:]
            return data

    body = b"z" * size
    response = sim("PUT", "/a/c/o", {"transfer-encoding": "chunked"}, Chunked(body, None, BodyError("")))
    assert response.status == 201
    assert sim("GET", "/a/c/o").body == body


def test_an_upload_larger_than_allowed_is_413(sim):
    size = sim.context.limits.max_file_size + 1
    response = sim("PUT", "/a/c/o", {}, Broken(b"", size, AssertionError("was read")))
    assert (response.status, response.body) == (413, b"Your request is too large.")


def test_nodes_without_trailer_support_compute_the_md5(sim):
    nodes = object_nodes(sim)
    with sim.without_footers(nodes[0], nodes[1]):
        assert put(sim, LARGE).status == 201
    assert sim.holders() == sorted(nodes)
    for n in nodes:
        with sim.refusing("object", *(set(nodes) - {n})):
            assert sim("GET", "/a/c/o").body == LARGE


def test_a_node_that_received_other_bytes_than_were_sent_stores_nothing(sim):
    nodes = object_nodes(sim)
    sim.faults.garbles.add(node_port("object", nodes[2]))
    response = put(sim, LARGE)
    assert response.status == 201
    assert response.headers["etag"].strip('"') == md5(LARGE).hexdigest()
    assert sim.holders() == sorted(nodes[:2])


def test_nodes_that_stored_different_bodies_are_an_error(sim):
    nodes = object_nodes(sim)
    sim.faults.garbles.add(node_port("object", nodes[2]))
    # A small body goes out in one piece, and each node computes its ETag itself.
    assert put(sim, SMALL).status == 500


# --- conditions ---------------------------------------------------------------------------------------


def test_a_wrong_etag_is_422_and_stores_nothing(sim, body):
    assert put(sim, body, {"etag": "0" * 32}).status == 422
    assert sim.holders() == []


def test_if_none_match_star_refuses_to_replace(sim, body):
    assert put(sim, body, {"if-none-match": "*"}).status == 201
    assert put(sim, body, {"if-none-match": "*"}).status == 412
    assert put(sim, body, {"if-none-match": '"abc"'}).status == 400


@pytest.mark.parametrize("size", [0, 5, 200_000])
def test_if_none_match_star_stores_nothing_when_one_node_has_the_object(sim, size):
    """A client may have read that version, so it is current and is restored to the other nodes."""
    nodes = object_nodes(sim)
    with sim.refusing("object", *(set(range(1, 7)) - {nodes[0]})):
        put(sim, b"first")
    assert sim.holders() == [nodes[0]]
    sim.clear_node_errors()
    assert put(sim, b"s" * size, {"if-none-match": "*"}).status == 412
    assert sim.holders() == sorted(nodes)
    assert len({tuple(names) for names in sim.files().values()}) == 1
    assert sim("GET", "/a/c/o").body == b"first"


@pytest.mark.parametrize("size", [0, 5, 200_000])
def test_if_none_match_star_stores_a_new_object_of_any_size(sim, size):
    assert put(sim, b"s" * size, {"if-none-match": "*"}).status == 201
    assert sim.holders() == sorted(object_nodes(sim))
    assert sim("GET", "/a/c/o").body == b"s" * size


def test_an_older_write_is_accepted_and_changes_nothing(sim, body):
    put(sim, body, {"x-timestamp": "1700000002.00000"})
    assert put(sim, b"older", {"x-timestamp": "1700000001.00000"}).status == 202
    assert sim("GET", "/a/c/o").body == body


class Overtaken(BytesBody):
    """A body during whose transfer another write of the object begins and ends."""

    def __init__(self, data, overtake):
        super().__init__(data)
        self._overtake = overtake

    def read(self, size=-1):
        self._overtake()
        return super().read(size)


def test_an_overtaken_write_gets_the_etag_of_its_own_body(sim, body):
    def overtake():
        put(sim, b"newer", {"x-timestamp": "1700000002.00000"})

    headers = {"x-timestamp": "1700000001.00000", "content-length": str(len(body))}
    response = put(sim, Overtaken(body, overtake), headers)
    assert (response.status, response.headers["etag"]) == (202, md5(body).hexdigest())
    assert sim("GET", "/a/c/o").body == b"newer"


def test_an_older_post_is_409(sim):
    put(sim, SMALL, {"x-timestamp": "1700000002.00000"})
    assert sim("POST", "/a/c/o", {"x-timestamp": "1700000001.00000"}).status == 409


def test_uploads_into_a_missing_container_are_404_without_reading_the_body(sim):
    response = sim("PUT", "/a/nope/o", {"content-length": "5"}, Broken(b"", 5, AssertionError("was read")))
    assert response.status == 404


# --- POST and DELETE ----------------------------------------------------------------------------------


def test_post_replaces_metadata_on_a_majority(sim):
    put(sim, SMALL, {"x-object-meta-a": "1"})
    nodes = object_nodes(sim)
    with sim.refusing("object", nodes[0]):
        assert sim("POST", "/a/c/o", {"x-object-meta-b": "2"}).status == 202
    sim.clear_node_errors()
    newest = sim("HEAD", "/a/c/o", {"x-newest": "true"}).headers
    assert (newest.get("x-object-meta-a"), newest.get("x-object-meta-b")) == (None, "2")


def test_post_finds_an_object_that_is_still_on_handoffs(sim):
    nodes = object_nodes(sim)
    with sim.refusing("object", *nodes[:2]):
        put(sim, SMALL)
    sim.clear_node_errors()
    assert sim("POST", "/a/c/o", {"x-object-meta-b": "2"}).status == 202


def test_post_that_only_a_minority_accepts_is_503_not_404(sim):
    nodes = object_nodes(sim)
    with sim.refusing("object", *nodes[:2], *sim.handoffs("a", "c", "o")):
        put(sim, SMALL)
    sim.clear_node_errors()
    assert sim("POST", "/a/c/o", {"x-object-meta-b": "2"}).status == 503


def test_post_and_delete_of_a_missing_object_are_404(sim):
    assert sim("POST", "/a/c/o", {"x-object-meta-b": "2"}).status == 404
    assert sim("DELETE", "/a/c/o").status == 404


def test_delete_counts_204_and_404_together(sim):
    nodes = object_nodes(sim)
    put(sim, SMALL)
    with sim.refusing("object", nodes[2]):
        assert sim("DELETE", "/a/c/o").status == 204
    sim.clear_node_errors()
    assert nodes[2] in sim.holders()
    # Now two nodes respond 404 and one deletes.
    assert sim("DELETE", "/a/c/o").status == 404
    assert sim.holders() == []


@pytest.mark.parametrize("away", [2, 3])
def test_delete_is_404_when_no_responding_node_has_the_object_and_still_takes_effect(sim, away):
    nodes = object_nodes(sim)
    with sim.refusing("object", *sim.handoffs("a", "c", "o"), nodes[2]):
        put(sim, SMALL)
    sim.clear_node_errors()
    with sim.refusing("object", *nodes[:away]):
        assert sim("DELETE", "/a/c/o").status == 404
    assert len(sim.holders(".ts")) >= 2
    sim.clear_node_errors()
    assert sim("GET", "/a/c/o", {"x-newest": "true"}).status == 404


# --- accounts and containers --------------------------------------------------------------------------


def test_the_first_container_creates_the_account(make_sim):
    sim = make_sim()
    assert sim("HEAD", "/a").headers["x-backend-fake-account-listing"] == "yes"
    assert sim("PUT", "/a/c").status == 201
    assert sim.asked("account", "PUT")
    assert sim("HEAD", "/a").headers["x-account-container-count"] == "1"
    assert sim("PUT", "/a/c").status == 202


def test_without_autocreate_a_missing_account_is_404(make_sim):
    sim = make_sim(account_autocreate=False)
    assert sim("GET", "/a").status == 404
    assert sim("PUT", "/a/c").status == 404


def test_an_account_that_cannot_be_created_is_503(make_sim):
    sim = make_sim()
    with sim.responding("account", 500, *range(1, 7)):
        assert sim("PUT", "/a/c").status == 503


def test_posting_to_a_new_account_creates_it(make_sim):
    sim = make_sim()
    assert sim("POST", "/a", {"x-account-meta-book": "x"}).status == 204
    assert sim("HEAD", "/a").headers["x-account-meta-book"] == "x"


@pytest.mark.parametrize(("refusing", "status"), [(1, 201), (2, 201), (4, 201), (5, 503)])
def test_containers_need_two_of_three_and_use_handoffs(make_sim, refusing, status):
    sim = make_sim()
    sim("PUT", "/a/other")
    with sim.refusing("container", *range(1, refusing + 1)):
        assert sim("PUT", "/a/c").status == status


def test_a_container_with_objects_cannot_be_deleted(sim):
    put(sim, SMALL)
    assert sim("DELETE", "/a/c").status == 409
    sim("DELETE", "/a/c/o")
    assert sim("DELETE", "/a/c").status == 204
    assert sim("DELETE", "/a/c").status == 404
    assert put(sim, SMALL).status == 404


def test_a_container_cached_as_missing_is_found_after_its_creation(sim):
    assert put(sim, SMALL, path="/a/new/o").status == 404
    assert sim("PUT", "/a/new").status == 201
    assert put(sim, SMALL, path="/a/new/o").status == 201


def test_the_number_of_containers_can_be_limited(make_sim):
    sim = make_sim(max_containers_per_account=1)
    sim("PUT", "/a/c")
    sim.cache.values.clear()
    response = sim("PUT", "/a/d")
    assert (response.status, response.body) == (403, b"Reached container limit of 1")
    assert sim("PUT", "/a/c").status == 202


# --- what the backends are told (proxy.md §9) ---------------------------------------------------------


def test_object_servers_get_the_headers_of_the_golden_request(sim):
    headers = {"x-delete-after": "100", "x-trans-id": "txabc", "host": "127.0.0.1:16080"}
    assert put(sim, LARGE, headers).status == 201
    sent = [h for kind, _n, method, _p, h in sim.transport.requests if (kind, method) == ("object", "PUT")]
    containers = sim.primaries("container", "a", "c")
    assert sorted(h["x-container-device"] for h in sent) == sorted(f"sdb{n}" for n in containers)
    queue = sent[0]["x-delete-at-container"]
    queued = sim.primaries("container", ".expiring_objects", queue)
    # Assigned in reverse node order.
    assert [h["x-delete-at-device"] for h in sent] == [f"sdb{n}" for n in reversed(queued)]
    assert sorted(h["x-backend-clean-expiring-object-queue"] for h in sent) == ["f", "t", "t"]
    for h in sent:
        number = int(h["x-container-device"][3:])
        assert h["x-container-host"] == f"10.0.0.1:{node_port('container', number)}"
        assert h["x-container-partition"].isdigit()
        assert h["x-container-root-db-state"] == "unsharded"
        assert h["x-backend-storage-policy-index"] == "0"
        assert re.fullmatch(r"\d{10}\.\d{5}", h["x-timestamp"])
        assert int(h["x-delete-at"]) == int(float(h["x-timestamp"])) + 100
        assert re.fullmatch(r"\d{10}", h["x-delete-at-container"])
        assert h["x-delete-at-host"] == f"10.0.0.1:{node_port('container', int(h['x-delete-at-device'][3:]))}"
        # The golden request counts its body; ours is framed in chunks because trailers follow it.
        assert h["x-backend-obj-content-length"] == str(len(LARGE))
        assert h["expect"] == "100-continue"
        assert h["user-agent"].startswith("proxy-server ")
        assert h["referer"] == "PUT http://127.0.0.1:16080/v1/a/c/o"
        assert h["x-trans-id"].startswith("tx")
        assert "x-delete-after" not in h


def test_container_servers_get_the_account_headers(sim):
    sim("PUT", "/a/c", {"x-container-meta-a": "b", "x-other": "c", "x-remove-container-meta-d": "x"})
    sent = [h for kind, _n, method, _p, h in sim.transport.requests if (kind, method) == ("container", "PUT")]
    accounts = sim.primaries("account", "a")
    assert sorted(h["x-account-device"] for h in sent) == sorted(f"sdb{n}" for n in accounts)
    for h in sent:
        assert h["x-backend-storage-policy-default"] == "0"
        assert h["x-container-meta-a"] == "b"
        assert h["x-container-meta-d"] == ""
        assert "x-other" not in h


def test_paths_to_backends_are_percent_quoted_utf_8(sim):
    sim("PUT", "/a/%C3%BC")
    assert sim("PUT", "/a/%C3%BC/a%20%3F%25", {}, b"x").status == 201
    paths = {p.split("/", 3)[3] for k, _n, m, p, _h in sim.transport.requests if (k, m) == ("object", "PUT")}
    assert paths == {"a/%C3%BC/a%20%3F%25"}
    assert sim("GET", "/a/%C3%BC/a%20%3F%25").body == b"x"


def test_rows_are_added_to_the_container_and_removed(sim):
    put(sim, SMALL)
    assert b'"name": "o"' in sim("GET", "/a/c?format=json").body
    sim("DELETE", "/a/c/o")
    assert sim("GET", "/a/c?format=json").body == b"[]"


def test_a_failed_container_server_fails_no_upload(sim):
    sim("HEAD", "/a/c")
    with sim.refusing("container", *range(1, 7)):
        assert put(sim, SMALL).status == 201
    assert len(list(sim.root.glob("node*/sdb*/async_pending/*/*"))) == 3


@pytest.mark.parametrize(("superseded", "status"), [(1, 201), (2, 202), (3, 202)])
def test_final_responses_of_nodes_are_counted_by_quorum(sim, superseded, status):
    """One node with a newer version does not outvote the nodes that stored the object."""
    nodes = object_nodes(sim)
    with sim.responding("object", 409, *nodes[:superseded]):
        assert put(sim, SMALL).status == status

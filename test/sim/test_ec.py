"""Erasure coded objects with lost archives, faults and incomplete uploads (proxy.md §13)."""

import itertools
import json
import random
from hashlib import md5

import pytest

from swift import green
from swift.http.body import BodyError, ClientDisconnected, RequestBody
from test.support.sim import POLICIES, SimCluster, node_port

EC = 1
K, M = POLICIES[EC].ec.data, POLICIES[EC].ec.parity
SIZES = [0, 1, 999, 1000, 1001, 5500]
BODIES = {size: random.Random(size).randbytes(size) for size in SIZES}
BODY = BODIES[5500]
NUMBERS = itertools.count()


@pytest.fixture
def sim(make_sim):
    """A cluster with container c of the erasure coded policy."""
    cluster = make_sim()
    assert cluster("PUT", "/a/c", {"x-storage-policy": "ec32"}).status == 201
    return cluster


def put(sim, body=BODY, headers=None, path="/a/c/o"):
    return sim("PUT", path, headers, body)


def nodes_of(sim):
    return sim.primaries("object", "a", "c", "o", policy=EC)


def clear_node_errors(sim):
    sim.clear_node_errors()


class Upload(RequestBody):
    """A chunked or counted upload that may be aborted."""

    def __init__(self, data, length=None, error=None):
        self.length = length
        self._data = data
        self._error = error

    def read(self, size=-1):
        data, self._data = self._data[:size], self._data[size:]
        if not data and self._error is not None:
            raise self._error
        return data


# --- writing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_an_acknowledged_object_is_durable_on_all_its_nodes(sim, size, chunked):
    body = BODIES[size]
    headers = {"transfer-encoding": "chunked"} if chunked else {}
    response = put(sim, Upload(body) if chunked else body, headers)
    assert (response.status, response.headers["etag"]) == (201, md5(body).hexdigest())
    assert "last-modified" in response.headers
    files = sim.files(EC)
    assert sorted(files) == sorted(nodes_of(sim))
    indexes = {n: names[0].split("#")[1] for n, names in files.items()}
    assert indexes == {n: str(i) for i, n in enumerate(nodes_of(sim))}
    assert all(names[0].endswith("#d.data") for names in files.values())
    found = sim("GET", "/a/c/o")
    assert (found.status, found.body, found.headers["etag"]) == (200, body, md5(body).hexdigest())
    assert found.headers["content-length"] == str(size)


LARGE = random.Random(9).randbytes(200_000)


@pytest.mark.parametrize("chunked", [False, True])
def test_the_md5s_of_a_large_object_s_archives_are_computed_once(sim, chunked):
    nodes = nodes_of(sim)
    with sim.without_md5_trust(nodes[0]):
        assert (
            put(
                sim, Upload(LARGE) if chunked else LARGE, {"transfer-encoding": "chunked"} if chunked else {}
            ).status
            == 201
        )
    assert sim.nodes_that_trusted_md5() == set(nodes[1:])
    for node in nodes:
        with sim.refusing("object", node):
            assert sim("GET", "/a/c/o").body == LARGE


def test_a_node_that_received_another_archive_than_was_sent_stores_nothing(sim):
    nodes = nodes_of(sim)
    sim.faults.garbles.add(node_port("object", nodes[2]))
    assert put(sim, LARGE).status == 201
    assert sorted(sim.files(EC)) == sorted(set(nodes) - {nodes[2]})
    assert sim("GET", "/a/c/o").body == LARGE


def test_listings_show_the_object_and_not_its_archives(sim):
    put(sim)
    [row] = json.loads(sim("GET", "/a/c?format=json").body)
    assert (row["bytes"], row["hash"]) == (len(BODY), md5(BODY).hexdigest())


def test_archives_name_the_object_that_they_belong_to(sim):
    put(sim)
    sent = [h for kind, _n, method, _p, h in sim.transport.requests if (kind, method) == ("object", "PUT")]
    assert len(sent) == K + M
    for headers in sent:
        assert headers["x-backend-obj-multiphase-commit"] == headers["x-backend-obj-metadata-footer"] == "yes"
        assert headers["x-backend-obj-content-length"] == str(archive_length(sim, len(BODY)))
        assert "etag" not in headers and "content-length" not in headers
    sim("GET", "/a/c/o", {"x-newest": "true"})
    requests = [
        h for kind, _n, method, _p, h in sim.transport.requests if (kind, method) == ("object", "GET")
    ]
    assert {h["x-backend-fragment-preferences"] for h in requests} == {"[]"}
    assert {h["x-backend-etag-is-at"] for h in requests} == {"X-Object-Sysmeta-Ec-Etag"}


def archive_length(sim, size):
    schemes = sim.app._handlers["object", "PUT"].__self__._archive_reader._schemes
    scheme = schemes.for_policy(sim.policies.get(EC))
    return scheme.archive_length(size)


@pytest.mark.parametrize("fault", ["refuses", "answers 500", "answers 507"])
def test_a_handoff_takes_the_archive_of_a_failing_node(sim, fault):
    nodes = nodes_of(sim)
    if fault == "refuses":
        with sim.refusing("object", nodes[3]):
            assert put(sim).status == 201
    else:
        with sim.responding("object", int(fault.split()[1]), nodes[3]):
            assert put(sim).status == 201
    [handoff] = sim.handoffs("a", "c", "o", policy=EC)
    assert sim.files(EC)[handoff][0].split("#")[1:] == ["3", "d.data"]
    clear_node_errors(sim)
    assert sim("GET", "/a/c/o").body == BODY


def test_one_archive_more_than_the_data_fragments_must_be_stored(sim):
    nodes, away = nodes_of(sim), sim.handoffs("a", "c", "o", policy=EC)
    with sim.refusing("object", nodes[0], *away):
        assert put(sim).status == 201
    clear_node_errors(sim)
    with sim.refusing("object", *nodes[:2], *away):
        assert put(sim, path="/a/c/o").status == 503
    clear_node_errors(sim)
    assert sim("GET", "/a/c/o").body == BODY


def test_a_node_that_stops_reading_is_dropped(sim):
    nodes = nodes_of(sim)
    sim.faults.stops_taking_after[node_port("object", nodes[2])] = 1000
    assert put(sim).status == 201
    assert nodes[2] not in sim.holders(policy=EC)
    clear_node_errors(sim)
    assert sim("GET", "/a/c/o").body == BODY


def test_an_upload_that_two_nodes_stop_reading_is_503_and_leaves_nothing(sim):
    for n in nodes_of(sim)[:2]:
        sim.faults.stops_taking_after[node_port("object", n)] = 1000
    assert put(sim).status == 503
    assert sim.holders(policy=EC) == []


@pytest.mark.parametrize("length", [5500, None])
@pytest.mark.parametrize("sent", [0, 10, 4000])
def test_a_client_that_vanishes_leaves_no_archive_and_no_row(sim, length, sent):
    headers = {"transfer-encoding": "chunked"} if length is None else {}
    response = put(sim, Upload(BODY[:sent], length, ClientDisconnected("gone")), headers)
    assert response.status == 499
    assert sim.holders(policy=EC) == []
    assert json.loads(sim("GET", "/a/c?format=json").body) == []


def test_a_client_that_vanishes_leaves_the_old_object(sim):
    put(sim)
    assert put(sim, Upload(b"new", 5500, ClientDisconnected("gone"))).status == 499
    assert sim("GET", "/a/c/o").body == BODY


def test_a_wrong_etag_is_422_and_stores_nothing(sim):
    assert put(sim, BODY, {"etag": "0" * 32}).status == 422
    assert sim.holders(policy=EC) == []
    assert put(sim, BODY, {"etag": f'"{md5(BODY).hexdigest()}"'}).status == 201


def test_if_none_match_star_refuses_to_replace(sim):
    assert put(sim, BODY, {"if-none-match": "*"}).status == 201
    assert put(sim, b"other", {"if-none-match": "*"}).status == 412
    assert sim("GET", "/a/c/o").body == BODY


def test_an_older_write_is_accepted_and_changes_nothing(sim):
    put(sim, BODY, {"x-timestamp": "1700000002.00000"})
    assert put(sim, b"older", {"x-timestamp": "1700000001.00000"}).status == 202
    assert sim("GET", "/a/c/o").body == BODY


def test_a_body_longer_than_allowed_is_413_before_anything_is_stored(sim, monkeypatch):
    size = sim.context.limits.max_file_size + 1
    assert put(sim, Upload(b"", size, AssertionError("was read"))).status == 413


def test_footers_of_filters_are_stored_with_every_archive(sim):
    def add(footers):
        footers["X-Object-Sysmeta-Crypto"] = "key"
        footers["X-Object-Sysmeta-Ec-Etag"] = "forged"
        footers["X-Object-Sysmeta-Container-Update-Override-Etag"] = "seen"

    env = {"swift.callback.update_footers": add}
    assert sim("PUT", "/a/c/o", {}, BODY, env=env).status == 201
    for n in nodes_of(sim):
        with sim.refusing("object", *(set(range(1, 7)) - {n})):
            headers = sim("HEAD", "/a/c/o").headers
        clear_node_errors(sim)
        assert (headers["x-object-sysmeta-crypto"], headers["etag"]) == ("key", md5(BODY).hexdigest())
    assert json.loads(sim("GET", "/a/c?format=json").body)[0]["hash"] == "seen"


def test_an_etag_in_the_footers_is_what_the_body_must_have(sim):
    env = {"swift.callback.update_footers": lambda footers: footers.update({"Etag": "0" * 32})}
    assert sim("PUT", "/a/c/o", {}, BODY, env=env).status == 422
    assert sim.holders(policy=EC) == []


# --- the two phases -----------------------------------------------------------------------------------


def gone_after_first_phase(sim, *numbers):
    sim.faults.gone_after_stage |= {node_port("object", n) for n in numbers}


def test_a_node_that_fails_before_the_commit_keeps_an_uncommitted_archive(sim):
    nodes = nodes_of(sim)
    gone_after_first_phase(sim, nodes[1])
    assert put(sim).status == 201
    states = {n: names[0].endswith("#d.data") for n, names in sim.files(EC).items()}
    assert states == {n: n != nodes[1] for n in nodes}
    clear_node_errors(sim)
    with sim.refusing("object", nodes[0], nodes[2]):
        # Two confirmed archives and the other one are three.
        assert sim("GET", "/a/c/o").body == BODY


def test_too_few_commits_are_reported_to_the_client(sim):
    gone_after_first_phase(sim, *nodes_of(sim)[:2])
    assert put(sim).status == 503


def test_nothing_is_committed_when_too_few_archives_are_stored(sim):
    nodes = nodes_of(sim)
    put(sim, b"before")
    for n in nodes[:2]:
        # Enough for the opening and the data, too little for the footers.
        sim.faults.stops_taking_after[node_port("object", n)] = archive_length(sim, 5500) + 300
    assert put(sim).status == 503
    sim.faults.stops_taking_after.clear()
    clear_node_errors(sim)
    assert sim("GET", "/a/c/o").body == b"before"
    assert sim("GET", "/a/c/o", {"x-newest": "true"}).body == b"before"


@pytest.mark.parametrize("gone", [2, 3, 5])
def test_an_upload_that_nodes_lose_between_footers_and_storing_is_never_made_durable(sim, gone):
    nodes = nodes_of(sim)
    put(sim, b"before")
    before = sim.files(EC)
    ports = {node_port("object", n) for n in nodes[:gone]}
    sim.faults.gone_before_stored |= ports
    assert put(sim).status == 503
    sim.faults.gone_before_stored.clear()
    clear_node_errors(sim)
    for n, names in sim.files(EC).items():
        assert [name for name in names if name.endswith("#d.data")] == before[n]
    for headers in ({}, {"x-newest": "true"}):
        assert sim("GET", "/a/c/o", headers).body == b"before"


def test_one_node_may_fail_before_it_stores_its_archive(sim):
    sim.faults.gone_before_stored.add(node_port("object", nodes_of(sim)[0]))
    assert put(sim).status == 201
    assert sim("GET", "/a/c/o").body == BODY


def test_a_late_node_still_commits(sim, make_sim):
    nodes = nodes_of(sim)
    event = sim.faults.waits_for[node_port("object", nodes[0])] = green.Event()
    green.spawn_after(0.1, event.set)
    assert put(sim).status == 201
    for _ in range(100):
        if all(names[0].endswith("#d.data") for names in sim.files(EC).values()):
            break
        green.sleep(0.01)
    assert sim.holders(policy=EC) == sorted(nodes)


# --- nothing is left open -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "read_bytes"),
    [
        ({}, None),
        ({}, 0),
        ({}, 1500),
        ({"x-newest": "true"}, None),
        ({"range": "bytes=0-9"}, None),
        ({"range": "bytes=0-4000"}, 10),
        ({"range": "bytes=0-9,3000-5000"}, None),
        ({"range": "bytes=0-9,3000-5000"}, 500),
        ({"range": "bytes=0-9,3000-5000"}, 0),
        ({"range": "bytes=9999-"}, None),
        ({"if-none-match": "*"}, None),
        ({"if-unmodified-since": "Wed, 01 Jan 2020 00:00:00 GMT"}, None),
    ],
)
@pytest.mark.parametrize("dying", [0, 2])
def test_every_response_is_read_or_closed(sim, headers, read_bytes, dying):
    put(sim)
    for n in nodes_of(sim)[:dying]:
        sim.faults.dies_after[node_port("object", n)] = 700
    sim.transport.downloads.clear()
    response = sim.open("/a/c/o", headers)
    if not isinstance(response.body, bytes):
        left = 1 << 20 if read_bytes is None else read_bytes
        for piece in response.body if left else ():
            left -= len(piece)
            if left <= 0:
                break
    response.discard()
    assert open_answers(sim) == []


def open_answers(sim):
    """Return response bodies that are still open after all green threads have run."""
    for _ in range(50):
        green.sleep(0)
    assert sim.transport.downloads
    return [download for download in sim.transport.downloads if not download.closed and download.length]


# --- reading through losses ---------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [c for n in range(M + 1) for c in itertools.combinations(range(K + M), n)])
def test_every_combination_of_up_to_m_lost_nodes_reads_right(sim, lost):
    put(sim)
    nodes = nodes_of(sim)
    with sim.refusing("object", *(nodes[i] for i in lost)):
        found = sim("GET", "/a/c/o")
        assert (found.status, found.body) == (200, BODY)
        assert sim("GET", "/a/c/o", {"range": "bytes=990-2010"}).body == BODY[990:2011]
        assert sim("HEAD", "/a/c/o").headers["content-length"] == "5500"


def test_more_than_m_lost_nodes_are_503_and_not_404(sim):
    put(sim)
    with sim.refusing("object", *nodes_of(sim)[: M + 1]):
        assert sim("GET", "/a/c/o").status == 503


@pytest.mark.parametrize("dies_after", [0, 1, 400, 500, 1200, 2100])
@pytest.mark.parametrize("dying", [1, 2])
def test_a_node_that_dies_while_it_is_read_is_replaced(sim, dies_after, dying):
    put(sim)
    for n in nodes_of(sim)[:dying]:
        sim.faults.dies_after[node_port("object", n)] = dies_after
    found = sim("GET", "/a/c/o")
    assert (found.status, found.broke_off, found.body) == (200, None, BODY)


@pytest.mark.parametrize("slow", [0, 1])
@pytest.mark.parametrize("dies_after", [0, 700])
def test_unused_nodes_replace_failing_ones(make_sim, slow, dies_after):
    sim = make_sim(concurrent_gets=True, concurrent_ec_extra_requests=2, concurrency_timeout=5.0)
    sim("PUT", "/a/c", {"x-storage-policy": "ec32"})
    put(sim)
    nodes = nodes_of(sim)
    for n in nodes[:2]:
        sim.faults.dies_after[node_port("object", n)] = dies_after
    for n in nodes[3 : 3 + slow]:
        # Too late for the search, in time for those that wait for it later.
        event = sim.faults.waits_for[node_port("object", n)] = green.Event()
        green.spawn_after(0.05, event.set)
    assert sim("GET", "/a/c/o").body == BODY
    assert len(sim.asked("object", "GET")) >= K + M


def test_the_connection_is_closed_when_too_many_nodes_fail(sim):
    put(sim)
    for n in nodes_of(sim):
        sim.faults.dies_after[node_port("object", n)] = 900
    found = sim("GET", "/a/c/o")
    assert isinstance(found.broke_off, BodyError)
    assert BODY.startswith(found.body) and len(found.body) == 2000


def test_too_many_failing_nodes_at_the_start_are_503(sim):
    put(sim)
    for n in nodes_of(sim):
        sim.faults.dies_after[node_port("object", n)] = 10
    assert sim("GET", "/a/c/o").status == 503


@pytest.mark.files
@pytest.mark.parametrize("where", [1, 30, 70])
def test_a_fragment_with_a_damaged_header_is_read_elsewhere(sim, where):
    put(sim)
    for path in sim.root.glob(f"node{nodes_of(sim)[0]}/sdb*/objects-1/*/*/*/*.data"):
        data = bytearray(path.read_bytes())
        data[where] ^= 0xFF
        path.write_bytes(data)
    found = sim("GET", "/a/c/o")
    assert (found.status, found.body) == (200, BODY)


def test_archives_are_found_on_handoffs(sim):
    nodes = nodes_of(sim)
    with sim.refusing("object", nodes[0]):
        put(sim)
    clear_node_errors(sim)
    with sim.refusing("object", nodes[1], nodes[2]):
        assert sim("GET", "/a/c/o").body == BODY


def move(sim, source, target):
    """Move a node's archives to another one, as an unfinished rebalance would."""
    for path in list(sim.root.glob(f"node{source}/sdb*/objects-1/*/*/*/*.data")):
        parts = list(path.relative_to(sim.root).parts)
        parts[:2] = [f"node{target}", f"sdb{target}"]
        copy = sim.root.joinpath(*parts)
        copy.parent.mkdir(parents=True, exist_ok=True)
        path.rename(copy)


@pytest.mark.files
def test_several_archives_of_one_node_are_all_used(sim):
    put(sim)
    nodes = nodes_of(sim)
    for source in nodes[1:]:
        move(sim, source, nodes[0])
    assert list(sim.files(EC)) == [nodes[0]]
    found = sim("GET", "/a/c/o")
    assert (found.status, found.body) == (200, BODY)
    assert sim("GET", "/a/c/o", {"range": "bytes=0-0,2500-2501"}).status == 206


# --- several uploads of one object --------------------------------------------------------------------


def write_only(sim, numbers, body, stamp, *, durable=True):
    """Put archives of one upload on some nodes only."""
    others = set(range(1, 7)) - set(numbers)
    donor = SimCluster(sim.root / f"donor{next(NUMBERS)}", sim.context.rings.folder, packed=lambda _n: False)
    donor("PUT", "/a/c", {"x-storage-policy": "ec32"})
    assert donor("PUT", "/a/c/o", {"x-timestamp": f"170000000{stamp}.00000"}, body).status == 201
    donor.close()
    for path in donor.root.glob("node*/sdb*/objects-1/*/*/*/*.data"):
        relative = path.relative_to(donor.root)
        if int(relative.parts[0][4:]) in others:
            continue
        target = sim.root / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        if not durable:
            target = target.with_name(target.name.replace("#d", ""))
        path.rename(target)


@pytest.mark.files
def test_the_newest_upload_with_enough_archives_wins(sim):
    nodes = nodes_of(sim)
    write_only(sim, nodes, b"old" * 700, 1)
    write_only(sim, nodes[:4], b"new" * 900, 2)
    assert sim("GET", "/a/c/o").body == b"new" * 900


@pytest.mark.files
@pytest.mark.parametrize("headers", [{}, {"x-newest": "true"}, {"range": "bytes=0-9"}])
@pytest.mark.parametrize(("old", "new"), [(5, 4), (5, 2), (5, 0), (2, 2), (0, 2)])
def test_archives_of_other_uploads_are_closed(sim, headers, old, new):
    nodes = nodes_of(sim)
    write_only(sim, nodes[:old], b"old" * 700, 1)
    write_only(sim, nodes[5 - new :], b"new" * 900, 2)
    sim.transport.downloads.clear()
    response = sim.open("/a/c/o", headers)
    assert response.status in ((200, 206) if old > 3 or new > 3 else (503,))
    response.discard()
    assert open_answers(sim) == []


@pytest.mark.files
@pytest.mark.parametrize("newest", [True, False])
def test_the_previous_upload_is_read_when_the_newest_has_too_few_archives(sim, newest):
    nodes = nodes_of(sim)
    write_only(sim, nodes, b"old" * 700, 1)
    write_only(sim, nodes[:2], b"new" * 900, 2)
    found = sim("GET", "/a/c/o", {"x-newest": "true"} if newest else {})
    assert (found.status, found.body) == (200, b"old" * 700)


@pytest.mark.files
def test_the_previous_upload_is_read_when_the_newest_was_never_committed(sim):
    nodes = nodes_of(sim)
    write_only(sim, nodes, b"old" * 700, 1)
    write_only(sim, nodes, b"new" * 900, 2, durable=False)
    assert sim("GET", "/a/c/o").body == b"old" * 700


@pytest.mark.files
def test_one_committed_archive_commits_the_upload(sim):
    nodes = nodes_of(sim)
    write_only(sim, nodes[1:], b"new" * 900, 2, durable=False)
    assert sim("GET", "/a/c/o").status == 404
    write_only(sim, nodes[:1], b"new" * 900, 2)
    assert sim("GET", "/a/c/o", {"x-newest": "true"}).body == b"new" * 900


@pytest.mark.files
def test_an_uncommitted_object_is_404(sim):
    write_only(sim, nodes_of(sim), b"new" * 900, 2, durable=False)
    assert [sim(method, "/a/c/o").status for method in ("GET", "HEAD")] == [404, 404]


def test_a_tombstone_hides_older_archives(sim):
    nodes = nodes_of(sim)
    put(sim)
    with sim.refusing("object", nodes[4]):
        assert sim("DELETE", "/a/c/o").status == 204
    clear_node_errors(sim)
    assert sim.holders(policy=EC) == [nodes[4]]
    assert sim("GET", "/a/c/o").status == 404
    assert sim("GET", "/a/c/o", {"x-newest": "true"}).status == 404


def test_an_unknown_object_is_404(sim):
    assert [sim(m, "/a/c/o").status for m in ("GET", "HEAD", "POST", "DELETE")] == [404] * 4


# --- ranges and conditions ----------------------------------------------------------------------------

RANGES = ["0-0", "0-9", "990-1010", "1000-1999", "5000-", "-1", "-700", "-9000", "0-99999", "1500-4500"]


@pytest.mark.parametrize("text", RANGES)
def test_a_range_returns_exactly_its_bytes(sim, text):
    put(sim)
    first, _, last = text.partition("-")
    start = int(first) if first else max(0, 5500 - int(last))
    stop = min(5500, int(last) + 1) if first and last else 5500
    found = sim("GET", "/a/c/o", {"range": f"bytes={text}"})
    assert (found.status, found.body) == (206, BODY[start:stop])
    assert found.headers["content-range"] == f"bytes {start}-{stop - 1}/5500"
    assert found.headers["content-length"] == str(stop - start)
    assert found.headers["etag"] == md5(BODY).hexdigest()


def test_ranges_ask_archives_for_no_more_than_they_need(sim):
    put(sim)
    sim("GET", "/a/c/o", {"range": "bytes=2500-2600"})
    requests = {h["range"] for kind, _n, m, _p, h in sim.transport.requests if (kind, m) == ("object", "GET")}
    size = archive_length(sim, 1000)
    assert requests == {f"bytes={2 * size}-{3 * size - 1}"}


@pytest.mark.parametrize("text", ["5500-", "9999-", "-0", "5500-5501,6000-"])
def test_unsatisfiable_ranges_are_416(sim, text):
    put(sim)
    found = sim("GET", "/a/c/o", {"range": f"bytes={text}"})
    assert (found.status, found.headers["content-range"]) == (416, "bytes */5500")
    assert found.headers["content-type"] == "text/html; charset=UTF-8"
    assert found.headers["etag"] == md5(BODY).hexdigest()


def test_a_range_between_the_end_and_its_segment_s_end_is_416(sim):
    put(sim, b"x" * 100)
    assert sim("GET", "/a/c/o", {"range": "bytes=500-600"}).status == 416


@pytest.mark.parametrize(("text", "status"), [("-5", 200), ("0-", 416)])
def test_ranges_of_an_empty_object(sim, text, status):
    put(sim, b"")
    found = sim("GET", "/a/c/o", {"range": f"bytes={text}"})
    assert found.status == status
    assert status == 416 or found.body == b""


@pytest.mark.parametrize("first", ["0-9", "9999-"])
def test_several_ranges_are_sent_as_multipart(sim, first):
    put(sim, BODY, {"content-type": "text/plain"})
    found = sim("GET", "/a/c/o", {"range": f"bytes={first},990-1010,-3"})
    assert found.status == 206
    boundary = found.headers["content-type"].partition("boundary=")[2]
    spans = [(0, 9)] * (first == "0-9") + [(990, 1010), (5497, 5499)]
    expected = b"".join(
        f"--{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes {a}-{b}/5500\r\n\r\n".encode()
        + BODY[a : b + 1]
        + b"\r\n"
        for a, b in spans
    )
    assert found.body == expected + f"--{boundary}--".encode()
    assert found.headers["content-length"] == str(len(found.body))


def test_several_ranges_survive_nodes_that_die_between_them(sim):
    put(sim)
    for n in nodes_of(sim)[:2]:
        sim.faults.dies_after[node_port("object", n)] = 500
    found = sim("GET", "/a/c/o", {"range": "bytes=0-2999,4000-4001"})
    assert (found.status, found.broke_off) == (206, None)
    assert BODY[0:3000] in found.body and BODY[4000:4002] in found.body


@pytest.mark.long
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"if-none-match": "ETAG"}, 304),
        ({"if-none-match": '"other"'}, 200),
        ({"if-match": "ETAG"}, 200),
        ({"if-match": '"other"'}, 412),
        ({"if-none-match": "*"}, 304),
        ({"if-modified-since": "Wed, 01 Jan 2020 00:00:00 GMT"}, 200),
        ({"if-modified-since": "Wed, 01 Jan 2120 00:00:00 GMT"}, 304),
        ({"if-unmodified-since": "Wed, 01 Jan 2020 00:00:00 GMT"}, 412),
        ({"if-none-match": '"other"', "if-modified-since": "Wed, 01 Jan 2120 00:00:00 GMT"}, 200),
        ({"range": "bytes=0-9", "if-none-match": "ETAG"}, 304),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_conditions_compare_the_objects_etag(sim, method, headers, status):
    put(sim)
    etag = md5(BODY).hexdigest()
    sent = {name: value.replace("ETAG", f'"{etag}"') for name, value in headers.items()}
    found = sim(method, "/a/c/o", sent)
    assert found.status == status
    if status != 200:
        assert found.body == b"" or status == 412
    assert found.headers.get("etag", etag) == etag


@pytest.mark.parametrize(
    ("method", "asked", "status", "ranges"),
    [
        ("GET", {"if-none-match": "*"}, 304, "bytes"),
        ("HEAD", {"if-none-match": "*"}, 304, "bytes"),
        ("GET", {"if-modified-since": "Wed, 01 Jan 2120 00:00:00 GMT"}, 304, "bytes"),
        ("GET", {"if-match": '"other"'}, 412, None),
        ("GET", {"if-unmodified-since": "Wed, 01 Jan 2020 00:00:00 GMT"}, 412, None),
        ("GET", {"range": "bytes=9999-"}, 416, "bytes"),
    ],
)
def test_error_responses_have_the_peers_headers(sim, method, asked, status, ranges):
    put(sim, BODY, {"content-type": "text/plain", "x-object-meta-a": "b"})
    found = sim(method, "/a/c/o", asked)
    headers = found.headers
    assert (found.status, headers.get("accept-ranges")) == (status, ranges)
    assert (headers["etag"], headers["x-object-meta-a"]) == (md5(BODY).hexdigest(), "b")
    assert headers["content-type"] == ("text/plain" if method == "HEAD" else "text/html; charset=UTF-8")
    assert "last-modified" in headers and "x-timestamp" in headers
    if status != 416:
        assert headers.get("content-length", "0") == "0"
    else:
        assert headers["content-range"] == "bytes */5500"
    assert not [name for name in headers if "sysmeta" in name]


def test_conditions_can_compare_another_etag_first(sim):
    put(sim, BODY, {"x-object-sysmeta-slo-etag": "slo"})
    headers = {"x-backend-etag-is-at": "X-Object-Sysmeta-Slo-Etag", "if-none-match": '"slo"'}
    assert sim("GET", "/a/c/o", headers).status == 304


def test_ranges_can_be_ignored_for_objects_with_certain_metadata(sim):
    put(sim, BODY, {"x-object-sysmeta-slo-etag": "slo"})
    headers = {
        "range": "bytes=0-1",
        "x-backend-ignore-range-if-metadata-present": "X-Object-Sysmeta-Slo-Etag",
    }
    found = sim("GET", "/a/c/o", headers)
    assert (found.status, found.body) == (200, BODY)


# --- metadata -----------------------------------------------------------------------------------------


def test_posted_metadata_is_returned_although_a_node_missed_it(sim):
    nodes = nodes_of(sim)
    put(sim, BODY, {"x-object-meta-a": "1"})
    with sim.refusing("object", nodes[0], *sim.handoffs("a", "c", "o", policy=EC)):
        assert sim("POST", "/a/c/o", {"x-object-meta-b": "2"}).status == 202
    clear_node_errors(sim)
    headers = sim("GET", "/a/c/o").headers
    assert (headers.get("x-object-meta-a"), headers.get("x-object-meta-b")) == (None, "2")


def test_posts_and_deletions_need_a_majority(sim):
    put(sim)
    nodes = nodes_of(sim)
    with sim.refusing("object", *nodes[:2], *sim.handoffs("a", "c", "o", policy=EC)):
        assert sim("POST", "/a/c/o", {"x-object-meta-b": "2"}).status == 202
        assert sim("DELETE", "/a/c/o").status == 204
    clear_node_errors(sim)
    assert sim("GET", "/a/c/o").status == 404


def test_listings_stay_right_when_metadata_is_posted(sim):
    put(sim)
    assert sim("POST", "/a/c/o", {"content-type": "image/png"}).status == 202
    [row] = json.loads(sim("GET", "/a/c?format=json").body)
    assert (row["bytes"], row["hash"]) == (len(BODY), md5(BODY).hexdigest())
    assert row["content_type"] == "image/png"


def test_internal_headers_do_not_reach_filters(sim):
    put(sim)
    for method in ("GET", "HEAD"):
        headers = sim(method, "/a/c/o").headers
        assert not [name for name in headers if name.startswith("x-object-sysmeta-ec-")]
        assert (headers["etag"], headers["content-length"]) == (md5(BODY).hexdigest(), "5500")


# --- duplication --------------------------------------------------------------------------------------


def test_with_a_duplication_factor_any_copies_of_archives_suffice(make_sim):
    sim = make_sim()
    sim("PUT", "/a/d", {"x-storage-policy": "twice"})
    assert sim("PUT", "/a/d/o", {}, BODY).status == 201
    nodes = sim.primaries("object", "a", "d", "o", policy=2)
    files = sim.files(2)
    assert [files[n][0].split("#")[1] for n in nodes] == ["0", "1", "2", "0", "1", "2"]
    for lost in itertools.combinations(nodes, 2):
        with sim.refusing("object", *lost):
            assert sim("GET", "/a/d/o").body == BODY
        clear_node_errors(sim)
    # The only two left that differ.
    with sim.refusing("object", nodes[0], nodes[3], nodes[1], nodes[5]):
        assert sim("GET", "/a/d/o").body == BODY


@pytest.mark.parametrize("lost", [c for n in range(3) for c in itertools.combinations(range(6), n)])
def test_codes_that_need_more_than_k_fragments_get_them(make_sim, lost):
    sim = make_sim()
    sim("PUT", "/a/x", {"x-storage-policy": "xor"})
    assert sim("PUT", "/a/x/o", {}, BODY).status == 201
    nodes = sim.primaries("object", "a", "x", "o", policy=3)
    with sim.refusing("object", *(nodes[i] for i in lost)):
        assert sim("GET", "/a/x/o").body == BODY


# --- the library --------------------------------------------------------------------------------------


def test_without_the_library_only_this_policy_is_unavailable(sim, monkeypatch):
    put(sim)
    sim("PUT", "/a/plain", {"x-storage-policy": "gold"})
    sim.app._handlers["object", "PUT"].__self__._archive_reader._schemes._made.clear()
    monkeypatch.setitem(__import__("sys").modules, "pyeclib", None)
    assert put(sim).status == 503
    assert sim("GET", "/a/c/o").status == 503
    assert sim("PUT", "/a/plain/o", {}, b"x").status == 201
    assert sim("GET", "/a/plain/o").body == b"x"


# --- limits -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("excess", "status"), [(-1, 201), (0, 201), (1, 413)])
def test_a_chunked_upload_may_be_as_large_as_allowed_and_no_larger(make_sim, excess, status):
    size_max = 2500
    sim = make_sim(size_max=size_max)
    sim("PUT", "/a/c", {"x-storage-policy": "ec32"})
    body = bytes(n % 251 for n in range(size_max + excess))
    response = sim("PUT", "/a/c/o", {"transfer-encoding": "chunked"}, Upload(body))
    assert response.status == status
    found = sim("GET", "/a/c/o")
    assert (found.status, found.body) == (200, body) if status == 201 else found.status == 404


@pytest.mark.parametrize("policy", ["gold", "ec32"])
@pytest.mark.parametrize(("count", "status"), [(0, 404), (2, 503)])
def test_404s_of_new_primaries_after_a_rebalance_prove_nothing(make_sim, policy, count, status):
    sim = make_sim(rebalance_missing_suppression_count=count)
    sim("PUT", "/a/c", {"x-storage-policy": policy})
    primaries = sim.primaries("object", "a", "c", "o", policy=EC if policy == "ec32" else 0)
    with sim.responding("object", 503, *primaries[: len(primaries) // 2]):
        assert sim("GET", "/a/c/o").status == status

"""Digests say that two nodes have the same, cost a stat when nothing happened, and are bounded."""

import json
import os
import pickle
import shutil

import pytest

from swift.base.clock import ManualClock
from swift.obj.replication.digests import (
    BODY_BYTES_MAX,
    EMPTY,
    PARTITIONS_MAX,
    BadDigestMessage,
    DigestCache,
    decode_request,
    decode_response,
    digest_of,
    encode_request,
    encode_response,
)
from test.support.object_servers import GOLD, ObjectNodes

ASK = {"x_backend_partition_digests": "true", "x_backend_storage_policy_index": "0"}


@pytest.fixture
def nodes(tmp_path):
    made = ObjectNodes(tmp_path, 2, replicas=2)
    yield made
    made.stop()


def test_a_digest_is_of_all_suffixes_in_any_order():
    assert digest_of({"abc": "1", "def": "2"}, None) == digest_of({"def": "2", "abc": "1"}, None)
    assert digest_of({"abc": "1"}, None) != digest_of({"abc": "2"}, None)
    assert digest_of({"abc": "1"}, None) != digest_of({"abd": "1"}, None)
    assert digest_of({}, None) == EMPTY


def test_while_a_suffix_is_dirty_there_is_no_digest():
    assert digest_of({"abc": "1", "def": None}, None) is None


def test_each_node_tells_of_its_own_archives_and_they_are_equal():
    mine = {"abc": {None: "d", 0: "x", 5: "strange"}, "def": {0: "y"}}
    theirs = {"abc": {None: "d", 1: "x"}, "def": {1: "y"}}
    assert digest_of(mine, 0) == digest_of(theirs, 1)
    assert digest_of(mine, 0) != digest_of(theirs, 0)
    assert digest_of({"abc": {5: "strange"}}, 0) == EMPTY


def test_questions_and_answers_are_read_as_they_were_written():
    question = {0: None, 7: 3, 4294967295: 0}
    assert decode_request(encode_request(question)) == question
    response = {0: "", 7: "ab"}
    assert decode_response(encode_response(response)) == response


def test_the_largest_question_fits_into_its_bound():
    most = {4294967295 - n: 31 for n in range(PARTITIONS_MAX)}
    assert len(encode_request(most)) <= BODY_BYTES_MAX
    assert len(encode_response(dict.fromkeys(most, "f" * 32))) <= BODY_BYTES_MAX


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"[" * 100_000,
        b'{"01": null}',
        b'{"x": null}',
        b'{"-1": null}',
        '{"٣": null}'.encode(),
        b'{"1": -1}',
        b'{"1": true}',
        b'{"1": "2"}',
        b" " * (BODY_BYTES_MAX + 1),
        json.dumps(dict.fromkeys(map(str, range(PARTITIONS_MAX + 1)))).encode(),
    ],
)
def test_what_is_no_question_is_refused(body):
    with pytest.raises(BadDigestMessage):
        decode_request(body)


def test_what_has_not_changed_is_not_hashed_again(nodes):
    node = nodes[0]
    node.ask("PUT", "/3/a/c/o", nodes.clock.time(), b"x")
    store = node.stores.engine(GOLD)
    requests = []

    class Counting:
        maintenance = store.maintenance

        def hashes(self, *args, **more):
            requests.append(args)
            return store.hashes(*args, **more)

    digest_cache = DigestCache(ManualClock().monotonic, 100.0)
    first = digest_cache.entry(Counting(), "d0", 3, GOLD)
    journal = node.path / "objects/3/hashes.invalid"
    os.utime(journal, (1, 1))
    for _ in range(3):
        assert digest_cache.entry(Counting(), "d0", 3, GOLD) == first
    assert len(requests) == 2
    node.ask("PUT", "/3/a/c/p", nodes.clock.time(), b"x")
    assert digest_cache.entry(Counting(), "d0", 3, GOLD) != first


@pytest.fixture(params=[100.0, None], ids=["daemon", "server"])
def settled(request, nodes):
    """A node with two objects in a partition, and a book that knows the partition."""
    node = nodes[0]
    for name in "op":
        node.ask("PUT", f"/3/a/c/{name}", nodes.clock.time(), b"x")
    digest_cache = DigestCache(ManualClock().monotonic, request.param)
    store = node.stores.engine(GOLD)
    digest_cache.entry(store, "d0", 3, GOLD)
    os.utime(node.path / "objects/3/hashes.invalid", (1, 1))
    for _ in range(2):
        digest_cache.entry(store, "d0", 3, GOLD)
    return node, lambda: digest_cache.entry(store, "d0", 3, GOLD).digest


def test_a_suffix_that_nobody_told_of_is_found_at_once(settled, nodes):
    node, digest = settled
    first = digest()
    place = node.path / "objects/3/abc" / ("0" * 29 + "abc")
    place.mkdir(parents=True)
    (place / f"{nodes.clock.time():.5f}.ts").touch()
    assert digest() != first


@pytest.mark.disk
def test_a_suffix_that_was_removed_by_hand_is_missed_at_once(settled):
    node, digest = settled
    first = digest()
    shutil.rmtree(next(path for path in (node.path / "objects/3").iterdir() if len(path.name) == 3))
    assert digest() not in (first, None)


def test_removing_the_cache_of_hashes_makes_lost_files_known(settled):
    """This is the documented way to have a partition hashed anew; the suffix itself stays."""
    node, digest = settled
    first = digest()
    lost = next((node.path / "objects/3").rglob("*.data"))
    lost.unlink()
    assert digest() == first
    (node.path / "objects/3/hashes.pkl").unlink()
    assert digest() not in (first, None)


def test_an_older_cache_of_hashes_takes_the_place_of_what_is_remembered(settled):
    node, digest = settled
    first = digest()
    partition = node.path / "objects/3"
    older = pickle.loads((partition / "hashes.pkl").read_bytes())
    suffix = next(name for name in older if len(name) == 3)
    (partition / "restored").write_bytes(pickle.dumps({**older, suffix: "0" * 32}, 2))
    (partition / "restored").rename(partition / "hashes.pkl")
    assert digest() != first


# --- the server -------------------------------------------------------------------------------------


def replicate(node, body, path="/3", **headers):
    named = {"content_length": str(len(body)), **ASK, **headers}
    return node.ask("REPLICATE", path, None, body, **named)


def test_a_server_answers_for_many_partitions_at_once(nodes):
    node = nodes[0]
    node.ask("PUT", "/3/a/c/o", nodes.clock.time(), b"x")
    response = replicate(node, encode_request({3: None, 4: None}))
    assert response.headers["x-backend-partition-digests"] == "true"
    assert decode_response(response.content) == {3: digest_of(node.hashes(3), None), 4: EMPTY}


def test_a_server_refuses_what_it_cannot_bound(nodes):
    node = nodes[0]
    assert replicate(node, b"{").status == 400
    assert replicate(node, b" " * (BODY_BYTES_MAX + 1)).status == 413
    assert replicate(node, encode_request({3: None}), x_backend_storage_policy_index="9").status == 503
    node.path.rename(node.root / "away")
    assert replicate(node, encode_request({3: None})).status == 507


def test_an_answer_that_takes_too_long_tells_what_it_has(nodes):
    node, clock = nodes[0], ManualClock()
    digest_cache = DigestCache(lambda: clock.now_s)

    class Slow:
        maintenance = node.stores.engine(GOLD).maintenance

        def hashes(self, *args, **more):
            clock.advance(3)
            return {}

    assert list(digest_cache.digests(Slow(), "d0", GOLD, dict.fromkeys(range(9)), 5.0)) == [0, 1]


def test_a_server_makes_durable_what_it_is_asked_to_and_says_so(nodes):
    node = nodes[0]
    node.ask("PUT", "/3/a/c/o", nodes.clock.time(), b"x")
    suffix = next(iter(node.hashes(3)))
    plain = node.ask("REPLICATE", f"/3/{suffix}", None)
    durable = node.ask("REPLICATE", f"/3/{suffix}-abc", None, x_backend_make_durable="true")
    assert "x-backend-make-durable" not in plain.headers
    assert durable.headers["x-backend-make-durable"] == "true"

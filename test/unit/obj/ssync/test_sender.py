"""A sender and a receiver over real sockets: what one has the other gets, durably and only that."""

from __future__ import annotations

import os
import time
from functools import partial

import pytest

from swift.base.timestamp import Timestamp
from swift.obj.ssync.sender import CannotRebuild, PushFailed, Sender, SenderTimes, SsyncJob
from swift.ring.device import Node
from test.support.object_servers import EC, GOLD, HASHER, BadSector, ObjectNodes

NOW = float(int(time.time()) - 1000)


@pytest.fixture
def pair(tmp_path):
    nodes = ObjectNodes(tmp_path, 2, replicas=2)
    yield nodes
    nodes.stop()


def sender_of(nodes, policy=GOLD):
    node = nodes[0]
    return Sender(
        node.context.transport,
        partial(node.stores.at, policy),
        SenderTimes(1.0, 5.0, 5.0),
        agent="test 1",
        now_s=nodes.clock.time,
        log=node.telemetry.log,
    )


def target(nodes):
    return nodes.rings().object(GOLD).view().primaries(0)[1]


def job(nodes, policy=GOLD, **more):
    assert isinstance(target(nodes), Node)
    suffixes = sorted(nodes[0].hashes(1, policy))
    return SsyncJob("d0", "1", policy, target(nodes), suffixes, **more)


def push(nodes, policy=GOLD, rebuild=None, **more):
    return sender_of(nodes, policy).push(job(nodes, policy, **more), rebuild)


def test_objects_metadata_and_tombstones_arrive_as_they_are(pair):
    a = pair[0]
    for number in range(30):
        path = f"/1/a/c/o{number}"
        a.ask("PUT", path, NOW + number, os.urandom(number * 20_000), x_object_meta_n=str(number))
        if number % 3 == 0:
            a.ask("POST", path, NOW + 100 + number, x_object_meta_p="é".encode().decode("latin-1"))
        if number % 5 == 0:
            a.ask("POST", path, NOW + 90 + number, content_type="image/png")
        if number % 7 == 0:
            a.ask("DELETE", path, NOW + 200 + number)
    pushed = push(pair)
    assert (len(pushed.in_sync), pushed.sent, pushed.failed) == (30, 30, 0)
    assert pair[1].hashes(1) == a.hashes(1)
    for number in range(30):
        ours, theirs = (node.ask("GET", f"/1/a/c/o{number}") for node in pair.nodes)
        assert (ours.status, ours.content, ours.headers) == (theirs.status, theirs.content, theirs.headers)


def test_what_is_there_is_not_sent_again(pair):
    pair[0].ask("PUT", "/1/a/c/o", NOW, b"x")
    assert push(pair).sent == 1
    again = push(pair)
    assert (len(again.in_sync), again.sent) == (1, 0)


def test_expired_objects_are_brought_as_well(pair):
    pair[0].ask("PUT", "/1/a/c/o", NOW - 100, b"x", x_delete_at=str(int(NOW)))
    assert push(pair).sent == 1
    assert pair[1].hashes(1) == pair[0].hashes(1)


def test_newer_metadata_alone_is_a_post_without_the_body(pair):
    pair[0].ask("PUT", "/1/a/c/o", NOW, b"x" * 1000)
    push(pair)
    inode = next((pair[1].path / "objects").rglob("*.data")).stat().st_ino
    pair[0].ask("POST", "/1/a/c/o", NOW + 5, x_object_meta_new="1", content_type="image/png")
    pair[0].ask("POST", "/1/a/c/o", NOW + 6, x_object_meta_newer="2")
    assert push(pair).sent == 1
    assert next((pair[1].path / "objects").rglob("*.data")).stat().st_ino == inode
    head = pair[1].ask("HEAD", "/1/a/c/o").headers
    assert (head["content-type"], head["x-object-meta-newer"]) == ("image/png", "2")
    assert "x-object-meta-new" not in head
    assert pair[1].hashes(1) == pair[0].hashes(1)


def test_posted_metadata_comes_with_the_data_where_a_tombstone_was(pair):
    pair[0].ask("PUT", "/1/a/c/o", NOW, b"x")
    push(pair)
    pair[1].ask("DELETE", "/1/a/c/o", NOW + 1)
    pair[0].ask("PUT", "/1/a/c/o", NOW + 2, b"y")
    pair[0].ask("POST", "/1/a/c/o", NOW + 3, x_object_meta_colour="red")
    assert len(push(pair).in_sync) == 1
    assert pair[1].ask("HEAD", "/1/a/c/o").headers["x-object-meta-colour"] == "red"


def test_an_object_whose_data_alone_was_wanted_is_in_sync_when_a_second_offer_says_so(pair):
    """Receivers of the peer want data alone where they have a tombstone, and lack what was posted then."""
    pair[0].ask("PUT", "/1/a/c/o", NOW, b"x")
    push(pair)
    pair[1].ask("POST", "/1/a/c/o", NOW + 8, x_object_meta_colour="red")
    pair[0].ask("PUT", "/1/a/c/o", NOW + 6, b"y")
    pair[0].ask("POST", "/1/a/c/o", NOW + 7, x_object_meta_colour="blue")
    first = push(pair)
    assert (first.sent, set(first.in_sync)) == (1, set())
    assert (len(push(pair).in_sync)) == 1
    found = pair[1].ask("GET", "/1/a/c/o")
    assert (found.content, found.headers["x-object-meta-colour"]) == (b"y", "red")


def test_a_question_only_tells_what_is_there_and_sends_nothing(pair):
    pair[0].ask("PUT", "/1/a/c/there", NOW, b"x")
    push(pair)
    pair[0].ask("PUT", "/1/a/c/new", NOW, b"x")
    names = {HASHER.hexdigest("a", "c", name) for name in ("there", "new")}
    asked = push(pair, confirms=names)
    assert set(asked.in_sync) == {HASHER.hexdigest("a", "c", "there")}
    assert pair[1].ask("GET", "/1/a/c/new").status == 404


def test_no_more_is_offered_than_was_asked_for(pair):
    for number in range(5):
        pair[0].ask("PUT", f"/1/a/c/o{number}", NOW, b"x")
    pushed = push(pair, objects_max=2)
    assert (len(pushed.in_sync), pushed.is_partial) == (2, True)


def test_a_body_that_rots_on_the_way_harms_only_its_own_object(pair):
    for name in ("a", "b", "c"):
        pair[0].ask("PUT", f"/1/a/c/{name}", NOW, os.urandom(300_000))
    place = (
        pair[0].path / "objects/1" / HASHER.hexdigest("a", "c", "b")[-3:] / HASHER.hexdigest("a", "c", "b")
    )
    data = next(place.glob("*.data"))
    with open(data, "r+b") as file:
        file.seek(200_000)
        file.write(b"rotten")
    pushed = push(pair)
    assert pushed.failed == 1
    assert {pair[1].ask("GET", f"/1/a/c/{name}").status for name in ("a", "c")} == {200}
    assert pair[1].ask("GET", "/1/a/c/b").status == 404
    assert not place.exists()


def put_three(node, size):
    for name in ("a", "b", "c"):
        node.ask("PUT", f"/1/a/c/{name}", NOW, os.urandom(size))


def arrived(node):
    return [name for name in ("a", "b", "c") if node.ask("GET", f"/1/a/c/{name}").status == 200]


@pytest.mark.parametrize(("looks", "size"), [(True, 10), (False, 10), (False, 300_000)])
def test_an_object_that_the_device_cannot_read_is_a_failure_and_the_others_go_on(pair, looks, size):
    put_three(pair[0], size)
    sender, requested = sender_of(pair), job(pair)
    whole = sender.store_at
    sender.store_at = lambda device: BadSector(whole(device), HASHER.hexdigest("a", "c", "b"), looks=looks)
    pushed = sender.push(requested)
    assert (pushed.failed, len(pushed.in_sync)) == (1, 2)
    assert arrived(pair[1]) == ["a", "c"]


def test_a_node_that_is_gone_or_refuses_is_a_failure_in_one_sentence(pair):
    pair[0].ask("PUT", "/1/a/c/o", NOW, b"x")
    sender, requested = sender_of(pair), job(pair)
    pair[1].path.rename(pair[1].root / "away")
    with pytest.raises(PushFailed, match="507"):
        sender.push(requested)
    pair[1].stop()
    with pytest.raises(PushFailed, match="SSYNC to 127.0.0.1"):
        sender.push(requested)


def test_a_receiver_that_refuses_an_update_is_told_of(pair):
    pair[0].ask("PUT", "/1/a/c/o", NOW, b"older")
    sender, requested = sender_of(pair), job(pair)
    execute = pair[1].app._table["PUT"]
    pair[1].app.put = lambda request: (request.body.read(), execute(request))[1]

    def busy(request):
        raise OSError(28, "no space")

    pair[1].app.verbs = lambda: {"PUT": busy, "POST": busy, "DELETE": busy}
    with pytest.raises(PushFailed, match="1 failures to 0 successes"):
        sender.push(requested)


# --- erasure coding ---------------------------------------------------------------------------------


def put_archive(node, name, index, at, body=b"f" * 100, commit=True):
    headers = {
        "x_backend_storage_policy_index": "1",
        "x_object_sysmeta_ec_frag_index": str(index),
        "x_object_sysmeta_ec_etag": "e",
        "x_object_sysmeta_ec_content_length": "5",
    }
    if not commit:
        headers["x_backend_no_commit"] = "True"
    assert node.ask("PUT", f"/1/a/c/{name}", at, body, **headers).status == 201


def test_archives_of_the_index_move_with_their_durability(pair):
    put_archive(pair[0], "mine", 2, NOW)
    put_archive(pair[0], "pending", 2, NOW, commit=False)
    put_archive(pair[0], "other", 1, NOW)
    pushed = push(pair, EC, fragment=2, target=2, uncommitted=True)
    assert pushed.sent == 2
    stamp = Timestamp(f"{NOW:.5f}").internal
    assert pair[1].files("objects-1") == [f"1/{stamp}#2#d.data", f"1/{stamp}#2.data"]
    durable = [offer.durable for offer in pushed.in_sync.values()]
    assert sorted(durable) == [False, True]


def test_what_nobody_committed_is_offered_only_when_asked_for(pair):
    put_archive(pair[0], "pending", 2, NOW, commit=False)
    assert push(pair, EC, fragment=2, target=2).in_sync == {}


def test_a_durable_archive_is_offered_though_a_later_upload_left_another_index_here(pair):
    put_archive(pair[0], "o", 2, NOW)
    put_archive(pair[0], "o", 0, NOW + 5, commit=False)
    pushed = push(pair, EC, fragment=2, target=2, uncommitted=True)
    assert [offer.durable for offer in pushed.in_sync.values()] == [True]
    stamp = Timestamp(f"{NOW:.5f}").internal
    assert pair[1].files("objects-1") == [f"1/{stamp}#2#d.data"]


def test_without_an_index_only_tombstones_are_offered(pair):
    put_archive(pair[0], "mine", 2, NOW)
    pair[0].ask("DELETE", "/1/a/c/gone", NOW, x_backend_storage_policy_index="1")
    pushed = push(pair, EC)
    assert set(pushed.in_sync) == {HASHER.hexdigest("a", "c", "gone")}
    assert [name.rpartition(".")[2] for name in pair[1].files("objects-1")] == ["ts"]


def test_the_archive_of_another_index_is_rebuilt_for_the_target(pair):
    put_archive(pair[0], "o", 0, NOW)

    def rebuild(found, index):
        metadata = dict(found.state.written, **{"X-Object-Sysmeta-Ec-Frag-Index": str(index)})
        del metadata["ETag"]
        return metadata, (piece for piece in (b"r" * 60, b"r" * 40))

    assert push(pair, EC, rebuild, fragment=0, target=1).sent == 1
    stamp = Timestamp(f"{NOW:.5f}").internal
    assert pair[1].files("objects-1") == [f"1/{stamp}#1#d.data"]


@pytest.mark.parametrize("early", [True, False])
def test_an_archive_that_cannot_be_rebuilt_is_left_out_and_the_others_go_on(pair, early):
    for name in ("a", "b", "c"):
        put_archive(pair[0], name, 0, NOW)

    def broken():
        yield b"r" * 60
        raise CannotRebuild("its checksum is wrong")

    def rebuild(found, index):
        metadata = dict(found.state.written, **{"X-Object-Sysmeta-Ec-Frag-Index": str(index)})
        del metadata["ETag"]
        if found.key.path.obj != "b":
            return metadata, (piece for piece in (b"r" * 100,))
        if early:
            raise CannotRebuild("too few archives")
        return metadata, broken()

    pushed = push(pair, EC, rebuild, fragment=0, target=1)
    assert pushed.failed == 1
    assert len(pair[1].files("objects-1")) == 2
    assert HASHER.hexdigest("a", "c", "b") not in pushed.in_sync

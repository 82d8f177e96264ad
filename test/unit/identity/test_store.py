"""Records are changed by one winner, cached for a bounded time, and survive an outage of their account."""

from dataclasses import replace

import pytest

from swift.gateway.documents import Conflict, StoreUnavailable, document_client
from swift.http.response import Response
from swift.identity.records import AccessKey, DamagedRecord, Group, KeyUse, Role, StoredPolicy, User
from swift.identity.store import AGENT, RETRY_S, RecordStore
from test.support.identities import make_identities

ALICE = User("test:alice", created=5.0, groups=("staff",))


@pytest.fixture
def world():
    return make_identities()


@pytest.mark.parametrize(
    "record",
    [
        User(
            "t:u",
            *(1.5, "$argon2id$x", True, ("g", ".admin"), ("readonly",), {"p": "{}"}, ("AKIA1",), "näme"),
            valid_from=7.0,
            revoked={"id": 9.0},
        ),
        Group("t:g", 1.0, ("p",), {"q": "{}"}, "note", True, ("t:u",)),
        Role("t:r", "{}", 1.0, True, (".admin",), ("p",), {"q": "{}"}, 900.0, "n", 3.0, {"id": 1.0}),
        StoredPolicy("t:p", "{}", 1.0, 2.0, "n"),
        AccessKey("AKIA1", "t:u", "1:sealed", 1.0, 2.0, True, "n", True, "c", "p/", ("10.0.0.0/8",)),
        KeyUse("AKIA1", 3600.0, "10.1.2.3"),
    ],
    ids=lambda record: record.kind,
)
def test_a_record_is_read_as_it_was_stored(world, record):
    world.store.create(record)
    assert world.store.read(type(record), record.name).record == record
    request = world.pipeline.requests[-1]
    assert request.headers["x-newest"] == "true"
    assert request.env["swift.crypto.override"], "a pipeline with encryption reads it as the tools do"


def test_one_of_two_writers_wins(world):
    etag = world.store.create(ALICE)
    with pytest.raises(Conflict):
        world.store.create(ALICE)
    world.store.replace(User("test:alice", disabled=True), etag)
    with pytest.raises(Conflict):
        world.store.replace(User("test:alice", note="late"), etag)
    assert world.store.read(User, "test:alice").record.disabled


def test_a_change_is_made_over_what_others_changed_meanwhile(world):
    world.store.create(ALICE)
    others = iter(("one", "two"))

    def change(old):
        note = next(others, None)
        if note is not None:
            world.store.update(User, "test:alice", lambda u: User(u.name, groups=u.groups, note=note))
        return User(old.name, groups=(*old.groups, "more"), note=old.note)

    record = world.store.update(User, "test:alice", change)
    assert (record.groups, record.note) == (("staff", "more"), "two")
    assert world.store.update(User, "test:missing", change) is None


def test_a_change_that_always_comes_late_ends(world):
    world.store.create(ALICE)
    numbers = iter(range(100))

    def change(old):
        etag = world.store.read(User, old.name).etag
        world.store.replace(User(old.name, note=str(next(numbers))), etag)
        return User(old.name, note="never")

    with pytest.raises(Conflict, match="all the time"):
        world.store.update(User, "test:alice", change)


def test_a_deleted_record_is_gone_and_may_come_again(world):
    world.store.create(ALICE)
    assert world.store.delete(User, "test:alice")
    assert not world.store.delete(User, "test:alice")
    assert world.store.read(User, "test:alice").record is None
    assert list(world.store.names(User)) == []
    assert world.pipeline.document("users", "test:alice").keys() == {"format", "deleted"}
    world.store.create(User("test:alice", created=9.0))
    assert world.store.read(User, "test:alice").record.created == 9.0
    assert list(world.store.names(User)) == ["test:alice"]


@pytest.mark.parametrize(
    "document, words",
    [
        (b"", "users/test:alice: "),
        (b"{", "users/test:alice: "),
        (b"[]", "it is no object"),
        (b"{}", "its format is not 1"),
        (b'{"format": 2}', "its format is not 1"),
        (b'{"format": 1, "groups": "x"}', "groups must be a list of strings"),
        (b'{"format": 1, "groups": [1]}', "groups must be a string"),
        (b'{"format": 1, "disabled": 0}', "disabled must be true or false"),
        (b'{"format": 1, "created": true}', "created must be a Unix time"),
        (b'{"format": 1, "inline": {"a": 1}}', "inline must be a string"),
        (b'{"format": 1, "revoked": []}', "revoked must be an object of times"),
    ],
)
def test_a_damaged_record_is_named_and_can_be_deleted(world, document, words):
    world.store.create(ALICE)
    objects = world.pipeline.containers[".swiftauth", "users"]
    objects["test:alice"] = document, {}
    with pytest.raises(DamagedRecord, match=words):
        world.store.read(User, "test:alice")
    with pytest.raises(DamagedRecord):
        world.cache.get(User, "test:alice")
    assert words.split(":")[0] in world.failures[0]
    assert world.store.delete(User, "test:alice")
    assert world.store.read(User, "test:alice").record is None


def test_unknown_members_of_a_newer_version_are_ignored(world):
    world.store.create_containers()
    world.pipeline.containers[".swiftauth", "users"]["t:u"] = b'{"format": 1, "new": 7, "note": "n"}', {}
    assert world.store.read(User, "t:u").record == User("t:u", note="n")


def test_the_first_record_makes_the_account(world):
    assert not world.pipeline.containers
    world.store.create(ALICE)
    assert (".swiftauth", "keys") in world.pipeline.containers


def test_names_come_by_prefix_and_marker(world):
    for name in ("a:x", "b:1", "b:2", "b:3", "bb:0"):
        world.store.create(User(name))
    assert list(world.store.names(User, prefix="b:")) == ["b:1", "b:2", "b:3"]
    assert list(world.store.names(User, prefix="b:", marker="b:1")) == ["b:2", "b:3"]


# --- the cache ----------------------------------------------------------------------------------------


def reads(world):
    return sum(request.method == "GET" for request in world.pipeline.requests)


def test_a_record_is_read_again_before_the_bound_and_never_served_beyond_it(world):
    world.store.create(ALICE)
    cache, clock = world.cache, world.clock
    before = reads(world)
    for _ in range(5):
        assert cache.get(User, "test:alice") == ALICE
    assert reads(world) == before + 1
    world.store.update(User, "test:alice", lambda u: User(u.name, note="changed"))
    before = reads(world)
    clock.now += 15
    assert cache.get(User, "test:alice") == ALICE
    clock.now += 1
    cache.get(User, "test:alice")
    assert reads(world) == before + 1, "past half of the time it is read in the background"
    assert cache.get(User, "test:alice").note == "changed"
    world.store.update(User, "test:alice", lambda u: User(u.name, note="again"))
    clock.now += 31
    assert cache.get(User, "test:alice").note == "again"


def test_that_there_is_none_is_known_as_long(world):
    world.store.create_containers()
    assert world.cache.get(User, "t:u") is None
    world.store.create(User("t:u"))
    assert world.cache.get(User, "t:u") is None
    world.clock.now += 31
    assert world.cache.get(User, "t:u") is not None


def test_a_change_by_this_worker_is_seen_at_once(world):
    world.store.create(ALICE)
    world.cache.get(User, "test:alice")
    world.store.delete(User, "test:alice")
    world.cache.forget(User, "test:alice")
    assert world.cache.get(User, "test:alice") is None


def test_an_outage_is_bridged_for_a_bounded_time(world):
    world.store.create(ALICE)
    cache, clock, pipeline = world.cache, world.clock, world.pipeline
    cache.get(User, "test:alice")
    pipeline.is_down = True
    clock.now += 599
    assert cache.get(User, "test:alice") == ALICE
    asked = len(pipeline.requests)
    assert cache.get(User, "test:alice") == ALICE
    assert len(pipeline.requests) == asked, "the next try is not sooner than a pause"
    clock.now += RETRY_S + 1
    with pytest.raises(StoreUnavailable):
        cache.get(User, "test:alice")
    with pytest.raises(StoreUnavailable):
        cache.get(User, "test:bob")
    pipeline.is_down = False
    clock.now += RETRY_S + 1
    assert cache.get(User, "test:alice") == ALICE
    assert cache.get(User, "test:bob") is None


def test_what_is_made_of_a_record_has_to_be_made_again_in_time(world):
    world.store.create(ALICE)
    _, until = world.cache.get_until(User, "test:alice")
    assert until == world.clock.now + 15


def test_a_damaged_record_cannot_be_deleted_while_its_account_is_away(world):
    world.store.create(ALICE)
    world.pipeline.containers[".swiftauth", "users"]["test:alice"] = b"{", {}

    def fail_heads(request):
        world.pipeline.is_down = request.method == "HEAD"

    world.pipeline.before = fail_heads
    with pytest.raises(StoreUnavailable):
        world.store.delete(User, "test:alice")


# --- responses that are lost --------------------------------------------------------------------------


def lose_responses(world, count=1):
    """Have the first PUTs of records be stored, and their responses be 503."""
    handle = world.pipeline.handle
    left = [count]

    def lossy(request):
        response = handle(request)
        if request.method == "PUT" and request.entity.path.obj and response.status == 201 and left[0]:
            left[0] -= 1
            return Response(503)
        return response

    world.store = RecordStore(document_client(lossy, AGENT))
    return world.store


def test_a_change_whose_response_was_lost_is_made(world):
    store = lose_responses(world)
    etag = store.create(ALICE)
    assert store.read(User, "test:alice")[:2] == (ALICE, etag)
    store = lose_responses(world)
    etag = store.replace(User("test:alice", note="new"), etag)
    assert store.read(User, "test:alice").etag == etag
    store = lose_responses(world)
    changed = store.update(User, "test:alice", lambda u: replace(u, keys=(*u.keys, "KEY")))
    assert changed.keys == store.read(User, "test:alice").record.keys == ("KEY",), "once"
    assert lose_responses(world).delete(User, "test:alice")
    assert world.store.read(User, "test:alice").record is None


def test_the_change_of_another_client_is_no_own_one_whose_response_was_lost(world):
    world.store.create_containers()
    other = User("test:alice", note="another")
    puts = []

    def change_before_the_second(request):
        puts.extend([request] if request.method == "PUT" else [])
        if len(puts) == 2:
            world.pipeline.containers[".swiftauth", "users"]["test:alice"] = other.to_document(), {}

    store = lose_responses(world)
    world.pipeline.before = change_before_the_second
    with pytest.raises(Conflict):
        store.create(ALICE)
    assert store.read(User, "test:alice").record == other

"""Reconstructors of a small cluster: lost archives are rebuilt and verified, strays go home."""

from __future__ import annotations

import json
import time
from hashlib import md5

import pytest

from swift.ec.codec import Codec
from swift.obj.reconstructor.settings import ObjectReconstructorSettings
from swift.obj.reconstructor.task import ObjectReconstructor
from test.support.object_servers import EC, HASHER, ObjectNodes

NOW = float(int(time.time()) - 1000)
CODEC = Codec(EC.ec.ec_type, 2, 1)
POLICY = {"x_backend_storage_policy_index": "1"}
SIZES = (0, 1, 999, 1000, 1001, 25_500)


@pytest.fixture
def nodes(tmp_path):
    """Four nodes; partition p of the policy lies on p, p+1, p+2 (modulo 4) with the archives 0, 1, 2."""
    made = ObjectNodes(tmp_path, 4)
    yield made
    made.stop()


def archives(body):
    segments = [body[start : start + 1000] for start in range(0, len(body), 1000)]
    coded = [CODEC.encode(segment) for segment in segments]
    return [b"".join(fragments[index] for fragments in coded) for index in range(3)]


def put_archive(node, part, name, index, body, at=NOW, commit=True, etag=None):
    headers = {
        **POLICY,
        "x_object_sysmeta_ec_frag_index": str(index),
        "x_backend_ssync_frag_index": str(index),
        "x_object_sysmeta_ec_etag": etag or md5(body).hexdigest(),
        "x_object_sysmeta_ec_content_length": str(len(body)),
        "x_object_sysmeta_ec_segment_size": "1000",
        "x_object_meta_a": "1",
    }
    if not commit:
        headers["x_backend_no_commit"] = "True"
    response = node.ask("PUT", f"/{part}/a/c/{name}", at, archives(body)[index], **headers)
    assert response.status == 201


def put(nodes, part, name, body, at=NOW, indexes=(0, 1, 2), **more):
    for index in indexes:
        put_archive(nodes[(part + index) % 4], part, name, index, body, at, **more)


def reconstruct(nodes, number, selection=None, **options):
    """One pass of node ``number``; what it told recon."""
    settings = ObjectReconstructorSettings(**{"conn_timeout": 2.0, **options})
    runner = nodes.runner(number, ObjectReconstructor, settings, **(selection or {}))
    assert runner.run_once()
    path = nodes[number].root / "recon/object.recon"
    return json.loads(path.read_text()) if path.exists() else {}


def archive_of(nodes, number, part, name):
    response = nodes[number].ask("GET", f"/{part}/a/c/{name}", **POLICY)
    return response.content if response.status == 200 else None


def test_a_wiped_device_gets_the_very_archives_that_it_had(nodes):
    bodies = {}
    for part in range(4):
        for size in SIZES:
            bodies[part, f"o{part}-{size}"] = bytes(n % 251 for n in range(size))
    for (part, name), body in bodies.items():
        put(nodes, part, name, body)
    nodes[1].ask("POST", "/1/a/c/o1-999", NOW + 5, x_object_meta_b="2", **POLICY)
    nodes[2].ask("POST", "/1/a/c/o1-999", NOW + 5, x_object_meta_b="2", **POLICY)
    before = {part: nodes[2].hashes(part, EC) for part in range(4)}
    nodes[2].wipe()
    for number in (0, 1, 3):
        reconstruct(nodes, number)
    assert {part: nodes[2].hashes(part, EC) for part in range(4)} == before
    for (part, name), body in bodies.items():
        index = (2 - part) % 4
        if index < 3:
            assert archive_of(nodes, 2, part, name) == archives(body)[index]
    head = nodes[2].ask("HEAD", "/1/a/c/o1-999", **POLICY).headers
    assert head["x-object-meta-b"] == "2"


def test_when_nothing_lacks_each_neighbour_is_asked_once(nodes):
    for part in range(16):
        put(nodes, part, "o", b"body" * 500)
    facts = reconstruct(nodes, 0)
    assert sum(len(node.heard) for node in nodes.nodes) == 3
    assert facts["object_reconstruction_last"] > NOW


def test_a_stray_archive_goes_home_and_leaves_nothing_behind(nodes):
    body = b"body" * 500
    put(nodes, 0, "o", body, indexes=(0, 1))
    put_archive(nodes[3], 0, "o", 2, body)
    reconstruct(nodes, 3)
    assert archive_of(nodes, 2, 0, "o") == archives(body)[2]
    assert not (nodes[3].path / "objects-1/0").exists()


def test_a_primary_gives_away_the_archives_of_others_and_keeps_its_own(nodes):
    body = b"body" * 500
    put(nodes, 0, "o", body, indexes=(0, 1))
    put_archive(nodes[0], 0, "o", 2, body)
    reconstruct(nodes, 0)
    assert archive_of(nodes, 2, 0, "o") == archives(body)[2]
    assert archive_of(nodes, 0, 0, "o") == archives(body)[0]
    assert len(nodes[0].files("objects-1")) == 1


def test_a_stray_stays_while_its_primary_is_not_there(nodes):
    body = b"body" * 500
    put(nodes, 0, "o", body, indexes=(0, 1))
    put_archive(nodes[3], 0, "o", 2, body)
    nodes[2].path.rename(nodes[2].root / "away")
    reconstruct(nodes, 3)
    assert archive_of(nodes, 3, 0, "o") == archives(body)[2]


def test_a_tombstone_of_a_handoff_goes_to_enough_primaries(nodes):
    body = b"body" * 500
    put(nodes, 0, "o", body)
    nodes[3].ask("DELETE", "/0/a/c/o", NOW + 5, **POLICY)
    reconstruct(nodes, 3)
    gone = [nodes[n].ask("GET", "/0/a/c/o", **POLICY).status for n in range(3)]
    assert gone.count(404) >= 2
    assert not (nodes[3].path / "objects-1/0").exists()
    for number in range(3):
        reconstruct(nodes, number)
    assert [nodes[n].ask("GET", "/0/a/c/o", **POLICY).status for n in range(3)] == [404] * 3


def test_archives_of_two_uploads_are_never_mixed(nodes):
    old, new = b"old." * 500, b"new." * 500
    put_archive(nodes[0], 0, "o", 0, old)
    put_archive(nodes[1], 0, "o", 1, new, NOW + 5)
    for number in (0, 1):
        reconstruct(nodes, number)
    assert archive_of(nodes, 2, 0, "o") is None
    assert archive_of(nodes, 0, 0, "o") == archives(old)[0]
    assert archive_of(nodes, 1, 0, "o") == archives(new)[1]


def test_archives_that_give_another_object_than_they_say_are_not_stored(nodes):
    body = b"body" * 5000
    etag = md5(b"something else").hexdigest()
    put(nodes, 0, "o", body, indexes=(0, 1), etag=etag)
    put(nodes, 0, "sound", body, indexes=(0, 1))
    reconstruct(nodes, 0)
    assert archive_of(nodes, 2, 0, "o") is None
    assert archive_of(nodes, 2, 0, "sound") == archives(body)[2]


def test_a_rotten_source_is_quarantined_and_spreads_nothing(nodes):
    body = b"body" * 50_000
    put(nodes, 0, "o", body, indexes=(0, 1))
    digest = HASHER.hexdigest("a", "c", "o")
    data = next((nodes[1].path / f"objects-1/0/{digest[-3:]}/{digest}").glob("*.data"))
    with open(data, "r+b") as file:
        file.seek(50_000)
        file.write(b"rotten")
    reconstruct(nodes, 0)
    assert archive_of(nodes, 2, 0, "o") is None
    assert not data.exists()


def test_what_nobody_committed_is_not_rebuilt_and_goes_home_as_it_is(nodes):
    body = b"body" * 500
    put(nodes, 0, "o", body, indexes=(0, 1), commit=False)
    reconstruct(nodes, 0)
    assert nodes[2].files("objects-1") == []
    put_archive(nodes[3], 4, "p", 0, body, commit=False)
    reconstruct(nodes, 3)
    names = [name for name in nodes[0].files("objects-1") if name.startswith("4/")]
    assert [name.endswith("#0.data") for name in names] == [True]


def test_old_archives_that_nobody_committed_are_reclaimed(nodes):
    put(nodes, 0, "o", b"body" * 500, at=NOW - 900_000, indexes=(0,), commit=False)
    assert len(nodes[0].files("objects-1")) == 1
    nodes.clock.ahead_s += 100
    reconstruct(nodes, 0)
    nodes[0].ask("REPLICATE", "/0/" + HASHER.hexdigest("a", "c", "o")[-3:], None, **POLICY)
    reconstruct(nodes, 0)
    assert nodes[0].files("objects-1") == []


@pytest.mark.parametrize(("threshold", "is_kept"), [(0, True), (1, False)])
def test_the_last_archive_of_an_object_is_given_up_when_an_operator_says_so(nodes, threshold, is_kept):
    put(nodes, 0, "o", b"body" * 500, at=NOW - 900_000, indexes=(0,))
    reconstruct(nodes, 0, quarantine_threshold=threshold)
    assert (archive_of(nodes, 0, 0, "o") is not None) == is_kept
    assert (nodes[0].path / "quarantined/objects-1").exists() != is_kept


def test_an_archive_is_not_given_up_while_a_node_does_not_answer_or_it_is_young(nodes):
    put(nodes, 0, "young", b"body" * 500, indexes=(0,))
    put(nodes, 0, "old", b"body" * 500, at=NOW - 900_000, indexes=(0,))
    nodes[3].stop()
    reconstruct(nodes, 0, quarantine_threshold=1, node_timeout=1.0)
    nodes[3].start()
    assert archive_of(nodes, 0, 0, "young") is not None
    assert archive_of(nodes, 0, 0, "old") is not None


def test_a_handoff_holds_what_a_lost_device_should_have(nodes):
    body = b"body" * 500
    put(nodes, 0, "o", body, indexes=(0, 1))
    nodes[2].path.rename(nodes[2].root / "away")
    # The first handoff stands in for archives of index 0 only.
    nodes[0].path.rename(nodes[0].root / "away")
    reconstruct(nodes, 1)
    assert archive_of(nodes, 3, 0, "o") is None
    (nodes[2].root / "away").rename(nodes[2].path)
    put_archive(nodes[2], 0, "o", 2, body)
    reconstruct(nodes, 1)
    assert archive_of(nodes, 3, 0, "o") == archives(body)[0]


def test_a_revert_is_limited_to_so_many_objects(nodes):
    body = b"body" * 10
    for number in range(5):
        put_archive(nodes[3], 0, f"o{number}", 2, body)
    reconstruct(nodes, 3, max_objects_per_revert=2)
    assert len(nodes[3].files("objects-1")) == 3
    assert len(nodes[2].files("objects-1")) == 2


def test_handoffs_only_rebuilds_nothing(nodes):
    body = b"body" * 500
    put(nodes, 0, "o", body, indexes=(0, 1))
    put_archive(nodes[0], 3, "stray", 0, body)
    reconstruct(nodes, 0, handoffs_only=True)
    assert archive_of(nodes, 2, 0, "o") is None


def test_metadata_that_nothing_can_be_rebuilt_from_is_quarantined(nodes):
    headers = {**POLICY, "x_object_sysmeta_ec_frag_index": "0", "x_object_sysmeta_ec_content_length": "4"}
    assert nodes[0].ask("PUT", "/0/a/c/o", NOW, b"x" * 100, **headers).status == 201
    reconstruct(nodes, 0)
    assert archive_of(nodes, 0, 0, "o") is None


def test_recon_hears_what_is_left_of_what_is_missing_and_misplaced(nodes):
    body = b"body" * 500
    put(nodes, 0, "o", body, indexes=(0, 1))
    put_archive(nodes[0], 0, "o", 2, body)
    nodes[2].path.rename(nodes[2].root / "away")
    names = ("partitions", "misplaced", "missing", "failed", "done")
    counts = reconstruct(nodes, 0)["copy_state"]["object-1"]["devices"]["d0"]
    assert [counts[name] for name in names] == [1, 1, 0, 1, 0]
    (nodes[2].root / "away").rename(nodes[2].path)
    counts = reconstruct(nodes, 0)["copy_state"]["object-1"]["devices"]["d0"]
    assert [counts[name] for name in names] == [1, 0, 0, 0, 1]

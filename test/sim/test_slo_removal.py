"""Static large objects are deleted with their segments, now or later (swift/middleware/slo)."""

import json
import re

import pytest

from swift import green
from swift.http import environkeys
from test.support.filters import PIECES, WHOLE
from test.support.sim import node_port


def test_segments_are_deleted_with_the_rights_of_the_caller(slo, sim):
    slo.denied.add(("DELETE", "/a/s/two"))
    response = slo("DELETE", "/a/c/m?multipart-manifest=delete")
    assert b"/s/two, 403 Forbidden\n" in response.body
    assert b"Number Deleted: 3\n" in response.body
    assert sim("GET", "/a/s/two").status == 200


def test_queueing_for_the_expirer_needs_the_right_to_delete(slo, sim):
    slo.denied.add(("DELETE", "/a/s/x"))
    assert slo("DELETE", "/a/c/m?multipart-manifest=delete&async=on").status == 403
    assert slo("GET", "/a/c/m").body == WHOLE


def test_queueing_asks_about_each_segment_if_policies_may_tell_them_apart(slo):
    slo.environ[environkeys.IDENTITY] = None
    slo.denied.add(("DELETE", "/a/s/two"))
    assert slo("DELETE", "/a/c/m?multipart-manifest=delete&async=on").status == 403
    assert slo("GET", "/a/c/m").body == WHOLE


def test_segments_are_deleted_with_their_manifest_each_once(slo, sim):
    slo.upload("/a/c/outer", [{"path": "/c/m"}, {"path": "/s/one"}, {"data": "YQ=="}])
    response = slo("DELETE", "/a/c/outer?multipart-manifest=delete", {"accept": "application/json"})
    report = json.loads(response.body)
    assert (report["Number Deleted"], report["Number Not Found"], report["Errors"]) == (5, 0, [])
    assert [sim("HEAD", path).status for path in ("/a/s/one", "/a/s/three", "/a/c/m", "/a/c/outer")] == [
        404
    ] * 4


def test_a_delayed_status_line_is_that_of_the_report(slo, sim):
    slo.denied.add(("DELETE", "/a/s/two"))
    refused = slo("DELETE", "/a/c/m?multipart-manifest=delete&heartbeat=off")
    assert (refused.status, b"Response Status: 400 Bad Request" in refused.body) == (400, True)
    for path in ("/a/c/none", "/a/s/two"):
        plain = slo("DELETE", f"{path}?multipart-manifest=delete&heartbeat=off")
        assert f"Response Status: {plain.status} ".encode() in plain.body
    slo.denied.clear()
    sim("PUT", "/a/s/plain", {}, b"x")
    assert slo("DELETE", "/a/s/plain?multipart-manifest=delete&heartbeat=off").status == 400
    assert slo("DELETE", "/a/s/plain?multipart-manifest=delete").status == 200, "as the peer"
    response = slo("DELETE", "/a/c/m?multipart-manifest=delete&heartbeat=off", {"accept": "x/y"})
    assert response.status == 406


def test_no_status_line_is_sent_before_a_fast_deletion_has_ended(slo, sim):
    response = slo.open("DELETE", "/a/c/m?multipart-manifest=delete")
    assert response.status == 200
    assert sim("HEAD", "/a/c/m").status == 404, "the body was not read yet"


def test_segments_are_deleted_although_the_client_disconnected(make_slo, slo, sim):
    hasty, held = make_slo(yield_frequency="0.01"), green.Event()
    for node in sim.primaries("object", "a", "s", "one"):
        sim.transport.faults.waits_for[node_port("object", node)] = held
    response = hasty.open("DELETE", "/a/c/m?multipart-manifest=delete")
    pieces = iter(response.body)
    assert next(pieces) == b" "
    pieces.close()
    response.body.close()
    held.set()
    sim.transport.faults.waits_for.clear()
    deadline = green.Event()
    for path in ("/a/s/one", "/a/s/three", "/a/c/m"):
        while sim("HEAD", path).status != 404:
            assert not deadline.wait(0.01)


def test_the_manifest_is_deleted_last(slo, sim):
    slo("DELETE", "/a/c/m?multipart-manifest=delete")
    names = [
        path.rpartition("/")[2]
        for kind, _n, method, path, _h in sim.transport.requests
        if (kind, method) == ("object", "DELETE")
    ]
    assert set(names[-3:]) == {"m"}
    assert "m" not in names[:-3]


def test_too_many_names_are_refused_and_nothing_is_deleted(make_slo, slo, sim):
    narrow = make_slo(max_manifest_segments="1")
    sim(
        "PUT",
        "/a/c/big",
        {"x-static-large-object": "True"},
        json.dumps([{"name": f"/s/n{n}", "bytes": 1, "hash": "x"} for n in range(20)]).encode(),
    )
    response = narrow("DELETE", "/a/c/big?multipart-manifest=delete")
    assert b"Too many buffered slo segments to delete." in response.body
    assert sim("HEAD", "/a/c/big").status == 200


def test_an_asynchronous_deletion_queues_the_segments(slo, sim):
    assert slo("DELETE", "/a/c/m?multipart-manifest=delete&async=on").status == 204
    assert sim("HEAD", "/a/c/m").status == 404
    assert sim("HEAD", "/a/s/one").status == 200
    (queue,) = json.loads(sim("GET", "/.expiring_objects?format=json").body) or [None]
    rows = json.loads(sim("GET", f"/.expiring_objects/{queue['name']}?format=json").body)
    assert {row["name"].partition("-")[2] for row in rows} == {f"a/s/{name}" for name in PIECES}
    assert {row["content_type"] for row in rows} == {"application/async-deleted"}
    # With whole seconds, segments of the same second would stay (doc/formats/expirer-queue.md).
    assert all(re.match(r"[0-9]{10}\.[0-9]{5}-a/", row["name"]) for row in rows)


@pytest.mark.parametrize("more", ["", "&async=on"])
def test_a_deletion_with_an_invalid_timestamp_deletes_nothing(slo, sim, more):
    response = slo("DELETE", f"/a/c/m?multipart-manifest=delete{more}", {"x-timestamp": "junk"})
    assert response.status == 400
    assert slo("GET", "/a/c/m").body == WHOLE


def test_asynchronous_deletions_can_be_disabled(make_slo, slo, sim):
    response = make_slo(allow_async_delete="false")("DELETE", "/a/c/m?multipart-manifest=delete&async=on")
    assert (response.status, b"Number Deleted: 4" in response.body) == (200, True)

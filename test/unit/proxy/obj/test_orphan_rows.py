"""Every listing replica hears of a write, even when the node that was to tell it is away."""

from types import SimpleNamespace

import pytest

from swift import green
from swift.base.entity import EntityPath
from swift.base.timestamp import Timestamp
from swift.cluster.transport import BackendResponse
from swift.http import fields
from swift.http.request import Request
from swift.proxy.obj.rowupdates import row_of_put, send_updates, unsent_updates
from test.support.databases import server_rows
from test.support.sim import NODES

SMALL, LARGE = b"small", b"large" * 40_000


def let_background_work_end():
    for _ in range(20):
        green.sleep(0)


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("missing", range(3))
def test_rows_reach_all_containers_though_a_primary_and_all_handoffs_are_away(sim, body, missing):
    nodes = sim.primaries("object", "a", "c", "o")
    away = [nodes[missing], *sim.handoffs("a", "c", "o")]
    with sim.refusing("object", *away):
        assert sim("PUT", "/a/c/o", {"content-type": "text/plain"}, body).status == 201
    let_background_work_end()
    assert [server_rows(sim, n) for n in sim.primaries("container", "a", "c")] == [["o"]] * 3
    row = sim("GET", "/a/c?format=json").body.decode()
    assert f'"bytes": {len(body)}' in row and '"content_type": "text/plain"' in row


@pytest.mark.parametrize("missing", range(3))
def test_a_deletion_reaches_all_containers_too(sim, missing):
    assert sim("PUT", "/a/c/o", {"content-type": "text/plain"}, SMALL).status == 201
    nodes = sim.primaries("object", "a", "c", "o")
    with sim.refusing("object", nodes[missing], *sim.handoffs("a", "c", "o")):
        assert sim("DELETE", "/a/c/o").status == 204
    let_background_work_end()
    assert [server_rows(sim, n) for n in sim.primaries("container", "a", "c")] == [[]] * 3


def test_a_write_that_all_nodes_took_sends_no_row_of_its_own(sim):
    assert sim("PUT", "/a/c/o", {"content-type": "text/plain"}, SMALL).status == 201
    let_background_work_end()
    assert sim.counts()["container", "PUT"] == 3
    assert NODES > 3


# --- what is told, to whom


@pytest.mark.parametrize(("accepted", "left"), [((200, 201, 202), [1, 2]), ((404,), [0, 2]), ((), [0, 1, 2])])
def test_an_attempt_is_an_orphan_when_nobody_accepted_it(accepted, left):
    attempts = [{"same": "headers"} for _ in range(3)]
    responses = [
        BackendResponse(201, attempt=attempts[0]),
        BackendResponse(404, attempt=attempts[1]),
        BackendResponse(201),
    ]
    orphans = unsent_updates(attempts, responses, accepted)
    assert [number for number in range(3) if any(o is attempts[number] for o in orphans)] == left


def test_a_row_says_what_filters_want_it_to_say():
    headers = {
        "content-type": "text/plain",
        "x-backend-container-update-override-etag": "from headers",
        "x-object-sysmeta-container-update-override-size": "7",
    }
    request = Request("PUT", "/v1/a/c/o", headers)
    row = row_of_put(request, 5, '"e"')
    assert row == {"x-size": "7", "x-content-type": "text/plain", "x-etag": "from headers"}
    footers = {"x-backend-container-update-override-etag": "from footers"}
    assert row_of_put(request, 5, '"e"', footers)["x-etag"] == "from footers"
    assert row_of_put(Request("PUT", "/v1/a/c/o", {}), 5, '"e"')["x-etag"] == "e"


class Direct:
    """Container servers that are told rows."""

    agent = "test"

    def __init__(self):
        self.told = []

    def request(self, address, op, path, headers):
        self.told.append((address, op, path))
        return BackendResponse(404)


def told(orphans, state="unsharded"):
    direct, lines = Direct(), []
    log = SimpleNamespace(warning=lambda line, txid: lines.append(line))
    context = SimpleNamespace(direct=direct, telemetry=SimpleNamespace(log=log))
    target = SimpleNamespace(
        container=SimpleNamespace(sharding_state=state),
        path=EntityPath("a", "c", "o/é"),
        policy=SimpleNamespace(index=1),
    )
    request = Request("PUT", "/v1/a/c/o", {"x-timestamp": Timestamp(5).internal})
    send_updates(context, request, target, orphans, "PUT", {})
    let_background_work_end()
    return direct.told, lines


def orphan(hosts, devices, part="7"):
    return {fields.CONTAINER_HOST: hosts, fields.CONTAINER_DEVICE: devices, fields.CONTAINER_PARTITION: part}


def test_every_server_of_a_share_is_told_and_a_refusal_is_logged():
    rows, lines = told([orphan("10.0.0.1:6201,[fe80::1]:6202", "sda,sdb")])
    assert rows == [
        (("10.0.0.1", 6201, ""), "PUT", "/sda/7/a/c/o/%C3%A9"),
        (("fe80::1", 6202, ""), "PUT", "/sdb/7/a/c/o/%C3%A9"),
    ]
    assert "was not sent to fe80::1:6202: status 404" in lines[1]


@pytest.mark.parametrize("share", [{}, orphan("", ""), orphan("host", "sda"), orphan("h:x,:", "a,b")])
def test_a_share_that_names_no_server_is_told_to_none(share):
    assert told([share]) == ([], [])


def test_containers_that_are_being_split_are_left_to_object_servers():
    assert told([orphan("10.0.0.1:6201", "sda")], "sharding")[0] == []
    assert len(told([orphan("10.0.0.1:6201", "sda")], "")[0]) == 1

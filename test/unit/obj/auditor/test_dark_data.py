"""An object counts as dark only when every server has said that no listing has it (replication.md §7)."""

import json
import random

import pytest

from swift.base.errors import ConfigError
from swift.base.hashing import PathHasher
from swift.cluster.direct import DirectClient, NodeTimeouts
from swift.cluster.transport import BackendResponse, TransportError
from swift.obj.auditor.dark_data import DarkData, Listings, Unknown
from swift.obj.auditor.watchers import DeleteRequest, QuarantineRequest, load_watchers
from swift.telemetry.log import silent_log
from test.support.daemons import FakeRing, ScriptedNodes

OLD = {"name": "/AUTH_a/c/o", "X-Timestamp": "1500000000.00000"}


def listing(*names, shards=False):
    body = json.dumps([{"name": name} for name in names]).encode()
    return BackendResponse(200, {"x-backend-record-type": "shard"} if shards else {}, body)


def listings(answers, *, shards_max=100):
    nodes = ScriptedNodes()
    nodes.answers = answers
    direct = DirectClient(nodes, "auditor", NodeTimeouts(1, 1), on_no_response=lambda _node, _error: None)
    made = Listings(direct, FakeRing(), PathHasher(b"p", b"s"), random.Random(1), shards_max)
    return made, nodes


@pytest.mark.parametrize(
    ("responses", "found"),
    [
        ({0: listing(), 1: listing("o"), 2: listing()}, True),
        ({0: listing(), 1: listing("o2"), 2: listing()}, False),
        ({0: BackendResponse(404), 1: listing(), 2: BackendResponse(404)}, False),
    ],
)
def test_one_row_anywhere_is_enough(responses, found):
    assert listings(responses)[0].contains("AUTH_a", "c", "o") is found


@pytest.mark.parametrize(
    "response", [TransportError("down"), 503, BackendResponse(200, {}, b"{"), BackendResponse(200, {}, b"{}")]
)
def test_while_one_server_does_not_answer_nothing_is_known(response):
    made, _nodes = listings({0: listing(), 1: listing(), 2: response})
    with pytest.raises(Unknown):
        made.contains("AUTH_a", "c", "o")


def test_servers_are_asked_for_the_very_row():
    made, nodes = listings(dict.fromkeys(range(3), listing()))
    made.contains("AUTH_a", "c", "ö o")
    _number, method, path, headers = nodes.requests[0]
    assert (method, path.partition("?")[2]) == (
        "GET",
        "prefix=%C3%B6%20o&limit=1&includes=%C3%B6%20o&states=listing&format=json",
    )
    assert headers["x-backend-record-type"] == "auto"


def test_rows_of_shards_count():
    def answer(_method, path):
        return listing("o") if "/.shards_a/s" in path else listing(".shards_a/s", shards=True)

    made, nodes = listings(dict.fromkeys(range(3), answer))
    assert made.contains("AUTH_a", "c", "o")
    assert len(nodes.requests) == 6


def test_shards_that_name_each_other_are_not_followed_forever():
    made, nodes = listings(
        dict.fromkeys(range(3), lambda _m, _p: listing("AUTH_a/c", shards=True)), shards_max=5
    )
    with pytest.raises(Unknown, match="too many shards"):
        made.contains("AUTH_a", "c", "o")
    assert nodes.requests[-1][3]["x-backend-record-type"] == "object"


class Known:
    """Listings whose answer is known."""

    def __init__(self, answer):
        self.answer = answer

    def contains(self, *_path):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def watcher(answer, **conf):
    made = DarkData(conf, silent_log(), Known(answer))
    made.start(audit_type="ALL")
    return made


@pytest.mark.parametrize(
    ("action", "request_"), [("delete", DeleteRequest), ("quarantine", QuarantineRequest)]
)
def test_the_operator_says_what_becomes_of_dark_objects(action, request_):
    with pytest.raises(request_, match="/AUTH_a/c/o"):
        watcher(False, action=action).see_object(object_metadata=OLD, data_file_path="p")
    watcher(False).see_object(object_metadata=OLD, data_file_path="p")
    with pytest.raises(ConfigError, match="action must be one of"):
        watcher(False, action="burn")


@pytest.mark.parametrize("response", [True, Unknown("down")])
def test_what_is_listed_or_unknown_is_left_alone(response):
    watcher(response, action="delete").see_object(object_metadata=OLD, data_file_path="p")


def test_new_objects_may_be_in_no_listing_yet():
    seen = watcher(False, action="delete", grace_age="10000000000")
    seen.see_object(object_metadata=OLD, data_file_path="p")


def test_quick_passes_ask_nobody():
    seen = watcher(False, action="delete")
    seen.start(audit_type="ZBF")
    seen.see_object(object_metadata=OLD, data_file_path="p")


@pytest.mark.parametrize("metadata", [{}, {"name": "x"}, {**OLD, "name": "//"}, {**OLD, "X-Timestamp": "?"}])
def test_metadata_that_says_nothing_is_left_alone(metadata):
    watcher(False, action="delete").see_object(object_metadata=metadata, data_file_path="p")


def test_a_watcher_that_is_not_installed_is_named():
    with pytest.raises(ConfigError, match="there is no watcher 'bright_data'"):
        load_watchers(["bright_data"], lambda _name: {}, silent_log())

"""An audit asks every node of everything, once, and tells each difference."""

import json
from hashlib import md5
from types import SimpleNamespace

import pytest

from swift import green
from swift.base.entity import EntityPath
from swift.cluster.transport import BackendResponse, TransportError
from swift.operations.auditing import Auditor
from swift.policy.policy import Policies, Policy

BODY = b"body"
ETAG = md5(BODY, usedforsecurity=False).hexdigest()
PATHS = {name: EntityPath(*name.split("/")) for name in ("a", "a/c", "a/c/o", "a/c/p")}


class Nodes:
    """Three nodes with an account, a container and two objects in policy 1; ``odd`` changes answers."""

    def __init__(self):
        self.asked = []
        self.odd = {}

    def request(self, node, method, target, headers):
        port = node.port
        path, _, query = target.partition("?")
        name = path.split("/", 3)[3]
        self.asked.append((port, method, name, headers.get("x-backend-storage-policy-index")))
        # Others come in between, as with sockets.
        green.sleep()
        answer = self.odd.get((port, name))
        if isinstance(answer, TransportError):
            raise answer
        if answer is not None:
            return answer
        return self.usual(name, method, "marker=&" in f"{query}&")

    def usual(self, name, method, is_first):
        if name.count("/") == 2:
            return BackendResponse(200, headers={"etag": ETAG}, body=BODY if method == "GET" else b"")
        rows = [{"name": "c"}] if name == "a" else [{"name": n, "hash": ETAG} for n in "op"]
        headers = {
            "x-account-container-count": "1",
            "x-account-object-count": "2",
            "x-container-object-count": "2",
            "x-backend-storage-policy-index": "1",
        }
        return BackendResponse(200, headers=headers, body=json.dumps(rows if is_first else []).encode())

    def count(self, method, name):
        return sum(asked[1:3] == (method, name) for asked in self.asked)


NODES = tuple(SimpleNamespace(ip="10.0.0.1", port=port, device=f"sd{port}") for port in (1, 2, 3))


class World:
    def __init__(self, *, deep=False, at_once=10):
        ring = SimpleNamespace(nodes=lambda _digest: (7, NODES))
        cluster = SimpleNamespace(
            config=SimpleNamespace(hasher=SimpleNamespace(digest=lambda *_path: b"")),
            policies=Policies([Policy(0, "gold", is_default=True), Policy(1, "silver")]),
        )
        rings = SimpleNamespace(account=ring, container=ring, object=lambda policy: ring)
        self.nodes, self.said, self.bad = Nodes(), [], []
        self.auditor = Auditor(
            cluster,
            rings,
            self.nodes,
            deep=deep,
            say=self.said.append,
            tell_bad=self.bad.append,
            at_once=at_once,
        )

    def audit(self, *names):
        green.gather([lambda name=name: self.auditor.audit(PATHS[name]) for name in names])
        return self.auditor.counts.as_json()


@pytest.fixture
def world():
    return World()


def test_all_below_an_account_is_audited_and_agreement_is_silent(world):
    counts = world.audit("a")
    assert [counts[kind]["checked"] for kind in ("accounts", "containers", "objects")] == [1, 1, 2]
    assert world.bad == [] and all("differ" not in text and "missing" not in text for text in world.said)
    assert world.nodes.count("HEAD", "a/c/o") == 3


def test_objects_of_one_container_that_are_audited_together_wait_for_its_listing(world):
    counts = world.audit("a/c/o", "a/c/p")
    assert not [text for text in world.said if "missing in container listing" in text]
    # Two pages of each of three nodes, once.
    assert world.nodes.count("GET", "a/c") == world.nodes.count("GET", "a") == 6
    assert counts["containers"]["checked"] == counts["accounts"]["checked"] == 1
    assert {policy for _, method, name, policy in world.nodes.asked if name.count("/") == 2} == {"1"}


def test_a_container_that_nobody_has_is_asked_for_once(world):
    for port in (1, 2, 3):
        world.nodes.odd[port, "a/c"] = BackendResponse(404)
    counts = world.audit("a/c/o", "a/c/p")
    assert world.nodes.count("GET", "a/c") == 3
    assert counts["containers"] == {"checked": 1, "missing": 3}
    assert sum("Failed to fetch container" in text for text in world.said) == 1


@pytest.mark.parametrize(
    "name, answer, section, what",
    [
        ("a/c/o", BackendResponse(404), "objects", "missing"),
        ("a/c/o", BackendResponse(200, headers={"etag": "0" * 32}), "objects", "md5_mismatch"),
        ("a/c/o", TransportError("gone"), "objects", "exceptions"),
        ("a/c", BackendResponse(507), "containers", "missing"),
        ("a/c", TransportError("gone"), "containers", "exceptions"),
        ("a/c", BackendResponse(200, body=b"{no json"), "containers", "exceptions"),
        (
            "a/c",
            BackendResponse(204, headers={"x-container-object-count": "3"}),
            "containers",
            "count_mismatch",
        ),
        (
            "a",
            BackendResponse(204, headers={"x-account-container-count": "2"}),
            "accounts",
            "container_mismatch",
        ),
        ("a", BackendResponse(404), "accounts", "missing"),
    ],
)
def test_a_node_that_differs_is_counted_and_named(world, name, answer, section, what):
    world.nodes.odd[2, name] = answer
    assert world.audit("a")[section][what] == 1
    assert world.said


def test_a_deep_audit_reads_bodies():
    world = World(deep=True)
    world.nodes.odd[3, "a/c/o"] = BackendResponse(200, headers={"etag": ETAG}, body=b"rotten")
    assert world.audit("a/c/o")["objects"]["md5_mismatch"] == 1
    assert world.nodes.count("GET", "a/c/o") == 3
    assert world.bad == [PATHS["a/c/o"]]


def test_no_more_is_asked_at_once_than_allowed():
    world = World(at_once=1)
    waiting = []
    usual = world.nodes.usual

    def watched(*words):
        waiting.append(1)
        green.sleep()
        assert len(waiting) == 1
        waiting.pop()
        return usual(*words)

    world.nodes.usual = watched
    world.audit("a")
    assert not waiting

"""Servers of a simulated cluster sign their requests and refuse foreign ones."""

import random
from dataclasses import replace

import pytest

from swift.base.clock import ManualClock
from swift.cluster.serverauth import LOOK_EVERY_S, ServerSecrets, Signer
from swift.config.cluster import ServerAuthSettings
from swift.http import fields
from swift.runtime.serverguard import OwnHosts, ServerGuard, SharedNonces
from test.support.sim import NODES

OLD, NEW = f"old {'11' * 32}", f"new {'22' * 32}"
OTHER = f"old {'33' * 32}"
NUMBERS = range(1, NODES + 1)


class Auth:
    """The secrets, modes and guards of a simulated cluster; node 0 is the proxy."""

    def __init__(self, sim, root):
        self.sim = sim
        self.root = root
        self.clock = ManualClock()
        self.secrets = [ServerSecrets(str(root / f"{n}.secret"), clock=self.clock) for n in range(NODES + 1)]
        #: Kind and node → guard.
        self.guards = {}
        sim.transport.signer = SignerOfAny(self)

    def write(self, *numbers, lines=(OLD,)):
        """Give nodes a file of secrets."""
        for number in numbers:
            path = self.root / f"{number}.secret"
            path.touch(0o600)
            path.write_text("".join(f"{line}\n" for line in lines))
        self.clock.advance(LOOK_EVERY_S)

    def set_mode(self, number, mode):
        """Let the servers of a node run in another mode, as after a reload."""
        settings = ServerAuthSettings(mode=mode)
        for kind, (_kind, of_node, app) in self._apps():
            if of_node == number:
                guard = ServerGuard(
                    kind,
                    settings,
                    self.secrets[number],
                    SharedNonces(str(self.root), settings.window, pytest.fail),
                    OwnHosts(lambda: frozenset(("10.0.0.1",)), self._port(app), clock=self.clock),
                    app.context.telemetry,
                    clock=self.clock,
                )
                # The servers of a node share a context otherwise.
                app.context = replace(app.context, guard=None if mode == "off" else guard)

    def _apps(self):
        return [(entry[0], entry) for entry in self.sim.transport.apps.values()]

    def _port(self, app):
        return next(port for port, entry in self.sim.transport.apps.items() if entry[2] is app)

    def results(self):
        """Return result → number of requests, of all servers."""
        found = {}
        for context in {id(app.context): app.context for _kind, (_, _, app) in self._apps()}.values():
            for line in context.telemetry.metrics.render().splitlines():
                if line.startswith("swift_server_auth_requests_total{"):
                    name, count = line.split('result="')[1].split('"')[0], float(line.split()[-1])
                    found[name] = found.get(name, 0) + count
        return {name: count for name, count in found.items() if count}


class SignerOfAny:
    """Signs requests of the proxy by its secret; other senders are the servers of the sim."""

    def __init__(self, auth):
        self._signer = Signer(auth.secrets[0], auth.clock)

    def text_of(self, *parts):
        return self._signer.text_of(*parts)

    def line(self, text):
        return self._signer.line(text)


@pytest.fixture
def auth(sim, tmp_path):
    root = tmp_path / "auth"
    root.mkdir()
    made = Auth(sim, root)
    yield made
    for number in NUMBERS:
        made.set_mode(number, "off")


def use(sim, name, policy="gold"):
    """Send one request of each kind; return the statuses."""
    container = f"/a/{policy}"
    headers = {"x-storage-policy": policy}
    statuses = [
        sim("PUT", container, headers).status,
        sim(
            "PUT", f"{container}/{name}", {"content-type": "a/b", "x-object-meta-ä": " b\tc "}, b"small"
        ).status,
        sim(
            "PUT", f"{container}/{name} 2?multipart-manifest=", {"content-type": ""}, b"large" * 40_000
        ).status,
        sim("POST", f"{container}/{name}", {"x-object-meta-a": "b, c"}).status,
    ]
    read = sim("GET", f"{container}/{name} 2")
    listing = sim("GET", f"{container}?prefix={name}&limit=9")
    return [
        *statuses,
        read.status if read.body == b"large" * 40_000 else "damaged",
        sim("HEAD", f"{container}/{name}").status,
        listing.status,
        listing.body.decode().count(name),
        sim("DELETE", f"{container}/{name}").status,
        sim("POST", "/a", {"x-account-meta-a": ""}).status,
        sim("GET", "/a").status,
    ]


USED = [201, 201, 201, 202, 200, 200, 200, 2, 204, 204, 200]


@pytest.mark.parametrize("policy", ["gold", "ec32"])
def test_every_request_between_servers_is_signed_and_valid(sim, auth, policy):
    auth.write(*range(NODES + 1))
    for number in NUMBERS:
        auth.set_mode(number, "require")
    assert use(sim, "photo", policy) == USED
    assert set(auth.results()) == {"signed"}


def test_a_proxy_without_the_secret_changes_nothing(sim, auth):
    auth.write(*NUMBERS)
    for number in NUMBERS:
        auth.set_mode(number, "require")
    assert sim("PUT", "/a/c/o", {"content-type": "a/b"}, b"x").status == 503
    assert sim("GET", "/a/c/o").status == 503
    assert sim("GET", "/a/c").status == 503
    auth.write(0, lines=[OTHER])
    assert sim("PUT", "/a/c/o", {"content-type": "a/b"}, b"x").status == 503
    assert not sim.files()
    assert set(auth.results()) == {"unsigned", "wrong_signature"}


def test_it_is_turned_on_node_by_node_without_a_refusal(sim, auth):
    rng = random.Random(7)
    number = 0
    for mode in ("secret", "accept", "require", "accept", "off"):
        nodes = list(range(NODES + 1))
        rng.shuffle(nodes)
        for node in nodes:
            if mode == "secret":
                auth.write(node)
            elif node:
                auth.set_mode(node, mode)
            number += 1
            assert use(sim, f"photo{number:03}")[1:] == USED[1:], (mode, node)
    assert set(auth.results()) <= {"signed", "served_unsigned"}


def test_a_secret_is_rotated_node_by_node_without_a_refusal(sim, auth):
    rng = random.Random(11)
    auth.write(*range(NODES + 1))
    for node in NUMBERS:
        auth.set_mode(node, "require")
    number = 0
    for lines in ((OLD, NEW), (NEW, OLD), (NEW,)):
        nodes = list(range(NODES + 1))
        rng.shuffle(nodes)
        for node in nodes:
            auth.write(node, lines=lines)
            number += 1
            assert use(sim, f"photo{number:03}")[1:] == USED[1:], (lines, node)
    assert set(auth.results()) == {"signed"}


def test_a_recorded_request_is_served_by_no_server_again(sim, auth):
    auth.write(*range(NODES + 1))
    for number in NUMBERS:
        auth.set_mode(number, "require")
    sent = []

    class Recorder(SignerOfAny):
        def line(self, text):
            made = super().line(text)
            sent.append(made)
            return made

    sim.transport.signer = Recorder(auth)
    assert sim("PUT", "/a/c/o", {"content-type": "a/b"}, b"x").status == 201
    recorded = list(sent)
    assert len(recorded) >= 3

    class Replayer(SignerOfAny):
        def line(self, text):
            return recorded.pop(0)

    sim.transport.signer = Replayer(auth)
    assert sim("PUT", "/a/c/o", {"content-type": "a/b"}, b"x").status == 503
    assert fields.BACKEND_SERVER_AUTH not in str(sim.files())
    assert set(auth.results()) <= {"signed", "wrong_signature", "replayed"}

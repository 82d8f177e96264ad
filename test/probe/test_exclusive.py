"""Two creators at once over HTTP, to real processes: one is told 201, the other 412, and all readers agree.

``SWIFT_RACES=10000`` runs as many races per policy.
"""

import http.client
import os
import threading

import pytest

from test.support.cluster import LiveCluster

RACES = int(os.environ.get("SWIFT_RACES", "40"))
BODIES = (b"A" * 100, b"B" * 100)


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    made = LiveCluster(tmp_path_factory.mktemp("exclusive") / "data", ec="2+1")
    made.start()
    yield made
    made.stop()


class Creator(threading.Thread):
    """Creates object after object on a connection of its own, each when both are ready."""

    def __init__(self, live, container, body, barrier):
        super().__init__(daemon=True)
        self._live = live
        self._container = container
        self._body = body
        self._barrier = barrier
        self.statuses = []

    def run(self):
        connection = http.client.HTTPConnection(self._live.host, timeout=60)
        headers = {"X-Auth-Token": self._live.token(), "If-None-Match": "*"}
        try:
            for number in range(RACES):
                self._barrier.wait(60)
                path = f"/v1/AUTH_test/{self._container}/o{number}"
                connection.request("PUT", path, self._body, headers)
                answer = connection.getresponse()
                answer.read()
                self.statuses.append(answer.status)
        finally:
            connection.close()


@pytest.mark.timeout(max(300, RACES))
@pytest.mark.parametrize("policy", ["gold", "ec"])
def test_of_two_creators_one_wins_and_all_readers_agree(live, policy):
    container = f"races-{policy.lower()}"
    assert live.request("PUT", container, {"X-Storage-Policy": policy}).status == 201
    barrier = threading.Barrier(2)
    creators = [Creator(live, container, body, barrier) for body in BODIES]
    for creator in creators:
        creator.start()
    for creator in creators:
        creator.join()
    outcomes = list(zip(*(creator.statuses for creator in creators), strict=True))
    assert len(outcomes) == RACES
    assert {tuple(sorted(pair)) for pair in outcomes} == {(201, 412)}, outcomes
    for number, pair in enumerate(outcomes):
        for _ in range(3):
            assert live.request("GET", f"{container}/o{number}").body == BODIES[pair.index(201)], number
    assert list(live.files("tmp*/reserved-*")) == []
    assert "Traceback" not in live.log_text()

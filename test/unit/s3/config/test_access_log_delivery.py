"""Lines of access logs are gathered, stored once, and dropped when they are too much."""

import time

from swift import green
from swift.http.response import Response
from swift.s3.config.access_log import HELD_MAX, AccessLogDelivery, LogDestination, LogTarget
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry

PLACE = LogDestination("AUTH_test", LogTarget("logs", "p/"))


class Store:
    def __init__(self, status=201):
        self.status = status
        self.stored = []

    def handle(self, request):
        self.stored.append((request.entity.path, request.body.read()))
        return Response(self.status)


def delivery(store, interval_s=0.01):
    told = Telemetry(silent_log())
    return AccessLogDelivery(store.handle, told.log, told.statsd, interval_s)


def await_stored(store, number=1):
    end = time.monotonic() + 30
    while len(store.stored) < number and time.monotonic() < end:
        green.sleep(0.01)
    return store.stored


def test_lines_are_gathered_and_stored_once():
    store = Store()
    logs = delivery(store)
    for n in range(3):
        logs.add(PLACE, f"{n}\n", None)
    ((path, content),) = await_stored(store)
    assert (path.account, path.container) == ("AUTH_test", "logs") and path.obj.startswith("p/20")
    assert content == b"0\n1\n2\n"
    logs.add(PLACE, "3\n", None)
    assert await_stored(store, 2)[1][1] == b"3\n"


def test_a_log_that_cannot_be_stored_is_dropped():
    store = Store(404)
    logs = delivery(store)
    logs.add(PLACE, "x\n", None)
    await_stored(store)
    logs.add(PLACE, "y\n", None)
    assert [content for _, content in await_stored(store, 2)] == [b"x\n", b"y\n"]


def test_logs_hold_only_so_much():
    store = Store()
    logs = delivery(store, 60)
    line = "x" * 100_000
    for n in range(200):
        logs.add(PLACE._replace(account=f"a{n}"), line, None)
    assert HELD_MAX - len(line) < logs.held_bytes <= HELD_MAX

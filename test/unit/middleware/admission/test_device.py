"""A device takes so much at a time; clients and replication leave each other their places
(doc/explanation/admission.md)."""

import pytest

from swift.base.clock import ManualClock
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.admission.device import DeviceAdmission
from swift.middleware.admission.settings import DeviceAdmissionSettings

REPLICATION = {"x-backend-replication": "true"}


class Bench:
    def __init__(self, **options):
        self.clock = ManualClock()
        self.open = []
        settings = DeviceAdmissionSettings.parse({k: str(v) for k, v in options.items()})
        self.filter = DeviceAdmission(self, settings, clock=self.clock)

    def handle(self, request):
        return Response(200)

    def ask(self, method="GET", headers=None, path="/sda/5/a/c/o"):
        response = self.filter.handle(Request(method, path, dict(headers or {})))
        if response.status == 200:
            self.open.append(response)
        return response

    def passed(self, count=20, **more):
        return sum(self.ask(**more).status == 200 for _ in range(count))

    def end(self, count=1):
        for _ in range(count):
            self.open.pop(0).report_end(0, True)


def test_without_options_everything_passes():
    assert Bench().passed(1000) == 1000


def test_clients_leave_the_places_of_replication():
    bench = Bench(streams_per_device=6, replication_floor=2)
    assert bench.passed() == 4
    assert bench.passed(method="REPLICATE") == 2
    assert bench.passed(path="/sdb/5/a/c/o") == 4, "every device has places of its own"


def test_replication_leaves_the_places_of_clients():
    bench = Bench(streams_per_device=6, replication_floor=1, replication_ceiling=3)
    assert bench.passed(method="SSYNC") == 3
    assert bench.passed(headers=REPLICATION, method="PUT") == 0
    assert bench.passed() == 3


def test_a_place_is_free_again_when_the_answer_has_ended():
    bench = Bench(streams_per_device=2, replication_floor=0)
    assert bench.passed() == 2
    refused = bench.ask()
    assert (refused.status, refused.headers["retry-after"]) == (529, "1")
    bench.end()
    assert bench.passed() == 1


def test_a_request_that_fails_leaves_its_place():
    class Failing:
        def handle(self, request):
            raise ZeroDivisionError

    device = DeviceAdmission(Failing(), DeviceAdmissionSettings(streams_per_device=2, replication_floor=0))
    for _ in range(5):
        with pytest.raises(ZeroDivisionError):
            device.handle(Request("GET", "/sda/5/a/c/o"))


def test_who_would_wait_too_long_is_refused_at_once():
    bench = Bench(queue_seconds=1.0)
    bench.passed(5)
    for _ in range(5):
        bench.clock.advance(0.25)
        bench.end()
    assert bench.passed(20) == 5, "four before it, with 0.25 s each"
    assert bench.passed(method="SSYNC", count=3) == 3, "who replicates has time"


def test_a_quiet_time_does_not_make_a_device_slow():
    bench = Bench(queue_seconds=1.0)
    for _ in range(20):
        bench.clock.advance(100)
        bench.passed(1)
        bench.clock.advance(0.01)
        bench.end()
    assert bench.passed(50) == 50


@pytest.mark.parametrize("path", ["/healthcheck", "/recon/mem", "/sda/x/a", "/sda"])
def test_only_requests_for_devices_are_counted(path):
    assert Bench(streams_per_device=1).passed(path=path) == 20


def test_names_of_devices_cannot_fill_the_memory():
    bench = Bench(streams_per_device=5)
    for n in range(3000):
        bench.ask(path=f"/d{n}/1/a")
        bench.end()
    assert len(bench.filter._queues) <= 1001

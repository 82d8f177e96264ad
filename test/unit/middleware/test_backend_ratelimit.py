"""A busy device refuses what is too much for it (middleware.md §13)."""

import os

import pytest

from swift.base.clock import ManualClock
from swift.base.errors import ConfigError
from swift.http.request import Request
from swift.http.response import Response
from swift.middleware.backend_ratelimit import BackendRatelimit
from swift.telemetry.log import silent_log
from swift.telemetry.telemetry import Telemetry

RATE = "requests_per_device_per_second"


class Rest:
    def handle(self, request):
        return Response(204)


class Bench:
    def __init__(self, path, **options):
        self.clock = ManualClock()
        self.path = path
        self.filter = BackendRatelimit(
            Rest(), options, str(path), telemetry=Telemetry(silent_log()), clock=self.clock
        )

    def passed(self, method="GET", path="/sda/5/a/c/o", count=20):
        statuses = [self.filter.handle(Request(method, path)).status for _ in range(count)]
        assert set(statuses) <= {204, 529}
        return statuses.count(204)

    def write(self, text):
        self.path.write_text(f"[backend_ratelimit]\n{text}\n")
        self.clock.advance(1000)
        os.utime(self.path, (self.clock.now_s, self.clock.now_s))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "backend-ratelimit.conf"


def test_a_device_takes_so_many_a_second(path):
    bench = Bench(path, **{RATE: "5", "requests_per_device_rate_buffer": "0"})
    assert bench.passed() == 1
    for _ in range(3):
        bench.clock.advance(0.2)
        assert bench.passed() == 1
    assert bench.passed(path="/sdb/5/a/c/o") == 1, "every device counts for itself"


def test_a_pause_can_be_caught_up(path):
    bench = Bench(path, **{RATE: "5"})
    assert bench.passed() == 6
    bench.clock.advance(1000)
    assert bench.passed() == 6


def test_a_method_has_a_limit_besides(path):
    bench = Bench(path, **{RATE: "10", f"put_{RATE}": "2", "requests_per_device_rate_buffer": "1"})
    assert bench.passed("PUT") == 3
    assert bench.passed("GET") == 8, "what was refused as a PUT took nobody's place"
    assert Bench(path, **{f"put_{RATE}": "2"}).passed("GET") == 20


@pytest.mark.parametrize("target", ["/healthcheck", "/recon/mem", "/sda/x/a", "/sda", "/sda/-1/a", "/"])
def test_only_requests_for_devices_are_counted(path, target):
    assert Bench(path, **{RATE: "1"}).passed(path=target) == 20


@pytest.mark.parametrize(
    ("limited", "status"), [("put_", 405), ("delete_", 405), ("", 405), ("get_", 204), (None, 204)]
)
def test_rows_come_one_by_one_where_they_are_counted(path, limited, status):
    bench = Bench(path, **({} if limited is None else {limited + RATE: "5"}))
    assert bench.filter.handle(Request("BATCH", "/sda")).status == status


def test_a_file_overrides_and_what_is_taken_out_of_it_reverts(path):
    bench = Bench(path, **{RATE: "2", "requests_per_device_rate_buffer": "0"})
    bench.write(f"{RATE} = 0")
    assert bench.passed() == 20
    bench.write("")
    assert bench.passed() == 1
    path.unlink()
    bench.clock.advance(1000)
    assert bench.passed() == 1


def test_a_file_that_cannot_be_used_changes_nothing_but_stops_a_start(path):
    bench = Bench(path, **{RATE: "2", "requests_per_device_rate_buffer": "0"})
    bench.write(f"{RATE} = many")
    assert bench.passed() == 1
    with pytest.raises(ConfigError, match=RATE):
        Bench(path)


def test_names_of_devices_cannot_fill_the_memory(path):
    bench = Bench(path, **{RATE: "1"})
    for n in range(3000):
        bench.filter.handle(Request("GET", f"/d{n}/1/a"))
    assert len(bench.filter._device_limiter._next_allowed_s) <= 1000

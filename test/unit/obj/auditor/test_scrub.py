"""A promised period is kept whatever there is to read, also after a restart; else it is said."""

import pytest

from swift.base.clock import ManualClock
from swift.obj.auditor.scrub import DAY_S, OBJECT_BYTES, Scrub
from swift.obj.auditor.settings import ObjectAuditorSettings
from test.unit.obj.auditor.test_task import Bench

MB = 1_000_000


class Device:
    """A device that is read at so many bytes a second, in virtual time."""

    def __init__(self, days, *, partitions=100, used=0, reads=100 * MB, begun_s=None, **before):
        self.clock = ManualClock()
        self.reads = reads
        self.left = partitions
        self.rests = []
        self.scrub = Scrub(
            days * DAY_S,
            begun_s=self.clock.time() if begun_s is None else self.clock.time() + begun_s,
            used_bytes=used,
            work_done=before.get("work_done", 0),
            partitions=before.get("of", 0),
            clock=self.clock,
            wait=self._rest,
            alive=lambda: None,
        )
        self.scrub.expect(0, self.left)

    def _rest(self, seconds):
        self.rests.append(seconds)
        self.clock.advance(seconds)
        return False

    def read_partition(self, objects, size):
        for _ in range(objects):
            self.scrub.pause_after(0, 1)
            self.clock.advance(size / self.reads)
            self.scrub.pause_after(size)
        self.left -= 1
        self.scrub.expect(0, self.left)

    def read_all(self, objects, size):
        """Days that it takes."""
        started_s = self.clock.time()
        while self.left:
            self.read_partition(objects, size)
        return (self.clock.time() - started_s) / DAY_S


@pytest.mark.parametrize(("objects", "size"), [(200, 5 * MB), (800, 1000), (2, 0)])
@pytest.mark.parametrize("used", [0, 1 << 40], ids=["nothing told", "much in use"])
def test_a_pass_ends_shortly_before_the_period_does(objects, size, used):
    device = Device(3, used=used)
    days = device.read_all(objects, size)
    few = objects * 2 < 10
    assert (0.0 if few else 2.0) < days <= 3.0
    assert device.scrub.forecast().is_on_schedule


def test_when_the_device_is_too_slow_it_is_said_with_what_it_would_take():
    device = Device(1, used=100_000 * MB, reads=0.5 * MB)
    for _ in range(20):
        device.read_partition(100, 10 * MB)
    forecast = device.scrub.forecast()
    assert not forecast.is_on_schedule
    assert forecast.rate_needed > forecast.rate_possible > 0.4 * MB
    assert forecast.days_expected > 1.5
    assert "1 were promised" in str(forecast)
    assert "MB/s are possible" in str(forecast)
    assert sum(device.rests) < 1


def test_a_pass_that_was_interrupted_makes_up_for_it():
    device = Device(4, partitions=50, begun_s=-3 * DAY_S, of=100, work_done=50 * 200 * 5 * MB)
    days = device.read_all(200, 5 * MB)
    assert 0.4 < days <= 1.0


def test_a_pass_that_is_late_does_not_rest():
    device = Device(1, begun_s=-2 * DAY_S)
    device.read_all(20, MB)
    assert device.rests == []
    assert not Device(1, begun_s=-2 * DAY_S).scrub.forecast().is_on_schedule


def test_nobody_rests_so_long_that_it_looks_dead():
    device = Device(30, partitions=2)
    device.read_partition(1, 0)
    assert max(device.rests) <= 30
    assert sum(device.rests) <= 2 * 300


def test_objects_cost_something_whatever_their_size():
    device = Device(1)
    device.scrub.pause_after(0, 10)
    device.left -= 20
    device.scrub.expect(0, device.left)
    assert device.scrub.work_left() == pytest.approx(10 * OBJECT_BYTES / 20 * 80)


# --- the auditor with a promise ---------------------------------------------------------------------


def test_with_a_promise_the_other_limits_do_not_count():
    schedule = ObjectAuditorSettings(scrub_days=30, scrub_bytes_per_second=5.0).schedule
    assert (schedule.units_per_second, schedule.bytes_per_second) == (0, 5)
    assert ObjectAuditorSettings().schedule.units_per_second == 20


def test_an_auditor_takes_the_time_that_was_promised_and_tells_recon(tmp_path):
    bench = Bench(tmp_path, scrub_days=0.01)
    for number in range(40):
        bench.put(f"o{number}", partition=str(number))
    started_s = bench.rig.clock.monotonic()
    assert bench.run_once(bench.settings.schedule) == {"units": 40}
    assert 0.001 * DAY_S < bench.rig.clock.monotonic() - started_s <= 0.0101 * DAY_S
    told = bench.recon()["object_auditor_scrub"]["sda"]
    assert told["kept"] is True
    assert told["promised_days"] == 0.01


def test_devices_that_are_read_one_after_another_share_the_time(tmp_path):
    bench = Bench(tmp_path, devices=("sda", "sdb", "sdc"), scrub_days=30)
    assert bench.task.target_s() == 10 * DAY_S
    both = Bench(tmp_path / "b", devices=("sda", "sdb", "sdc"), scrub_days=30, concurrency=2)
    assert both.task.target_s() == 20 * DAY_S


def test_without_a_promise_nothing_is_told(tmp_path):
    bench = Bench(tmp_path)
    bench.put()
    bench.run_once()
    assert "object_auditor_scrub" not in bench.recon()

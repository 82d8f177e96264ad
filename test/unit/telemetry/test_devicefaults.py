"""Counting the errors of devices."""

import errno

from swift.telemetry.devicefaults import FORGOTTEN_AFTER_S, KEY, WRITE_EVERY_S, DeviceFaults
from swift.telemetry.log import silent_log
from swift.telemetry.metrics import Registry
from swift.telemetry.recon import ReconFile

EIO = OSError(errno.EIO, "rot")


class Bench:
    def __init__(self, directory):
        self.recon = ReconFile(str(directory), "object", silent_log())
        self.now_s = 1e9
        self.delayed = []

    def process(self):
        return DeviceFaults(
            Registry(),
            self.recon,
            now_s=lambda: self.now_s,
            later=lambda seconds, function: self.delayed.append(function),
        )

    def said(self, device="sda"):
        return self.recon.read()[KEY][device]


def test_the_first_error_is_told_at_once_and_a_burst_together(tmp_path):
    bench = Bench(tmp_path)
    faults = bench.process()
    for _ in range(10):
        faults.note("sda", EIO)
    assert bench.said()["errors"] == 1
    assert len(bench.delayed) == 1
    bench.delayed.pop()()
    assert (bench.said()["errors"], bench.said()["error"], bench.said()["last"]) == (10, "EIO", 1e9)


def test_counts_of_several_processes_add_up_by_device(tmp_path):
    bench = Bench(tmp_path)
    bench.recon.dump({"async_pending": 3})
    for device in ("sda", "sda", "sdb"):
        bench.process().note(device, EIO)
    assert (bench.said("sda")["errors"], bench.said("sdb")["errors"]) == (2, 1)
    assert bench.recon.read()["async_pending"] == 3


def test_counts_begin_anew_after_a_week_without_errors(tmp_path):
    bench = Bench(tmp_path)
    faults = bench.process()
    faults.note("sda", EIO)
    bench.now_s += WRITE_EVERY_S
    faults.note("sda", EIO)
    assert (bench.said()["errors"], bench.said()["since"]) == (2, 1e9)
    bench.now_s += FORGOTTEN_AFTER_S
    faults.note("sda", EIO)
    assert (bench.said()["errors"], bench.said()["since"]) == (1, bench.now_s)


def test_what_no_device_is_to_blame_for_is_not_counted(tmp_path):
    bench = Bench(tmp_path)
    for error in (OSError(errno.EMFILE, "many"), OSError(errno.ENOENT, "gone"), ValueError(), MemoryError()):
        bench.process().note("sda", error)
    assert bench.recon.read() == {}


def test_errors_of_sqlite_count_by_what_they_say_of_themselves(tmp_path):
    class Failing(Exception):
        is_device_error = True

    bench = Bench(tmp_path)
    bench.process().note("sda", Failing("disk I/O error"))
    assert bench.said()["error"] == "EIO"


def test_a_recon_file_of_any_content_is_survived(tmp_path):
    bench = Bench(tmp_path)
    for content in ({KEY: 7}, {KEY: {"sda": None}}, {KEY: {"sda": {"errors": "x", "last": "y"}}}):
        bench.recon.dump(content)
        bench.process().note("sda", EIO)
        assert bench.said()["errors"] == 1
        bench.recon.dump({KEY: {}})


def test_a_device_that_was_replaced_or_repaired_since_has_no_errors(tmp_path):
    bench = Bench(tmp_path)
    faults = bench.process()
    for device in ("sda", "sdb"):
        faults.note(device, EIO)
        faults.flush()
    # An error after the repair is one of the repaired device.
    faults.mend("sda", 1e9 - 1)
    assert bench.said()["errors"] == 1
    faults.mend("sda", 1e9 + 1)
    assert set(bench.recon.read()[KEY]) == {"sdb"}
    faults.mend("none", 1e9 + 1)
    bench.now_s += 10
    bench.process().note("sda", EIO)
    assert (bench.said()["errors"], bench.said()["since"]) == (1, 1e9 + 10)

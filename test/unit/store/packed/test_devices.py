"""swift/store/packed/devices.py: a look at an object judges the object, not the device."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from time import monotonic

import pytest

from swift.base.errors import LockTimeout
from swift.platform.locks import STUCK_TIMEOUT_S
from swift.store.api import LIVE
from swift.store.packed.devices import PackedDevices
from swift.store.packed.opening import IndexOpening
from swift.store.packed.settings import PackedSettings
from swift.store.packed.writer import PackedRules
from test.contract.test_store import NOW, NOW_S, PackedBench, key_of, put, read, ts


@pytest.fixture
def bench(tmp_path):
    made = PackedBench(tmp_path)
    (tmp_path / "ssd").mkdir()
    made._settings = PackedSettings(state_path=str(tmp_path / "state"), index_path=str(tmp_path / "ssd"))
    made.store = made.make()
    yield made
    made.store.close()


def test_nothing_is_quarantined_because_the_device_was_replaced(bench):
    put(bench.store, key_of(), ts(NOW_S), b"body")
    packed = bench.root / "sda/packed"
    os.rename(packed, bench.root / "away")
    packed.mkdir()
    bench.store.devices.device("sda").volumes.close()
    with pytest.raises(OSError, match="gone"):
        bench.store.stat(key_of(), NOW)
    assert not (bench.root / "sda/quarantined").exists()
    packed.rmdir()
    os.rename(bench.root / "away", packed)
    assert bench.store.stat(key_of(), NOW).kind == LIVE


@pytest.mark.parametrize("make", (os.mkdir, os.mkfifo, lambda path: os.symlink(path, path)))
@pytest.mark.parametrize("is_index_lost", (False, True))
def test_what_has_the_name_of_a_volume_and_is_no_file_does_not_stop_a_device(bench, make, is_index_lost):
    put(bench.store, key_of(), ts(NOW_S), b"body")
    bench.store.close()
    make(bench.root / "sda/packed/00000007.volume")
    for index in (bench.root.parent / "ssd").rglob("*.mdb") if is_index_lost else ():
        index.unlink()
    bench.store = bench.make()
    assert read(bench.store, key_of()) == b"body"
    put(bench.store, key_of("other"), ts(NOW_S), b"other")
    assert read(bench.store, key_of("other")) == b"other"


# --- other processes that open a device -----------------------------------------------------------------

STOPPED_WHILE_OPENING = """
import os, signal, sys
from swift.platform.disk import Disk
from swift.store.packed.device import PackedDevice
from swift.store.packed.writer import PackedRules
from swift.store.packed.opening import IndexOpening
from swift.store.packed.settings import PackedSettings
opening = IndexOpening(PackedSettings(state_path=sys.argv[2]), Disk())
def open_index(directory):
    os.kill(os.getpid(), signal.SIGSTOP)
    return opening(directory)
PackedDevice(Disk(), sys.argv[1], open_index=open_index, rules=PackedRules(), notice=print).close()
"""


@contextmanager
def held(path):
    """Hold the lock of a file, as a stopped process does."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def devices_of(bench, *, holder_timeout_s=0.3, open_index=None):
    return PackedDevices(
        bench.store.core,
        open_index=open_index or IndexOpening(bench._settings, bench.store.core.disk),
        rules=PackedRules(),
        holder_timeout_s=holder_timeout_s,
    )


def refused_after_s(devices, match):
    started = monotonic()
    with pytest.raises(LockTimeout, match=match):
        devices.device("sda")
    return monotonic() - started


@pytest.mark.process
@pytest.mark.parametrize("end", [signal.SIGCONT, signal.SIGKILL])
def test_a_device_is_refused_while_another_process_is_stopped_as_it_opens_it(bench, end):
    devices = devices_of(bench)
    where = [str(bench.root / "sda"), bench._settings.state_path]
    stopped = subprocess.Popen([sys.executable, "-c", STOPPED_WHILE_OPENING, *where])
    try:
        os.waitid(os.P_PID, stopped.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        assert refused_after_s(devices, "another process that opens the device") >= 0.3
        stopped.send_signal(end)
        assert stopped.wait(60) == (0 if end is signal.SIGCONT else -end)
        assert devices.device("sda").index.is_current()
    finally:
        stopped.kill()
        stopped.wait(60)
        devices.close()


@pytest.mark.long
def test_after_one_wait_in_vain_others_wait_less_until_a_device_is_opened(bench):
    devices = devices_of(bench, holder_timeout_s=1.0)
    path = str(bench.root / "sda/packed/opening")
    with held(path):
        assert refused_after_s(devices, "within 1 s") >= 1.0
        assert refused_after_s(devices, f"within {STUCK_TIMEOUT_S:g} s") >= STUCK_TIMEOUT_S
    opened = devices.device("sda")
    # The index is lost, and another process makes it again.
    opened.index.discard()
    with held(path):
        with pytest.raises(LockTimeout, match="within 1 s"):
            opened.entries(0, 8, bytes(16))
        with pytest.raises(LockTimeout, match=f"within {STUCK_TIMEOUT_S:g} s"):
            opened.entries(0, 8, bytes(16))
    assert opened.entries(0, 8, bytes(16)) == []
    devices.close()


def test_while_one_thread_opens_a_device_others_are_refused(bench):
    opening, may_open = threading.Event(), threading.Event()
    real = IndexOpening(bench._settings, bench.store.core.disk)

    def open_index(directory):
        opening.set()
        assert may_open.wait(60)
        return real(directory)

    devices = devices_of(bench, open_index=open_index)
    thread = threading.Thread(target=devices.device, args=("sda",))
    thread.start()
    try:
        assert opening.wait(60)
        assert refused_after_s(devices, "which this process is opening, within 0.3 s") >= 0.3
        refused_after_s(devices, "within 0 s")
    finally:
        may_open.set()
        thread.join(60)
    assert devices.device("sda").index.is_current()
    devices.close()


def test_while_one_thread_waits_for_a_replaced_index_others_are_refused_at_once(bench):
    devices = devices_of(bench, holder_timeout_s=0.1)
    opened = devices.device("sda")
    opened.index.discard()
    with held(str(bench.root / "sda/packed/opening")):
        with pytest.raises(LockTimeout):
            opened.entries(0, 8, bytes(16))
        locked, done = threading.Event(), threading.Event()

        def wait():
            with opened.writing:
                locked.set()
                done.wait(60)

        thread = threading.Thread(target=wait)
        thread.start()
        try:
            assert locked.wait(60)
            with pytest.raises(LockTimeout):
                opened.entries(0, 8, bytes(16))
        finally:
            done.set()
            thread.join(60)
    assert opened.entries(0, 8, bytes(16)) == []
    devices.close()

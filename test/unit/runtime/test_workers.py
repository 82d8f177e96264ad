"""The master keeps a worker in every wanted slot, and none elsewhere."""

import os
import signal
import subprocess
import sys
import time

import pytest

from swift.runtime.workers import Master
from swift.telemetry.log import silent_log

pytestmark = pytest.mark.process


class Rig:
    """A master in a child process whose slots and workers are seen through files."""

    def __init__(self, folder, wanted):
        self.folder = folder
        self.want(wanted)
        self.pid = os.fork()
        if not self.pid:
            master = Master(self._slots, self._work, silent_log(), grace_s=5.0)
            os._exit(master.run())

    def want(self, slots):
        path = self.folder / "wanted.new"
        path.write_text(" ".join(map(str, slots)))
        path.rename(self.folder / "wanted")

    def _slots(self):
        return [int(word) for word in (self.folder / "wanted").read_text().split()]

    def _work(self, slot):
        path = self.folder / f"slot-{slot}"
        # Not an Event: setting one in a handler waits for ever when the handler interrupts its ``wait``.
        stopped = []
        signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
        path.write_text(str(os.getpid()))
        while not stopped:
            time.sleep(0.01)
        path.unlink()

    def workers(self):
        found = {}
        for path in self.folder.glob("slot-*"):
            try:
                found[int(path.name[5:])] = int(path.read_text())
            except (OSError, ValueError):
                continue
        return found

    def await_slots(self, wanted):
        deadline = time.monotonic() + 10
        while set(self.workers()) != set(wanted):
            assert time.monotonic() < deadline, (self.workers(), wanted)
            time.sleep(0.01)
        return self.workers()

    def stop(self):
        os.kill(self.pid, signal.SIGTERM)
        assert os.waitpid(self.pid, 0)[1] == 0


def test_workers_come_and_go_with_their_slots(tmp_path):
    rig = Rig(tmp_path, [0, 1])
    first = rig.await_slots([0, 1])
    rig.want([1, 7])
    second = rig.await_slots([1, 7])
    assert second[1] == first[1]
    rig.stop()
    assert rig.workers() == {}


def test_a_killed_worker_is_replaced_in_its_slot(tmp_path):
    rig = Rig(tmp_path, [3])
    pid = rig.await_slots([3])[3]
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while rig.workers().get(3) in (pid, None):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    rig.stop()


def test_a_master_that_keeps_former_workers_tries_again_when_one_ends():
    code = """
import os, signal
from swift.runtime.workers import ProcessRenewal, adopt_previous
from swift.telemetry.log import silent_log

worker = os.fork()
if not worker:
    while True:
        signal.pause()
print(worker, flush=True)
renew = lambda pids: print("renewed with", pids, flush=True)
raise SystemExit(adopt_previous(ProcessRenewal(renew, [worker]), silent_log(), on_hangup=lambda: None))
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as master:
        os.kill(int(master.stdout.readline()), signal.SIGKILL)
        assert master.stdout.readline() == "renewed with []\n"
        master.kill()

"""A signal is noticed at once, also by an event loop that sleeps in the kernel."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.process

#: Sleeps in its event loop for far longer than the test waits, and says which signals come.
LOOP = """
import signal, sys
from swift import green
from swift.green import on_signals
def came(number):
    print(signal.Signals(number).name, flush=True)
    if number == signal.SIGTERM:
        sys.exit(7)
on_signals([signal.SIGHUP, signal.SIGTERM], came)
print("ready", flush=True)
green.sleep(600)
"""


def test_a_sleeping_loop_hears_every_signal_and_ends_when_told_so():
    process = subprocess.Popen([sys.executable, "-c", LOOP], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        began_s = time.monotonic()
        for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGTERM):
            process.send_signal(number)
            assert process.stdout.readline() == f"{signal.Signals(number).name}\n"
        assert process.wait(30) == 7
        assert time.monotonic() - began_s < 60
    finally:
        process.kill()
        process.wait()
        process.stdout.close()

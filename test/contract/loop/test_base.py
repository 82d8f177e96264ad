"""Each operating system thread has a loop of its own; calls run in order and at their time."""

import os
import subprocess
import sys
import threading
import time

import pytest

from swift import green
from swift.loop import base


def test_a_thread_has_one_loop_and_every_thread_another():
    found = []

    def look():
        found.append((base.loop(), base.loop()))

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (first, again), (other, _) = found
    assert first is again
    assert len({id(first), id(other), id(base.loop())}) == 3


def test_a_thread_without_a_loop_gets_one_when_it_waits():
    done = []

    def wait():
        green.sleep(0.001)
        done.append(isinstance(base.loop(), type(main)))

    main = base.loop()
    thread = threading.Thread(target=wait)
    thread.start()
    thread.join()
    assert done == [True]


@pytest.mark.process
def test_a_child_gets_a_loop_of_its_own():
    green.sleep(0.001)
    before = base.loop()
    code = """
import os
from swift import green
from swift.loop import base
def fork():
    before = base.loop()
    child = os.fork()
    if not child:
        green.sleep(0.001)
        os._exit(3 if base.loop() is before else 7)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(fork(), green.spawn(fork).wait())
"""
    assert run_python(code) == ("7 7\n", "")
    assert base.loop() is before


def test_calls_soon_are_made_in_order_and_later_ones_by_their_time():
    made, here = [], base.loop()
    here.call_later(0.02, made.append, "second")
    here.call_later(0.01, made.append, "first")
    here.call_later(0.01, made.append, "cancelled").cancel()
    here.call_soon(made.append, "now")
    here.call_soon(made.append, "and now")
    last = here.call_later(0.03, made.append, "last")
    green.sleep(0.05)
    assert made == ["now", "and now", "first", "second", "last"]
    last.cancel()


def test_thousands_of_cancelled_timers_delay_nothing():
    here, made = base.loop(), []
    for timer in [here.call_later(60.0, made.append, "never") for _ in range(5000)]:
        timer.cancel()
    here.call_later(0.01, made.append, "soon")
    begun_s = time.monotonic()
    while not made:
        green.sleep(0.002)
    assert made == ["soon"]
    assert time.monotonic() - begun_s < 30


def test_a_call_planned_for_the_next_month_delays_nothing():
    far = green.spawn_after(30 * 86400, list)
    assert green.ThreadPool(1).call(lambda: 5) == 5
    far.kill()


def test_an_error_of_a_call_is_printed_and_the_others_are_made(capsys):
    made, here = [], base.loop()

    def fail():
        raise ValueError("in a call")

    here.call_soon(fail)
    here.call_soon(made.append, 1)
    here.call_later(0.0, fail)
    here.call_later(0.0, made.append, 2)
    green.sleep(0.01)
    assert sorted(made) == [1, 2]
    assert capsys.readouterr().err.count("in a call") >= 2


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()], ids=["exit", "interrupt"])
def test_an_exit_in_a_green_thread_reaches_the_main_thread(error):
    def leave():
        raise error

    green.spawn_detached(leave)
    with pytest.raises(type(error)):
        green.sleep(30)
    # The loop goes on.
    assert green.spawn(lambda: 5).wait() == 5


def test_a_call_from_another_thread_wakes_the_loop():
    here, made = base.loop(), green.Event()
    here.accept_calls_from_threads()
    thread = threading.Thread(target=here.call_from_thread, args=(made.set,))
    thread.start()
    assert made.wait(30)
    thread.join()


@pytest.mark.process
def test_an_unknown_loop_is_an_error_that_names_the_known_ones():
    _out, err = run_python("from swift import green; green.sleep(0)", SWIFT_EVENT_LOOP="twisted")
    assert (
        err == "SWIFT_EVENT_LOOP=twisted: there is no such event loop; use " + " or ".join(green.LOOPS) + "\n"
    )


def run_python(code, **environ):
    """Run a program; return its output and its errors."""
    line, environ = [sys.executable, "-c", code], {**os.environ, **environ}
    done = subprocess.run(line, capture_output=True, text=True, env=environ, check=False, timeout=60)
    return done.stdout, done.stderr

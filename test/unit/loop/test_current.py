"""Each thread has a loop of its own, the one it took or one that is made when it first waits."""

import threading

from swift import green
from swift.loop import current


def test_a_thread_has_one_loop_and_every_thread_another():
    found = []

    def look():
        green.use_hub()
        found.append((current.loop(), current.loop()))

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (first, again), (other, _) = found
    assert first is again
    assert len({id(first), id(other), id(current.loop())}) == 3


def test_a_thread_that_took_none_gets_one_when_it_waits():
    done = []

    def wait():
        green.sleep(0.001)
        done.append(isinstance(current.loop(), type(main)))

    main = current.loop()
    thread = threading.Thread(target=wait)
    thread.start()
    thread.join()
    assert done == [True]

"""The threads of passwords are shared fairly: a flood from one network delays only itself."""

import pytest

from swift import green
from swift.identity.turns import TooManyLogins, Turns, network_of


class Queue:
    """Requests of networks, whose turns end when a test lets them."""

    def __init__(self, at_once=1, waiting_max=4):
        self.turns = Turns(at_once, waiting_max)
        self.events = []
        self.ends = {}

    def come(self, network, name):
        def request():
            end = self.ends[name] = green.Event()
            try:
                with self.turns.turn(network):
                    self.events.append(name)
                    end.wait()
            except TooManyLogins:
                self.events.append(f"{name} refused")

        task = green.spawn(request)
        green.sleep(0.001)
        return task

    def end(self, *names):
        for name in names:
            self.ends[name].set()
            green.sleep(0.001)
            green.sleep(0.001)


def test_networks_take_turns():
    queue = Queue(waiting_max=10)
    for name in ("a1", "a2", "a3", "a4", "b1", "c1", "b2"):
        queue.come(name[0], name)
    queue.end("a1", "a2", "b1", "c1", "a3", "b2", "a4")
    assert queue.events == ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]
    queue.come("a", "a5")
    assert queue.events[-1] == "a5", "a turn is free again"
    queue.end("a5")


def test_a_full_queue_refuses_the_network_with_the_most_requests():
    queue = Queue()
    for name in ("a1", "a2", "a3", "a4", "a5"):
        queue.come("a", name)
    queue.come("a", "a6")
    assert queue.events == ["a1", "a6 refused"]
    queue.come("b", "b1")
    queue.come("b", "b2")
    assert queue.events[2:] == ["a5 refused", "a4 refused"]
    queue.come("b", "b3")
    assert queue.events[4:] == ["b3 refused"], "no network displaces another that has as many"
    queue.end("a1", "a2", "b1", "a3", "b2")
    assert [name for name in queue.events if "refused" not in name] == ["a1", "a2", "b1", "a3", "b2"]


def test_a_request_that_ends_while_it_waits_leaves_its_place():
    queue = Queue(at_once=2)
    tasks = {name: queue.come(name[0], name) for name in ("a1", "a2", "b1", "c1")}
    tasks["b1"].kill()
    green.sleep(0.001)
    queue.end("a1")
    assert queue.events == ["a1", "a2", "c1"]
    queue.end("a2", "c1")
    queue.come("d", "d1")
    queue.come("d", "d2")
    assert queue.events[3:] == ["d1", "d2"], "both turns are free again"
    queue.end("d1", "d2")


@pytest.mark.parametrize(
    "address, network",
    [
        ("10.0.0.9", "10.0.0.9"),
        ("::ffff:10.0.0.9", "10.0.0.9"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::"),
        ("", ""),
        ("unix:", "unix:"),
    ],
)
def test_the_network_of_one_client(address, network):
    assert network_of(address) == network

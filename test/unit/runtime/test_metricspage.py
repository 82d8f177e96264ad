"""One page has the numbers of all workers, told apart by their pids."""

import os

import pytest

from swift.http.request import Request
from swift.runtime.metricspage import CONTENT_TYPE, SLOT_BYTES, SharedMetricsPage
from swift.telemetry.metrics import Registry


def worker(board, index, text):
    """A worker whose page is this text."""

    class Page(Registry):
        def render(self):
            return text

    board.register_worker(index, Page())
    board.publish()


def page(name, *samples):
    return f"# HELP {name} what it is\n# TYPE {name} counter\n" + "".join(f"{s}\n" for s in samples)


def test_families_of_all_workers_are_joined():
    board = SharedMetricsPage(2)
    worker(board, 0, page("a", 'a{pid="1"} 1') + page("b", "b 1"))
    worker(board, 1, page("a", 'a{pid="2"} 2'))
    assert board.render().decode().splitlines() == [
        "# HELP a what it is",
        "# TYPE a counter",
        'a{pid="1"} 1',
        'a{pid="2"} 2',
        "# HELP b what it is",
        "# TYPE b counter",
        "b 1",
    ]


def test_a_worker_that_comes_back_takes_its_slot_again():
    board = SharedMetricsPage(2)
    worker(board, 0, page("a", "a 1"))
    worker(board, 2, page("a", "a 9"))
    assert b"a 9" in board.render()
    assert b"a 1" not in board.render()


def test_a_page_that_is_too_long_is_cut_at_a_line():
    board = SharedMetricsPage(1)
    worker(board, 0, page("a", *(f'a{{n="{n}"}} {n}' for n in range(SLOT_BYTES // 8))))
    lines = board.render().decode().splitlines()
    assert len(lines) > 1000
    assert all(line.startswith(("# ", 'a{n="')) and line.rpartition(" ")[2] for line in lines)


def test_a_board_without_workers_is_an_empty_page():
    assert SharedMetricsPage(0).render() == b"\n"


def test_samples_say_which_process_counted():
    registry = Registry()
    SharedMetricsPage(1).register_worker(0, registry)
    assert registry.constant_labels == {"pid": str(os.getpid())}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/metrics", 200),
        ("HEAD", "/metrics", 200),
        ("GET", "/", 404),
        ("GET", "/metrics/x", 404),
        ("POST", "/metrics", 405),
    ],
)
def test_the_page_has_an_address_of_its_own(method, path, status):
    board = SharedMetricsPage(1)
    worker(board, 0, page("a", "a 1"))
    answer = board.handle("/metrics", Request(method, path, {}))
    assert answer.status == status
    if status == 200:
        assert answer.headers["content-type"] == CONTENT_TYPE
        assert b"a 1" in answer.body

"""Long work keeps its connection awake (swift/middleware/heartbeat.py)."""

import pytest

from swift import green
from swift.http.request import Request
from swift.middleware.heartbeat import Heartbeat, requires_final_status


def sent(work, failed=lambda error: f"failed: {error}".encode(), **options):
    return list(Heartbeat(work, failed, **{"interval_s": 60.0, **options}))


def test_a_quick_report_is_sent_alone():
    assert sent(lambda: b"report") == [b"report"]


def test_a_first_space_can_be_sent_before_anything_is_done():
    assert sent(lambda: b"report", immediate=True) == [b" ", b"\r\n\r\n", b"report"]


def test_spaces_come_while_the_work_takes_long():
    def work():
        green.sleep(0.35)
        return b"report"

    pieces = sent(work, interval_s=0.05)
    assert pieces[-2:] == [b"\r\n\r\n", b"report"]
    assert len(pieces) > 3
    assert set(pieces[:-2]) == {b" "}


def test_an_error_of_the_work_is_a_report_too():
    def work():
        raise ValueError("broken")

    assert sent(work) == [b"failed: broken"]


def test_what_the_work_would_have_used_is_released_when_nobody_reads():
    released = []
    for reads in (False, True):
        body = Heartbeat(
            lambda: b"",
            lambda error: b"",
            interval_s=60.0,
            on_unread=lambda reads=reads: released.append(reads),
        )
        if reads:
            list(body)
        body.close()
        body.close()
    assert released == [False]


def test_work_that_is_begun_early_and_ends_in_time_has_a_report_before_any_body():
    body = Heartbeat(lambda: b"report", lambda error: b"", interval_s=60.0)
    assert body.start(60.0) == b"report"


def test_work_that_takes_longer_is_begun_once_and_its_spaces_are_due():
    ended, begun = green.Event(), []

    def work():
        begun.append(True)
        ended.wait(60)
        return b"report"

    body = Heartbeat(work, lambda error: b"", interval_s=60.0)
    assert body.start(0.01) is None
    pieces = iter(body)
    assert next(pieces) == b" "
    ended.set()
    assert (list(pieces), begun) == ([b"\r\n\r\n", b"report"], [True])


@pytest.mark.parametrize(
    ("query", "wants"),
    [
        ("", False),
        ("heartbeat", True),
        ("heartbeat=off", True),
        ("heartbeat=false", True),
        ("heartbeat=on", False),
    ],
)
def test_a_client_asks_for_a_status_line_that_is_true(query, wants):
    assert requires_final_status(Request("DELETE", "/v1/a/c/o", {}, query=query)) is wants


def test_work_goes_on_when_the_client_is_gone():
    done = []

    def work():
        green.sleep(0.02)
        done.append(True)
        return b""

    body = iter(Heartbeat(work, lambda error: b"", interval_s=60.0, immediate=True))
    assert next(body) == b" "
    body.close()
    green.sleep(0.05)
    assert done == [True]

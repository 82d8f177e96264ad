"""Sub-requests end by themselves, whatever happens to those who made them."""

import pytest

from swift import green
from swift.gateway.subrequest import SubrequestTimeout, open_response
from swift.http.body import BodyError, IterableBody
from swift.http.request import Request
from swift.http.response import Response

SUB = Request("GET", "/v1/a")


class Answer:
    """An answer that remembers what became of it."""

    def __init__(self, body):
        self.ends = []
        self.closed = 0
        self.response = Response(
            200, {}, body if isinstance(body, bytes) else IterableBody(body, None, self._close)
        )
        self.response.on_response_end(lambda sent, complete: self.ends.append((sent, complete)))

    def _close(self):
        self.closed += 1

    def forward(self, request):
        return self.response


@pytest.mark.parametrize("timeout_s", [None, 5.0])
def test_a_body_that_was_read_is_reported_with_its_size(timeout_s):
    for body in (b"abc", [b"a", b"bc"]):
        answer = Answer(body)
        with open_response(answer.forward, SUB, timeout_s=timeout_s) as response:
            assert response.read_body() == b"abc"
        assert answer.ends == [(3, True)]
        assert answer.closed == (not isinstance(body, bytes))


def test_a_short_rest_is_drained_and_a_long_one_is_cut():
    short = Answer([b"x" * 1000] * 3)
    with open_response(short.forward, SUB):
        pass
    assert (short.ends, short.closed) == ([(3000, True)], 1)
    long = Answer([b"x" * 1000] * 1000)
    with open_response(long.forward, SUB):
        pass
    assert [complete for _, complete in long.ends] == [False]
    assert long.closed == 1


def test_an_error_in_the_block_releases_the_answer():
    response = Answer([b"abc"])
    with pytest.raises(KeyError), open_response(response.forward, SUB):
        raise KeyError
    assert (response.ends, response.closed) == ([(0, False)], 1)


def test_an_answer_that_does_not_come_in_time_is_503_and_released_later():
    response, event = Answer([b"abc"]), green.Event()

    def forward(_request):
        event.wait()
        return response.response

    with pytest.raises(SubrequestTimeout) as failure, open_response(forward, SUB, timeout_s=0.01):
        raise AssertionError("no answer came")
    assert failure.value.response.status == 503
    assert "took longer" in str(failure.value)
    event.set()
    green.spawn(lambda: None).wait()
    green.sleep(0)
    assert (response.ends, response.closed) == ([(0, False)], 1)


def test_a_body_that_does_not_end_in_time_breaks_off():
    def slow():
        while True:
            green.sleep(0.005)
            yield b"x"

    answer = Answer(slow())
    with pytest.raises(BodyError), open_response(answer.forward, SUB, timeout_s=0.02) as response:
        response.read_body()
    assert [complete for _, complete in answer.ends] == [False]
    assert answer.closed == 1


def test_an_error_of_the_pipeline_reaches_who_asked():
    def forward(_request):
        raise KeyError("bug")

    for timeout_s in (None, 5.0):
        with pytest.raises(KeyError), open_response(forward, SUB, timeout_s=timeout_s):
            pass

"""Work that takes long: its answer begins before its end is known, and is the same document."""

import pytest

from swift import green
from swift.http.response import Response
from swift.s3.core.call import keep_alive_response
from swift.s3.core.errors import S3Error
from swift.s3.core.xml import DECLARATION

DOCUMENT = DECLARATION + b"<Done/>"


def explain(error):
    return DECLARATION + f"<Error>{error.code}</Error>".encode()


def answer_after(event, result):
    def work():
        event.wait(10)
        if isinstance(result, Exception):
            raise result
        return result

    return work


def test_what_ends_early_is_answered_with_its_own_status():
    found = Response(207, {"x-a": "1"}, DOCUMENT)
    assert keep_alive_response(lambda: found, explain, interval_s=10) is found


def test_and_what_goes_wrong_early_is_raised():
    def work():
        raise S3Error("NoSuchKey")

    with pytest.raises(S3Error) as refused:
        keep_alive_response(work, explain, interval_s=10)
    assert refused.value.code == "NoSuchKey"


@pytest.mark.parametrize(
    ("result", "end"),
    [(Response(200, {}, DOCUMENT), b"<Done/>"), (S3Error("InvalidPart"), b"<Error>InvalidPart</Error>")],
)
def test_who_waits_sees_the_declaration_spaces_and_one_document(result, end):
    event = green.Event()
    answer = keep_alive_response(answer_after(event, result), explain, interval_s=0.01)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/xml")
    pieces = iter(answer.body)
    assert [next(pieces) for _ in range(3)] == [DECLARATION, b" ", b" "]
    event.set()
    rest = b"".join(pieces)
    assert rest.strip() == end, "the declaration stands once"


def test_its_length_is_not_known():
    event = green.Event()
    answer = keep_alive_response(answer_after(event, Response(200, {}, DOCUMENT)), explain, interval_s=0.01)
    assert answer.body.length is None and "content-length" not in answer.headers
    event.set()
    assert b"".join(answer.body).endswith(b"<Done/>")

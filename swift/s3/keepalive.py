"""Answers to work that may take long: spaces before the document, once it takes longer than clients like.

What ends early is answered with its own status. Later the status line is out: what went wrong then is the
document of a 200, as S3 does it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from swift import green
from swift.http.body import ResponseBody
from swift.http.headers import HeaderMap
from swift.http.response import Response
from swift.s3.call import XML
from swift.s3.xml import DECLARATION

Work = Callable[[], Response]
#: The document of an error, or None for one that is nobody's answer.
Explain = Callable[[Exception], bytes]


def patiently(work: Work, explain: Explain, *, interval_s: float) -> Response:
    """What ``work`` answers, or an answer that begins before that is known."""
    box: green.Mailbox[Response | Exception] = green.Mailbox()

    def run() -> None:
        try:
            box.put(work())
        except Exception as error:
            # Whoever waits raises or tells it.
            box.put(error)

    green.spawn_detached(run)
    try:
        result = box.get(time.monotonic() + interval_s)
    except green.DeadlineExceeded:
        headers: HeaderMap = {"content-type": XML}
        return Response(200, headers, _Spaced(box, explain, interval_s))
    if isinstance(result, Exception):
        raise result
    return result


class _Spaced(ResponseBody):
    """The declaration, spaces, and at last the document."""

    def __init__(self, box: green.Mailbox[Response | Exception], explain: Explain, interval_s: float):
        self.length = None
        self._box = box
        self._explain = explain
        self._interval_s = interval_s

    def __iter__(self) -> Iterator[bytes]:
        yield DECLARATION
        while True:
            try:
                result = self._box.get(time.monotonic() + self._interval_s)
            except green.DeadlineExceeded:
                yield b" "
                continue
            document = self._explain(result) if isinstance(result, Exception) else result.read_body()
            yield document.removeprefix(DECLARATION)
            return

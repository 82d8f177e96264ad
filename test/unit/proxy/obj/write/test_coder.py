"""Which bodies fit into one piece of memory."""

from types import SimpleNamespace

import pytest

from swift.http.body import BytesBody
from swift.http.request import Request
from swift.proxy.obj.write.copies import is_small


@pytest.mark.parametrize(
    ("body", "small"),
    [
        (BytesBody(b""), True),
        (BytesBody(b"x" * 10), True),
        (BytesBody(b"x" * 11), False),
        (BytesBody(b"x", chunked=True), False),
    ],
)
def test_a_body_is_small_when_its_length_is_known_and_within_a_chunk(body, small):
    context = SimpleNamespace(settings=SimpleNamespace(client_chunk_size=10))
    assert is_small(Request("PUT", "/v1/a/c/o", {}, body), context) is small

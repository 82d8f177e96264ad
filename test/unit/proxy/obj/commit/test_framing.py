"""Footers are a dictionary that does not care about case; which bodies fit into one piece of memory."""

import pytest

from swift.http.body import BytesBody
from swift.http.request import Request
from swift.proxy.obj.commit.framing import Footers, is_small


def test_names_are_found_in_any_case():
    footers = Footers({"X-Object-Meta-A": "1"})
    footers["ETAG"] = "e"
    footers.update({"X-Object-Meta-A": "2"})
    footers.setdefault("x-object-meta-b", 3)
    assert footers == {"x-object-meta-a": "2", "etag": "e", "x-object-meta-b": "3"}
    assert footers["Etag"] == footers.get("eTag") == "e"
    assert "X-OBJECT-META-A" in footers and 5 not in footers
    assert footers.pop("ETag") == "e" and footers.pop("etag", None) is None
    del footers["X-Object-Meta-B"]
    assert list(footers) == ["x-object-meta-a"]


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
    assert is_small(Request("PUT", "/v1/a/c/o", {}, body), 10) is small

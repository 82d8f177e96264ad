"""Names and values that clients of the peer have stored are kept, returned and removed like any other."""

from __future__ import annotations

import pytest

from swift.wire.ssync import Subrequest, put_subrequest
from test.support.checks import every

#: Latin-1 views of what stands on the wire; the peer takes all of these.
NAMES = ["\xc3\xbc", "\xc3\x9c", "\xff", "\xe3x", "a b", '"(a)"', "\x7f", "a\x01"]
VALUES = ["v", "\x01\x02\x1b", "\xff\xfe", "\x7f", "\xc3\xbc", "a\tb", "voil\xc3\xa0", "a\x1c"]


def found(bench):
    headers = bench.ask("HEAD").headers
    return {name: value for name, value in headers.items() if name.startswith("x-object-meta-")}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", VALUES)
def test_odd_metadata_is_stored_returned_replaced_and_removed(bench, name, value):
    header = f"x-object-meta-{name}"
    assert bench.ask("PUT", headers={header: value}, body=b"x").status == 201
    assert found(bench) == {header: value}
    assert bench.ask("POST", headers={header: f"new {value}"}).status == 202
    assert found(bench) == {header: f"new {value}"}
    assert bench.ask("POST", headers={}).status == 202
    assert found(bench) == {}
    assert bench.ask("DELETE").status == 204


@every("name", NAMES)
@every("value", VALUES)
def test_replication_carries_odd_metadata_unchanged(name, value):
    sent = put_subrequest("/a/c/o", {f"X-Object-Meta-{name}": value, "Content-Length": "0"})
    head = sent.encode().decode("latin-1").split("\r\n")
    got = Subrequest.parse(head[0], head[1:-2])
    assert got.headers == {f"x-object-meta-{name}": value, "content-length": "0"}

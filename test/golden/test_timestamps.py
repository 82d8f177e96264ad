"""Timestamps parse, print, order and pack exactly as the peer's do."""

import json
from pathlib import Path

import pytest

from swift.base.timestamp import (
    InvalidTimestamp,
    Timestamp,
    decode_timestamps,
    encode_timestamps,
    normalize_delete_at,
)
from test.support.checks import every

GOLDEN = json.loads((Path(__file__).parent / "data" / "timestamps.json").read_text())


@pytest.mark.parametrize("case", GOLDEN["parse"], ids=lambda c: str(c["input"]))
def test_every_form_of_a_parsed_timestamp_is_the_peers(case):
    t = Timestamp(case["input"])
    assert {
        "normal": t.normal,
        "internal": t.internal,
        "short": t.short,
        "offset": t.offset,
        "raw": t.raw,
        "isoformat": t.isoformat,
        "last_modified": t.http_date,
        "inverted": t.inverted().short,
    } == {k: v for k, v in case.items() if k != "input"}


@pytest.mark.parametrize("text", [text for text, _ in GOLDEN["errors"]])
def test_what_the_peer_refuses_is_refused(text):
    with pytest.raises(InvalidTimestamp):
        Timestamp(text)


@every(("a", "b", "order"), GOLDEN["ordering"])
def test_ordering_is_the_peers(a, b, order):
    x, y = Timestamp(a), Timestamp(b)
    assert (x > y) - (x < y) == order


@pytest.mark.parametrize("case", GOLDEN["encode"], ids=lambda c: c["encoded"])
def test_packing_is_the_peers(case):
    times = [None if t is None else Timestamp(t) for t in case["t"]]
    assert encode_timestamps(*times, explicit=case["explicit"]) == case["encoded"]


@pytest.mark.parametrize("explicit", [True, False])
def test_unpacking_is_the_peers(explicit):
    for text, expected in GOLDEN["decode_explicit" if explicit else "decode_implicit"]:
        got = [t and t.internal for t in decode_timestamps(text, explicit=explicit)]
        assert got == expected, text


@pytest.mark.parametrize(("value", "low", "high"), GOLDEN["normalize_delete_at"])
def test_delete_at_is_normalised_as_the_peer_does(value, low, high):
    assert normalize_delete_at(value) == low
    assert normalize_delete_at(value, high_precision=True) == high

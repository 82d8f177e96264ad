"""Figures of several processes, added up."""

from collections import Counter

import pytest

from swift.store.tier.figures import hit_rate, merge_reports, pack_report

ONE = Counter({("metadata", "sda", "hits"): 3, ("metadata", "sda", "misses"): 1})
TWO = Counter({("metadata", "sda", "hits"): 1, ("data", "sdb", "kept"): 7})


def test_reports_are_added_up_and_states_kept_apart():
    total, states = merge_reports(
        [pack_report(ONE, {"pid": 1}), pack_report(TWO, {"pid": 2, "failure": "gone"})]
    )
    assert total == {
        ("metadata", "sda", "hits"): 4,
        ("metadata", "sda", "misses"): 1,
        ("data", "sdb", "kept"): 7,
    }
    assert states == [{"pid": 1}, {"pid": 2, "failure": "gone"}]


@pytest.mark.parametrize(
    "report",
    [
        b"",
        b"\xff",
        pack_report(ONE, {})[:-3],
        b"7",
        b"[]",
        b"null",
        b'{"figures": 5}',
        b'{"figures": [[1, 2]]}',
        b'{"figures": [["a", "b", "c", "x"]]}',
        b'{"figures": [[["a"], "b", "c", 1]]}',
    ],
)
def test_a_report_that_is_not_whole_counts_as_none(report):
    assert merge_reports([report, pack_report(ONE, {"pid": 1})]) == (ONE, [{"pid": 1}])


def test_a_rate_is_of_a_class_on_a_device_or_on_all():
    total = ONE + Counter({("metadata", "sdb", "misses"): 4})
    assert hit_rate(total, "metadata", "sda") == 0.75
    assert hit_rate(total, "metadata") == 3 / 8
    assert hit_rate(total, "metadata", "sdb") == 0
    assert hit_rate(total, "data") is None and hit_rate(total, "metadata", "sdc") is None

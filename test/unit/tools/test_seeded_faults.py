"""Seeded faults are one-line changes that compile; the same seed draws the same ones."""

import pytest

from tools.seeded_faults import draw, faults_of

SOURCE = '''"""A module."""

def size(of: int = 3, limit=7) -> int:
    """Return é."""
    assert of > 0, "é"
    if of < limit:
        record("é", of)
    total = max(of, limit)
    return total


def record(name, value):
    print(name, value)
'''


def changes(kind):
    return [fault.after.strip() for fault in faults_of(SOURCE, "m.py") if fault.kind == kind]


@pytest.mark.parametrize(
    ("kind", "after"),
    [
        ("negated condition", ["if (not (of < limit)):"]),
        ("comparison", ["if of <= limit:"]),
        ("swapped arguments", ["total = max(limit, of)", 'record(of, "é")', "print(value, name)"]),
        ("dropped line", ["pass", "pass", "pass"]),
        ("off by one", ["def size(of: int = 4, limit=7) -> int:", "def size(of: int = 3, limit=8) -> int:"]),
    ],
)
def test_every_kind_of_fault_is_found_and_nothing_that_has_no_effect(kind, after):
    assert sorted(changes(kind)) == sorted(after)


def test_a_fault_changes_one_line():
    for fault in faults_of(SOURCE, "m.py"):
        pairs = enumerate(zip(fault.seeded(SOURCE).split("\n"), SOURCE.split("\n"), strict=True), 1)
        assert [number for number, (ours, theirs) in pairs if ours != theirs] == [fault.line]


def test_a_draw_is_repeatable_and_takes_different_lines(tmp_path):
    (tmp_path / "swift").mkdir()
    for name in "ab":
        (tmp_path / "swift" / f"{name}.py").write_text(SOURCE)
    drawn = draw(tmp_path, ["swift"], 8, 1)
    assert drawn == draw(tmp_path, ["swift"], 8, 1) != draw(tmp_path, ["swift"], 8, 2)
    assert len({(fault.path, fault.line) for fault in drawn}) == 8 == len(drawn)
    assert draw(tmp_path, ["swift/a.py"], 99, 1)[0].path == "swift/a.py"

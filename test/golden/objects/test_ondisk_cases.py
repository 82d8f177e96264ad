"""Every worked case of which files win gives the peer's answer (spec: object-disk.md §6)."""

from __future__ import annotations

import json
from pathlib import Path

from swift.base.timestamp import Timestamp
from swift.policy.policy import ErasureCode
from swift.store.api import FragmentPreference
from swift.store.chooser import Choice, choose
from test.support.checks import every

CASES = json.loads((Path(__file__).parent.parent / "data/objects/ondisk-cases.json").read_text())
EC42 = ErasureCode("liberasurecode_rs_vand", 4, 2)
ALL = [(group, i, case) for group, cases in CASES.items() for i, case in enumerate(cases)]


def _preferences(case):
    if "frag_prefs" not in case:
        return None
    return [
        FragmentPreference(Timestamp(p["timestamp"]), frozenset(p["exclude"])) for p in case["frag_prefs"]
    ]


def _as_golden(choice: Choice) -> dict:
    def name(file):
        return file.name if file else None

    return {
        "data_file": name(choice.data),
        "meta_file": name(choice.meta),
        "ctype_file": name(choice.ctype),
        "ts_file": name(choice.tombstone),
        "obsolete": sorted(file.name for file in choice.obsolete),
        "possible_reclaim": sorted(file.name for file in choice.possible_reclaim),
        "unexpected": sorted(choice.unexpected),
    }


@every(("group", "number", "case"), ALL, ids=[f"{g}-{i}" for g, i, _ in ALL])
def test_the_recorded_choice_is_made(group, number, case):
    ec = EC42 if group.startswith("ec") else None
    choice = choose(case["files"], ec, preferences=_preferences(case), fragment=case.get("frag_index"))
    expected = case["result"]
    assert _as_golden(choice) == {
        key: sorted(value) if isinstance(value, list) else value
        for key, value in expected.items()
        if key in _as_golden(choice)
    }
    if ec:
        durable = choice.durable_timestamp.internal if choice.durable_timestamp else None
        sets = {t.internal: [f.fragment for f in files] for t, files in choice.fragment_sets}
        assert durable == expected["durable_timestamp"]
        assert sets == expected["frag_sets"]


def test_all_recorded_cases_are_here():
    assert len(ALL) == 74

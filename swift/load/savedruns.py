"""A run read from its JSON, for reports and comparisons."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from swift.base.errors import SwiftError
from swift.load.measure import PhaseResult
from swift.load.summary import OperationRow, PhaseCosts


class BadResult(SwiftError):
    """A file that is no result of a run."""


@dataclass(frozen=True)
class SavedPhase:
    """One phase of a run."""

    name: str
    kind: str
    clients: int
    rate: float | None
    result: PhaseResult


@dataclass(frozen=True)
class SavedRun:
    """A run."""

    workload: str
    description: str
    is_interrupted: bool
    rows: list[OperationRow]
    costs: list[PhaseCosts]
    phases: list[SavedPhase]


def read_saved_run(path: Path) -> SavedRun:
    """Return the run of a file; raises ``BadResult``."""
    try:
        return parse_saved_run(json.loads(path.read_text()))
    except (OSError, UnicodeDecodeError) as error:
        raise BadResult(f"{path}: cannot be read: {error}")
    except Exception as error:
        # Histograms are decoded by foreign code, which fails in its own ways.
        raise BadResult(f"{path}: no result of swift-load run --json ({type(error).__name__}: {error})")


def parse_saved_run(found: Mapping[str, object]) -> SavedRun:
    """Return the run of ``summary.to_json``; raises KeyError, TypeError and ValueError."""
    return SavedRun(
        str(found["workload"]),
        str(found["description"]),
        found["interrupted"] is True,
        [OperationRow(**_check_types(row, OperationRow)) for row in _tables(found["rows"])],
        [PhaseCosts(**_check_types(costs, PhaseCosts)) for costs in _tables(found["costs"])],
        [
            SavedPhase(
                str(phase["name"]),
                str(phase["kind"]),
                int(phase["clients"]),
                None if phase["rate"] is None else float(phase["rate"]),
                PhaseResult.from_json(phase["measured"]),
            )
            for phase in _tables(found["phases"])
        ],
    )


def _check_types(table: dict, kind: type[OperationRow] | type[PhaseCosts]) -> dict:  # type: ignore[type-arg]
    """Return the table, with text and numbers where they belong; raises KeyError and TypeError."""
    for name, wanted in kind.__annotations__.items():
        value = table[name]
        if value is None and wanted.endswith("None"):
            continue
        allowed = str if wanted == "str" else (int, float)
        if isinstance(value, bool) or not isinstance(value, allowed):
            raise TypeError(f"{name} is {value!r}")
    return table


def _tables(found: object) -> list[dict]:  # type: ignore[type-arg]
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise TypeError("must be a list of tables")
    return found

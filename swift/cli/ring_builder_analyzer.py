"""swift-ring-builder-analyzer: play a scenario of device changes and see how the builder copes.

A scenario is a JSON file with ring settings and rounds of commands; every round is rebalanced until nothing
improves. Nothing is written unless a scenario says ``save``. spec: ring.md §13
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from swift.base.documents import JsonObject
from swift.config.commandline import CommandLine
from swift.ring.builder import BALANCE_OF_WEIGHTLESS, RingBuilder
from swift.ring.commands.select import BadValue, parse_add_value
from swift.ring.errors import RingError

_REBALANCES_MIN = 2
_BALANCE_WORTH_ANOTHER = 1
_MIN_PART_HOURS = 1


class BadScenario(Exception):
    """The scenario is invalid; the text has the reason."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A checked scenario; a step of a round changes the builder."""

    part_power: int
    replicas: float
    overload: float
    random_seed: int
    rounds: tuple[tuple[Callable[[RingBuilder], None], ...], ...]


def parse_scenario(text: str) -> Scenario:
    """Return the scenario in JSON text. Raises BadScenario."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadScenario(f"Invalid JSON in scenario file: {error}")
    if not isinstance(content, dict):
        raise BadScenario("Scenario must be a JSON object, not array or string")
    part_power = _number(content, "part_power", int)
    if not 1 <= part_power <= 32:
        raise BadScenario(f"part_power must be between 1 and 32, but was {part_power}")
    replicas = _number(content, "replicas", float)
    if not replicas >= 1:
        raise BadScenario(f"replicas must be at least 1, but is {replicas:.6f}")
    overload = _number(content, "overload", float)
    if not overload >= 0:
        raise BadScenario(f"overload must be non-negative, but is {overload:.6f}")
    seed = _number(content, "random_seed", int)
    return Scenario(part_power, replicas, overload, seed, _parse_rounds(content))


_Number = TypeVar("_Number", int, float)


def _number(content: JsonObject, name: str, kind: type[_Number]) -> _Number:
    if name not in content:
        raise BadScenario(f"{name} missing")
    try:
        return kind(content[name])
    except (TypeError, ValueError, OverflowError) as error:
        what = "an integer" if kind is int else "a float"
        raise BadScenario(f"{name} not {what}: {error}")


def _parse_rounds(content: JsonObject) -> tuple[tuple[Callable[[RingBuilder], None], ...], ...]:
    if "rounds" not in content:
        raise BadScenario("rounds missing or empty")
    if not isinstance(content["rounds"], list):
        raise BadScenario("rounds must be an array")
    rounds = []
    for place, steps in enumerate(content["rounds"]):
        if not isinstance(steps, list):
            raise BadScenario(f"round {place} not an array")
        rounds.append(
            tuple(
                _parse_step(step, f"(round {place}, command {number})") for number, step in enumerate(steps)
            )
        )
    return tuple(rounds)


def _parse_step(step: object, where: str) -> Callable[[RingBuilder], None]:
    # A name may be anything that JSON can say, also what no dictionary can be asked for.
    if not isinstance(step, list) or not step or step[0] not in list(_STEPS):
        name = step[0] if isinstance(step, (list, str)) and step else step
        raise BadScenario(f"Unknown command {where}: {name!r} should be one of {sorted(_STEPS)}")
    length, parse = _STEPS[step[0]]
    if len(step) != length:
        raise BadScenario(
            f"Invalid {step[0]} command {where}: expected array of length {length}, but got {step}"
        )
    return parse(step, where)


def _parse_add(step: list[object], where: str) -> Callable[[RingBuilder], None]:
    try:
        fields = parse_add_value(str(step[1]))
    except BadValue as error:
        raise BadScenario(f"Invalid device specifier {where}: {error}")
    fields.setdefault("region", 1)
    fields["weight"] = _weight(step[2], where)
    return lambda builder: _ignore_result(builder.add_device(**fields))


def _parse_remove(step: list[object], where: str) -> Callable[[RingBuilder], None]:
    dev_id = _dev_id(step[1], f"Invalid device ID in remove {where}")
    return lambda builder: builder.remove_device(dev_id)


def _parse_set_weight(step: list[object], where: str) -> Callable[[RingBuilder], None]:
    dev_id = _dev_id(step[1], f"Invalid device ID in set_weight {where}")
    weight = _weight(step[2], where)
    return lambda builder: _ignore_result(builder.change_device(dev_id, weight=weight))


def _parse_save(step: list[object], where: str) -> Callable[[RingBuilder], None]:
    path = step[1]
    if not isinstance(path, str) or not path or "\0" in path:
        raise BadScenario(f"Invalid file in save {where}: {path!r}")
    return lambda builder: builder.save(path)


def _ignore_result(result: object) -> None:
    """Accept a step without a result."""


def _dev_id(value: Any, what: str) -> int:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadScenario(f"{what}: {error}")


def _weight(value: Any, where: str) -> float:
    try:
        weight = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadScenario(f"Invalid weight {where}: {error}")
    if weight < 0:
        raise BadScenario(f"Invalid weight {where}: cannot be negative")
    if not math.isfinite(weight):
        raise BadScenario(f"Invalid weight {where}: must be finite")
    return weight


_STEPS: dict[str, tuple[int, Callable[[list[object], str], Callable[[RingBuilder], None]]]] = {
    "add": (3, _parse_add),
    "remove": (2, _parse_remove),
    "set_weight": (3, _parse_set_weight),
    "save": (2, _parse_save),
}


def run_scenario(scenario: Scenario, say: Callable[[str], None]) -> list[list[dict[str, object]]]:
    """Play all rounds; returns the results of each. Raises RingError when a step cannot be done."""
    builder = RingBuilder(scenario.part_power, scenario.replicas, _MIN_PART_HOURS)
    builder.overload = scenario.overload
    seed = scenario.random_seed
    results: list[list[dict[str, object]]] = []
    for number, steps in enumerate(scenario.rounds, 1):
        say(f"Round {number}")
        for step in steps:
            step(builder)
        results.append([])
        while True:
            before = builder.balance
            result = builder.rebalance(seed=seed)
            builder.pretend_min_part_hours_passed()
            seed += 1
            results[-1].append(
                {"moved": result.changed, "balance": result.balance, "removed": result.removed}
            )
            say(
                f"\tRebalance {len(results[-1])}: moved {result.changed} parts, "
                f"balance is {result.balance:.6f}, {result.removed} removed devs"
            )
            if len(results[-1]) < _REBALANCES_MIN:
                continue
            stuck = before == result.balance == BALANCE_OF_WEIGHTLESS
            if not (result.changed or result.removed):
                break
            if abs(before - result.balance) < _BALANCE_WORTH_ANOTHER and not stuck:
                break
    return results


class _Parser(CommandLine):
    def error(self, message: str) -> NoReturn:
        self.exit(1, f"{self.prog}: error: {message}\n")


def make_parser() -> CommandLine:
    """Return the command line."""
    parser = _Parser(
        prog="swift-ring-builder-analyzer",
        description="Plays a scenario of device changes and rebalances and shows what moves.",
        epilog="Example: swift-ring-builder-analyzer scenario.json",
    )
    parser.add_argument("scenario_path", help="the scenario, a JSON file")
    parser.add_argument("--check", "-c", action="store_true", help="only check the scenario")
    parser.add_format()
    return parser


def main(argv: list[str] | None = None) -> int:
    """Check and play one scenario file; 0 when it could be played, else 1."""
    options = make_parser().parse_args(argv)
    path = options.scenario_path
    try:
        with open(path, encoding="utf-8") as file:
            scenario = parse_scenario(file.read())
        if options.check:
            return 0
        text = options.format == "text"
        results = run_scenario(scenario, print if text else lambda line: None)
        if not text:
            print(json.dumps(results, indent=4, sort_keys=True))
    except (OSError, UnicodeDecodeError) as error:
        print(f"Error opening scenario {path}: {error}", file=sys.stderr)
        return 1
    except (BadScenario, RingError) as error:
        print(f"Invalid scenario {path}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

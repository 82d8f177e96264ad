"""One test over many cases that still names every case which fails, and why."""

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

#: So many failures are shown with their reasons, the others by name only.
REASONS_MAX = 40
#: Characters of one reason that are shown.
REASON_CHARS = 2000


def check_each(
    cases: Iterable[T],
    check: Callable[[T], object],
    *,
    named: Callable[[T], object] = str,
    failing: tuple[type[BaseException], ...] = (AssertionError,),
) -> None:
    """Call ``check`` with every case; fail once with all cases in which it raised one of ``failing``."""
    total, failures = 0, []
    for case in cases:
        total += 1
        try:
            check(case)
        except failing as error:
            failures.append((named(case), str(error)))
    assert total, "there is no case to check"
    report_all(failures, total)


def report_all(failures: list[tuple[object, str]], total: int) -> None:
    """Fail with every (name, reason) unless there is none."""
    if not failures:
        return
    lines = [f"{len(failures)} of {total} cases differ:"]
    for number, (name, reason) in enumerate(failures):
        lines.append(f"- {name}" + (f": {reason[:REASON_CHARS]}" if number < REASONS_MAX else ""))
    raise AssertionError("\n".join(lines))

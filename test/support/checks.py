"""Tests over many cases that report each failing case, pairwise combinations, golden archives."""

import inspect
import os
import random
import tarfile
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any, TypeVar

import pytest

# --- checks -----------------------------------------------------------------------------------------

# One test over many cases that still names every case which fails, and why.


T = TypeVar("T")

#: So many failures are shown with their reasons, the others by name only.
REASONS_MAX = 40
#: Characters of one reason that are shown.
REASON_CHARS = 2000
#: What a check fails with; that of ``pytest.raises`` is no ``Exception``.
FAILURES = (Exception, pytest.fail.Exception)

#: What pytest-timeout fails with.
TIMEOUT = "from pytest-timeout"


def check_each(
    cases: Iterable[T], check: Callable[[T], object], *, named: Callable[[T], object] = str
) -> None:
    """Call ``check`` with every case; fail once with all failing cases and their reasons.

    The traceback is that of the first one.
    """
    total, skipped, failures, first = 0, 0, [], None
    for case in cases:
        total += 1
        try:
            check(case)
        except pytest.skip.Exception as error:
            skipped += 1
            reason = error
        except FAILURES as error:
            kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
            failures.append((named(case), f"{kind}{error}"))
            first = first or error
            if TIMEOUT in str(error):
                # The time of the whole test is over: no further case may use more.
                break
    assert total, "there is no case to check"
    if skipped == total:
        raise reason
    report_all(failures, total, first)


def report_all(failures: list[tuple[object, str]], total: int, first: BaseException | None = None) -> None:
    """Fail with every (name, reason), if there are any."""
    if not failures:
        return
    lines = [f"{len(failures)} of {total} cases differ:"]
    for number, (name, reason) in enumerate(failures):
        lines.append(f"- {name}" + (f": {reason[:REASON_CHARS]}" if number < REASONS_MAX else ""))
    raise AssertionError("\n".join(lines)) from first


def every(names: str | tuple[str, ...], cases: Iterable[Any], **_shown: object) -> Callable[..., Any]:
    """Like ``pytest.mark.parametrize``, but all cases are one test, which names those that fail.

    For tests that take some milliseconds and leave nothing behind: fixtures are shared by all cases.
    """
    keys = names if isinstance(names, tuple) else tuple(name.strip() for name in names.split(","))
    listed = list(cases)

    def decorate(test: Callable[..., object]) -> Callable[..., None]:
        def over_all(**fixtures: Any) -> None:
            def check(case: Any) -> object:
                return test(**fixtures, **dict(zip(keys, (case,) if len(keys) == 1 else case, strict=True)))

            check_each(listed, check, named=lambda case: repr(case)[:200])

        left = [p for name, p in inspect.signature(test).parameters.items() if name not in keys]
        over_all.__name__, over_all.__doc__, over_all.__module__ = (
            test.__name__,
            test.__doc__,
            test.__module__,
        )
        over_all.__signature__ = inspect.Signature(left)
        over_all.pytestmark = list(getattr(test, "pytestmark", []))
        return over_all

    return decorate


# --- pairwise ---------------------------------------------------------------------------------------

# Of all combinations as many as it takes to have every pair of values together once.


def pairwise(cases: Sequence[tuple]) -> list[tuple]:
    """Return the cases, in order, that cover every pair of values at two positions; deterministic."""
    wanted = {pair for case in cases for pair in _pairs(case)}
    order = list(range(len(cases)))
    random.Random(0).shuffle(order)
    chosen: set[int] = set()
    width = len(cases[0]) if cases else 0
    for least in range(width * (width - 1) // 2, 0, -1):
        for number in order:
            fresh = wanted.intersection(_pairs(cases[number]))
            if len(fresh) >= least:
                chosen.add(number)
                wanted -= fresh
    return [cases[number] for number in sorted(chosen)]


def _pairs(case: tuple) -> list[tuple]:
    return list(combinations(enumerate(case), 2))


def chosen(cases: Sequence[tuple]) -> list[tuple]:
    """Return all cases with ``SWIFT_INTERPLAY=whole``, which ``bin/test whole`` sets; else pairwise ones."""
    return list(cases) if os.environ.get("SWIFT_INTERPLAY") == "whole" else pairwise(cases)


# --- archives ---------------------------------------------------------------------------------------

# Unpacking golden archives on every supported Python (3.11.2 of Debian 12 knows no extraction filters).


def unpack(path, folder):
    """Unpack one of our own archives into ``folder``."""
    with tarfile.open(path) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(folder, filter="data")
        else:
            archive.extractall(folder)
